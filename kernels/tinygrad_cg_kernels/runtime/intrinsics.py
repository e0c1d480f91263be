"""Instructions that Numba has no name for, and marks that a function puts on itself.

A mark is called in a kernel or helper and adds an attribute to its compiled code: Numba's globals
stay as they are.
"""

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def emitted(signature: Any) -> Callable[[Callable], Any]:
    """Return a decorator that makes an intrinsic from a function that emits it.

    `signature` is its types, or a function that makes them of the arguments' (None: not for these).
    What emits it takes the context, the builder and the arguments' values; it returns the result's
    value, or None where there is none.
    """

    def decorate(emit: Callable) -> Any:
        def generate(context, builder, signature, arguments):
            value = emit(context, builder, *arguments)
            return context.get_dummy_value() if value is None else value

        def typed(typingctx, *arguments):
            # Numba looks for the parameters now: one, and then the arguments. (At import that took
            # 2 ms for all.)
            parameters = list(inspect.signature(emit).parameters.values())
            made.__signature__ = inspect.Signature(parameters[1:])
            found = signature(*arguments) if isinstance(signature, FunctionType) else signature
            return None if found is None else (found, generate)

        made: Any = functools.update_wrapper(typed, emit)
        return intrinsic(made)

    return decorate


def _attribute(*names: str) -> Callable:
    @emitted(types.void())
    def mark(context, builder):
        for name in names:
            # llvmlite's own `add` refuses attributes that have a value.
            set.add(builder.function.attributes, name)

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


outlined = _attribute(WIDE, "noinline")
"""Called in a function, keeps its code out of its callers."""

number_by_number = _attribute()
"""Called in a function of numbers with many branches, keeps loops of it in a library's kernel from
being vectorised: LLVM would compute all branches for all elements."""

later = _attribute()
"""Called in a function of a library's kernel, has it compiled when the kernel first calls it. The
function returns a positive integer. Until it is compiled a call does nothing and gives 0: whoever
called the kernel then has `native.kernels.supply` compile it, and calls the kernel again."""


def _same_floats(x, *others):
    """Return the types of a function of floats of one width, whose result is another one."""
    return x(x, *others) if isinstance(x, types.Float) and {x, *others} == {x} else None


def _reassociate(instruction: str, *flags: str) -> Callable:
    @emitted(_same_floats)
    def combine(context, builder, x, y):
        return getattr(builder, instruction)(x, y, flags=("reassoc", "contract", *flags))

    return combine


def _on_device(builder: Any) -> bool:
    """Return whether the code is for a GPU: NVIDIA's compiler takes few of LLVM's intrinsics."""
    return builder.module.triple.startswith("nvptx")


def _call_libdevice(builder: Any, name: str, *arguments: Any) -> Any:
    """Call a function of NVIDIA's library for device code, by C's name for double precision."""
    kind = arguments[0].type
    declared = ir.FunctionType(kind, [kind] * len(arguments))
    full = f"__nv_{name}" if kind == ir.DoubleType() else f"__nv_{name}f"
    function = cgutils.get_or_insert_function(builder.module, declared, full)
    return builder.call(function, arguments)


@emitted(_same_floats)
def float_remainder(context, builder, x, y):
    """Return C's fmod: the remainder of a division truncated towards zero."""
    return _call_libdevice(builder, "fmod", x, y) if _on_device(builder) else builder.frem(x, y)


reassociating_add = _reassociate("fadd")
reassociating_multiply = _reassociate("fmul")
nan_of_either = _reassociate("fadd", "arcp")
"""A sum of which nothing is used but whether it is nan: its order makes no difference. The flag
that tells it from others means nothing for sums; with nsz LLVM would make one chain of several."""


@emitted(lambda value: (types.int64 if value == types.float64 else types.int32)(value))
def bits(context, builder, value):
    """Return the bits of a float as an integer of its width."""
    return builder.bitcast(value, ir.IntType(64 if value.type == ir.DoubleType() else 32))


@emitted(lambda value: (types.float64 if value.bitwidth == 64 else types.float32)(value))
def from_bits(context, builder, value):
    """Return the float that an integer's bits spell."""
    return builder.bitcast(value, ir.DoubleType() if value.type.width == 64 else ir.FloatType())


@intrinsic
def like(typingctx, value, model):
    """Return `value` cast to the type of `model`: a literal that does not widen a formula."""

    def generate(context, builder, signature, arguments):
        return context.cast(builder, arguments[0], signature.args[0], signature.return_type)

    return model(value, model), generate


@intrinsic
def by_width(typingctx, model, wide, narrow):
    """Return `wide` where `model` has 64 bits, `narrow` where it has 32, in the type of `model`.

    Both are numbers, or tuples of numbers. What computes the other one costs nothing.
    """
    position = 1 if model.bitwidth == 64 else 2
    chosen = (model, wide, narrow)[position]
    result = types.UniTuple(model, chosen.count) if isinstance(chosen, types.UniTuple) else model

    def generate(context, builder, signature, arguments):
        return context.cast(builder, arguments[position], chosen, result)

    return result(model, wide, narrow), generate


def _polynomial(sum_up: Callable) -> Callable:
    """Return the sum of coefficients[k] * x**k as `sum_up` builds it, in the dtype of x.

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


_LIBDEVICE = {"maxnum": "fmax", "minnum": "fmin"}  # other functions have LLVM's names there


def _extreme(builder: Any, largest: bool, x: Any, y: Any) -> Any:
    """Return IEEE's maximum or minimum in device code: nan if one is, and 0.0 is above -0.0."""
    word = ir.IntType(64 if x.type == ir.DoubleType() else 32)
    a, b = builder.bitcast(x, word), builder.bitcast(y, word)
    equal = builder.bitcast(builder.and_(a, b) if largest else builder.or_(a, b), x.type)
    picked = builder.select(builder.fcmp_ordered(">" if largest else "<", x, y), x, y)
    found = builder.select(builder.fcmp_ordered("==", x, y), equal, picked)
    return builder.select(builder.fcmp_unordered("uno", x, y), builder.fadd(x, y), found)


def _float_intrinsic(name: str, operands: int, flags: tuple[str, ...] = ()) -> Callable:
    def call(builder, *arguments):
        if _on_device(builder):
            if name in ("maximum", "minimum"):
                return _extreme(builder, name == "maximum", *arguments)
            return _call_libdevice(builder, _LIBDEVICE.get(name, name), *arguments)
        kind = arguments[0].type
        suffix = "f64" if kind == ir.DoubleType() else "f32"
        declared = ir.FunctionType(kind, [kind] * operands)
        function = cgutils.get_or_insert_function(builder.module, declared, f"llvm.{name}.{suffix}")
        return builder.call(function, arguments, fastmath=flags)

    calls = (
        lambda context, builder, x: call(builder, x),
        lambda context, builder, x, y: call(builder, x, y),
        lambda context, builder, x, y, z: call(builder, x, y, z),
    )
    return emitted(_same_floats)(calls[operands - 1])


float_maximum = _float_intrinsic("maximum", 2)
float_minimum = _float_intrinsic("minimum", 2)
largest_number = _float_intrinsic("maxnum", 2, ("nnan", "nsz", "reassoc"))
smallest_number = _float_intrinsic("minnum", 2, ("nnan", "nsz", "reassoc"))
"""One instruction, which a reduction may use in any order: the result means nothing if an
operand is nan, so a reduction with these looks for nan as well."""
float_floor = _float_intrinsic("floor", 1)
float_ceil = _float_intrinsic("ceil", 1)
float_round = _float_intrinsic("rint", 1)
float_copysign = _float_intrinsic("copysign", 2)
float_absolute = _float_intrinsic("fabs", 1)
float_fma = _float_intrinsic("fma", 3)
"""x * y + z rounded once, everywhere: for the error of a product, x * y - p. Contraction alone
would leave that to the machine."""
