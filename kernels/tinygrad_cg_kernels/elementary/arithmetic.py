"""Arithmetic, rounding and order of two numbers, and the parts of complex ones."""

import math

import numpy as np

from tinygrad_cg_kernels.elementary.of_complex import power_complex, sqrt_complex
from tinygrad_cg_kernels.elementary.powers import power_real, rsqrt_real
from tinygrad_cg_kernels.runtime.compile import by_type, jitable, of_numpy
from tinygrad_cg_kernels.runtime.intrinsics import (
    float_absolute,
    float_ceil,
    float_copysign,
    float_floor,
    float_maximum,
    float_minimum,
    float_remainder,
    float_round,
    like,
)

NAN, INF = np.nan, np.inf

# --- arithmetic -----------------------------------------------------------------------


@jitable
def add(x, y):
    return x + y


@jitable
def subtract(x, y):
    return x - y


@jitable
def multiply(x, y):
    return x * y


def _divide_complex(x, y):
    """Divide by Smith's method, as NumPy: Numba's own complex division raises where y is zero."""
    across, up = abs(y.real), abs(y.imag)
    if across >= up:
        if across == 0:
            return like(complex(x.real / across, x.imag / across), x)
        ratio = y.imag / y.real
        size = y.real + y.imag * ratio
        real = (x.real + x.imag * ratio) / size
        return like(complex(real, (x.imag - x.real * ratio) / size), x)
    ratio = y.real / y.imag
    size = y.imag + y.real * ratio
    real = (x.real * ratio + x.imag) / size
    return like(complex(real, (x.imag * ratio - x.real) / size), x)


divide = of_numpy(__name__, "divide", complex=_divide_complex, float=lambda x, y: x / y)


@by_type(float=rsqrt_real, complex=lambda x: divide(like(1, x), sqrt_complex(x)))
def rsqrt(x):
    """Return 1 / sqrt(x): infinite at zero, nan below."""
    return 1 / np.sqrt(x)


@jitable
def normalized(x, mean, factor, offset):
    """Return (x - mean) * factor + offset."""
    return (x - mean) * factor + offset


# Gradient rules multiply an upstream gradient (here x) by a slope, or divide it. If the gradient is
# zero, so is the result, even if the slope is infinite or nan. Operands are compared, not results:
# a processor can do that while it multiplies.


@jitable
def multiply_upstream(x, y):
    """Return x * y; zero where x is zero, even if y is infinite or nan."""
    return like(x, x * y) if x == 0 else x * y


@jitable
def multiply_tangent(x, y):
    """Return x * y; zero where one of them is zero, even if the other is infinite or nan."""
    return like(0, x * y) if (x == 0) | (y == 0) else x * y


@jitable
def divide_upstream(x, y):
    """Return x / y; zero where x is zero, even if y is zero or nan."""
    quotient = divide(x, y)
    return like(x, quotient) if x == 0 else quotient


@jitable
def divide_unbounded(x, y):
    """Return `divide_upstream(x, y)`, but nan where y is infinite and x is not zero."""
    quotient = divide(x, y) + (y - y)
    return like(x, quotient) if x == 0 else quotient


@jitable
def unless_masked(upstream, slope, gradient):
    """Return `gradient`; zero where a zero upstream gradient meets an infinite or nan slope."""
    return like(0, gradient) if (upstream == 0) & (slope - slope != 0) else gradient


@jitable
def negative(x):
    return -x


@jitable
def square(x):
    return x * x


@jitable
def cube(x):
    """Return x * x * x."""
    return x * x * x


@jitable
def _one_minus_square(x):
    return (like(1, x) - x) * (like(1, x) + x)


@by_type(
    float=_one_minus_square,
    complex=lambda x: like(
        complex(_one_minus_square(x.real) + x.imag * x.imag, -2 * x.real * x.imag), x
    ),
)
def one_minus_square(x):
    """Return 1 - x * x, exact to the last digits near 1 and -1."""
    return (1 - x) * (1 + x)


sqrt = of_numpy(__name__, "sqrt", float=lambda x: math.sqrt(x), complex=sqrt_complex)


def _power_integer(x, y):
    result = like(1, x)
    while y > 0:
        if y & 1:
            result = like(result * x, x)
        x = like(x * x, x)
        y = like(y >> like(1, y), y)  # a 1 of its own type, or a large uint64 would become negative
    return result


power = of_numpy(__name__, "power", integer=_power_integer, float=power_real, complex=power_complex)
"""The caller refuses negative integer powers of integers."""


def _floor_divide_integer(x, y):
    if y == 0:
        return like(0, x)
    if y == -1:  # the negative of the smallest integer wraps, as in NumPy
        return like(-x, x)
    return like(x // y, x)


def _floor_divide_float(x, y):
    if y == 0:
        return x / y
    remaining = float_remainder(x, y)
    quotient = (x - remaining) / y
    if remaining != 0 and (y < 0) != (remaining < 0):
        quotient -= like(1, x)
    if quotient == 0:
        return float_copysign(like(0, x), x / y)
    floor_quotient = float_floor(quotient)
    if quotient - floor_quotient > like(0.5, x):
        floor_quotient += like(1, x)
    return floor_quotient


floor_divide = of_numpy(
    __name__, "floor_divide", integer=_floor_divide_integer, float=_floor_divide_float
)
"""0 for an integer divided by zero."""


def _remainder_float(x, y):
    if y == 0:
        return like(NAN, x)
    remaining = float_remainder(x, y)
    if remaining == 0:
        return float_copysign(like(0, x), y)
    if (y < 0) != (remaining < 0):
        remaining += y
    return remaining


remainder = of_numpy(
    __name__,
    "remainder",
    integer=lambda x, y: like(0, x) if y == 0 else like(x % y, x),
    float=_remainder_float,
)
"""With the sign of y; 0 for an integer divided by zero."""


# --- rounding and order ---------------------------------------------------------------

_ITSELF = {"exact": lambda x: x}


@by_type(float=lambda x: float_round(x), **_ITSELF)
def round(x):
    """Return the nearest integer, halves to even."""
    return np.rint(x)


floor = of_numpy(__name__, "floor", float=lambda x: float_floor(x), **_ITSELF)
ceil = of_numpy(__name__, "ceil", float=lambda x: float_ceil(x), **_ITSELF)
absolute = of_numpy(
    __name__,
    "absolute",
    float=lambda x: float_absolute(x),
    integer=lambda x: -x if x < 0 else x,
    boolean=lambda x: x,
    complex=lambda x: math.hypot(x.real, x.imag),
)


def _sign_real(x):
    one, zero = like(1, x), like(0, x)
    return one if x > zero else (-one if x < zero else (zero if x == zero else x))


def _sign_integer(x):
    return like(1, x) if x > 0 else like(-1 if x < 0 else 0, x)


def _sign_complex(x):
    size = math.hypot(x.real, x.imag)
    if size == INF:  # one infinite part gives the direction, two give none
        across, up = float_absolute(x.real), float_absolute(x.imag)
        if across == up or across != across or up != up:
            return like(complex(NAN, NAN), x)
        one, zero = like(1, across), like(0, across)
        first = float_copysign(one if across == INF else zero, x.real)
        return like(complex(first, float_copysign(one if up == INF else zero, x.imag)), x)
    return x if size == 0 else like(complex(x.real / size, x.imag / size), x)


sign = of_numpy(__name__, "sign", float=_sign_real, integer=_sign_integer, complex=_sign_complex)


@by_type(real=lambda x: like(0, x) if x <= like(0, x) else x)
def relu(x):
    """Return x where it is positive (or nan), else zero."""
    return np.maximum(x, np.zeros((), np.result_type(x)))


def _softsign_real(x):
    one = like(1, x)
    size = float_absolute(x)
    return float_copysign(one if size == INF else size / (one + size), x)


@by_type(float=_softsign_real)
def softsign(x):
    """Return x / (1 + |x|)."""
    return np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))


maximum = of_numpy(
    __name__,
    "maximum",
    float=lambda x, y: float_maximum(x, y),
    exact=lambda x, y: x if x >= y else y,
)
minimum = of_numpy(
    __name__,
    "minimum",
    float=lambda x, y: float_minimum(x, y),
    exact=lambda x, y: x if x <= y else y,
)


@jitable
def clip(x, low, high):
    """Return x limited to [low, high]; high wins where they cross."""
    return minimum(maximum(x, low), high)


@jitable
def where(condition, x, y):
    """Return x where the condition holds, else y."""
    return x if condition else y


# --- complex parts --------------------------------------------------------------------


conj = of_numpy(__name__, "conj", complex=lambda x: x.conjugate(), real=lambda x: x)


@by_type(complex=lambda x: x.real, real=lambda x: x)
def real(x):
    """Return the real part."""
    return np.real(x)


@by_type(complex=lambda x: x.imag, real=lambda x: like(0, x))
def imag(x):
    """Return the imaginary part; zero for a real x."""
    return np.imag(x)
