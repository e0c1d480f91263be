"""Translated texts as functions of Python, and as block functions for the thread splitter."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
from numba.core.errors import NumbaError

from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import generated, machine, objects, progress, thread_pool_code
from tinygrad_cg_kernels.runtime.frames import deep
from tinygrad_cg_kernels.runtime.locks import ForkLock
from tinygrad_cg_kernels.runtime.native import functions
from tinygrad_cg_kernels.runtime.native.calling import EntryText, PythonFunction
from tinygrad_cg_kernels.runtime.native.module import Module
from tinygrad_cg_kernels.runtime.native.translate import text_scope
from tinygrad_cg_kernels.runtime.native.values import Array, Function, Untranslatable, name_of
from tinygrad_cg_kernels.runtime.store import Store

Kinds = list[tuple[np.dtype, int]]
"""Dtypes and ranks of a function's arrays."""

_owners: WeakValueDictionary[str, Any] = WeakValueDictionary()
_lock = ForkLock()
_store = Store("programs")
_early: dict[str, tuple[dict[str, Function], list[bytes]]] = {}
"""What `together` has compiled, by the keys of parts: the functions that it calls, and its code."""
if hasattr(os, "register_at_fork"):  # no thread may be compiling: a child has not got it
    os.register_at_fork(before=_lock.__enter__, after_in_parent=_lock.__exit__)
enabled = True
"""Whether texts are translated; Numba compiles them otherwise."""
refused: list[str] = []
"""Why texts were not translated, in order."""


def function(source: str, name: str, kinds: Kinds) -> tuple[Callable, Any]:
    """Return the compiled entry of a text's function of arrays and an array of int64 sizes.

    It returns False, and has done nothing, where an array is not contiguous and aligned.
    """
    made = _translated(_function, source, name, kinds) if objects.supported else None
    return made or generated.function(source, name, kinds)


def block(source: str, name: str) -> tuple[int, Any]:
    """Return the address of a text's block function, and its owner."""
    return _translated(_block, source, name) or generated.block(source, name)


def _translated(make: Callable, *given: Any) -> Any:
    """Return what `make` compiles; None, and the reason is kept, where that is left to Numba."""
    if not enabled:
        return None
    try:
        with _lock, build.no_collection():
            return make(*given)
    except (Untranslatable, NumbaError) as error:
        refused.append(str(error).splitlines()[0])
        return None


def clear_cache() -> None:
    """Delete all code of generated texts from the disk. Loaded code stays while it is used."""
    with _lock:
        _owners.clear()
        _store.clear()
    generated.clear_cache()


class _Part(NamedTuple):
    """A function or, where `kinds` is None, a block function of a text."""

    source: str
    name: str
    kinds: Kinds | None = None

    @property
    def key(self) -> str:
        kind = "block" if self.kinds is None else f"function {self.kinds!r}"
        return f"{kind} {self.name} {self.source}"

    @deep
    def translated(self, scope: dict[str, Any]) -> tuple[list[machine.Text], dict[str, Function]]:
        """Return it as modules of LLVM, and the functions that these call."""
        module = Module(scope, functions.find)
        if self.kinds is None:
            entry = _block_entry(module.function(self.name, ("i64",) * 3))
        else:
            arguments = tuple(Array(name_of(dtype)) for dtype, _ in self.kinds)
            made = module.function(self.name, (*arguments, Array("i64")))
            entry = _entry(made, [*[rank for _, rank in self.kinds], 1])
        main, *others = module.parts()
        texts = []
        for text in ("\n".join([entry, main]), *others):
            inlined = [one.text for one in module.inlined.values() if f"@{one.symbol}(" in text]
            texts.append(machine.Text(text, inlined))
        return texts, module.called


def _function(source: str, name: str, kinds: Kinds) -> tuple[Callable, PythonFunction]:
    part = _Part(source, name, kinds)
    owner = _owners.get(part.key)
    if owner is None:
        owner = _owners[part.key] = PythonFunction(_code(part), name)
    return owner.callable(), owner


def _block(source: str, name: str) -> tuple[int, machine.Code]:
    part = _Part(source, name)
    code = _owners.get(part.key)
    if code is None:
        code = _owners[part.key] = _code(part)
    return code.address("entry"), code


def _code(part: _Part) -> machine.Code:
    known = _store.read(part.key) if part.key not in _early else None
    if known is not None:
        fields, data = known
        called = [one for one in map(functions.load, fields["called"]) if one is not None]
        if len(called) == len(fields["called"]):
            functions.compile_with(called, [])
            build.loaded.append(part.name)
            return machine.Code(*_split(data, fields["sizes"]))
    with progress.compiling():
        if part.key in _early:
            called, codes = _early.pop(part.key)
        else:
            texts, called = part.translated(text_scope(part.source))
            codes = _compiled([part], texts, called.values())
        fields = {"called": list(called), "sizes": [len(code) for code in codes]}
        _store.write(part.key, fields, b"".join(codes))
    build.compiled.append(part.name)
    return machine.Code(*codes)


def _split(data: bytes, sizes: list[int]) -> list[bytes]:
    ends = list(itertools.accumulate(sizes))
    return [data[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _compiled(
    parts: Iterable[_Part], texts: list[machine.Text], called: Iterable[Function]
) -> list[bytes]:
    compiled = partial(functions.compile_with, called)
    if any(part.kinds is None for part in parts):
        return thread_pool_code.compile_with(compiled, texts)
    return compiled(texts)


@contextlib.contextmanager
def together(parts: Iterable[tuple[str, str, Kinds | None]]) -> Iterator[None]:
    """Compile several functions on all cores, for `function` and `block` to return inside.

    `parts` are what these two will be called with, a block function's with None for its kinds. What
    is compiled already, or in the cache, is left to them, as is a single one.
    """
    wanted = {one.key: one for one in itertools.starmap(_Part, parts)}
    new = [key for key in wanted if key not in _owners and not _store.has(key)] if enabled else []
    if machine.cores() < 2 or len(new) < 2:
        yield
        return
    with _lock, build.no_collection(), progress.compiling(len(new)):
        found: dict[str, tuple[list[machine.Text], dict[str, Function]]] = {}
        scopes: dict[str, dict[str, Any]] = {}
        for key in new:
            source = wanted[key].source
            with contextlib.suppress(Untranslatable, NumbaError):  # `_code` says why
                scope = scopes.get(source) or scopes.setdefault(source, text_scope(source))
                found[key] = wanted[key].translated(scope)
        called = {name: one for _, used in found.values() for name, one in used.items()}
        texts = [text for own, _ in found.values() for text in own]
        codes = iter(_compiled([wanted[key] for key in found], texts, called.values()))
        for key, (own, used) in found.items():
            _early[key] = used, [next(codes) for _ in own]
        try:
            yield
        finally:
            for key in found:
                _early.pop(key, None)


def _entry(function: Any, ranks: list[int]) -> str:
    """Return the function that Python calls; it returns False where an array is not contiguous."""
    entry = EntryText()
    given, flags = [], f"{objects.CONTIGUOUS}"
    for k, rank in enumerate(ranks):
        array = entry.argument(k)
        flags = entry.emit(f"and i32 {flags}, {entry.field(array, objects.FLAGS, 'i32')}")
        given += entry.array(array, rank)
    good = entry.emit(f"icmp eq i32 {flags}, {objects.CONTIGUOUS}")
    entry.lines += [f"  br i1 {good}, label %run, label %no", "run:"]
    result = entry.run(f"call i1 @{function.name}({', '.join(given)})")
    word = entry.emit(f"zext i1 {result} to i64")
    yes = entry.emit(f"call ptr @PyBool_FromLong(i64 {word})")
    entry.lines += [f"  ret ptr {yes}", "no:"]
    no = entry.emit("call ptr @PyBool_FromLong(i64 0)")
    entry.lines.append(f"  ret ptr {no}")
    return entry.text("declare ptr @PyBool_FromLong(i64)")


def _block_entry(function: Any) -> str:
    kind = "i1" if function.result == "b1" else "i64"
    return f"""
define void @entry(i64 %table, i64 %begin, i64 %count) {machine.wide()} {{
  %done = call {kind} @{function.name}(i64 %table, i64 %begin, i64 %count)
  ret void
}}
"""
