"""The compile service: ``compile(source, signature)`` returns an entry into machine code.

It has two backends: the fast front end (`tinygrad_cg_frontend`), whose text LLVM compiles, and
Numba (`numba_backend`), which is the reference and can compile each source, too. With
TINYGRAD_CG_COMPILER=numba, Numba compiles everything. If the front end refuses a source, Numba
compiles it, and `fallbacks` says why. Code of the front end is kept on disk (`store`). Several
sources are compiled on all cores (`compile_batch`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial, wraps
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from tinygrad_cg_frontend import (
    BASELINE_LONG,
    OPTIMIZED,
    Array,
    IRModule,
    LLVMSource,
    ScalarFunction,
    Unsupported,
    Untranslatable,
    source_of,
    text_scope,
)
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import (
    formulas,
    generated,
    machine,
    objects,
    progress,
    tiers,
)
from tinygrad_cg_kernels.runtime.formulas import KERNELS
from tinygrad_cg_kernels.runtime.locks import ForkLock, at_fork, no_collection
from tinygrad_cg_kernels.runtime.signatures import PythonFunction, Signature, arrays
from tinygrad_cg_kernels.runtime.store import Store, alone

lock = ForkLock()
"""Held while anything is compiled, except optimized code of kernels."""
at_fork(before=lock.__enter__, after_in_parent=lock.__exit__)  # a child has no compiling thread
fallbacks: list[str] = []
"""What the front end refused, and why, in order. Numba compiled it."""
_live: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""The owners of programs' code, by key. Programs with the same text share the code."""
_precompiled: dict[str, tuple[bytes, dict[str, ScalarFunction]]] = {}
"""Code that `compile_batch` compiled, by key: object code, and the formulas that it calls."""
_begun: dict[str, LLVMSource] = {}
"""Sources that another core compiles since `begin`, by key."""
at_fork(after_in_child=_begun.clear)  # no thread of the child compiles them


def uses_numba() -> bool:
    """Return whether Numba compiles everything: TINYGRAD_CG_COMPILER."""
    chosen = os.environ.get("TINYGRAD_CG_COMPILER") or "llvm"
    if chosen not in ("llvm", "numba"):
        raise ValueError(f"TINYGRAD_CG_COMPILER={chosen!r} is neither 'llvm' nor 'numba'")
    return chosen == "numba"


def numba_backend() -> Any:
    """Return the module `numba_backend`. Its first import imports Numba."""
    with lock:  # the process must not fork meanwhile
        from tinygrad_cg_kernels.runtime import numba_backend

        return numba_backend


def numba_callable() -> Any:
    """Return the module of that name, which imports Numba."""
    numba_backend()
    from tinygrad_cg_kernels.runtime import numba_callable

    return numba_callable


def result_kinds(function: Callable, inputs: int, types: tuple[str, ...]) -> Any:
    """Return the kind of a scalar function's result, or a tuple of kinds, for types of numbers.

    The front end translates functions of the library. Numba compiles others, and those that the
    front end refuses. Raises `CompileError`.
    """
    if build.is_ours(function) and not uses_numba():
        try:
            with lock, no_collection():
                module = IRModule(KERNELS, machine.processor())
                source = source_of(KERNELS.version(function, types[0]), KERNELS)
                return module.function(source, types).result
        except Unsupported as error:
            raise build.CompileError(str(error)) from error
        except Untranslatable as error:
            fallbacks.append(f"{function.__name__}: {error}")
    return numba_backend().result_kinds(function, inputs, types)


@cache
def outside(function: Callable) -> Callable:
    """Return a helper of float64 as a function of arrays, to be called from Python."""

    def unary(x, out):
        for i in range(np.uintp(out.size)):
            out[i] = function(x[i])

    def binary(x, y, out):
        for i in range(np.uintp(out.size)):
            out[i] = function(x[i], y[i])

    def ternary(x, y, z, out):
        for i in range(np.uintp(out.size)):
            out[i] = function(x[i], y[i], z[i])

    inputs = function.__code__.co_argcount
    source = KernelSource((unary, binary, ternary)[inputs - 1], function.__name__)
    run = compile(source, arrays(*[Array("f64")] * (inputs + 1))).run

    def call(*numbers: Any) -> Any:
        operands = np.broadcast_arrays(*[np.asarray(x, np.float64) for x in numbers])
        out = np.empty(operands[0].shape)
        run(*[x.ravel() for x in operands], out.reshape(-1))
        return out[()]

    return call


def in_float64(formula: Callable) -> Callable:
    """Return a formula of float64 as a function for float64 and float32, and for Python."""

    def unary(x):
        return np.float32(formula(np.float64(x)))

    def binary(x, y):
        return np.float32(formula(np.float64(x), np.float64(y)))

    def ternary(x, y, z):
        return np.float32(formula(np.float64(x), np.float64(y), np.float64(z)))

    narrow = (unary, binary, ternary)[formula.__code__.co_argcount - 1]

    @build.by_type(float64=build.jitable(formula), float32=narrow)
    @wraps(formula)
    def function(*numbers):
        return outside(formula)(*numbers)

    return function


class Entry(NamedTuple):
    """Compiled code: an address or a Python function, depending on the signature."""

    run: Any
    owner: Any
    """The object that owns the code, and has to live as long."""


class KernelSource(NamedTuple):
    """A function of the kernels, made by a template.

    It closes over functions, dtypes and numbers only, because they are part of its key. A kernel of
    a user's function is not `cached`, and Numba compiles it.
    """

    function: Callable
    name: str
    cached: bool = True

    store = Store("kernels")
    shared = False

    def key(self, signature: Signature) -> str:
        return f"{self.name} {signature} {identity(self.function)}"

    def python(self) -> Callable:
        return self.function

    def translate(self, request: _Request, scopes: dict[str, dict[str, Any]]) -> _Translated:
        """Return one module, which contains all that it calls."""
        blocks = request.signature.way == "blocks"
        module = IRModule(KERNELS, machine.processor(), for_blocks=blocks)
        with no_collection():
            function = module.function(source_of(self.function, KERNELS), request.signature.types)
        entry = request.signature.entry_text(module, function)
        if not request.is_baseline:
            level = OPTIMIZED if request.level is None else request.level
            return [LLVMSource(f"{entry}\n{module.text()}", level=level)], {}
        own = module.baseline(function.name)
        text = f"{entry}\n{own.text}"
        enough = tiers.TIER_UP_WORK_LONG if own.level == BASELINE_LONG else tiers.TIER_UP_WORK
        work = enough // len(module.text())
        counts = request.signature.way == "objects"
        return [own._replace(text=tiers.with_choice(text, work, counts))], {}


class TextSource(NamedTuple):
    """A function of a generated text."""

    text: str
    name: str

    store = Store("programs")
    shared = True
    cached = True

    def key(self, signature: Signature) -> str:
        return f"{self.name} {signature} {self.text}"

    def python(self) -> Callable:
        return getattr(generated.load(self.text), self.name)

    def translate(self, request: _Request, scopes: dict[str, dict[str, Any]]) -> _Translated:
        """Return modules for several cores, and the formulas they call."""
        scope = scopes.get(self.text) or scopes.setdefault(self.text, text_scope(self.text))
        module = IRModule(KERNELS, machine.processor(), scope, formulas.find)
        function = module.function(self.name, request.signature.types)
        entry = request.signature.entry_text(module, function)
        main, *others = module.parts()
        sources = []
        for text in (f"{entry}\n{main}", *others):
            inlined = [
                formula.text for formula in module.inlined.values() if f"@{formula.symbol}(" in text
            ]
            sources.append(LLVMSource(text, inlined))
        sources[0] = sources[0]._replace(level=module.level)
        return sources, module.called


Source = KernelSource | TextSource
_Translated = tuple[list[LLVMSource], dict[str, ScalarFunction]]
"""Modules, and the formulas they call."""


def compile(
    source: Source,
    signature: Signature,
    before: Callable[[], object] = lambda: None,
    level: int | None = None,
) -> Entry:
    """Compile the function of a source for a signature.

    `before` is called before the code is loaded, to make the symbols that it calls. `level` is
    LLVM's level of optimisation. Without it, a kernel may begin with baseline code (see `tiers`).
    """
    if _is_translated(source, signature):
        try:
            with lock, no_collection():
                request = _Request(source, signature, source.key(signature), level)
                return _by_front_end(request, before)
        except Unsupported:
            raise
        except Untranslatable as error:
            fallbacks.append(f"{source.name}: {error}")
    before()
    with lock:
        compile_by_numba = numba_backend().compile_by_numba
        keeps = not source.cached  # the front end has a store of its own
        return Entry(*compile_by_numba(source.python(), source.name, signature, keeps))


def _is_translated(source: Source, signature: Signature) -> bool:
    """Return whether the front end compiles a source. Its entries read Python objects in memory."""
    is_possible = objects.supported or signature.way not in ("arrays", "program")
    return source.cached and is_possible and not uses_numba()


def _by_front_end(request: _Request, before: Callable[[], object]) -> Entry:
    source, signature = request.source, request.signature
    owner: Any = _live.get(request.key) if source.shared else None
    if owner is None:
        owner = code = _load(request, before)
        if signature.is_callable:
            owner = PythonFunction(code, source.name)
        if source.shared:
            _live[request.key] = owner
    if not signature.is_callable:
        return Entry(owner.address("entry"), owner)
    run = owner.callable()
    if signature.way == "arrays":
        run = tiers.counted(run, owner.code)
    return Entry(run, owner)


def begin(source: Source, signature: Signature, level: int) -> bool:
    """Have another core compile a source that `compile` will be asked for; False if cached."""
    if _is_translated(source, signature):
        with contextlib.suppress(Untranslatable):  # `compile` raises it
            request = _Request(source, signature, source.key(signature), level)
            if request.key not in _begun and not source.store.has(request.key):
                (own,), _ = source.translate(request, {})
                job = machine.Job(partial(machine.compile_source, own))
                _begun[request.key] = own._replace(job=job)
                return True
    return False


@contextlib.contextmanager
def compile_batch(wanted: Iterable[tuple[Source, Signature]]) -> Iterator[None]:
    """Compile several functions on all cores; `compile` returns them inside the context.

    Functions that are compiled already, or cached, are left to `compile`. So is a single one.
    """
    with lock, no_collection():
        requests = _new_requests(wanted)
        if requests:
            with progress.compiling(len(requests)):
                _compile_requests(requests)
        try:
            yield
        finally:
            for request in requests:
                _precompiled.pop(request.form, None)


def _new_requests(wanted: Iterable[tuple[Source, Signature]]) -> list[_Request]:
    """Return the requests that are not compiled yet; none if it is only one."""
    requests: dict[str, _Request] = {}
    for source, signature in wanted:
        if _is_translated(source, signature):
            with contextlib.suppress(Untranslatable):
                request = _Request(source, signature, source.key(signature))
                if request.key not in _live and not source.store.has(request.form):
                    requests[request.key] = request
    return list(requests.values()) if len(requests) > 1 and machine.cores() > 1 else []


def _compile_requests(requests: list[_Request]) -> None:
    translated: dict[str, _Translated] = {}
    scopes: dict[str, dict[str, Any]] = {}
    for request in requests:
        with contextlib.suppress(Untranslatable):  # `compile` raises it
            translated[request.form] = request.source.translate(request, scopes)
    called = {name: formula for _, used in translated.values() for name, formula in used.items()}
    sources = [source for own, _ in translated.values() for source in own]
    codes = iter(formulas.compile_with(called.values(), sources))
    for form, (own, used) in translated.items():
        _precompiled[form] = machine.joined([next(codes) for _ in own]), used


def clear_programs() -> None:
    """Delete the code of all generated texts from the disk. Loaded code stays while in use."""
    with lock:
        _live.clear()
        TextSource.store.clear()
        build.numba_results.clear()
    generated.clear()


# --- code of a request --------------------------------------------------------------------


class _Request:
    """A source and a signature, with a level; without a level, first as baseline code.

    `form` is the key of the code that is needed now.
    """

    def __init__(
        self, source: Source, signature: Signature, key: str, level: int | None = None
    ) -> None:
        self.source, self.signature, self.key, self.level = source, signature, key, level
        tiered = level is None and isinstance(source, KernelSource)
        self.is_baseline = tiered and not source.store.has(key)
        self.form = f"{key} baseline" if self.is_baseline else key


def _load(request: _Request, before: Callable[[], object] = lambda: None) -> machine.MachineCode:
    """Return the machine code of a request."""

    def translate() -> _Translated:
        return request.source.translate(request, {})

    data = _object_code(request.form, request.source, translate)
    before()
    code = machine.MachineCode(data)
    if request.is_baseline:
        code.optimized = tiers.OptimizedCode(code, partial(_optimized, request))
    return code


def _optimized(request: _Request) -> machine.MachineCode | None:
    """Return the optimized code of a kernel."""
    try:
        return _load(_Request(request.source, request.signature, request.key, OPTIMIZED))
    except Untranslatable:  # its source file has changed meanwhile
        return None


def _object_code(key: str, source: Source, translate: Callable[[], _Translated]) -> bytes:
    """Return the object code of a key, from the disk, from a batch, or compiled now."""
    with alone(key):
        cached = source.store.read(key) if key not in _precompiled else None
        if cached is not None and formulas.load_all(cached[0]["called"]):
            build.loaded.append(source.name)
            return cached[1]
        if key in _precompiled:
            code, called = _precompiled.pop(key)
        else:
            with progress.compiling():
                begun = _begun.pop(key, None)
                sources, called = translate() if begun is None else ([begun], {})
                code = machine.joined(formulas.compile_with(called.values(), sources))
        source.store.write(key, {"called": list(called)}, code)
        build.compiled.append(source.name)
        return code


def identity(thing: Any) -> str:
    """Return a text that identifies an object in a kernel's closure, given the sources.

    Raises Untranslatable if the sources of the library do not determine the object.
    """
    thing = getattr(thing, "py_func", thing)  # of a device function
    if thing is None or isinstance(thing, (bool, int, float, complex, str, np.generic)):
        return repr(thing)
    if isinstance(thing, np.dtype):
        return f"dtype {thing.str}"
    if isinstance(thing, tuple):
        return f"({', '.join(map(identity, thing))})"
    if isinstance(thing, type):
        return f"{thing.__module__}.{thing.__qualname__}"
    code = getattr(thing, "__code__", None)
    if code is None or not build.is_ours(thing):
        raise Untranslatable(f"a kernel closes over {thing!r}")
    cells = [identity(cell.cell_contents) for cell in thing.__closure__ or ()]
    place = f"{thing.__module__}.{thing.__qualname__}:{code.co_firstlineno}"
    if code.co_name == "<lambda>":  # a line may have several
        place += f" {code.co_code.hex()} {code.co_names}"
    return f"{place}[{', '.join(cells)}]"
