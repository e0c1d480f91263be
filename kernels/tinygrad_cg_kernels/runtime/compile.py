"""The backend that is Numba, the reference: the only module with its flags and policy.

A kernel is a Python function built by a template (a function that closes over scalar
functions). It is compiled for explicit signatures, never by the dispatcher's own guess, so
read-only arrays need no second compilation.
"""

import os
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock
from numba.core.sigutils import normalize_signature
from numba.extending import overload, register_jitable

from tinygrad_cg_kernels.runtime import numba_intrinsics, progress
from tinygrad_cg_kernels.runtime.locks import no_collection
from tinygrad_cg_kernels.runtime.numba_intrinsics import NUMBA
from tinygrad_cg_kernels.runtime.objects import CONTIGUOUS
from tinygrad_cg_kernels.runtime.signatures import Signature
from tinygrad_cg_kernels.runtime.store import GENERATED

# Of the fast-math flags only contraction keeps results: reassociation breaks the two-step
# argument reductions, nnan breaks isnan. The numpy error model removes the check (and the
# branch that stops vectorisation) at each division.
FLAGS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
NO_WRAPPER: dict[str, Any] = {"no_cfunc_wrapper": True}
"""For what is called from Python and from other kernels: an entry for C, which Numba makes of
each function by default, takes a sixth of the time."""

compiled: list[str] = []
"""The kernels that this process compiled, in order."""
loaded: list[str] = []
"""Those that it found in the cache."""
if hasattr(os, "register_at_fork"):  # Numba's own lock: no other thread may be compiling
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


def is_ours(function: Callable) -> bool:
    """Return whether the STAMP covers this function's source, so that its code may be cached.

    Generated text is covered by the name of its module, see `generated`.
    """
    module = function.__module__ or ""  # None for code made by exec
    return module.partition(".")[0] == __name__.partition(".")[0] or module.startswith(GENERATED)


def _set_name(function: Callable, name: str) -> Callable:
    """Set the name of a kernel, which tracebacks take."""
    function.__name__ = name
    function.__qualname__ = name
    return function


def kernel(function: Callable, name: str, **flags: Any) -> Any:
    """Return a dispatcher for `function`, lazily compiled, under the project's flags."""
    return numba.njit(**FLAGS, **NO_WRAPPER, **flags)(_set_name(function, name))


def entry(dispatcher: Any, *argument_types: types.Type) -> Callable:
    """Compile for these types and return the quickest way in.

    The entry point takes 150 ns where the dispatcher takes 250 to 460, since it checks
    neither dtype, rank nor layout: the caller must have done that. A Numba without the
    attribute serves through the dispatcher itself.
    """
    with progress.compiling(), no_collection():
        register_helpers()
        dispatcher.compile(argument_types)
    try:
        compiled.append(dispatcher.py_func.__name__)
        return dispatcher.overloads[argument_types].entry_point
    except (AttributeError, KeyError):
        return dispatcher


def compile_by_numba(function: Callable, name: str, signature: Signature) -> tuple[Any, Any]:
    """Compile for a signature; the address or the function of Python's, and its owner.

    Keep the owner alive while they are used.
    """
    register_helpers()
    if not signature.is_callable:
        return _address(function, name, len(signature.types), signature.way == "words")
    owner = kernel(function, name, nogil=signature.way != "objects")
    if signature.way != "program":
        return entry(owner, *map(numba_intrinsics.numba_type, signature.types)), owner
    ranks = zip(signature.types, signature.ranks, strict=True)
    run = entry(owner, *[types.Array(NUMBA[kind.element], rank, "C") for kind, rank in ranks])

    def run_contiguous(*arrays: np.ndarray) -> bool:
        if any(array.flags.num & CONTIGUOUS != CONTIGUOUS for array in arrays):
            return False
        return run(*arrays)

    return run_contiguous, owner


def _address(function: Callable, name: str, count: int, returns: bool) -> tuple[int, Any]:
    result = types.intp if returns else types.void
    kind = normalize_signature(result(*[types.intp] * count))
    with progress.compiling(), no_collection():
        owner: Any = CFunc(_set_name(function, name), kind, locals={}, options=dict(FLAGS))
        owner.compile()
    compiled.append(name)
    return owner.address, owner


def call_of(f: Callable, inputs: int) -> Callable:
    """Return a function that calls one which kernels can call, with 1 to 3 numbers."""
    return (lambda x: f(x), lambda x, y: f(x, y), lambda x, y, z: f(x, y, z))[inputs - 1]


def overload_of(function: Callable, kinds: tuple[types.Type, ...]) -> Any:
    """Compile a function of these types for nobody but the caller; Numba's record of it."""
    dispatcher: Any = numba.njit(**FLAGS, **NO_WRAPPER)(function)
    with no_collection():
        register_helpers()
        dispatcher.compile(kinds)
    return dispatcher.overloads[kinds]


_waiting: deque[Callable[[], Any]] = deque()


def register_helpers() -> None:
    """Tell Numba of helpers and intrinsics, before it first compiles what may use them.

    At import that would take a fifth of the time.
    """
    with global_compiler_lock:
        numba_intrinsics.register_rows()
        while _waiting:
            _waiting.popleft()()


def jitable(function: Callable) -> Callable:
    """Mark a helper as callable from kernels.

    Kernels close over such functions and never over dispatchers, which would miss the disk cache in
    every process.
    """
    _waiting.append(lambda: register_jitable(**NO_WRAPPER)(function))
    return function


@cache
def outside(function: Callable) -> Callable:
    """Return a helper of float64 as a function of arrays, for calls outside compiled code."""
    register_helpers()
    wide = np.float64
    calls = (
        lambda x: function(wide(x)),
        lambda x, y: function(wide(x), wide(y)),
        lambda x, y, z: function(wide(x), wide(y), wide(z)),
    )
    compiled: Any = numba.njit(**FLAGS)(calls[function.__code__.co_argcount - 1])
    return np.errstate(all="ignore")(np.vectorize(compiled))


def in_float64(formula: Callable) -> dict[Any, Callable]:
    """Return the versions of a function whose formula takes and gives float64."""
    calls = (
        lambda x: np.float32(formula(np.float64(x))),
        lambda x, y: np.float32(formula(np.float64(x), np.float64(y))),
        lambda x, y, z: np.float32(formula(np.float64(x), np.float64(y), np.float64(z))),
    )
    return {types.float64: formula, types.float32: calls[formula.__code__.co_argcount - 1]}


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

VERSIONS: dict[Callable, Callable[[Any], Callable | None]] = {}
"""For functions with versions by type: what picks one for the first argument's."""


def has_version(function: Callable, first: Any) -> bool | None:
    """Return whether a function has a version for its first argument's type; None without any."""
    pick = VERSIONS.get(function)
    return None if pick is None else pick(first) is not None


def by_type(stub: Callable, choices: dict[Any, Callable]) -> Callable:
    """Let compiled calls of `stub` take the version for their first argument's type.

    `choices` maps Numba types, or classes of them, to functions with the stub's parameters;
    the first match serves.
    """

    def pick(first: Any) -> Callable | None:
        for key, version in choices.items():
            if first == key or (isinstance(key, type) and isinstance(first, key)):
                return version
        return None

    def unary(x):
        return pick(x)

    def binary(x, y):
        return pick(x)

    def ternary(x, y, z):
        return pick(x)

    VERSIONS[stub] = pick
    chooser = {1: unary, 2: binary, 3: ternary}[stub.__code__.co_argcount]
    options: Any = NO_WRAPPER
    _waiting.append(lambda: overload(stub, options, strict=False)(chooser))
    return stub
