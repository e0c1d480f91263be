"""Generated source text -> modules and compiled kernels, one of each text in a process."""

import hashlib
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime.entries import Blocks, Entries
from tinygrad_cg_kernels.runtime.locks import ForkLock
from tinygrad_cg_kernels.runtime.objects import CONTIGUOUS
from tinygrad_cg_kernels.runtime.texts import compiled

PREFIX = build.GENERATED

_lock = ForkLock()
_modules: dict[str, ModuleType] = {}


def load(source: str) -> ModuleType:
    """Return the module of a source text, new if needed."""
    name = PREFIX + hashlib.sha256(source.encode()).hexdigest()[:24]
    with _lock:
        if name not in _modules:
            _modules[name] = _load(name, source)
        return _modules[name]


def _load(name: str, source: str) -> ModuleType:
    code, module = compiled(source, f"<{name}>"), ModuleType(name)
    module.__file__ = code.co_filename
    sys.modules[name] = module
    exec(code, module.__dict__)
    return module


def clear_cache() -> None:
    """Forget all modules and what was compiled of them. Loaded code stays in use."""
    with _lock:
        _modules.clear()
        _functions.clear()
        _blocks.clear()


def import_lines(modules: Iterable[str]) -> str:
    """Return the lines that import kernels' modules, which a text knows by their last names."""
    parts = [name.rpartition(".")[::2] for name in sorted(modules)]
    return "\n".join([f"from {package} import {module}" for package, module in parts])


def function(source: str, name: str, arguments: list[tuple[np.dtype, int]]) -> tuple[Callable, Any]:
    """Return the compiled entry of a text's function of arrays, and then of an array of int64
    sizes.

    `arguments` are dtypes and ranks. It returns False where an array is not contiguous or aligned.
    """
    template = getattr(load(source), name)
    key = template, name, *arguments
    return _functions[key], _functions.owners[key]


def block(source: str, name: str) -> tuple[int, Any]:
    """Return the address of a text's block function, for the thread splitter, and its owner."""
    key = getattr(load(source), name), name
    return _blocks[key], _blocks.owners[key]


def _compile(template: Callable, name: str, *arguments: tuple[np.dtype, int]) -> tuple:
    owner = build.kernel(template, name, nogil=True)
    kinds = [build.array_type(dtype, rank) for dtype, rank in arguments]
    run = build.entry(owner, *kinds, build.array_type(np.dtype(np.int64), 1))

    def run_contiguous(*arrays: np.ndarray) -> bool:
        if any(array.flags.num & CONTIGUOUS != CONTIGUOUS for array in arrays):
            return False
        return run(*arrays)

    return run_contiguous, owner


_functions = Entries("function", _compile)
_blocks = Blocks("function", lambda template, name: (name, template))
"""What was compiled of texts, for all programs that have a text in common."""
