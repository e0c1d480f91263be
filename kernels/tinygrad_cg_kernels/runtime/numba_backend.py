"""The Numba backend, which is the reference. Numba's flags and policy are here and nowhere else.

A kernel is a Python function built by a template (a function that closes over scalar functions). It
is compiled for explicit signatures, not for those that the dispatcher infers, so read-only arrays
need no second compilation. Importing this module imports Numba, when it first compiles something.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cpu
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.sigutils import normalize_signature
from numba.extending import overload, register_jitable

from tinygrad_cg_frontend import Untranslatable
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import numba_intrinsics, progress
from tinygrad_cg_kernels.runtime.locks import no_collection
from tinygrad_cg_kernels.runtime.numba_intrinsics import NAMES, NUMBA
from tinygrad_cg_kernels.runtime.numba_store import ResultStore, identity_of_operand
from tinygrad_cg_kernels.runtime.objects import CONTIGUOUS
from tinygrad_cg_kernels.runtime.signatures import Signature

# Contraction is the only fast-math flag that keeps results: reassociation breaks the two-step
# argument reductions, and nnan breaks isnan. The numpy error model removes the check at each
# division, whose branch would prevent vectorisation.
FLAGS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
NO_WRAPPER: dict[str, Any] = {"no_cfunc_wrapper": True}
"""Numba makes a C entry of each function by default, which takes a sixth of the time. Functions
that are called from Python, or from other kernels, do not need it."""

build.compiler_locks.append(global_compiler_lock)


def _set_name(function: Callable, name: str) -> Callable:
    """Set the name of a kernel, which tracebacks show."""
    function.__name__ = name
    function.__qualname__ = name
    return function


def kernel(function: Callable, name: str, **flags: Any) -> Any:
    """Return a dispatcher for `function`, lazily compiled, under the project's flags."""
    return numba.njit(**FLAGS, **NO_WRAPPER, **flags)(_set_name(function, name))


class _PartLibrary(JITCodeLibrary):
    """The code of a function that is linked into its callers, without machine code of its own.

    LLVM optimizes it in the callers. By default, Numba does both for each function as well as for
    its callers, which takes a quarter of the time.
    """

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True


class _PartCompiler(Compiler):
    """Numba's compiler for functions that compiled code alone calls."""

    def __init__(self, typing: Any, target: Any, library: Any, *rest: Any):
        super().__init__(typing, target, _PartLibrary(target.codegen(), "part"), *rest)
        self.state.flags.no_compile = True

    def compile_extra(self, func: Callable) -> Any:
        result = super().compile_extra(func)
        function, library = result.fndesc, result.library
        name = function.qualname.rpartition(".")[2]
        # Numba finds the code by this object. It has no address: Python must not call it.
        keep = result.environment, (library,)
        entry = cpu._dynfunc.make_function(function.lookup_module(), name, "", 0, *keep)
        result.target_context.insert_user_function(entry, function, [library])
        return result._replace(entry_point=entry)


PART: Any = {**NO_WRAPPER, "pipeline_class": _PartCompiler}
"""Options of functions that compiled code alone calls."""


def for_compiled_code(function: Callable) -> Any:
    """Return a dispatcher for a function that compiled code alone calls."""
    return numba.njit(**FLAGS, **PART, no_cpython_wrapper=True)(function)


def entry(dispatcher: Any, *argument_types: types.Type) -> Callable:
    """Compile for these types and return the fastest entry.

    The entry point takes 150 ns, the dispatcher 250 to 460. It checks neither dtype, rank nor
    layout, so the caller must have done that. If a version of Numba lacks the attribute, the
    dispatcher itself is the entry.
    """
    with progress.compiling(), no_collection():
        register_helpers()
        dispatcher.compile(argument_types)
    try:
        _note(dispatcher.py_func.__name__, sum(dispatcher._cache_hits.values()))
        return dispatcher.overloads[argument_types].entry_point
    except (AttributeError, KeyError):
        return dispatcher


def _note(name: str, was_loaded: int) -> None:
    (build.loaded if was_loaded else build.compiled).append(name)


def _keep(owner: Any, key: str, function: Callable) -> None:
    """Let the code of a function be kept on disk, unless it depends on what has no identity."""
    with contextlib.suppress(Untranslatable):
        owner._cache = ResultStore(f"{key} {identity_of_operand(function)}")


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turn Numba's errors into `CompileError`."""
    try:
        yield
    except NumbaError as error:
        raise build.CompileError(str(error)) from error


@_explained()
def compile_by_numba(
    function: Callable, name: str, signature: Signature, keeps: bool = False
) -> tuple[Any, Any]:
    """Compile for a signature; return the address or Python function, and the owner of the code.

    The owner has to live as long as the code is used. The code is kept on disk if it `keeps`.
    Raises `CompileError`.
    """
    register_helpers()
    if not signature.is_callable:
        returns = signature.way == "words"
        return _address(function, name, len(signature.types), returns, keeps)
    owner = kernel(function, name, nogil=signature.way != "objects")
    if keeps:
        _keep(owner, f"{name} {signature}", function)
    if signature.way != "program":
        return entry(owner, *map(numba_intrinsics.numba_type, signature.types)), owner
    ranks = zip(signature.types, signature.ranks, strict=True)
    run = entry(owner, *[types.Array(NUMBA[kind.element], rank, "C") for kind, rank in ranks])

    def run_contiguous(*arrays: np.ndarray) -> bool:
        if any(array.flags.num & CONTIGUOUS != CONTIGUOUS for array in arrays):
            return False
        return run(*arrays)

    return run_contiguous, owner


def _address(
    function: Callable, name: str, count: int, returns: bool, keeps: bool
) -> tuple[int, Any]:
    result = types.intp if returns else types.void
    kind = normalize_signature(result(*[types.intp] * count))
    with progress.compiling(), no_collection():
        owner: Any = CFunc(_set_name(function, name), kind, locals={}, options=dict(FLAGS))
        if keeps:
            _keep(owner, f"{name} address", function)
        owner.compile()
    _note(name, owner.cache_hits)
    return owner.address, owner


def result_kinds(function: Callable, inputs: int, kinds: tuple[str, ...]) -> Any:
    """Compile a function of 1 to 3 numbers, and return the type of its result.

    The type is named as in the front end, or else as in Numba. A tuple has a tuple of types.
    """
    calls = (
        lambda x: function(x),
        lambda x, y: function(x, y),
        lambda x, y, z: function(x, y, z),
    )
    dispatcher = kernel(calls[inputs - 1], function.__name__, no_cpython_wrapper=True)
    _keep(dispatcher, f"{inputs} numbers", function)
    arguments = tuple(map(NUMBA.__getitem__, kinds))
    with no_collection(), _explained():
        register_helpers()
        dispatcher.compile(arguments)
    result = dispatcher.overloads[arguments].signature.return_type
    if isinstance(result, numba_intrinsics.TUPLE):
        return tuple(map(_name, result))
    return _name(result)


def _name(kind: types.Type) -> str:
    return NAMES.get(types.unliteral(kind), str(kind))


_registered = [0, 0]  # how many helpers and functions with versions Numba knows


def register_helpers() -> None:
    """Register new helpers and intrinsics with Numba, before it compiles.

    At import, that would take a fifth of the time.
    """
    with global_compiler_lock:
        numba_intrinsics.register_rows()
        helpers, stubs = _registered
        for function in build.helpers[helpers:]:
            _registered[0] += 1
            register_jitable(**(PART if build.is_ours(function) else NO_WRAPPER))(function)
        for stub in list(build.VERSIONS)[stubs:]:
            _registered[1] += 1
            _register_versions(stub)


def _register_versions(stub: Callable) -> None:
    @overload(stub, PART, strict=False)
    def pick(first: Any, *_: Any) -> Callable | None:
        return build.version_of(stub, NAMES.get(types.unliteral(first)))
