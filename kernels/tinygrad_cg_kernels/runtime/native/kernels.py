"""The kernels' functions as machine code: translated, or compiled by Numba where they cannot be.

Such a function is made by a template. It closes over functions, dtypes and numbers alone, since its
file in the disk cache is found by these.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core.errors import NumbaError, TypingError

from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import (
    machine,
    numba_intrinsics,
    objects,
    progress,
    thread_pool_code,
)
from tinygrad_cg_kernels.runtime.frames import deep
from tinygrad_cg_kernels.runtime.locks import ForkLock
from tinygrad_cg_kernels.runtime.native import tiers
from tinygrad_cg_kernels.runtime.native.calling import EntryText, PythonFunction
from tinygrad_cg_kernels.runtime.native.module import KNOWN, PART, Module
from tinygrad_cg_kernels.runtime.native.sources import source_of
from tinygrad_cg_kernels.runtime.native.translate import LATER, SUMS, WANTED
from tinygrad_cg_kernels.runtime.native.values import NAMES, Array, Unsupported, Untranslatable
from tinygrad_cg_kernels.runtime.store import Store

_store = Store("kernels")
_lock = ForkLock()
by_numba: list[str] = []
"""The kernels that Numba compiled, and why, in order."""
enabled = True
"""Whether kernels are translated."""
_early: dict[str, bytes] = {}
"""The code of what `together` has compiled."""
_begun: dict[str, Callable[[], bytes]] = {}
"""What waits for the code that `begin_words` has another core compile."""
if hasattr(os, "register_at_fork"):  # no other core goes on with it in a child
    os.register_at_fork(after_in_child=_begun.clear)


class CompileTarget:
    """How kernels are compiled for the processor that they run on.

    A second device has a target of its own: its flags, how it compiles a block kernel, and what
    calls one by what `block` returned (see `threads`).
    """

    flags = build.FLAGS

    def block(self, function: Callable, name: str, cached: bool) -> tuple[int, Any]:
        """Compile a function of a table's address and a range of units; its address and owner."""
        code = _translated(function, name, 3, BLOCK, first=True) if cached else None
        if code is not None:
            return code.address("entry"), code
        return build.block_address(function, name)

    @contextlib.contextmanager
    def together(self, named: Iterable[tuple[Callable, str]]) -> Iterator[None]:
        """Compile several functions on all cores, for `block` to return inside."""
        new: dict[str, machine.Text] = {}
        for function, name in named:
            with contextlib.suppress(Untranslatable, NumbaError):  # `block` says why
                key = _key(function, name, 3)
                first = _first_key(key)
                if enabled and not _store.has(key) and not _store.has(first):
                    new[first] = _Translation(function, 3, BLOCK).first_form()
        if new:
            with build.no_collection(), progress.compiling(len(new)):
                _early.update(zip(new, _compiled(list(new.values()), BLOCK), strict=True))
        try:
            yield
        finally:
            for key in new:
                _early.pop(key, None)


CPU = CompileTarget()


def words_function(
    function: Callable, name: str, count: int, level: int = machine.LEVEL, first: bool = False
) -> tuple[int, Any]:
    """Compile a function of so many integers, which returns one; its address and owner.

    `level` is LLVM's, see `machine`. With `first` it may be as it is written: see `tiers.counted`.
    """
    code = _translated(function, name, count, WORDS._replace(level=level), first=first)
    if code is not None:
        return code.address("entry"), code
    return build.block_address(function, name, types.intp(*[types.intp] * count))


def begin_words(function: Callable, name: str, count: int, level: int = machine.LEVEL) -> None:
    """Have another core compile what `words_function` is asked for next, unless it is cached."""
    with contextlib.suppress(Untranslatable, NumbaError):  # `words_function` says why
        key, entry = _key(function, name, count), WORDS._replace(level=level)
        if enabled and key not in _begun and not _store.has(key):
            _begun[key] = machine.Job(_Translation(function, count, entry).text().compiled)


def objects_function(
    function: Callable,
    name: str,
    count: int,
    cached: bool,
    before: Callable[[], object] = lambda: None,
) -> tuple[Callable, Any]:
    """Compile a function of Python's objects that returns one; what calls it, and its owner.

    What its code calls has to be there once `before` returns, which is called before it is loaded.
    """
    code = _translated(function, name, count, OBJECTS, before, first=True) if cached else None
    if code is not None:
        owner = PythonFunction(code, name)
        return owner.callable(), owner
    before()
    owner = build.kernel(function, name)
    return build.entry(owner, *[numba_intrinsics.OBJECT] * count), owner


def arrays_function(
    function: Callable, name: str, kinds: tuple[types.Type, ...]
) -> tuple[Callable, Any]:
    """Compile a function of contiguous arrays, integers and tuples of integers, of Numba's types.

    It returns nothing, and runs without the interpreter's lock. What calls it, and its owner.
    """
    code = None
    if objects.supported:
        code = _translated(function, name, kinds, ARRAYS, first=True)
    if code is not None:
        owner = PythonFunction(code, name)
        return tiers.counted(owner.callable(), code.better), owner
    owner = build.kernel(function, name, nogil=True)
    return build.entry(owner, *kinds), owner


def _own_type(kind: types.Type) -> Any:
    """Return Numba's type of an argument as a translation's."""
    if isinstance(kind, types.Array) and (kind.ndim, kind.layout) == (1, "C"):
        return Array(NAMES.get(kind.dtype) or _none(kind))
    if isinstance(kind, types.UniTuple):
        return (_own_type(kind.dtype),) * kind.count
    if kind in (types.int64, types.uint64):
        return NAMES[kind]
    return _none(kind)


def _none(kind: types.Type) -> Any:
    raise Untranslatable(f"an argument of type {kind}")


def _translated(
    function: Callable,
    name: str,
    kinds: Any,
    entry: _Entry,
    before: Callable[[], object] = lambda: None,
    first: bool = False,
) -> machine.Code | None:
    """Return a function's machine code; None where that is left to Numba.

    With `first` it may be a form that is compiled sooner, see `tiers`.
    """
    if not enabled:
        return None
    try:
        key = _key(function, name, kinds)
        made, own = _Translation(function, kinds, entry), key
        text = made.text
        if first and not _store.has(key):
            own, text = _first_key(key), made.first_form
        data = _object_code(own, name, text, entry)
        before()
        if LATER.encode() in data:
            code = CodeOfParts(data, own, name, made, first=own != key)
        else:
            code = machine.Code(data)
        if own != key:
            better = partial(_better, code, function, name, kinds, entry)
            code.better = tiers.Better(code, better)
        return code
    except Unsupported as error:
        raise TypingError(str(error)) from error
    except (Untranslatable, NumbaError) as error:
        by_numba.append(f"{name}: {str(error).splitlines()[0]}")
        return None


def _better(
    first: machine.Code, function: Callable, name: str, kinds: Any, entry: _Entry
) -> machine.Code | None:
    """Return the machine code of a better form with the parts that the first one has.

    That of a block kernel has all: who calls it looks at the first form's parts alone.
    """
    code = _translated(function, name, kinds, entry)
    if isinstance(code, CodeOfParts) and isinstance(first, CodeOfParts):
        code.supply(code.every() if entry.uses_pool else first.known)
    return code


class _Entry(NamedTuple):
    """A way into a function."""

    text: Callable[[Module, Any, tuple], str]
    """Returns the text of what is called, from the module, its function and this one's arguments.
    """
    arguments: Callable[[Any], tuple]
    """Returns the types of a translation's arguments, from what the entry's user gave."""
    uses_pool: bool = False
    level: int = machine.LEVEL
    choice: str = tiers.PLAIN
    """How a first form runs."""


def _key(function: Callable, name: str, kinds: Any) -> str:
    return f"{name} {kinds} {_identity(function)}"


def _first_key(key: str) -> str:
    """Return the key of a kernel's first form."""
    return f"{key} first"


def _object_code(key: str, name: str, text: Callable[[], machine.Text], entry: _Entry) -> bytes:
    with build.alone(key):
        known = _store.read(key) if key not in _early else None
        if known is not None:
            build.loaded.append(name)
            return known[1]
        data, begun = _early.pop(key, None), _begun.pop(key, None)
        if data is None:
            with progress.compiling():
                data = begun() if begun else _compiled([text()], entry)[0]
        _store.write(key, {}, data)
        build.compiled.append(name)
        return data


class _Translation:
    """A kernel's function as texts: its own, and those of parts that are compiled later."""

    def __init__(self, function: Callable, kinds: Any, entry: _Entry):
        self._function, self._kinds, self._entry = function, kinds, entry
        self._module: Module | None = None

    def text(self) -> machine.Text:
        return self._texts()[0]

    def first_form(self) -> machine.Text:
        """Return the text of a form that is compiled sooner."""
        with machine.responsive():
            whole, module, symbol, entry = self._texts(self._level)
        level = self._level(len(whole.text))
        if level is None:
            level = machine.UNOPTIMISED
        own, *parts = module.first(symbol, machine.cores(), level)
        enough = tiers.ENOUGH_HEAVY if level == machine.HEAVY else tiers.ENOUGH
        work = enough // len(whole.text)
        text = tiers.with_choice(f"{entry}\n{own.text}", work, self._entry.choice)
        return own._replace(text=text, parts=parts)

    def _level(self, length: int) -> int | None:
        """Return LLVM's level for a first form of at least so many characters, if these tell."""
        if not self._entry.uses_pool:
            return machine.UNOPTIMISED
        return machine.HEAVY if length >= tiers.HEAVY else None

    @deep
    def _texts(
        self, early: Callable[[int], int | None] | None = None
    ) -> tuple[machine.Text, Module, str, str]:
        """Return the text; the module, its main function's symbol, and the way in."""
        module, arguments = Module(early=early), self._entry.arguments(self._kinds)
        with build.no_collection():
            made = module.function(source_of(self._function), arguments)
        self._module = module if module.later else None
        entry = self._entry.text(module, made, arguments)
        text = f"{entry}\n{module.main(made.name)}"
        level = min(self._entry.level, module.level)
        return machine.Text(text, level=level), module, made.name, entry

    def part(self, k: int, first: bool) -> machine.Text:
        module = self._translated()
        text, level = module.part(k), min(machine.LEVEL, module.level)
        return machine.Text(
            text, level=machine.UNOPTIMISED if first and SUMS not in text else level
        )

    def count(self) -> int:
        """Return how many parts there are."""
        return len(self._translated().later)

    def _translated(self) -> Module:
        if self._module is None:
            self.text()
        assert self._module is not None
        return self._module

    def forget(self) -> None:
        """Free what was kept for the next text."""
        self._module = None


class CodeOfParts(machine.Code):
    """A kernel's machine code, and that of its parts: each is compiled when it was first called."""

    def __init__(self, data: bytes, key: str, name: str, made: _Translation, first: bool):
        super().__init__(data)
        self._key, self._name, self._made, self._first = key, name, made, first
        self._parts: dict[int, machine.Code] = {}
        self._wanted = ctypes.c_int64.from_address(self.address(WANTED))
        self.known = ctypes.c_int64.from_address(self.address(KNOWN)).value
        """The parts that are compiled, a bit for each."""

    def every(self) -> int:
        """Return the bits of all parts."""
        return (1 << self._made.count()) - 1

    def wanting(self, known: int) -> bool:
        """Return whether calls of the kernel, since these parts were `known`, needed others."""
        return bool(self._wanted.value & ~known)

    def supply(self, more: int = 0) -> bool:
        """Compile the parts that were called, and `more`; return whether there are any new ones."""
        with _lock:
            new = (self._wanted.value | more) & ~self.known
            for k in range(new.bit_length()):
                if new >> k & 1:
                    self._supply_part(k)
            self._made.forget()
            return bool(new)

    def _supply_part(self, k: int) -> None:
        key, text = f"{self._key} part {k}", partial(self._made.part, k, self._first)
        code = machine.Code(_object_code(key, f"{self._name}_part", text, OBJECTS))
        ctypes.c_int64.from_address(self.address(LATER) + 8 * k).value = code.address(PART)
        self._parts[k] = code
        self.known |= 1 << k


def supply(owner: Any, every: bool = False) -> bool:
    """Compile the parts that calls of a kernel needed; return whether it is to be called again.

    With `every`, compile all parts, and a better form if there is one.
    """
    code = getattr(owner, "code", owner)
    better = getattr(code, "better", None)
    if better is not None and every:
        better.finish()
    forms = [one for one in (code, better and better.code) if isinstance(one, CodeOfParts)]
    new = [one.supply(one.every() if every else 0) for one in forms]
    return any(new)


def improve(owner: Any) -> bool:
    """Have a small kernel's better form compiled, if the first has done enough for it to ask."""
    better = getattr(getattr(owner, "code", None), "better", None)
    if better is None or not better.wanted():
        return False
    better.begin()
    return True


def with_parts(run: Callable[..., object], owner: Any, work: int) -> Callable[..., object]:
    """Return `run`, which runs a block kernel; it runs again where parts had to be compiled.

    A first form has the better one compiled, once it has done enough: `work` is what a call does.
    """
    run = tiers.counted(run, getattr(owner, "better", None), work)
    if not isinstance(owner, CodeOfParts):
        return run

    def run_again(*arrays: Any) -> None:
        known = owner.known
        run(*arrays)
        while owner.wanting(known):
            owner.supply()
            known = owner.known
            run(*arrays)

    return run_again


def _compiled(texts: list[machine.Text], entry: _Entry) -> list[bytes]:
    if entry.uses_pool:
        return thread_pool_code.compile_with(machine.compiled_together, texts)
    return machine.compiled_together(texts)


def _identity(thing: Any) -> str:
    """Return a text that tells what a kernel closes over from all else of the same sources."""
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return repr(thing)
    if isinstance(thing, np.dtype):
        return f"dtype {thing.str}"
    if isinstance(thing, tuple):
        return f"({', '.join(map(_identity, thing))})"
    if isinstance(thing, type):
        return f"{thing.__module__}.{thing.__qualname__}"
    code = getattr(thing, "__code__", None)
    if code is None or not build.is_ours(thing):
        raise Untranslatable(f"a kernel closes over {thing!r}")
    cells = [_identity(cell.cell_contents) for cell in thing.__closure__ or ()]
    place = f"{thing.__module__}.{thing.__qualname__}:{code.co_firstlineno}"
    if code.co_name == "<lambda>":  # there may be several in a line
        place += f" {code.co_code.hex()} {code.co_names}"
    return f"{place}[{', '.join(cells)}]"


def _words_text(module: Module, function: Any, arguments: tuple) -> str:
    given = ", ".join(f"i64 %x{k}" for k in range(len(arguments)))
    kind = {"b1": "i1", "i64": "i64"}[function.result]
    return "\n".join(
        [
            f"define i64 @entry({given}) {machine.wide()} {{",
            f"  %result = call {kind} @{function.name}({given})",
            f"  %word = {'zext i1' if kind == 'i1' else 'add i64 0,'} %result"
            + (" to i64" if kind == "i1" else ""),
            "  ret i64 %word",
            "}",
        ]
    )


def _objects_text(module: Module, function: Any, arguments: tuple) -> str:
    """Return the function that Python calls, with an array of objects; it counts them."""
    count = len(arguments)
    module.declare("Py_IncRef", "void @Py_IncRef(ptr)")
    module.declare_object("_Py_NoneStruct")
    lines = [
        f"define ptr @entry(ptr %self, ptr %args, i64 %count) {machine.wide()} {{",
        f"  %right = icmp eq i64 %count, {count}",
        "  br i1 %right, label %run, label %no",
        "run:",
    ]
    for k in range(count):
        lines.append(f"  %p{k} = getelementptr i64, ptr %args, i64 {k}")
        lines.append(f"  %x{k} = load i64, ptr %p{k}")
    given = ", ".join(f"i64 %x{k}" for k in range(count))
    lines += [
        f"  %word = call i64 @{function.name}({given})",
        "  %result = inttoptr i64 %word to ptr",
        "  ret ptr %result",
        "no:",
        "  call void @Py_IncRef(ptr @_Py_NoneStruct)",
        "  ret ptr @_Py_NoneStruct",
        "}",
    ]
    return "\n".join(lines)


def _arrays_text(module: Module, function: Any, arguments: tuple) -> str:
    entry = EntryText()
    module.declare("PyLong_AsLongLong", "i64 @PyLong_AsLongLong(ptr)")
    module.declare("Py_IncRef", "void @Py_IncRef(ptr)")
    module.declare_object("_Py_NoneStruct")

    def integer(thing: str) -> str:
        return "i64 " + entry.emit(f"call i64 @PyLong_AsLongLong(ptr {thing})")

    given = []
    for k, kind in enumerate(arguments):
        thing = entry.argument(k)
        if isinstance(kind, Array):
            given += entry.array(thing, 1)
        elif isinstance(kind, tuple):
            items = (entry.field(thing, objects.ITEMS + 8 * j, "ptr") for j in range(len(kind)))
            given += [integer(item) for item in items]
        else:
            given.append(integer(thing))
    result = {"b1": "i1", "i64": "i64"}[function.result]
    entry.run(f"call {result} @{function.name}({', '.join(given)})")
    entry.lines.append("  call void @Py_IncRef(ptr @_Py_NoneStruct)")
    entry.lines.append("  ret ptr @_Py_NoneStruct")
    return entry.text()


WORDS = _Entry(_words_text, lambda count: ("i64",) * count)
BLOCK = WORDS._replace(uses_pool=True)
OBJECTS = _Entry(
    _objects_text,
    lambda count: ("object",) * count,
    choice=tiers.COUNTED,
)
ARRAYS = _Entry(_arrays_text, lambda kinds: tuple(map(_own_type, kinds)))
