"""The one place with Numba policy: flags, the disk cache, and how kernels are entered.

A kernel is a Python function built by a template (a function that closes over scalar
functions). It is compiled for explicit signatures, never by the dispatcher's own guess, so
read-only arrays need no second compilation.
"""

import contextlib
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload, register_jitable

from tinygrad_cg_kernels.runtime.locks import ForkLock

GENERATED = "tinygrad_cg_generated_"
"""What the names of modules with generated text begin with."""

PACKAGE = Path(__file__).parent.parent


def _stamp(package: Path, *versions: str) -> str:
    """The hash of all sources under a folder, by their paths in it, and of versions."""
    digest = hashlib.sha256("\0".join(versions).encode())
    for source in sorted(package.rglob("*.py")):
        digest.update(source.relative_to(package).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()


STAMP = _stamp(PACKAGE, np.__version__)
"""sha256 of all kernel sources and of NumPy's version. It names the cache folder, since Numba's own
cache key knows neither helper functions in other files nor compiler flags, and where NumPy's arrays
keep their fields is compiled in (see `objects`)."""

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

_config: Any = numba.config
_lock = ForkLock()
if hasattr(os, "register_at_fork"):  # Numba's own lock: no other thread may be compiling
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


def _user_cache() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tinygrad_cg"


DAY = 24 * 3600.0
KEPT = 3  # folders of other versions that stay, however old
REMOVED = 16  # at most so many are removed by one process
_OURS = re.compile(r"[0-9a-f]{16}")


@cache
def _writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if need be.

    A new one ends the time of old ones beside it.
    """
    try:
        new = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        if new:
            _remove_stale(folder)
        elif time.time() - folder.stat().st_mtime > DAY / 24:
            os.utime(folder)  # it is in use
        return True
    except OSError:
        return False


def _remove_stale(folder: Path) -> None:
    """Remove folders of other versions of the kernels that were not used for a day.

    The latest few stay. Should a process still use one that goes, it compiles again.
    """
    others = [
        (one.stat().st_mtime, one)
        for one in folder.parent.iterdir()
        if one != folder and _is_cache(one)
    ]
    others.sort(reverse=True)
    for used, stale in others[KEPT : KEPT + REMOVED]:
        if time.time() - used > DAY:
            shutil.rmtree(stale, ignore_errors=True)


def _is_cache(folder: Path) -> bool:
    """Whether a folder is one of ours: by its name, and by holding Numba's files alone."""
    if not _OURS.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
        return False
    held = (path for path in folder.rglob("*") if not path.is_dir())
    return all(re.search(r"\.nb[ic](\.tmp\.\w+)?$", path.name) for path in held)


def cache_folder() -> Path | None:
    """Where compiled kernels are kept: TINYGRAD_CG_CACHE_DIR, or the user's cache folder.

    None if it cannot be written: kernels are then compiled anew in each process.
    """
    chosen = os.environ.get("TINYGRAD_CG_CACHE_DIR")
    try:
        folder = (Path(chosen) if chosen else _user_cache()) / STAMP[:16]
    except RuntimeError:  # the user has no home
        return None
    return folder if _writable(folder) else None


def is_ours(function: Callable) -> bool:
    """Whether the STAMP covers this function's source, so that its code may be cached.

    Generated text is covered by the name of its module, see `generated`.
    """
    module = function.__module__ or ""  # None for code made by exec
    return module.partition(".")[0] == __name__.partition(".")[0] or module.startswith(GENERATED)


def _mended(compile: Callable[[], Any], forget: Callable[[], None]) -> Any:
    """What `compile` gives, after `forget` if a crash left damaged files in the cache."""
    try:
        return compile()
    except (NumbaError, OSError, RuntimeError):
        raise
    except Exception:  # pickle raises whatever it comes upon
        forget()
        return compile()


def _decorated(decorator: Callable, function: Callable, cached: bool) -> Any:
    """Apply a Numba decorator, with the disk cache where a folder can be written."""
    folder = cache_folder() if cached else None
    if folder is None:
        return decorator()(function)
    with _lock:
        previous = _config.CACHE_DIR
        _config.CACHE_DIR = str(folder)
        try:
            return _mended(
                lambda: decorator(cache=True)(function), lambda: FunctionCache(function).flush()
            )
        except (OSError, RuntimeError):  # the disk is full, or the source file was just deleted
            return decorator()(function)
        finally:
            _config.CACHE_DIR = previous


def _named(function: Callable, name: str) -> Callable:
    """Numba's cache file and tracebacks take the kernel's own name."""
    function.__name__ = name
    function.__qualname__ = name
    return function


def kernel(function: Callable, name: str, cached: bool = True, **flags: Any) -> Any:
    """A dispatcher for `function`, lazily compiled, under the project's flags."""
    options = {**FLAGS, **NO_WRAPPER, **flags}
    return _decorated(lambda **more: numba.njit(**options, **more), _named(function, name), cached)


BLOCK = types.void(*[types.intp] * 3)
"""What block kernels take: the address of a table, the first unit of work, and how many units. That
is all that the thread splitter knows of a kernel, so one compiled splitter serves every kernel."""


def block_address(
    function: Callable, name: str, cached: bool = True, signature: Any = BLOCK
) -> tuple[int, Any]:
    """Compile to a C function; its address, and its owner.

    Keep the owner alive while the address is used.
    """
    options: dict[str, Any] = dict(FLAGS)
    named = _named(function, name)
    with _lock:
        owner: Any = _decorated(
            lambda **more: numba.cfunc(signature, **options, **more), named, cached
        )
    (loaded if owner.cache_hits else compiled).append(name)
    return owner.address, owner


class Target:
    """How kernels are compiled for the processor that they run on.

    A second device has a target of its own: its flags, how it compiles a block kernel, and what
    calls one by what `block` returned (see `threads`).
    """

    flags = FLAGS

    def block(self, function: Callable, name: str, cached: bool) -> tuple[int, Any]:
        """Compile a function of a table's address and a range of units; its address and owner."""
        return block_address(function, name, cached)


CPU = Target()


def array_type(dtype: np.dtype, ndim: int, layout: str = "C") -> types.Array:
    """The Numba type of an aligned array, as kernels are compiled for."""
    return types.Array(numba.from_dtype(dtype), ndim, layout)


def entry(dispatcher: Any, *argument_types: types.Type) -> Callable:
    """Compile for these types and return the quickest way in.

    The entry point takes 150 ns where the dispatcher takes 250 to 460, since it checks
    neither dtype, rank nor layout: the caller must have done that. A Numba without the
    attribute serves through the dispatcher itself.
    """
    with _lock:
        hits = sum(dispatcher.stats.cache_hits.values()) if hasattr(dispatcher, "stats") else 0
        with contextlib.suppress(OSError):  # compiled, but not cached: the disk is full
            _mended(lambda: dispatcher.compile(argument_types), lambda: dispatcher._cache.flush())
        try:
            found = dispatcher.overloads[argument_types].entry_point
            more = sum(dispatcher.stats.cache_hits.values()) > hits
            (loaded if more else compiled).append(dispatcher.py_func.__name__)
            return found
        except (AttributeError, KeyError):
            return dispatcher


jitable = register_jitable(**NO_WRAPPER)
"""Marks a helper as callable from kernels. Kernels close over such functions and never over
dispatchers, which would miss the disk cache in every process."""


@cache
def outside(function: Callable) -> Callable:
    """A helper of float64 as a function of arrays, for calls outside compiled code."""
    wide = np.float64
    calls = (lambda x: function(wide(x)), lambda x, y: function(wide(x), wide(y)))
    compiled: Any = numba.njit(**FLAGS)(calls[function.__code__.co_argcount - 1])
    return np.errstate(all="ignore")(np.vectorize(compiled))


_foreign: set[Callable] = set()


def scalar_function(function: Callable) -> Callable:
    """A function as kernels can call it: ours as it is, a user's made known to Numba."""
    if not (is_ours(function) or hasattr(function, "py_func") or function in _foreign):
        _foreign.add(function)
        jitable(function)
    return function


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

    chooser = {1: unary, 2: binary, 3: ternary}[stub.__code__.co_argcount]
    overload(stub, strict=False)(chooser)
    return stub


def _attribute(*names: str) -> Callable:
    @intrinsic
    def mark(typingctx):
        def generate(context, builder, signature, arguments):
            for name in names:
                # llvmlite's own `add` refuses attributes that have a value.
                set.add(builder.function.attributes, name)
            return context.get_dummy_value()

        return types.void(), generate

    return mark


WIDE, INLINE = '"prefer-vector-width"="512"', "alwaysinline"

# Asked for everywhere: on one core of an EPYC 9005, 256 bits took 1.7 to 2.0 times as long for
# elementary functions, 1.1 to 1.9 for reductions and normalisations of what is in the cache,
# and 0.8 to 1 where memory sets the pace (additions and negation of 10^4 to 4 * 10^6 elements, long
# sums, transposed operands).
wide_vectors = _attribute(WIDE)
"""Called in a kernel, asks LLVM for 512-bit vectors there; Numba's own functions keep theirs."""

inlined = _attribute(INLINE)
"""Called in a helper, has it inlined wherever it is used. LLVM vectorises no loop with a call
left in it, and its own limit on size leaves one where a formula uses several helpers."""

vectorised = _attribute(WIDE, INLINE)
"""Both, for a helper that holds a loop: it is optimised by itself before it is inlined."""


def _reassociated(instruction: str) -> Callable:
    @intrinsic
    def combine(typingctx, x, y):
        def generate(context, builder, signature, arguments):
            return getattr(builder, instruction)(*arguments, flags=("reassoc", "contract"))

        if isinstance(x, types.Float) and x == y:
            return x(x, y), generate
        return None

    return combine


@intrinsic
def float_remainder(typingctx, x, y):
    """C's fmod: the remainder of a division truncated towards zero."""

    def generate(context, builder, signature, arguments):
        return builder.frem(*arguments)

    return (x(x, y), generate) if isinstance(x, types.Float) and x == y else None


reassociating_add = _reassociated("fadd")
reassociating_multiply = _reassociated("fmul")


@intrinsic
def bits(typingctx, value):
    """The bits of a float as an integer of its width."""
    result = types.int64 if value == types.float64 else types.int32

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return result(value), generate


@intrinsic
def from_bits(typingctx, value):
    """The float that an integer's bits spell."""
    result = types.float64 if value.bitwidth == 64 else types.float32

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

    return result(value), generate


@intrinsic
def like(typingctx, value, model):
    """`value` cast to the type of `model`: a literal that does not widen a formula."""

    def generate(context, builder, signature, arguments):
        return context.cast(builder, arguments[0], signature.args[0], signature.return_type)

    return model(value, model), generate


def _polynomial(sum_up: Callable) -> Callable:
    """The sum of coefficients[k] * x**k as `sum_up` builds it, in the dtype of x.

    LLVM does not always unroll a loop over a tuple, and would not vectorise what has it.
    """

    @intrinsic
    def evaluate(typingctx, x, coefficients):
        def generate(context, builder, signature, arguments):
            kind, (variable, packed) = signature.args[1].dtype, arguments
            parts = [builder.extract_value(packed, k) for k in range(len(signature.args[1]))]
            return sum_up(builder, variable, [context.cast(builder, p, kind, x) for p in parts])

        if isinstance(x, types.Float) and isinstance(coefficients, types.UniTuple):
            return x(x, coefficients), generate
        return None

    return evaluate


def _horner(builder: Any, x: Any, values: list[Any]) -> Any:
    *others, total = values
    for other in reversed(others):
        product = builder.fmul(x, total, flags=("contract",))
        total = builder.fadd(product, other, flags=("contract",))
    return total


def _estrin(builder: Any, x: Any, values: list[Any]) -> Any:
    square = builder.fmul(x, x)
    pairs = [_horner(builder, x, values[k : k + 2]) for k in range(0, len(values), 2)]
    if len(pairs) <= 3:
        return _horner(builder, square, pairs)
    fours = [_horner(builder, square, pairs[k : k + 2]) for k in range(0, len(pairs), 2)]
    return _horner(builder, builder.fmul(square, square), fours)


polynomial = _polynomial(_horner)
"""The sum of coefficients[k] * x**k by Horner's rule."""
estrin = _polynomial(_estrin)
"""The same in shorter chains: pairs or fours of terms by Estrin's scheme, Horner's rule over those.
It is sooner done where several steps are taken at a time, and rounds a little more."""


def _float_intrinsic(name: str, operands: int, flags: tuple[str, ...] = ()) -> Callable:
    def generate(context, builder, signature, arguments):
        kind = context.get_value_type(signature.return_type)
        suffix = {"float": "f32", "double": "f64"}[str(kind)]
        declared = ir.FunctionType(kind, [kind] * operands)
        function = cgutils.get_or_insert_function(builder.module, declared, f"llvm.{name}.{suffix}")
        return builder.call(function, arguments, fastmath=flags)

    @intrinsic
    def call_one(typingctx, x):
        return (x(x), generate) if isinstance(x, types.Float) else None

    @intrinsic
    def call_two(typingctx, x, y):
        return (x(x, y), generate) if isinstance(x, types.Float) and x == y else None

    @intrinsic
    def call_three(typingctx, x, y, z):
        return (x(x, y, z), generate) if isinstance(x, types.Float) and x == y == z else None

    return (call_one, call_two, call_three)[operands - 1]


float_maximum = _float_intrinsic("maximum", 2)
float_minimum = _float_intrinsic("minimum", 2)
largest_number = _float_intrinsic("maxnum", 2, ("nnan", "nsz", "reassoc"))
smallest_number = _float_intrinsic("minnum", 2, ("nnan", "nsz", "reassoc"))
"""One instruction, which a reduction may use in any order: the result means nothing if an
operand is nan, so whoever folds with these looks for nan as well."""
float_floor = _float_intrinsic("floor", 1)
float_ceil = _float_intrinsic("ceil", 1)
float_round = _float_intrinsic("rint", 1)
float_copysign = _float_intrinsic("copysign", 2)
float_absolute = _float_intrinsic("fabs", 1)
float_fma = _float_intrinsic("fma", 3)
"""x * y + z rounded once, everywhere: for the error of a product, x * y - p. Contraction alone
would leave that to the machine."""
