"""Translated texts as functions of Python, and as block functions for the thread splitter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import llvmlite.binding as llvm
import numpy as np
from numba.core.errors import NumbaError

from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import generated, machine, objects
from tinygrad_cg_kernels.runtime.locks import ForkLock
from tinygrad_cg_kernels.runtime.native import functions
from tinygrad_cg_kernels.runtime.native.calling import EntryText, PythonFunction
from tinygrad_cg_kernels.runtime.native.translate import Module
from tinygrad_cg_kernels.runtime.native.values import Array, Untranslatable, name_of
from tinygrad_cg_kernels.runtime.store import Store

_owners: WeakValueDictionary[str, Any] = WeakValueDictionary()
_lock = ForkLock()
_store = Store("programs", limited=True)
enabled = True
"""Whether texts are translated; Numba compiles them otherwise."""
refused: list[str] = []
"""Why texts were not translated, in order."""


def function(source: str, name: str, kinds: list[tuple[np.dtype, int]]) -> tuple[Callable, Any]:
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
        with _lock:
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


def _function(
    source: str, name: str, kinds: list[tuple[np.dtype, int]]
) -> tuple[Callable, PythonFunction]:
    arguments = tuple(Array(name_of(dtype)) for dtype, _ in kinds)
    key = f"function {name} {kinds!r} {source}"
    ranks = [rank for _, rank in kinds]
    owner = _owners.get(key)
    if owner is None:
        types = (*arguments, Array("i64"))
        code = _code(key, source, name, types, lambda one: _entry(one, [*ranks, 1]))
        owner = _owners[key] = PythonFunction(code, name)
    return owner.callable(), owner


def _block(source: str, name: str) -> tuple[int, machine.Code]:
    key = f"block {name} {source}"
    code = _owners.get(key)
    if code is None:
        code = _owners[key] = _code(key, source, name, ("i64",) * 3, _block_entry)
    return code.address("entry"), code


def _code(key: str, source: str, name: str, arguments: tuple, entry: Callable) -> machine.Code:
    known = _store.read(key)
    if known is not None:
        fields, data = known
        called = [one for one in map(functions.load, fields["called"]) if one is not None]
        if len(called) == len(fields["called"]):
            for one in called:
                functions.announce(one)
            build.loaded.append(name)
            return machine.Code(data)
    module = Module(source, functions.find)
    made = module.function(name, arguments)
    text = "\n".join([entry(made), module.text()])
    parsed = llvm.parse_assembly(text)
    for one in module.inlined.values():
        parsed.link_in(llvm.parse_assembly(one.text))
    data = machine.object_code(machine.optimised(parsed))
    _store.write(key, {"called": list(module.called)}, data)
    for one in module.called.values():
        functions.announce(one)
    build.compiled.append(name)
    return machine.Code(data)


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
define void @entry(i64 %table, i64 %begin, i64 %count) {{
  %done = call {kind} @{function.name}(i64 %table, i64 %begin, i64 %count)
  ret void
}}
"""
