"""Elementwise operations: one record each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy import ndarray

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.reduce import exponentials

from .._core import devices
from .._core.conversion import convert, convert_operands
from .._core.kinds import (
    INEXACT,
    NUMBERS,
    REAL,
    REAL_NUMBERS,
    is_complex,
    is_exact,
    is_inexact,
    is_native_float,
)
from .._core.levels import state
from .._core.primitive import apply, binary_function, public_function, same_parameters
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .comparison import (
    equal,
    greater,
    greater_equal,
    isinf,
    less,
    less_equal,
    logical_and,
    logical_or,
    not_equal,
)
from .complex import conj, real
from .composition import ARRAYS, ON_GPU, Operations
from .creation import zeros_like
from .define import (
    ANY,
    Case,
    Real,
    Wrong,
    binary,
    elementwise,
    in_one_pass,
    operation,
    public,
    unary,
)
from .shape import cast, identity
from .validation import broadcast_shapes, check_kind

POSITIVE = Real(0.3, 3.0)
AWAY = Real(-2.0, 2.0, avoid=(0.0,))  # for functions with a kink or a pole at 0
LN2, LN10 = np.log([2.0, 10.0]).tolist()

of_real = partial(unary, dtypes=REAL)  # a function of one real number
of_reals = partial(binary, kind="float", dtypes=REAL)  # of two
of_order = partial(of_reals, ulps=None, spellings=())  # of a whole order and a number

add = binary("add", "Return x + y.", vjp=(lambda dy: dy, lambda dy: dy), linear=True)
subtract = binary(
    "subtract",
    "Return x - y; TypeError for two bools, as in NumPy.",
    bool_remedy="tf.math.logical_xor",
    errors=(
        Wrong(TypeError, "subtract: .* use tf.math.logical_xor", (np.array(True), np.array(True))),
    ),
    vjp=(lambda dy: dy, lambda dy: negative(dy)),
    linear=True,
    dtypes=NUMBERS,
)
multiply = binary(
    "multiply",
    "Return x * y.",
    vjp=(lambda dy, y: multiply_upstream(dy, y), lambda dy, x: multiply_upstream(dy, x)),
)
divide = binary(
    "divide",
    "Return x / y, in floating point: integers give float64.",
    kind="float",
    vjp=(
        lambda dy, y: divide_upstream(dy, y),
        lambda dy, y, out: negative(multiply_upstream(divide_unbounded(dy, y), out)),
    ),
    ulps=None,  # rounded once, by the processor
    spellings=("math.divide", "math.truediv", "numpy.divide", "numpy.true_divide"),
    samples=(ANY, AWAY),
)
# Rules multiply or divide the upstream gradient by these. Where it is 0 the result is 0, and so are
# its derivatives, although the slope is infinite or NaN: what a mask keeps out of the result does
# not spoil the gradient (docs/behaviour.md, decision 21). Their derivatives are made of the same
# functions. Reverse mode multiplies an upstream gradient again (`multiply_upstream`); forward mode
# multiplies the tangent of a slope (`multiply_tangent`), and there a zero of either factor counts.

_unless_masked = public_function(
    elementwise(
        "unless_masked",
        ("upstream", "slope", "gradient"),
        "same",
        (None, None, lambda dy, upstream, slope: _unless_masked(upstream, slope, dy)),
    )
)


def _product_by_upstream(dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the derivative of the product x * y along its upstream gradient x."""
    return _unless_masked(x, y, multiply_upstream(dy, y))


multiply_upstream = binary(
    "multiply_upstream",
    "Return x * y, and 0 where x is 0, even if y is infinite or NaN.",
    vjp=(
        lambda dy, x, y: _product_by_upstream(dy, x, y),
        lambda dy, x: multiply_upstream(dy, x),
    ),
    jvp=(
        lambda dx, x, y, out: _product_by_upstream(dx, x, y),
        lambda dy, x, y, out: multiply_tangent(dy, x),
    ),
    label="multiply",
    spellings=(),
)
multiply_tangent = binary(
    "multiply_tangent",
    "Return x * y, and 0 where one is 0, even if the other is infinite or NaN: the tangent of a "
    "slope, times the upstream gradient.",
    vjp=(
        lambda dy, x, y: _product_by_upstream(dy, x, y),
        lambda dy, x, y: _product_by_upstream(dy, y, x),
    ),
    jvp=(
        lambda dx, x, y, out: _unless_masked(x, y, multiply_tangent(dx, y)),
        lambda dy, x, y, out: _unless_masked(y, x, multiply_tangent(dy, x)),
    ),
    label="multiply",
    spellings=(),
)


def _quotient_by_upstream(dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the derivative of the quotient x / y along its upstream gradient x."""
    return _unless_masked(x, divide(1, y), divide_upstream(dy, y))


_divide_upstream = partial(
    binary,
    kind="float",
    vjp=(
        lambda dy, x, y: _quotient_by_upstream(dy, x, y),
        lambda dy, y, out: negative(divide_upstream(multiply_upstream(dy, out), y)),
    ),
    ulps=None,
    label="divide",
    spellings=(),
    samples=(ANY, AWAY),
)
divide_upstream = _divide_upstream(
    "divide_upstream",
    "Return x / y, and 0 where x is 0, even if y is 0 or NaN.",
    jvp=(
        lambda dx, x, y, out: _quotient_by_upstream(dx, x, y),
        lambda dy, x, y, out: negative(
            divide_upstream(multiply_tangent(divide_upstream(dy, y), x), y)
        ),
    ),
)
divide_unbounded = _divide_upstream(
    "divide_unbounded",
    "Return `divide_upstream(x, y)`, and NaN where y is infinite: for slopes that fall to 0 where "
    "the function does not come to rest. Of log(1 + exp(x)) at 1000 the derivative is 1, not 0.",
    jvp=(
        lambda dx, x, y, out: _quotient_by_upstream(dx, x, y),
        lambda dy, x, y, out: negative(divide_upstream(multiply_tangent(dy, out), y)),
    ),
)
negative = unary(
    "negative",
    "Return -x; TypeError for a bool, as in NumPy.",
    bool_remedy="logical_not",
    errors=(Wrong(TypeError, "negative: .* use logical_not", (np.array(True),)),),
    kind="same",
    vjp=lambda dy: negative(dy),
    linear=True,
    dtypes=NUMBERS,
)
floor_divide = binary(
    "floor_divide",
    "Return the largest integer not above x / y. An integer by zero gives 0, with a warning.",
    dtypes=REAL_NUMBERS,
    spellings=("math.floordiv", "keras.ops.floor_divide", "numpy.floor_divide"),
    samples=(ANY, AWAY),
)
remainder = binary(
    "remainder",
    "Return x - y floor(x / y), with the sign of y, as Python's %.",
    vjp=(lambda dy: dy, lambda dy, x, y: negative(multiply_upstream(dy, floor_divide(x, y)))),
    dtypes=REAL_NUMBERS,
    spellings=("math.floormod", "math.mod", "keras.ops.mod", "numpy.remainder", "numpy.mod"),
    samples=(Real(0.1, 0.9), Real(1.0, 2.0)),
)

# Powers --------------------------------------------------------------------------------------


def _power_by_base(dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return y x**(y-1), but 0 where x and y are 0: no 0 * inf there, at this order or the next."""
    both_zero = logical_and(equal(x, 0), equal(y, 0))
    exponent = where(both_zero, 1, subtract(y, 1))
    slope = multiply_upstream(y, _general_power(x, exponent))
    falls = logical_and(less(y, 1), not_equal(y, 0)) if not is_complex(y.dtype) else False
    return multiply_upstream(dy, where(logical_and(isinf(x), falls), np.nan, slope))


def _power_by_exponent(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """Return out log(x), and 0 where x has no real logarithm (0**y is flat for y > 0)."""
    has_log = not_equal(x, 0) if is_complex(x.dtype) else greater(x, 0)
    return multiply_upstream(dy, multiply(out, where(has_log, log(where(has_log, x, 1)), 0)))


_general_power = binary(
    "power",
    "Return x to the power y.",
    vjp=(_power_by_base, _power_by_exponent),
    dtypes=NUMBERS,
    ulps=(1.25, 1.0),
    spellings=("keras.ops.power", "numpy.pow", "numpy.power"),
    samples=(POSITIVE, Real(-2.5, 2.5)),
)


def _power_by_products(ops: Operations, x: Any, exponent: float) -> Any:
    """Return x**exponent, of small whole exponents by products: quicker, and one rounding for each.

    float16 and complex numbers are squared alone, since the kernel rounds and overflows less.
    """
    if exponent == 2:
        return ops.square(x)
    if exponent == 1:
        return ops.identity(x)
    if exponent in (3, 4, -1) and is_native_float(x.dtype):
        if exponent == 3:
            return ops.multiply(ops.square(x), x)
        if exponent == 4:
            return ops.square(ops.square(x))
        return ops.divide(ops.number(1, x), x)
    return ops.power(x, ops.number(exponent, x))


_PRODUCTS = frozenset((-1, 1, 3, 4))


_cube = Elementwise("cube", kmath.cube, 1)


def _run_scalar_power(x: np.ndarray, exponent: float) -> np.ndarray:
    ops = ARRAYS if type(x) is ndarray else ON_GPU
    if exponent == 2:  # the commonest, before anything is looked at
        return ops.square(x)
    if exponent == 3 and ops is ARRAYS and is_native_float(x.dtype):
        return _cube(x)
    if exponent in _PRODUCTS:
        return _power_by_products(ops, x, exponent)
    return ops.power(x, ops.number(exponent, x))


_POWER_RULES: dict[float, Callable[..., Tensor]] = {
    2: in_one_pass("square", lambda dy, x: multiply_upstream(dy, multiply(x, 2))),
    3: in_one_pass("cube", lambda dy, x: multiply_upstream(dy, multiply(square(x), 3))),
}


def _scalar_power_rule(dy: Tensor, x: Tensor, out: Tensor, exponent: float) -> Tensor:
    """Return the gradient by powers of `x` only: derivatives beyond the last are 0, never None."""
    if 0 < exponent < 1:
        return divide_unbounded(multiply(dy, exponent), power(x, 1 - exponent))
    if exponent < 0:
        return multiply_upstream(divide_unbounded(multiply(dy, exponent), x), out)
    if state.frame is None and exponent in _POWER_RULES:
        return _POWER_RULES[exponent](dy, x)  # no level asks for a derivative beyond the last
    slope = power(x, exponent - 1) if exponent else power(x, 0)
    return multiply_upstream(dy, multiply(slope, exponent))


_scalar_power = operation(
    "scalar_power",
    _run_scalar_power,
    lambda x, exponent: Aval(x.shape, x.dtype),
    (_scalar_power_rule,),
    kind="elementwise",
    kernel=_general_power.primitive.kernel,
    decomposition=_power_by_products,
    label="power",
    dtypes=INEXACT,
    samples=(POSITIVE, *({"exponent": n} for n in (-1.5, -1, 4, 3, 2, 1, 0))),
)


def _power_by(general: Any) -> Any:
    def power(x: Any, y: Any) -> Tensor:
        """Return ``x ** y``. The x-gradient at y = 0, and the y-gradient at x = 0, are 0."""
        if type(y) in (int, float):
            x = convert(x)
            if is_inexact(x._data.dtype):  # inlined: a call would take a twentieth of the time
                return apply(_scalar_power, (x,), {"exponent": y})
        return general(x, y)

    power.__qualname__ = "power"
    return power


power = public(_general_power.primitive)(_power_by(_general_power))
power.operator = _power_by(_general_power.operator)


square = unary(
    "square",
    "Return x * x.",
    kind="same",
    vjp=lambda dy, x: multiply_upstream(dy, multiply(x, 2)),
    spellings=("math.square", "numpy.square"),
)
one_minus_square = unary(
    "one_minus_square",
    "Return 1 - x * x, without cancellation near 1 and -1.",
    vjp=lambda dy, x: multiply_upstream(dy, multiply(x, -2)),
    ulps=None,
    spellings=(),
)
sqrt = unary(
    "sqrt",
    "Return the square root of x; its gradient at 0 is infinite.",
    vjp=lambda dy, out: divide_unbounded(multiply(dy, 0.5), out),
    samples=(POSITIVE,),
)


rsqrt = unary(
    "rsqrt",
    "Return 1 / sqrt(x): infinite at 0, NaN below.",
    vjp=lambda dy, x, out: multiply_upstream(divide_unbounded(multiply(dy, -0.5), x), out),
    spellings=("math.rsqrt", "keras.ops.rsqrt"),
    samples=(POSITIVE,),
)
cbrt = of_real(
    "cbrt",
    "Return the real cube root of x; its gradient at 0 is infinite.",
    vjp=lambda dy, out: divide_unbounded(dy, multiply(3, square(out))),
    spellings=("keras.ops.cbrt", "numpy.cbrt"),
    samples=(Real(-3.0, 3.0, avoid=(0.0, 0.1, -0.1)),),
)


direction = of_reals(
    "direction",
    "Return x / hypot(x, y), the cosine of a vector's angle; 0 at (0, 0).",
    vjp=(
        lambda dy, x, y: multiply_upstream(dy, _turning(square(direction(y, x)), x, y)),
        lambda dy, x, y, out: negative(
            multiply_upstream(dy, _turning(multiply(out, direction(y, x)), x, y))
        ),
    ),
    ulps=None,
    spellings=(),
    samples=(AWAY, AWAY),
)
hypot = of_reals(
    "hypot",
    "Return sqrt(x**2 + y**2), without overflow; its gradient at (0, 0) is 0.",
    vjp=(
        lambda dy, x, y: multiply_upstream(dy, direction(x, y)),
        lambda dy, x, y: multiply_upstream(dy, direction(y, x)),
    ),
    spellings=("keras.ops.hypot", "numpy.hypot"),
    samples=(AWAY, AWAY),
)


def _turning(part: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return part / hypot(x, y), and 0 at (0, 0)."""
    length = hypot(x, y)
    return divide(part, where(equal(length, 0), 1, length))


def _nextafter_dtype(x: Any, y: Any) -> np.dtype:
    for name, operand in (("x", x), ("y", y)):
        check_kind("nextafter", name, operand, REAL, error=TypeError)
    return hypot.primitive.kernel.result_dtype(x.dtype, y.dtype)  # bool and integers: float64


def _run_nextafter(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    wanted = _nextafter_dtype(x, y)
    broadcast_shapes("nextafter", x.shape, y.shape)  # or an error that names the function
    with np.errstate(all="ignore"):
        return devices.library_of(x).asarray(np.nextafter(x.astype(wanted), y.astype(wanted)))


def _nextafter_aval(x: Aval, y: Aval) -> Aval:
    shape = broadcast_shapes("nextafter", x.shape, y.shape)
    return Aval(shape, _nextafter_dtype(x, y))


_nextafter = operation(
    "nextafter",
    _run_nextafter,
    _nextafter_aval,
    (lambda dy: dy, lambda dy: zeros_like(dy)),
    inputs=("x", "y"),
    kind="contraction",  # of no axes, since NumPy's function is not a compiled kernel
    batch=same_parameters,
    dtypes=REAL,
    ufunc=np.nextafter,
    spellings=("math.nextafter", "keras.ops.nextafter", "numpy.nextafter"),
    samples=[Case(((2, 3), (3,))), Case(((), ())), Case(((2, 1), (3,)))],
    doc="Return the next number of the dtype after `x` in the direction of `y`; `y` if they are "
    "equal. Integers give float64.\n\nElementwise; `x` and `y` broadcast. The gradient with "
    "respect to `x` is 1, to `y` 0, as in TensorFlow.",
)
nextafter = public(_nextafter)(binary_function(_nextafter))

# Exponentials and friends --------------------------------------------------------------------

exp = unary(
    "exp",
    "Return e to the power x.",
    vjp=lambda dy, out: multiply_upstream(dy, out),
    samples=(Real(-4.0, 4.0),),
)
exp2 = unary(
    "exp2",
    "Return 2 to the power x.",
    vjp=lambda dy, out: multiply_upstream(dy, multiply(out, LN2)),
    spellings=("keras.ops.exp2", "numpy.exp2"),
    samples=(Real(-4.0, 4.0),),
)
log = unary(
    "log",
    "Return the natural logarithm of x: -inf at 0, NaN below.",
    vjp=lambda dy, x: divide_unbounded(dy, x),
    samples=(POSITIVE,),
)
log2 = unary(
    "log2",
    "Return the logarithm of x to base 2: -inf at 0, NaN below.",
    vjp=lambda dy, x: multiply(divide_unbounded(dy, x), 1 / LN2),
    spellings=("keras.ops.log2", "numpy.log2"),
    samples=(POSITIVE,),
)
log10 = unary(
    "log10",
    "Return the logarithm of x to base 10: -inf at 0, NaN below.",
    vjp=lambda dy, x: multiply(divide_unbounded(dy, x), 1 / LN10),
    spellings=("keras.ops.log10", "numpy.log10"),
    samples=(POSITIVE,),
)
log1p = unary(
    "log1p",
    "Return log(1 + x), accurate near 0.",
    vjp=lambda dy, x: divide_unbounded(dy, add(x, 1)),
    samples=(Real(-0.7, 3.0),),
)
expm1 = unary(
    "expm1",
    "Return exp(x) - 1, accurate near 0.",
    vjp=lambda dy, x: multiply_upstream(dy, exp(x)),
    samples=(Real(-3.0, 3.0),),
)
sigmoid_slope = of_real(
    "sigmoid_slope",
    "Return ``sigmoid(x) * sigmoid(-x)``, the derivative of sigmoid, without cancellation.",
    vjp=lambda dy, x, out: negative(multiply_upstream(dy, multiply(out, tanh(multiply(x, 0.5))))),
    ulps=(4.0, 4.0),
    spellings=(),
    samples=(Real(-6.0, 6.0),),
)
tanh_slope = of_real(
    "tanh_slope",
    "Return ``1 - tanh(x)**2``, the derivative of tanh, without cancellation.",
    vjp=lambda dy, x, out: multiply_upstream(dy, multiply(out, multiply(tanh(x), -2))),
    ulps=(4.0, 4.0),
    spellings=(),
    samples=(Real(-4.0, 4.0),),
)


def _tanh_rule(dy: Tensor, x: Tensor) -> Tensor:
    slope = one_minus_square(tanh(x)) if is_complex(x.dtype) else tanh_slope(x)
    return multiply_upstream(dy, slope)


tanh = unary(
    "tanh",
    "Return the hyperbolic tangent of x.",
    vjp=_tanh_rule,
    samples=(Real(-4.0, 4.0),),
)
sigmoid = of_real(
    "sigmoid",
    "Return 1 / (1 + exp(-x)), without overflow.",
    vjp=lambda dy, x: multiply_upstream(dy, sigmoid_slope(x)),
    spellings=("math.sigmoid", "keras.ops.sigmoid"),
    samples=(Real(-6.0, 6.0),),
)
softplus = of_real(
    "softplus",
    "Return log(1 + exp(x)), without overflow.",
    vjp=lambda dy, x: multiply_upstream(dy, sigmoid(x)),
    spellings=("keras.ops.softplus",),
    samples=(Real(-6.0, 6.0),),
)
log_sigmoid = of_real(
    "log_sigmoid",
    "Return the logarithm of sigmoid(x), without overflow.",
    vjp=lambda dy, x: multiply_upstream(dy, sigmoid(negative(x))),
    spellings=("math.log_sigmoid",),
    samples=(Real(-6.0, 6.0),),
)


def _share(x: Tensor, y: Tensor) -> Tensor:
    """Return exp(x) / (exp(x) + exp(y)); a half where both are the same infinity."""
    same = logical_and(isinf(x), equal(x, y))
    return sigmoid(where(same, 0, subtract(x, y)))


logaddexp = of_reals(
    "logaddexp",
    "Return log(exp(x) + exp(y)), without overflow.",
    vjp=(
        lambda dy, x, y: multiply_upstream(dy, _share(x, y)),
        lambda dy, x, y: multiply_upstream(dy, _share(y, x)),
    ),
    spellings=("keras.ops.logaddexp", "numpy.logaddexp"),
)


def _with_logarithm(x: Tensor, y: Tensor) -> Tensor:
    """Return y, but 1 where x log(y) is 0 although y has no logarithm."""
    return where(logical_and(equal(x, 0), less_equal(y, 0)), 1, y)


xlogy = of_reals(
    "xlogy",
    "Return x log(y), and 0 where x is 0; there its gradients are 0 if y is not positive.",
    vjp=(
        lambda dy, x, y: multiply_upstream(dy, log(_with_logarithm(x, y))),
        lambda dy, x, y: divide_unbounded(multiply_upstream(dy, x), _with_logarithm(x, y)),
    ),
    spellings=("math.xlogy",),
    samples=(ANY, POSITIVE),
)
sin = unary(
    "sin",
    "Return the sine of x, in radians.",
    vjp=lambda dy, x: multiply_upstream(dy, cos(x)),
    samples=(Real(-4.0, 4.0),),
)
cos = unary(
    "cos",
    "Return the cosine of x, in radians.",
    vjp=lambda dy, x: negative(multiply_upstream(dy, sin(x))),
    samples=(Real(-4.0, 4.0),),
)

# Piecewise linear, and the like --------------------------------------------------------------

relu = of_real(
    "relu",
    "Return the larger of x and 0; its gradient at 0 is 0.",
    kind="same",
    vjp=lambda dy, out: where(greater(out, 0), multiply(dy, sign(out)), 0),
    spellings=("keras.ops.relu",),
    samples=(AWAY,),
)


def _twice_over(dy: Tensor, x: Tensor) -> Tensor:
    """Return dy / x**2, where the square itself may be too large."""
    return divide_upstream(divide_upstream(dy, x), x)


softsign = of_real(
    "softsign",
    "Return x / (1 + |x|).",
    vjp=lambda dy, x: _twice_over(dy, add(absolute(x), 1)),
    ulps=(2.0, 2.0),
    spellings=("math.softsign", "keras.ops.softsign"),
    samples=(AWAY,),
)


def _absolute_rule(dy: Tensor, x: Tensor) -> Tensor:
    if not is_complex(x.dtype):
        return multiply_upstream(dy, sign(x))
    size = absolute(x)
    return multiply_upstream(dy, divide(x, where(equal(size, 0), 1, size)))


absolute = unary(
    "absolute",
    "Return the absolute value of x, real for complex x; its gradient at 0 is 0.",
    kind="real",
    vjp=_absolute_rule,
    analytic=False,
    spellings=("math.abs", "keras.ops.abs", "keras.ops.absolute", "numpy.abs", "numpy.absolute"),
    samples=(AWAY,),
)


def _sign_rule(dy: Tensor, x: Tensor) -> Tensor:
    """Return zeros for a real x; x/|x| of a complex x rotates with x (it is not analytic)."""
    if not is_complex(x.dtype):
        return zeros_like(dy)
    size = absolute(x)
    size = where(equal(size, 0), 1, size)
    parallel = divide(real(multiply(conj(x), dy)), multiply(size, square(size)))
    return subtract(divide(dy, size), multiply(x, parallel))


sign = unary(
    "sign",
    "Return -1, 0 or 1; x / |x| for complex x. Its gradient is 0 for real x.",
    kind="same",
    vjp=_sign_rule,
    analytic=False,
    dtypes=NUMBERS,
    samples=(AWAY,),
)
round_half_even = of_real(
    "round",
    "Return x rounded to integers, half to even. It has no gradient.",
    kind="same",
    spellings=("math.round", "math.rint"),
    samples=(Real(-2.9, 2.9),),
)


def round_decimals(x: Any, decimals: int) -> Tensor:
    """Return `x` to so many decimals, half to even; negative ones are tens. It has no gradient."""
    x = convert(x)
    if not decimals:
        return round_half_even(x)
    if is_exact(x.dtype):
        return x if decimals > 0 else cast(round_decimals(cast(x, np.float64), decimals), x.dtype)
    scale = 10.0 ** abs(decimals)
    if decimals < 0:
        return multiply(round_half_even(divide(x, scale)), scale)
    return divide(round_half_even(multiply(x, scale)), scale)


floor = of_real(
    "floor",
    "Return the largest integer not above x. It has no gradient.",
    kind="same",
    spellings=("math.floor", "numpy.floor"),
    samples=(Real(-2.9, 2.9),),
)
ceil = of_real(
    "ceil",
    "Return the smallest integer not below x. It has no gradient.",
    kind="same",
    spellings=("math.ceil", "numpy.ceil"),
    samples=(Real(-2.9, 2.9),),
)
maximum = binary(
    "maximum",
    "Return the larger of x and y; NaN if one is NaN. At a tie, x gets the whole gradient.",
    vjp=(
        lambda dy, x, y: where(greater_equal(x, y), dy, 0),
        lambda dy, x, y: where(greater_equal(x, y), 0, dy),
    ),
    dtypes=REAL,
)
minimum = binary(
    "minimum",
    "Return the smaller of x and y; NaN if one is NaN. At a tie, x gets the whole gradient.",
    vjp=(
        lambda dy, x, y: where(less_equal(x, y), dy, 0),
        lambda dy, x, y: where(less_equal(x, y), 0, dy),
    ),
    dtypes=REAL,
)
nearest_finite = of_real(
    "nearest_finite",
    "Return x, or the largest number of its dtype for an infinite x, with its sign. No gradient.",
    kernel=exponentials.finite,
    ulps=None,
    spellings=(),
)
_where = elementwise(
    "where",
    ("condition", "x", "y"),
    "select",
    (
        None,
        lambda dy, condition: where(condition, dy, 0),
        lambda dy, condition: where(condition, 0, dy),
    ),
    samples=(Real(0.0, 1.0), ANY, ANY),
)
_clip = elementwise(
    "clip",
    ("x", "low", "high"),
    "same",
    (
        lambda dy, x, low, high: where(logical_or(less(x, low), greater(x, high)), 0, dy),
        lambda dy, x, low, high: where(logical_and(less(x, low), less_equal(low, high)), dy, 0),
        lambda dy, x, low, high: where(greater(maximum(x, low), high), dy, 0),
    ),
    dtypes=REAL,
    samples=(Real(-2.0, 2.0, avoid=(-1.0, 1.0)), Real(-1.0, -1.0), Real(1.0, 1.0)),
)


def divide_no_nan(x: Any, y: Any) -> Tensor:
    """Return x / y, and 0 where y is 0, with the gradient 0. Integers give float64.

    Elementwise; `x` and `y` broadcast. Raises InvalidArgumentError if their shapes do not.
    """
    x, y = convert_operands((x, y))
    is_zero = equal(y, 0)
    return where(is_zero, 0, divide(x, where(is_zero, 1, y)))


def multiply_no_nan(x: Any, y: Any) -> Tensor:
    """Return x * y, and 0 where y is 0, even if x is infinite or NaN.

    Elementwise; `x` and `y` broadcast. Raises InvalidArgumentError if their shapes do not.
    """
    return multiply_upstream(y, x)


def xdivy(x: Any, y: Any) -> Tensor:
    """Return x / y, and 0 where x is 0, even if y is 0 or NaN. Integers give float64.

    Elementwise; `x` and `y` broadcast. Raises InvalidArgumentError if their shapes do not.
    """
    return divide_upstream(x, y)


def xlog1py(x: Any, y: Any) -> Tensor:
    """Return x log(1 + y), and 0 where x is 0, even if the logarithm is infinite or NaN.

    Elementwise; `x` and `y` broadcast. Raises InvalidArgumentError if their shapes do not.
    """
    x, y = convert_operands((x, y))
    return multiply_upstream(x, log1p(y))


def where(condition: Any, x: Any, y: Any) -> Tensor:
    """Return `x` where `condition` holds and `y` elsewhere; the three broadcast.

    The gradient of the branch that is not chosen is 0, also where its slope is infinite or NaN:
    ``where(x > 0, sqrt(x), x)`` and ``where(x < 80, exp(x), x)`` need no guard.
    The dtypes of `x` and `y` promote. Raises InvalidArgumentError if shapes do not broadcast.
    """
    x, y = convert_operands((x, y))
    return apply(_where, (convert(condition), x, y), {})


def clip(x: Any, low: Any = None, high: Any = None) -> Tensor:
    """Return `x` limited to [low, high]; None means no limit. At a limit the gradient passes.

    Modelled on ``tf.clip_by_value``; the three broadcast, and their dtypes promote. Raises
    InvalidArgumentError if their shapes do not broadcast.
    """
    if low is None or high is None:
        x = convert(x)
        x = maximum(x, low) if low is not None else x
        return minimum(x, high) if high is not None else identity(x)
    return apply(_clip, convert_operands((x, low, high)), {})


def add_n(inputs: Any) -> Tensor:
    """Return the sum of a list of tensors of the same shape."""
    tensors = [
        convert(tensor) for tensor in (inputs if isinstance(inputs, (list, tuple)) else [inputs])
    ]
    if not tensors:
        raise InvalidArgumentError("add_n: needs at least one tensor, got an empty list")
    first = tensors[0]
    if any(tensor.shape != first.shape or tensor.dtype != first.dtype for tensor in tensors):
        listed = ", ".join(f"{tensor.dtype} {tuple(tensor.shape)}" for tensor in tensors)
        raise InvalidArgumentError(
            f"add_n: needs tensors of the same shape and dtype, got {listed}"
        )
    total = first
    for tensor in tensors[1:]:
        total = add(total, tensor)
    return total
