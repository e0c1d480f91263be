"""Scalar functions for use inside compiled loops.

exp, log and their kin are written as range reduction plus polynomial, since LLVM vectorises
such arithmetic and cannot vectorise calls to libm. float32 has its own constants and stays
float32; every literal in a float32 formula is a float32. Constants named as in fdlibm are
fdlibm's. A stub's Python body is its NumPy meaning; compiled code takes a version by type.
"""

import cmath
import math
import warnings

import numpy as np
from numba import types

from tinygrad_cg_kernels.compile import (
    bits,
    by_type,
    float_absolute,
    float_ceil,
    float_copysign,
    float_floor,
    float_maximum,
    float_minimum,
    float_round,
    from_bits,
    inlined,
    jitable,
    like,
)

F = np.float32
NAN, INF = np.nan, np.inf
NAN32, INF32 = F(np.nan), F(np.inf)
ZERO32, HALF32, ONE32, TWO32 = F(0), F(0.5), F(1), F(2)

# --- exp, expm1 -----------------------------------------------------------------------

LOG2E = 1.4426950408889634
LN2_HI, LN2_LO = 6.93147180369123816490e-01, 1.90821492927058770002e-10
SHIFT = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, in the low bits
SHIFT_BITS = 0x4338000000000000
LOG2E_32 = F(1.44269504)
LN2_HI_32, LN2_LO_32 = F(0.693359375), F(-2.12194440e-4)
SHIFT_32 = F(12582912.0)
SHIFT_BITS_32 = np.int32(0x4B400000)

# Minimax coefficients of (e**r - 1 - r) / r**2 for |r| <= log(2) / 2.
E0, E1, E2 = 0.5000000000000001, 0.16666666666666669, 0.04166666666662413
E3, E4, E5 = 0.008333333333330062, 0.0013888888917213717, 0.00019841269863053618
E6, E7, E8 = 2.4801521295954376e-05, 2.7557268459997064e-06, 2.7620088445409746e-07
E9 = 2.510038549551032e-08
E0_32, E1_32, E2_32 = F(0.5), F(0.1666666716337204), F(0.04166646674275398)
E3_32, E4_32, E5_32 = (
    F(0.00833331048488617),
    F(0.0013933649752289057),
    F(0.00019890991097781807),
)


@jitable
def _power_of_two64(exponent):
    return from_bits((exponent + 1023) << 52)


@jitable
def _power_of_two32(exponent):
    return from_bits(np.int32((exponent + 127) << 23))


@jitable
def _exp_parts64(x):
    """n (as float and integer) and p with e**x == 2**n * (1 + p)."""
    inlined()
    shifted = x * LOG2E + SHIFT
    n = shifted - SHIFT
    nearly = x - n * LN2_HI
    r = nearly - n * LN2_LO
    lost = (nearly - r) - n * LN2_LO
    high = E5 + r * (E6 + r * (E7 + r * (E8 + r * E9)))
    tail = E0 + r * (E1 + r * (E2 + r * (E3 + r * (E4 + r * high))))
    return bits(shifted) - SHIFT_BITS, r + ((r * r) * tail + lost)


@jitable
def _exp_parts32(x):
    inlined()
    shifted = x * LOG2E_32 + SHIFT_32
    n = shifted - SHIFT_32
    nearly = x - n * LN2_HI_32
    r = nearly - n * LN2_LO_32
    lost = (nearly - r) - n * LN2_LO_32
    tail = E0_32 + r * (E1_32 + r * (E2_32 + r * (E3_32 + r * (E4_32 + r * E5_32))))
    return np.int32(bits(shifted) - SHIFT_BITS_32), r + ((r * r) * tail + lost)


@jitable
def exp64(x):
    inlined()
    y = 710.0 if x > 710.0 else x
    y = -746.0 if y < -746.0 else y
    n, p = _exp_parts64(y)
    half = n >> 1
    return (1.0 + p) * _power_of_two64(half) * _power_of_two64(n - half)


@jitable
def exp32(x):
    inlined()
    y = F(89.0) if x > F(89.0) else x
    y = F(-104.0) if y < F(-104.0) else y
    n, p = _exp_parts32(y)
    half = np.int32(n >> np.int32(1))
    rest = np.int32(n - half)
    return (ONE32 + p) * _power_of_two32(half) * _power_of_two32(rest)


@jitable
def expm1_64(x):
    inlined()
    y = 710.0 if x > 710.0 else x
    y = -50.0 if y < -50.0 else y
    n, p = _exp_parts64(y)
    half_scale = _power_of_two64(n - 1)  # half of 2**n, which overflows before the result
    value = (half_scale * p + (half_scale - 0.5)) * 2.0
    return x if x == 0.0 else value  # keeps -0.0


@jitable
def expm1_32(x):
    inlined()
    y = F(89.0) if x > F(89.0) else x
    y = F(-30.0) if y < F(-30.0) else y
    n, p = _exp_parts32(y)
    half_scale = _power_of_two32(np.int32(n - np.int32(1)))
    value = (half_scale * p + (half_scale - HALF32)) * TWO32
    return x if x == ZERO32 else value


def exp(x):
    """e to the power x."""
    return np.exp(x)


def expm1(x):
    """e to the power x, less one, exact near zero."""
    return np.expm1(x)


@jitable
def _exp_complex(x):
    return cmath.exp(x)


@jitable
def _expm1_complex(x):
    return cmath.exp(x) - 1


by_type(exp, {types.float64: exp64, types.float32: exp32, types.Complex: _exp_complex})
by_type(
    expm1, {types.float64: expm1_64, types.float32: expm1_32, types.Complex: _expm1_complex}
)

# --- log, log1p -----------------------------------------------------------------------

LG1, LG2, LG3 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01
LG4, LG5, LG6 = 2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01
LG7 = 1.479819860511658591e-01
LG1_32, LG2_32 = F(0.66666662693), F(0.40000972152)
LG3_32, LG4_32 = F(0.28498786688), F(0.24279078841)
LOG_LN2_HI_32, LOG_LN2_LO_32 = F(6.9313812256e-01), F(9.0580006145e-06)
SQRT_HALF_BITS = 0x3FE6A09E00000000
SQRT_HALF_BITS_32 = np.int32(0x3F3504F3)
MANTISSA = 0x000FFFFFFFFFFFFF
MANTISSA_32 = np.int32(0x007FFFFF)
SMALLEST_NORMAL = 2.2250738585072014e-308
SMALLEST_NORMAL_32 = F(1.1754943508222875e-38)
TWO_54 = 18014398509481984.0
TWO_25 = F(33554432.0)


@jitable
def _log_parts64(x):
    """k (as a float) and m in [sqrt(1/2), sqrt(2)) with x == 2**k * m, for normal x."""
    inlined()
    moved = bits(x) - SQRT_HALF_BITS
    exponent = from_bits((moved >> 52) + SHIFT_BITS) - SHIFT
    return exponent, from_bits((moved & MANTISSA) + SQRT_HALF_BITS)


@jitable
def _log_parts32(x):
    inlined()
    moved = np.int32(bits(x) - SQRT_HALF_BITS_32)
    exponent = from_bits(np.int32(np.int32(moved >> np.int32(23)) + SHIFT_BITS_32)) - SHIFT_32
    return exponent, from_bits(np.int32(np.int32(moved & MANTISSA_32) + SQRT_HALF_BITS_32))


@jitable
def _log_sum64(k, f, correction):
    """log(2**k * (1 + f)) + correction."""
    inlined()
    half_square = 0.5 * f * f
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (LG2 + w * (LG4 + w * LG6))
    odd = z * (LG1 + w * (LG3 + w * (LG5 + w * LG7)))
    low = s * (half_square + (even + odd)) + (k * LN2_LO + correction)
    return ((low - half_square) + f) + k * LN2_HI


@jitable
def _log_sum32(k, f, correction):
    inlined()
    half_square = HALF32 * f * f
    s = f / (TWO32 + f)
    z = s * s
    w = z * z
    even = w * (LG2_32 + w * LG4_32)
    odd = z * (LG1_32 + w * LG3_32)
    low = s * (half_square + (even + odd)) + (k * LOG_LN2_LO_32 + correction)
    return ((low - half_square) + f) + k * LOG_LN2_HI_32


@jitable
def log64(x):
    inlined()
    tiny = x < SMALLEST_NORMAL
    k, m = _log_parts64(x * TWO_54 if tiny else x)
    value = _log_sum64(k - 54.0 if tiny else k, m - 1.0, 0.0)
    value = value if x < INF else x
    value = NAN if x < 0.0 else value
    return -INF if x == 0.0 else value


@jitable
def log32(x):
    inlined()
    tiny = x < SMALLEST_NORMAL_32
    k, m = _log_parts32(x * TWO_25 if tiny else x)
    value = _log_sum32(k - F(25.0) if tiny else k, m - ONE32, ZERO32)
    value = value if x < INF32 else x
    value = NAN32 if x < ZERO32 else value
    return -INF32 if x == ZERO32 else value


@jitable
def log1p64(x):
    inlined()
    u = 1.0 + x
    k, m = _log_parts64(u)
    lost = (1.0 - (u - x)) if k >= 2.0 else (x - (u - 1.0))
    near = k == 0.0
    value = _log_sum64(k, x if near else m - 1.0, 0.0 if near else lost / u)
    value = value if x < INF else x
    value = NAN if x < -1.0 else value
    value = -INF if x == -1.0 else value
    return x if x == 0.0 else value


@jitable
def log1p32(x):
    inlined()
    u = ONE32 + x
    k, m = _log_parts32(u)
    lost = (ONE32 - (u - x)) if k >= TWO32 else (x - (u - ONE32))
    near = k == ZERO32
    value = _log_sum32(k, x if near else m - ONE32, ZERO32 if near else lost / u)
    value = value if x < INF32 else x
    value = NAN32 if x < -ONE32 else value
    value = -INF32 if x == -ONE32 else value
    return x if x == ZERO32 else value


def log(x):
    """Natural logarithm."""
    return np.log(x)


def log1p(x):
    """log(1 + x), exact near zero."""
    return np.log1p(x)


@jitable
def _log_complex(x):
    return cmath.log(x)


@jitable
def _log1p_complex(x):
    return cmath.log(1 + x)


by_type(log, {types.float64: log64, types.float32: log32, types.Complex: _log_complex})
by_type(log1p, {types.float64: log1p64, types.float32: log1p32, types.Complex: _log1p_complex})

# --- tanh, sigmoid, softplus ----------------------------------------------------------


@jitable
def _tanh_real(x):
    inlined()
    two = like(2, x)
    doubled = two * float_absolute(x)
    t = expm1(doubled if doubled < like(50, x) or x != x else like(50, x))
    large = doubled > like(1.1, x)
    quotient = (two if large else t) / (t + two)
    return float_copysign(like(1, x) - quotient if large else quotient, x)


@jitable
def _tanh_complex(x):
    return cmath.tanh(x)


def tanh(x):
    """Hyperbolic tangent."""
    return np.tanh(x)


by_type(tanh, {types.Float: _tanh_real, types.Complex: _tanh_complex})


@jitable
def sigmoid(x):
    """1 / (1 + exp(-x)), without overflow."""
    inlined()
    one = like(1, x)
    e = exp(-float_absolute(x))
    return (e if x < like(0, x) else one) / (one + e)


@jitable
def softplus(x):
    """log(1 + exp(x)), without overflow."""
    inlined()
    zero = like(0, x)
    return (zero if x < zero else x) + log1p(exp(-float_absolute(x)))


# --- sin, cos -------------------------------------------------------------------------

TWO_OVER_PI = 0.6366197723675814
PIO2_1, PIO2_2 = 1.57079632673412561417e00, 6.07710050630396597660e-11
PIO2_3, PIO2_3T = 2.02226624871116645580e-21, 8.47842766036889956997e-32
S1, S2, S3 = (
    -1.66666666666666324348e-01,
    8.33333333332248946124e-03,
    -1.98412698298579493134e-04,
)
S4, S5, S6 = 2.75573137070700676789e-06, -2.50507602534068634195e-08, 1.58969099521155010221e-10
C1, C2, C3 = 4.16666666666666019037e-02, -1.38888888888741095749e-03, 2.48015872894767294178e-05
C4, C5, C6 = (
    -2.75573143513906633035e-07,
    2.08757232129817482790e-09,
    -1.13596475577881948265e-11,
)
TWO_OVER_PI_32 = F(0.6366197723675814)
PIO2_1_32, PIO2_2_32 = F(1.5703125), F(4.837512969970703125e-4)
PIO2_3_32, PIO2_3T_32 = F(7.549533620476723e-08), F(2.5633440682570896e-12)
S1_32, S2_32, S3_32 = F(-1.6666654611e-1), F(8.3321608736e-3), F(-1.9515295891e-4)
C1_32, C2_32, C3_32 = F(4.166664568298827e-2), F(-1.388731625493765e-3), F(2.443315711809948e-5)
NEAR = 1.0e6
NEAR_32 = F(8192.0)


@jitable
def _near64(x):
    return float_absolute(x) <= NEAR


@jitable
def _near32(x):
    return float_absolute(x) <= NEAR_32


@jitable
def _quarter_turns64(x):
    """The quadrant of x, and its offset there in two parts, for |x| <= NEAR."""
    inlined()
    shifted = x * TWO_OVER_PI + SHIFT
    n = shifted - SHIFT
    first = x - n * PIO2_1
    w = n * PIO2_2
    second = first - w
    lost = (first - second) - w
    w = n * PIO2_3 + (n * PIO2_3T - lost)
    y = second - w
    return bits(shifted), y, (second - y) - w


@jitable
def _quarter_turns32(x):
    inlined()
    shifted = x * TWO_OVER_PI_32 + SHIFT_32
    n = shifted - SHIFT_32
    second = (x - n * PIO2_1_32) - n * PIO2_2_32
    third = second - n * PIO2_3_32
    lost = (second - third) - n * PIO2_3_32
    w = n * PIO2_3T_32 - lost
    y = third - w
    return bits(shifted), y, (third - y) - w


@jitable
def _sin_or_cos64(quadrant, x, y):
    """sin of x + y, |x| <= pi/4, moved on by quarter turns."""
    inlined()
    z = x * x
    w = z * z
    r = S2 + z * (S3 + z * S4) + z * w * (S5 + z * S6)
    v = z * x
    sine = x - ((z * (0.5 * y - v * r) - y) - v * S1)
    r = z * (C1 + z * (C2 + z * C3)) + w * w * (C4 + z * (C5 + z * C6))
    half = 0.5 * z
    head = 1.0 - half
    cosine = head + (((1.0 - head) - half) + (z * r - x * y))
    value = sine if quadrant & 1 == 0 else cosine
    return value if quadrant & 2 == 0 else -value


@jitable
def _sin_or_cos32(quadrant, x, y):
    inlined()
    z = x * x
    sine = x + (x * z * (S1_32 + z * (S2_32 + z * S3_32)) + y)
    tail = z * z * (C1_32 + z * (C2_32 + z * C3_32)) - x * y
    cosine = ONE32 - (HALF32 * z - tail)
    value = sine if quadrant & np.int32(1) == np.int32(0) else cosine
    return value if quadrant & np.int32(2) == np.int32(0) else -value


@jitable
def _sin_near64(x):
    inlined()
    quadrant, high, low = _quarter_turns64(x)
    value = _sin_or_cos64(quadrant, high, low)
    return x if x == 0.0 else value


@jitable
def _sin_near32(x):
    inlined()
    quadrant, high, low = _quarter_turns32(x)
    value = _sin_or_cos32(quadrant, high, low)
    return x if x == ZERO32 else value


@jitable
def _cos_near64(x):
    inlined()
    quadrant, high, low = _quarter_turns64(x)
    return _sin_or_cos64(quadrant + 1, high, low)


@jitable
def _cos_near32(x):
    inlined()
    quadrant, high, low = _quarter_turns32(x)
    return _sin_or_cos32(np.int32(quadrant + np.int32(1)), high, low)


def near(x):
    """Whether `sin_near` and `cos_near` serve x."""
    return np.abs(x) <= NEAR_32


def sin_near(x):
    """sin of an x that is `near`, in arithmetic that vectorises."""
    return np.sin(x)


def cos_near(x):
    """cos of an x that is `near`, in arithmetic that vectorises."""
    return np.cos(x)


by_type(near, {types.float64: _near64, types.float32: _near32})
by_type(sin_near, {types.float64: _sin_near64, types.float32: _sin_near32})
by_type(cos_near, {types.float64: _cos_near64, types.float32: _cos_near32})


@jitable
def _sin_real(x):
    return sin_near(x) if near(x) else math.sin(x)


@jitable
def _cos_real(x):
    return cos_near(x) if near(x) else math.cos(x)


@jitable
def _sin_complex(x):
    return cmath.sin(x)


@jitable
def _cos_complex(x):
    return cmath.cos(x)


def sin(x):
    """Sine of x in radians."""
    return np.sin(x)


def cos(x):
    """Cosine of x in radians."""
    return np.cos(x)


by_type(sin, {types.Float: _sin_real, types.Complex: _sin_complex})
by_type(cos, {types.Float: _cos_real, types.Complex: _cos_complex})

GUARDED = {sin: (near, sin_near), cos: (near, cos_near)}
"""Functions right everywhere that vectorise only where a test holds: (test, fast version).
A loop takes the fast version for each block of elements that all pass the test."""

# --- arithmetic -----------------------------------------------------------------------


@jitable
def add(x, y):
    """x + y."""
    return x + y


@jitable
def subtract(x, y):
    """x - y."""
    return x - y


@jitable
def multiply(x, y):
    """x * y."""
    return x * y


@jitable
def divide(x, y):
    """x / y."""
    return x / y


@jitable
def negative(x):
    """-x."""
    return -x


@jitable
def square(x):
    """x * x."""
    return x * x


@jitable
def _sqrt_real(x):
    return math.sqrt(x)


@jitable
def _sqrt_complex(x):
    return cmath.sqrt(x)


def sqrt(x):
    """Square root; nan below zero."""
    return np.sqrt(x)


by_type(sqrt, {types.Float: _sqrt_real, types.Complex: _sqrt_complex})


@jitable
def _power_inexact(x, y):
    return x**y


@jitable
def _power_integer(x, y):
    result = like(1, x)
    while y > 0:
        if y & 1:
            result = like(result * x, x)
        x = like(x * x, x)
        y = like(y >> 1, y)
    return result


def power(x, y):
    """x to the power y. A negative integer power of an integer is the caller's to refuse."""
    return np.power(x, y)


by_type(
    power,
    {types.Integer: _power_integer, types.Float: _power_inexact, types.Complex: _power_inexact},
)


@jitable
def _floor_divide_integer(x, y):
    if y == 0:
        return like(0, x)
    return like(x // y, x)


@jitable
def _floor_divide_float(x, y):
    if y == 0:
        return x / y
    remaining = math.fmod(x, y)
    quotient = (x - remaining) / y
    if remaining != 0 and (y < 0) != (remaining < 0):
        quotient -= like(1, x)
    if quotient == 0:
        return float_copysign(like(0, x), x / y)
    floor_quotient = float_floor(quotient)
    if quotient - floor_quotient > like(0.5, x):
        floor_quotient += like(1, x)
    return floor_quotient


def floor_divide(x, y):
    """The largest integer not above x / y; 0 for an integer divided by zero."""
    return np.floor_divide(x, y)


by_type(floor_divide, {types.Integer: _floor_divide_integer, types.Float: _floor_divide_float})


@jitable
def _remainder_integer(x, y):
    if y == 0:
        return like(0, x)
    return like(x % y, x)


@jitable
def _remainder_float(x, y):
    if y == 0:
        return like(NAN, x)
    remaining = math.fmod(x, y)
    if remaining == 0:
        return float_copysign(like(0, x), y)
    if (y < 0) != (remaining < 0):
        remaining += y
    return remaining


def remainder(x, y):
    """x - y * floor(x / y), with the sign of y; 0 for an integer divided by zero."""
    return np.remainder(x, y)


by_type(remainder, {types.Integer: _remainder_integer, types.Float: _remainder_float})

# --- rounding and order ---------------------------------------------------------------


@jitable
def _same(x):
    return x


def round(x):
    """The nearest integer, halves to even."""
    return np.rint(x)


def floor(x):
    """The largest integer not above x."""
    return np.floor(x)


def ceil(x):
    """The smallest integer not below x."""
    return np.ceil(x)


_WHOLE = {types.Integer: _same, types.Boolean: _same}
by_type(round, {types.Float: jitable(lambda x: float_round(x)), **_WHOLE})
by_type(floor, {types.Float: jitable(lambda x: float_floor(x)), **_WHOLE})
by_type(ceil, {types.Float: jitable(lambda x: float_ceil(x)), **_WHOLE})


def absolute(x):
    """The magnitude of x."""
    return np.abs(x)


@jitable
def _absolute_float(x):
    return float_absolute(x)


@jitable
def _absolute_integer(x):
    return -x if x < 0 else x


@jitable
def _absolute_complex(x):
    return math.hypot(x.real, x.imag)


by_type(
    absolute,
    {
        types.Float: _absolute_float,
        types.Integer: _absolute_integer,
        types.Boolean: _same,
        types.Complex: _absolute_complex,
    },
)


@jitable
def _sign_real(x):
    one, zero = like(1, x), like(0, x)
    return one if x > zero else (-one if x < zero else (zero if x == zero else x))


@jitable
def _sign_integer(x):
    return like(1, x) if x > 0 else like(-1 if x < 0 else 0, x)


@jitable
def _sign_complex(x):
    size = math.hypot(x.real, x.imag)
    return x if size == 0 else x / size


def sign(x):
    """-1, 0 or 1; nan for nan; x / |x| for a complex x."""
    return np.sign(x)


by_type(
    sign, {types.Float: _sign_real, types.Integer: _sign_integer, types.Complex: _sign_complex}
)


@jitable
def relu(x):
    """x where it is positive (or nan), else zero."""
    zero = like(0, x)
    return zero if x <= zero else x


@jitable
def _maximum_float(x, y):
    return float_maximum(x, y)


@jitable
def _maximum_whole(x, y):
    return x if x >= y else y


@jitable
def _minimum_float(x, y):
    return float_minimum(x, y)


@jitable
def _minimum_whole(x, y):
    return x if x <= y else y


def maximum(x, y):
    """The larger of two; nan if either is nan."""
    return np.maximum(x, y)


def minimum(x, y):
    """The smaller of two; nan if either is nan."""
    return np.minimum(x, y)


by_type(
    maximum,
    {types.Float: _maximum_float, types.Integer: _maximum_whole, types.Boolean: _maximum_whole},
)
by_type(
    minimum,
    {types.Float: _minimum_float, types.Integer: _minimum_whole, types.Boolean: _minimum_whole},
)


@jitable
def clip(x, low, high):
    """x held between low and high; high wins where they cross."""
    return minimum(maximum(x, low), high)


@jitable
def where(condition, x, y):
    """x where the condition holds, else y."""
    return x if condition else y


# --- comparison and logic -------------------------------------------------------------


@jitable
def equal(x, y):
    """x == y."""
    return x == y


@jitable
def not_equal(x, y):
    """x != y."""
    return x != y


@jitable
def less(x, y):
    """x < y."""
    return x < y


@jitable
def less_equal(x, y):
    """x <= y."""
    return x <= y


@jitable
def greater(x, y):
    """x > y."""
    return x > y


@jitable
def greater_equal(x, y):
    """x >= y."""
    return x >= y


@jitable
def logical_and(x, y):
    """Both hold."""
    return x & y


@jitable
def logical_or(x, y):
    """Either holds."""
    return x | y


@jitable
def logical_xor(x, y):
    """Exactly one holds."""
    return x ^ y


@jitable
def logical_not(x):
    """It does not hold."""
    return not x


@jitable
def isnan(x):
    """Not equal to itself."""
    return x != x


@jitable
def _isfinite_float(x):
    return float_absolute(x) < INF


@jitable
def _isfinite_complex(x):
    return float_absolute(x.real) < INF and float_absolute(x.imag) < INF


@jitable
def _isinf_float(x):
    return float_absolute(x) == INF


@jitable
def _isinf_complex(x):
    return float_absolute(x.real) == INF or float_absolute(x.imag) == INF


@jitable
def _always(x):
    return True


@jitable
def _never(x):
    return False


def isfinite(x):
    """Neither infinite nor nan."""
    return np.isfinite(x)


def isinf(x):
    """Infinite."""
    return np.isinf(x)


by_type(
    isfinite,
    {
        types.Float: _isfinite_float,
        types.Complex: _isfinite_complex,
        types.Integer: _always,
        types.Boolean: _always,
    },
)
by_type(
    isinf,
    {
        types.Float: _isinf_float,
        types.Complex: _isinf_complex,
        types.Integer: _never,
        types.Boolean: _never,
    },
)

# --- complex parts --------------------------------------------------------------------


@jitable
def _conj_complex(x):
    return x.conjugate()


@jitable
def _real_complex(x):
    return x.real


@jitable
def _imag_complex(x):
    return x.imag


@jitable
def _zero(x):
    return like(0, x)


def conj(x):
    """The complex conjugate; x itself where it is real."""
    return np.conj(x)


def real(x):
    """The real part."""
    return np.real(x)


def imag(x):
    """The imaginary part; zero for a real x."""
    return np.imag(x)


_REAL = {types.Float: _same, types.Integer: _same, types.Boolean: _same}
_NO_PART = {types.Float: _zero, types.Integer: _zero, types.Boolean: _zero}
by_type(conj, {types.Complex: _conj_complex, **_REAL})
by_type(real, {types.Complex: _real_complex, **_REAL})
by_type(imag, {types.Complex: _imag_complex, **_NO_PART})

# --- what integers may not be given ---------------------------------------------------


def _check_power(name: str, x: np.ndarray, y: np.ndarray) -> None:
    if y.dtype.kind == "i" and (y < 0).any():
        raise ValueError(f"{name}: integers to negative integer powers are not allowed")


def _check_divisor(name: str, x: np.ndarray, y: np.ndarray) -> None:
    if not y.all():
        message = f"divide by zero encountered in {name}"
        warnings.warn(message, RuntimeWarning, stacklevel=4)


CHECKS = {power: _check_power, floor_divide: _check_divisor, remainder: _check_divisor}
"""What is looked at, of integer operands only, before the loop runs: (name, *operands)."""
