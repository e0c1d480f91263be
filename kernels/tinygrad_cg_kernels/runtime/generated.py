"""Modules made from generated source text, one per text and process."""

import hashlib
import sys
from collections.abc import Iterable
from types import ModuleType

from tinygrad_cg_kernels.runtime.locks import ForkLock
from tinygrad_cg_kernels.runtime.store import GENERATED
from tinygrad_cg_kernels.runtime.texts import compiled

_lock = ForkLock()
_modules: dict[str, ModuleType] = {}


def load(source: str) -> ModuleType:
    """Return the module of a source text, made on first use."""
    name = GENERATED + hashlib.sha256(source.encode()).hexdigest()[:24]
    with _lock:
        if name not in _modules:
            code, module = compiled(source, f"<{name}>"), ModuleType(name)
            module.__file__ = code.co_filename
            module.__dict__["__text__"] = source  # the front end reads it
            sys.modules[name] = module
            exec(code, module.__dict__)
            _modules[name] = module
        return _modules[name]


def clear() -> None:
    """Forget all modules. Loaded code stays in use."""
    with _lock:
        _modules.clear()


def import_lines(modules: Iterable[str]) -> str:
    """Return the lines that import modules of the kernels under the last part of their names."""
    parts = [name.rpartition(".")[::2] for name in sorted(modules)]
    return "\n".join([f"from {package} import {module}" for package, module in parts])
