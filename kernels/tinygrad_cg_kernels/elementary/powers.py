"""Powers and roots, in arithmetic that LLVM vectorises."""

import cmath
import math
from typing import Any

import numpy as np
from numba import types

from tinygrad_cg_kernels.elementary.exponential import (
    E0,
    E0_32,
    E1,
    E1_32,
    E2,
    E2_32,
    E3,
    E3_32,
    E4,
    E4_32,
    E5,
    E5_32,
    E6,
    E7,
    E8,
    E9,
    LN2_HI,
    LN2_LO,
    LOG2E,
    LOG2E_32,
    SHIFT,
    SHIFT_32,
    SHIFT_BITS,
    SHIFT_BITS_32,
    nearest,
    scale_by_power,
)
from tinygrad_cg_kernels.elementary.logarithm import (
    LOG_LN2_HI_32,
    LOG_LN2_LO_32,
    MANTISSA,
    MANTISSA_32,
    SMALLEST_NORMAL,
    SMALLEST_NORMAL_32,
    TWO_25,
    TWO_54,
    log_edges,
    log_pair,
)
from tinygrad_cg_kernels.runtime.compile import by_type, jitable
from tinygrad_cg_kernels.runtime.intrinsics import (
    bits,
    estrin,
    float_absolute,
    float_copysign,
    float_floor,
    float_fma,
    from_bits,
    inlined,
    like,
)

F = np.float32
INF, NAN = np.inf, np.nan

# --- power ----------------------------------------------------------------------------
# exp(y log(x)), where the logarithm is needed to about 2**-62 of itself (2**-32 in float32).
# With c near 1 / x, short enough for r = c x - 1 to be exact, it is log(1 + r) - log(c). The
# first terms of log(1 + r) = r - r**2 / 2 + r**3 / 3 + r**4 q(r) are summed as numbers and what
# rounding lost of them. q is a minimax fit for r in [-0.099, 0.1095]; in float32 of all from
# r**3 on.

Q = (
    *(-0.24999999999999903, 0.20000000000002413, -0.166666666668264),
    *(0.1428571428327247, -0.12499999909772108, 0.11111111994486648),
    *(-0.10000024149371284, 0.09090764363629177, -0.08329992113227115),
    *(0.07702798782662476, -0.07373757741191743, 0.06460706542220457),
)
THIRD, THIRD_LOW = 0.3333333333333333, 1.850371707708594e-17
Q_32 = (
    *(0.3333333432674408, -0.24999864399433136, 0.19999271631240845),
    *(-0.16703340411186218, 0.14451946318149567, -0.10263805091381073),
)
EXP = (E0, E1, E2, E3, E4, E5, E6, E7, E8, E9)
EXP_32 = (E0_32, E1_32, E2_32, E3_32, E4_32, E5_32)
# By two bits of x's mantissa, counted from FIRST on: c, and -log(c) in two parts, the first short.
FIRST, FIRST_32 = 0x3FE5C00000000000, np.int32(0x3F2E0000)  # of 0.6796875
UPPER, LOWER = 1 << 51, 1 << 50
UPPER_32, LOWER_32, NONE_32 = np.int32(1 << 22), np.int32(1 << 21), np.int32(0)
C0, C1, C2, C3 = 1.375, 1.125, 1.0, 0.8125
H0, H1, H2, H3 = -0.3184537310153246, -0.11778303561732173, 0.0, 0.20763936475850642
L0, L1, L2, L3 = -1.0321002321991519e-10, -3.906172487875993e-11, 0.0, 1.9738084340965946e-11
C0_32, C1_32, C2_32, C3_32 = F(C0), F(C1), F(C2), F(C3)
H0_32, H1_32, H2_32, H3_32 = F(-0.318450927734375), F(-0.1177825927734375), F(0), F(0.2076416015625)
L0_32, L1_32 = F(-2.8033841772412416e-06), F(-4.428829356584174e-07)
L2_32, L3_32 = F(0), F(-2.236784212072962e-06)


@jitable
def _of_four(upper, lower, a, b, c, d):
    """Return one of four values by two bits, in two steps.

    LLVM makes three of conditions in one expression.
    """
    inlined()
    first = b if lower else a
    second = d if lower else c
    return second if upper else first


@jitable
def _near_log64(x, less):
    """Return r for a normal x, and log(x) - less * log(2) - log(1 + r) in two parts."""
    inlined()
    moved = bits(x) - FIRST
    k = (from_bits((moved >> 52) + SHIFT_BITS) - SHIFT) - less
    m = from_bits((moved & MANTISSA) + FIRST)
    upper, lower = moved & UPPER != 0, moved & LOWER != 0
    c = _of_four(upper, lower, C0, C1, C2, C3)
    high = _of_four(upper, lower, H0, H1, H2, H3)
    low = _of_four(upper, lower, L0, L1, L2, L3)
    return float_fma(m, c, -1.0), float_fma(k, LN2_HI, high), float_fma(k, LN2_LO, low)


@jitable
def _near_log32(x, less):
    inlined()
    moved = np.int32(bits(x) - FIRST_32)
    integral = from_bits(np.int32(np.int32(moved >> np.int32(23)) + SHIFT_BITS_32))
    k = (integral - SHIFT_32) - less
    m = from_bits(np.int32(np.int32(moved & MANTISSA_32) + FIRST_32))
    upper, lower = moved & UPPER_32 != NONE_32, moved & LOWER_32 != NONE_32
    c = _of_four(upper, lower, C0_32, C1_32, C2_32, C3_32)
    high = _of_four(upper, lower, H0_32, H1_32, H2_32, H3_32)
    low = _of_four(upper, lower, L0_32, L1_32, L2_32, L3_32)
    high, low = float_fma(k, LOG_LN2_HI_32, high), float_fma(k, LOG_LN2_LO_32, low)
    return float_fma(m, c, F(-1.0)), high, low


# Polynomials of several short chains: power is limited by how long it takes, not by how much.


@jitable
def _log_sum64(r, base, base_low):
    """Return base + base_low + log(1 + r), as a number and its rounding error."""
    inlined()
    tail = estrin(r, Q)
    third = float_fma(r, tail, THIRD)
    third_low = float_fma(r, tail, THIRD - third) + THIRD_LOW
    h = float_fma(r, third, -0.5)
    h_low = float_fma(r, third_low, float_fma(r, third, -0.5 - h))
    g = float_fma(r, h, 1.0)
    g_low = float_fma(r, h_low, float_fma(r, h, 1.0 - g))
    value = float_fma(r, g, base)
    return value, float_fma(r, g_low, float_fma(r, g, base - value)) + base_low


@jitable
def _log_sum32(r, base, base_low):
    """Return the logarithm's sum; from r**3 on one number is enough, so the rest need not wait."""
    inlined()
    square = r * r
    square_low = float_fma(r, r, -square)
    first = base + r
    second = float_fma(F(-0.5), square, first)
    low = ((base - first) + r) + float_fma(F(-0.5), square_low, base_low)
    low = float_fma(F(-0.5), square, first - second) + low
    rest = (r * square) * estrin(r, Q_32)
    value = second + rest
    return value, ((second - value) + rest) + low


@jitable
def _exp_pair64(p, lost):
    """Return n and a value in [0.7, 1.42] with exp(p + lost) = 2**n * value."""
    inlined()
    n, count = nearest(p * LOG2E)
    r = float_fma(-count, LN2_HI, p) + float_fma(-count, LN2_LO, lost)
    return n, 1.0 + (r + (r * r) * estrin(r, EXP))


@jitable
def _exp_pair32(p, lost):
    """Return the same with fewer roundings, of which float32 bears few besides those of the
    logarithm.
    """
    inlined()
    n, count = nearest(p * LOG2E_32)
    most = float_fma(-count, LOG_LN2_HI_32, p)
    rest = float_fma(-count, LOG_LN2_LO_32, lost)
    r = most + rest
    return n, F(1.0) + (most + float_fma(r * r, estrin(r, EXP_32), rest))


@jitable
def _shifted64(value, n):
    return from_bits(bits(value) + (n << 52))


@jitable
def _shifted32(value, n):
    return from_bits(np.int32(bits(value) + np.int32(n << np.int32(23))))


def _near_log(x, less) -> Any:
    """Dispatch to the version for the type of x."""


def _log_sum(r, base, base_low) -> Any:
    """Dispatch to the version for the type of x."""


def _exp_pair(p, lost) -> Any:
    """Dispatch to the version for the type of x."""


def _scale_by_power(value, n) -> Any:
    """Return value * 2**n, both normal numbers."""


by_type(_near_log, {types.float64: _near_log64, types.float32: _near_log32})
by_type(_log_sum, {types.float64: _log_sum64, types.float32: _log_sum32})
by_type(_exp_pair, {types.float64: _exp_pair64, types.float32: _exp_pair32})
by_type(_scale_by_power, {types.float64: _shifted64, types.float32: _shifted32})


@jitable
def _log_wide(x, less):
    """Return log(x) - less * log(2) of a normal x, as a number and its rounding error."""
    inlined()
    r, base, base_low = _near_log(x, less)
    return _log_sum(r, base, base_low)


@jitable
def _magnitude(x, y, smallest, up, digits, least, most):
    """Return exp(y log(x)) for x >= 0 and finite y; 2**digits = up makes the smallest numbers
    normal.
    """
    inlined()
    zero, tiny = like(0, x), x < smallest
    high, low = _log_wide(x * up if tiny else x, digits if tiny else zero)
    high = high if x < like(INF, x) else x
    high = like(-INF, x) if x == zero else high
    p = y * high
    lost = float_fma(y, low, float_fma(y, high, -p))
    kept = most if p > most else p
    kept = least if kept < least else kept
    n, value = _exp_pair(kept, lost if kept == p else zero)
    return scale_by_power(value, n)


def _any_magnitude(x, y) -> Any:
    """Return x**y for x >= 0 and finite y."""


@jitable
def _magnitude64(x, y):
    inlined()
    return _magnitude(x, y, SMALLEST_NORMAL, TWO_54, 54.0, -746.0, 710.0)


@jitable
def _magnitude32(x, y):
    inlined()
    return _magnitude(x, y, SMALLEST_NORMAL_32, TWO_25, F(25.0), F(-104.0), F(89.0))


by_type(_any_magnitude, {types.float64: _magnitude64, types.float32: _magnitude32})


@jitable
def _power_real(x, y, limit):
    """Return x**y; exponents beyond the limit count as infinite, except 1 * inf."""
    inlined()
    one, zero = like(1, x), like(0, x)
    exponent = limit if y > limit else y
    value = _any_magnitude(float_absolute(x), -limit if exponent < -limit else exponent)
    half = like(0.5, x) * y
    integral = float_floor(y) == y
    odd = integral and float_floor(half) != half
    value = float_copysign(value, x) if odd else value
    value = like(NAN, x) if (x < zero and x > like(-INF, x) and not integral) else value
    return one if (x == one or y == zero) else value


@jitable
def power64(x, y):
    inlined()
    return _power_real(x, y, 1e290)


@jitable
def power32(x, y):
    inlined()
    return _power_real(x, y, F(1e30))


@jitable
def _ordinary64(x, y):
    inlined()
    k = from_bits(((bits(x) - FIRST) >> 52) + SHIFT_BITS) - SHIFT  # large also if x is negative
    size = float_absolute(k)
    return (size < 1021.5) & (float_absolute(y) * (size + 1.0) < 1020.0)


@jitable
def _ordinary32(x, y):
    inlined()
    moved = np.int32(np.int32(bits(x) - FIRST_32) >> np.int32(23))
    size = float_absolute(from_bits(np.int32(moved + SHIFT_BITS_32)) - SHIFT_32)
    return (size < F(125.5)) & (float_absolute(y) * (size + F(1.0)) < F(125.0))


@jitable
def _power_ordinary(x, y):
    inlined()
    high, low = _log_wide(x, like(0, x))
    p = y * high
    n, value = _exp_pair(p, float_fma(y, low, float_fma(y, high, -p)))
    return _scale_by_power(value, n)


def ordinary(x, y):
    """Return whether `power_ordinary` serves: x is positive, and neither it nor x**y near an
    end.
    """
    return (x > 0) & (np.abs(y) * (np.abs(np.log2(x)) + 1.5) < 124)


def power_ordinary(x, y):
    """Return x to the power y where that is `ordinary`, at about half the cost."""
    return np.power(x, y)


by_type(ordinary, {types.float64: _ordinary64, types.float32: _ordinary32})
by_type(power_ordinary, {types.Float: _power_ordinary})


# --- roots ------------------------------------------------------------------------------

# y near x**(-1/3), from a third of the bits of x, is made short: its square is exact. With
# e = 1 - x y**3 the cube root is x y**2 (1 - e)**(-2/3).
# Minimax of ((1 - e)**(-1/3) - 1) / e for |e| <= 0.103, of ((1 - e)**(-2/3) - 1) / e for
# |e| <= 1.2e-4 and, in float32, 0.1106.
CBRT_SEED, CBRT_SEED_32 = 0x553EE81B4E81B400, F(1419930501.0)
INVERSE_CBRT = (0.33332751071445504, 0.22349438100275276, 0.17472405156187323)
CBRT = (0.6666666666666666, 0.5555555609520483, 0.49382716909151975)
CBRT_32 = (
    *(0.6666667461395264, 0.5555557608604431, 0.49377816915512085),
    *(0.4525916576385498, 0.43064889311790466, 0.40893760323524475),
)
THIRD_OF_32, MINUS_THIRD_32 = 0x55555555, F(-1 / 3)
SHORT, SHORT_32 = ~((1 << 36) - 1), np.int32(~((1 << 16) - 1))


@jitable
def _inverse_cbrt64(x):
    inlined()
    y = from_bits(CBRT_SEED - ((bits(x) >> 32) & 0xFFFFFFFF) * THIRD_OF_32)
    e = float_fma(-(x * y), y * y, 1.0)
    return from_bits(bits(float_fma(y * e, estrin(e, INVERSE_CBRT), y)) & SHORT)


@jitable
def _inverse_cbrt32(x):
    inlined()
    third = float_fma(F(bits(x)), MINUS_THIRD_32, CBRT_SEED_32)
    return from_bits(np.int32(np.int32(third) & SHORT_32))


def _inverse_cbrt(x) -> Any:
    """Return x**(-1/3) to 17 (8) bits, for a normal x > 0."""


by_type(_inverse_cbrt, {types.float64: _inverse_cbrt64, types.float32: _inverse_cbrt32})


@jitable
def _cbrt_real(x, smallest, up, down, coefficients):
    """Return the cube root; `up`, 1 / `down`**3, makes the smallest numbers normal."""
    inlined()
    magnitude = float_absolute(x)
    tiny = magnitude < smallest
    v = magnitude * up if tiny else magnitude
    y = _inverse_cbrt(v)
    square = y * y
    root = v * square
    lost = float_fma(v, square, -root)
    e = float_fma(-lost, y, float_fma(-root, y, like(1, x)))
    value = root + float_fma(root, e * estrin(e, coefficients), lost)
    value = float_copysign(value * down if tiny else value, x)
    return value if magnitude < like(INF, x) else x


@jitable
def _cbrt64(x):
    inlined()
    return _cbrt_real(x, SMALLEST_NORMAL, 2.0**54, 2.0**-18, CBRT)


@jitable
def _cbrt32(x):
    inlined()
    return _cbrt_real(x, SMALLEST_NORMAL_32, F(2.0**24), F(2.0**-8), CBRT_32)


@jitable
def _rsqrt_real(x):
    """Return the rounding errors of root and quotient, removed by a Newton step."""
    inlined()
    one, half = like(1, x), like(0.5, x)
    y = one / math.sqrt(x)
    part = x * y
    excess = float_fma(-part, y, one) - float_fma(x, y, -part) * y
    refined = y + half * y * excess
    return refined if like(0, x) < x < like(INF, x) else y


@jitable
def _rsqrt_complex(x):
    return 1 / cmath.sqrt(x)


@jitable
def _hypot_real(x, y, large, down, small, up):
    """Return sqrt(x**2 + y**2), scaled by a power of two where squares would overflow or vanish."""
    inlined()
    first, second = float_absolute(x), float_absolute(y)
    longer, shorter = (first, second) if first > second else (second, first)
    one = like(1, x)
    scale = down if longer > large else (up if longer < small else one)
    back = up if longer > large else (down if longer < small else one)
    a, b = longer * scale, shorter * scale
    value = math.sqrt(float_fma(a, a, b * b)) * back
    infinite = longer == like(INF, x) or shorter == like(INF, x)
    return like(INF, x) if infinite else value


@jitable
def _hypot64(x, y):
    inlined()
    return _hypot_real(x, y, 2.0**500, 2.0**-600, 2.0**-480, 2.0**600)


@jitable
def _hypot32(x, y):
    inlined()
    return _hypot_real(x, y, F(2.0**60), F(2.0**-80), F(2.0**-50), F(2.0**80))


@jitable
def _xlogy_real(x, y):
    inlined()
    zero, infinity = like(0, x), like(INF, x)
    high, low = log_pair(y)
    regular = zero < y < infinity and float_absolute(x) < infinity
    value = float_fma(x, high, x * low) if regular else x * log_edges(y, high)
    return zero if (x == zero and y == y) else value


def cbrt(x):
    """Return the cube root of x."""
    return np.cbrt(x)


def rsqrt(x):
    """Return 1 / sqrt(x): infinite at zero, nan below."""
    return 1 / np.sqrt(x)


def hypot(x, y):
    """Return sqrt(x**2 + y**2), without overflow."""
    return np.hypot(x, y)


def xlogy(x, y):
    """Return x log(y), and 0 where x is 0 (unless y is nan)."""
    zero = (x == 0) & ~np.isnan(y)
    return np.where(zero, x * 0, x * np.log(np.where(zero, 1, y)))


by_type(cbrt, {types.float64: _cbrt64, types.float32: _cbrt32})
by_type(rsqrt, {types.Float: _rsqrt_real, types.Complex: _rsqrt_complex})
by_type(hypot, {types.float64: _hypot64, types.float32: _hypot32})
by_type(xlogy, {types.Float: _xlogy_real})
