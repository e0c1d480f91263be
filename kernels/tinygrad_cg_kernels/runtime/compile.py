"""Registries of the functions that kernels may call. Both backends read them."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from tinygrad_cg_kernels.runtime import kinds
from tinygrad_cg_kernels.runtime.locks import at_fork
from tinygrad_cg_kernels.runtime.store import GENERATED, Store

compiled: list[str] = []
"""Names of the kernels that this process compiled, in order."""
loaded: list[str] = []
"""Names of the kernels that this process loaded from the cache, in order."""
numba_results = Store("numba")
"""Code on disk that Numba compiled (see `numba_store`)."""


compiler_locks: list[Any] = []
"""Numba's lock, after Numba was imported. It is held while the process forks."""


def _acquire_locks() -> None:
    for lock in compiler_locks:
        lock.acquire()


def _release_locks() -> None:
    for lock in compiler_locks:
        lock.release()


# Registered before the lock of `service`, which a fork therefore takes first.
at_fork(before=_acquire_locks, after_in_parent=_release_locks, after_in_child=_release_locks)


class CompileError(Exception):
    """Numba cannot compile a function. The message says why."""


def is_ours(function: Callable) -> bool:
    """Return whether the STAMP covers a function's source, so that its code may be cached.

    The name of a generated module covers its text (see `generated`).
    """
    module = function.__module__ or ""  # None if `exec` made the function
    return module.partition(".")[0] == __name__.partition(".")[0] or module.startswith(GENERATED)


helpers: list[Callable] = []
"""Functions that kernels may call."""


def jitable(function: Callable) -> Callable:
    """Mark a helper as callable from kernels.

    Kernels close over such functions, never over dispatchers: these have another hash in each
    process, so the disk cache would never have the kernel.
    """
    helpers.append(function)
    return function


_foreign: set[Callable] = set()


def scalar_function(function: Callable) -> Callable:
    """Return a scalar function for kernels to call; a user's function is registered for Numba."""
    if not (is_ours(function) or hasattr(function, "py_func") or function in _foreign):
        _foreign.add(function)
        jitable(function)
    return function


GUARDED: dict[Callable, tuple[Callable, Callable]] = {}
"""Guarded functions: for each, a test, and a faster version that is right where the test holds."""

BY_VALUE: dict[Callable, tuple[Callable, Callable]] = {}
"""Derivatives that take an argument and the function's value. For each, a test, and a formula of
the value alone, which is right where the test holds. Vector functions test; a loop that computes
the function as well shares the common work."""

VERSIONS: dict[Callable, dict[frozenset[str], Callable]] = {}
"""Functions with versions by type: for each, the versions by kinds of the first argument."""
_Stub = TypeVar("_Stub", bound=Callable)


def version_of(function: Callable, kind: Any) -> Callable | None:
    """Return a function's version for a type of its first argument; None if it has none."""
    choices = VERSIONS[function].items()
    return next((version for fitting, version in choices if kind in fitting), None)


def by_type(**versions: Callable) -> Callable[[_Stub], _Stub]:
    """Return a decorator for a function of kernels with versions by the type of its first argument.

    Each is named after one of the `kinds`, with the function's parameters. Compiled calls use the
    first match. A version that no kernel calls by its own name need not be `jitable`.
    """

    def register(stub: _Stub) -> _Stub:
        VERSIONS[stub] = {getattr(kinds, name.upper()): f for name, f in versions.items()}
        return stub

    return register


def of_numpy(module: str, name: str, **versions: Callable) -> Callable[..., Any]:
    """Return NumPy's function of a name as one of a module of kernels, with versions `by_type`."""

    def unary(x):
        return getattr(np, name)(x)

    def binary(x, y):
        return getattr(np, name)(x, y)

    function = unary if getattr(np, name).nin == 1 else binary
    function.__module__, function.__name__, function.__qualname__ = module, name, name
    return by_type(**versions)(function)


def of_width(wide: Callable, narrow: Callable) -> Any:
    """Return a function of kernels: `wide` where the first argument is float64, else `narrow`."""

    @by_type(float64=wide, float32=narrow)
    @wraps(wide)
    def either(*operands):
        raise NotImplementedError("only kernels can call it")

    return either
