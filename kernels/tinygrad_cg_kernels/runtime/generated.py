"""Generated source text -> compiled kernels, kept as readable files in the cache folder.

A file is named by the hash of its text, the STAMP, the flags, Numba's version and the processor:
all that its compiled code depends on. It is a module that can be imported by its name, since code
from Numba's disk cache looks its module up by that name in the next process.
"""

import contextlib
import hashlib
import importlib.util
import linecache
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite.binding as llvm
import numba
import numpy as np

from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import store
from tinygrad_cg_kernels.runtime.entries import Blocks, Entries
from tinygrad_cg_kernels.runtime.locks import ForkLock

PREFIX = build.GENERATED

_lock = ForkLock()
_modules: dict[str, ModuleType] = {}


# --- files ------------------------------------------------------------------------------


def _name(source: str) -> str:
    parts = (source, build.STAMP, repr(sorted(map(str, build.FLAGS.items()))), numba.__version__)
    machine = (llvm.get_host_cpu_name(), sys.version)
    return PREFIX + hashlib.sha256("\0".join((*parts, *machine)).encode()).hexdigest()[:24]


def folder() -> Path | None:
    """Return the folder of generated files; None if none can be written."""
    base = build.cache_folder()
    return None if base is None else base / "generated"


def load(source: str) -> ModuleType:
    """Return the module of a source text, from this process or from its file, new if needed."""
    name = _name(source)
    with _lock:
        found = _modules.get(name)
        if found is None:
            found = _modules[name] = _load(name, source)
    return found


def _load(name: str, source: str) -> ModuleType:
    path = _write(name, source)
    spec = importlib.util.spec_from_loader(name, None, origin=str(path))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    file = str(path) if path is not None else f"<{name}>"
    module.__file__ = file
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    sys.modules[name] = module
    exec(compile(source, file, "exec"), module.__dict__)
    return module


def _write(name: str, source: str) -> Path | None:
    """Write a text's file, under another name first: other processes see it complete."""
    base = folder()
    if base is None:
        return None
    path = base / f"{name}.py"
    with contextlib.suppress(OSError):
        if path.exists():
            with contextlib.suppress(OSError):
                os.utime(_use_marker(path))
            return path
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        store.prune(_families(base).values(), store.size_limit())
        store.write_complete(path, source.encode())
        _use_marker(path).touch()
        return path
    return None


def _use_marker(path: Path) -> Path:
    """Return the file whose time is the last use; Numba's cache goes by the time of `path`."""
    return path.with_suffix(".used")


def _families(base: Path) -> dict[str, list[Path]]:
    """Return all files that belong to each generated file: the text and Numba's compiled code."""
    families: dict[str, list[Path]] = {}
    for path in [*base.glob(f"{PREFIX}*"), *base.parent.glob(f"*/{PREFIX}*"), *base.glob("*.tmp")]:
        families.setdefault(path.name.partition(".")[0], []).append(path)
    return families


def clear_cache() -> None:
    """Delete all generated files and their compiled code. Loaded code stays in use."""
    with _lock:
        _modules.clear()
        _functions.clear()
        _blocks.clear()
    base = folder()
    if base is not None:
        for paths in _families(base).values():
            store.delete(paths)


def import_lines(modules: Iterable[str]) -> str:
    """Return the lines that import kernels' modules, which a text knows by their last names."""
    parts = [name.rpartition(".")[::2] for name in sorted(modules)]
    return "\n".join([f"from {package} import {module}" for package, module in parts])


# --- entries ----------------------------------------------------------------------------


def function(source: str, name: str, arguments: list[tuple[np.dtype, int]]) -> tuple[Callable, Any]:
    """Return the compiled entry of a text's function of arrays, and then of an array of int64
    sizes.

    `arguments` are dtypes and ranks. The arrays may have any strides: the function looks.
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
    kinds = [build.array_type(dtype, rank, "A" if rank else "C") for dtype, rank in arguments]
    return build.entry(owner, *kinds, build.array_type(np.dtype(np.int64), 1)), owner


_functions = Entries("function", _compile)
_blocks = Blocks("function", lambda template, name: (name, template))
"""What was compiled of texts, for all programs that have a text in common."""
