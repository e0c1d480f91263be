"""What kernels may call, and what is known of it; the backends look it up here."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.kinds import FLOAT32, FLOAT64
from tinygrad_cg_kernels.runtime.locks import at_fork
from tinygrad_cg_kernels.runtime.store import GENERATED

compiled: list[str] = []
"""The kernels that this process compiled, in order."""
loaded: list[str] = []
"""Those that it found in the cache."""


compiler_locks: list[Any] = []
"""Numba's lock, once Numba is imported. It is held while the process forks."""


def _acquire_locks() -> None:
    for lock in compiler_locks:
        lock.acquire()


def _release_locks() -> None:
    for lock in compiler_locks:
        lock.release()


# Before `service`, whose lock is then taken first.
at_fork(before=_acquire_locks, after_in_parent=_release_locks, after_in_child=_release_locks)


class CompileError(Exception):
    """A function that Numba cannot compile, and why."""


def is_ours(function: Callable) -> bool:
    """Return whether the STAMP covers this function's source, so that its code may be cached.

    Generated text is covered by the name of its module, see `generated`.
    """
    module = function.__module__ or ""  # None for code made by exec
    return module.partition(".")[0] == __name__.partition(".")[0] or module.startswith(GENERATED)


helpers: list[Callable] = []
"""Functions that kernels may call."""


def jitable(function: Callable) -> Callable:
    """Mark a helper as callable from kernels.

    Kernels close over such functions and never over dispatchers, which would miss the disk cache in
    every process.
    """
    helpers.append(function)
    return function


def in_float64(formula: Callable) -> dict[frozenset[str], Callable]:
    """Return the versions of a function whose formula takes and gives float64."""

    def unary(x):
        return np.float32(formula(np.float64(x)))

    def binary(x, y):
        return np.float32(formula(np.float64(x), np.float64(y)))

    def ternary(x, y, z):
        return np.float32(formula(np.float64(x), np.float64(y), np.float64(z)))

    narrow = (unary, binary, ternary)[formula.__code__.co_argcount - 1]
    return {FLOAT64: formula, FLOAT32: narrow}


_foreign: set[Callable] = set()


def scalar_function(function: Callable) -> Callable:
    """Return a function as kernels can call it: ours as it is, a user's made known to Numba."""
    if not (is_ours(function) or hasattr(function, "py_func") or function in _foreign):
        _foreign.add(function)
        jitable(function)
    return function


GUARDED: dict[Callable, tuple[Callable, Callable]] = {}
"""Functions right everywhere that are faster where a test holds: the test, and the fast version."""

BY_VALUE: dict[Callable, tuple[Callable, Callable]] = {}
"""Derivatives by an argument and the function's value: a test, and a formula that needs the value
alone and is right where the test holds. Functions of vectors test; a loop that has the function
shares what both compute."""

VERSIONS: dict[Callable, dict[frozenset[str], Callable]] = {}
"""For functions with versions by type: these, by kinds of the first argument."""


def version_of(function: Callable, kind: Any) -> Callable | None:
    """Return the version of a function for its first argument's type; None if there is none."""
    choices = VERSIONS[function].items()
    return next((version for kinds, version in choices if kind in kinds), None)


def by_type(stub: Callable, choices: dict[frozenset[str], Callable]) -> Callable:
    """Let compiled calls of `stub` take the version for their first argument's type.

    `choices` maps `kinds` to functions with the stub's parameters; the first match serves.
    """
    VERSIONS[stub] = choices
    return stub
