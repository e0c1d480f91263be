"""Powers and roots, in arithmetic that LLVM vectorises."""

import math

import numpy as np

from tinygrad_cg_kernels.elementary.exponential import (
    EXP_TAIL,
    EXP_TAIL_32,
    LN2_HI,
    LN2_HI_32,
    LN2_LO,
    LN2_LO_32,
    LOG2E,
    LOWEST,
    LOWEST_32,
    MANTISSA_BITS,
    MANTISSA_BITS_32,
    limited,
    nearest_product,
    scale_by_power,
)
from tinygrad_cg_kernels.elementary.logarithm import (
    SMALLEST_NORMAL,
    SMALLEST_NORMAL_32,
    UP,
    UP_32,
    log_edges,
    log_pair,
    parts_from,
)
from tinygrad_cg_kernels.runtime.compile import by_type, jitable, of_numpy, of_width
from tinygrad_cg_kernels.runtime.intrinsics import (
    bits,
    by_width,
    estrin,
    float_absolute,
    float_copysign,
    float_floor,
    float_fma,
    from_bits,
    inlined,
    like,
)
from tinygrad_cg_kernels.runtime.service import outside

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
# By two bits of x's mantissa, counted from FIRST on: c, and -log(c) in two parts, the first short.
FIRST, FIRST_32 = 0x3FE5C00000000000, 0x3F2E0000  # of 0.6796875
UPPER, UPPER_32 = 1 << 51, 1 << 22
LOWER, LOWER_32 = 1 << 50, 1 << 21
C = (1.375, 1.125, 1.0, 0.8125)
H = (-0.3184537310153246, -0.11778303561732173, 0.0, 0.20763936475850642)
L = (-1.0321002321991519e-10, -3.906172487875993e-11, 0.0, 1.9738084340965946e-11)
H_32 = (-0.318450927734375, -0.1177825927734375, 0.0, 0.2076416015625)
L_32 = (-2.8033841772412416e-06, -4.428829356584174e-07, 0.0, -2.236784212072962e-06)


@jitable
def _of_four(upper, lower, values):
    """Return one of four values by two bits, in two steps.

    LLVM makes three of conditions in one expression.
    """
    inlined()
    first = values[1] if lower else values[0]
    second = values[3] if lower else values[2]
    return second if upper else first


@jitable
def _near_log(x, less):
    """Return r for a normal x, and log(x) - less * log(2) - log(1 + r) in two parts."""
    inlined()
    ln2_hi, ln2_lo = by_width(x, (LN2_HI, LN2_LO), (LN2_HI_32, LN2_LO_32))
    exponent, m, moved = parts_from(x, FIRST, FIRST_32)
    k = exponent - less
    upper = moved & by_width(moved, UPPER, UPPER_32) != like(0, moved)
    lower = moved & by_width(moved, LOWER, LOWER_32) != like(0, moved)
    c = _of_four(upper, lower, by_width(x, C, C))
    high = _of_four(upper, lower, by_width(x, H, H_32))
    low = _of_four(upper, lower, by_width(x, L, L_32))
    return float_fma(m, c, like(-1, x)), float_fma(k, ln2_hi, high), float_fma(k, ln2_lo, low)


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
def exp_pair64(p, lost):
    """Return n and a value in [0.7, 1.42] with exp(p + lost) = 2**n * value."""
    inlined()
    n, count = nearest_product(p, LOG2E)
    r = float_fma(-count, LN2_HI, p) + float_fma(-count, LN2_LO, lost)
    return n, 1.0 + (r + (r * r) * estrin(r, EXP_TAIL))


@jitable
def _exp_pair32(p, lost):
    """Return `exp_pair64` with fewer roundings, since the logarithm brings some already."""
    inlined()
    n, count = nearest_product(p, F(LOG2E))
    most = float_fma(-count, F(LN2_HI_32), p)
    rest = float_fma(-count, F(LN2_LO_32), lost)
    r = most + rest
    return n, F(1.0) + (most + float_fma(r * r, estrin(r, EXP_TAIL_32), rest))


_log_sum, _exp_pair = of_width(_log_sum64, _log_sum32), of_width(exp_pair64, _exp_pair32)


@jitable
def log_wide(x, less):
    """Return log(x) - less * log(2) of a normal x, as a number and its rounding error."""
    inlined()
    r, base, base_low = _near_log(x, less)
    return _log_sum(r, base, base_low)


@jitable
def _magnitude(x, y):
    """Return exp(y log(x)) for x >= 0 and finite y."""
    inlined()
    digits, up = by_width(x, UP, UP_32)
    least, most = by_width(x, (LOWEST, 710.0), (LOWEST_32, 89.0))
    zero, tiny = like(0, x), x < by_width(x, SMALLEST_NORMAL, SMALLEST_NORMAL_32)
    high, low = log_wide(x * up if tiny else x, digits if tiny else zero)
    high = high if x < like(INF, x) else x
    high = like(-INF, x) if x == zero else high
    p = y * high
    lost = float_fma(y, low, float_fma(y, high, -p))
    kept = limited(p, least, most)
    n, value = _exp_pair(kept, lost if kept == p else zero)
    return scale_by_power(value, n)


@jitable
def power_real(x, y):
    """Return x**y; exponents beyond the limit count as infinite, except 1 * inf."""
    inlined()
    one, zero, limit = like(1, x), like(0, x), by_width(x, 1e290, 1e30)
    value = _magnitude(float_absolute(x), limited(y, -limit, limit))
    half = like(0.5, x) * y
    integral = float_floor(y) == y
    odd = integral and float_floor(half) != half
    value = float_copysign(value, x) if odd else value
    value = like(NAN, x) if (x < zero and x > like(-INF, x) and not integral) else value
    return one if (x == one or y == zero) else value


def _ordinary_real(x, y):
    inlined()
    k, _, _ = parts_from(x, FIRST, FIRST_32)  # large also if x is negative
    most, most_of_power = by_width(x, (1021.5, 1020.0), (125.5, 125.0))
    size = float_absolute(k)
    return (size < most) & (float_absolute(y) * (size + like(1, x)) < most_of_power)


def _power_ordinary(x, y):
    inlined()
    high, low = log_wide(x, like(0, x))
    p = y * high
    n, value = _exp_pair(p, float_fma(y, low, float_fma(y, high, -p)))
    shifted = n << by_width(n, MANTISSA_BITS, MANTISSA_BITS_32)
    return from_bits(like(bits(value) + shifted, n))  # both value and result are normal


@by_type(float=_ordinary_real)
def ordinary(x, y):
    """Return whether `power_ordinary` serves: x > 0, and neither x nor x**y is near an end."""
    return (x > 0) & (np.abs(y) * (np.abs(np.log2(x)) + 1.5) < 124)


@by_type(float=_power_ordinary)
def power_ordinary(x, y):
    """Return x to the power y where that is `ordinary`, at about half the cost."""
    return np.power(x, y)


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
    """Return x**(-1/3) to 17 (8) bits, for a normal x > 0."""
    inlined()
    y = from_bits(CBRT_SEED - ((bits(x) >> 32) & 0xFFFFFFFF) * THIRD_OF_32)
    e = float_fma(-(x * y), y * y, 1.0)
    return from_bits(bits(float_fma(y * e, estrin(e, INVERSE_CBRT), y)) & SHORT)


@jitable
def _inverse_cbrt32(x):
    inlined()
    third = float_fma(F(bits(x)), MINUS_THIRD_32, CBRT_SEED_32)
    return from_bits(np.int32(np.int32(third) & SHORT_32))


_inverse_cbrt = of_width(_inverse_cbrt64, _inverse_cbrt32)


def _cbrt_real(x):
    """Return the cube root; `up`, 1 / `down`**3, makes the smallest numbers normal."""
    inlined()
    up, down = by_width(x, (2.0**54, 2.0**-18), (2.0**24, 2.0**-8))
    magnitude = float_absolute(x)
    tiny = magnitude < by_width(x, SMALLEST_NORMAL, SMALLEST_NORMAL_32)
    v = magnitude * up if tiny else magnitude
    y = _inverse_cbrt(v)
    square = y * y
    root = v * square
    lost = float_fma(v, square, -root)
    e = float_fma(-lost, y, float_fma(-root, y, like(1, x)))
    value = root + float_fma(root, e * estrin(e, by_width(x, CBRT, CBRT_32)), lost)
    value = float_copysign(value * down if tiny else value, x)
    return value if magnitude < like(INF, x) else x


def rsqrt_real(x):
    """Return 1 / sqrt(x); a Newton step removes the rounding errors of root and quotient."""
    inlined()
    one, half = like(1, x), like(0.5, x)
    y = one / math.sqrt(x)
    part = x * y
    excess = float_fma(-part, y, one) - float_fma(x, y, -part) * y
    refined = y + half * y * excess
    return refined if like(0, x) < x < like(INF, x) else y


@jitable
def _hypot_real(x, y):
    """Return sqrt(x**2 + y**2), scaled by a power of two where squares would overflow or vanish."""
    inlined()
    large, down = by_width(x, (2.0**500, 2.0**-600), (2.0**60, 2.0**-80))
    small, up = by_width(x, (2.0**-480, 2.0**600), (2.0**-50, 2.0**80))
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
def _direction_real(x, y):
    inlined()
    length, zero = _hypot_real(x, y), like(0, x)
    return zero if length == zero else x / length


def _xlogy_real(x, y):
    inlined()
    zero, infinity = like(0, x), like(INF, x)
    high, low = log_pair(y)
    regular = zero < y < infinity and float_absolute(x) < infinity
    value = float_fma(x, high, x * low) if regular else x * log_edges(y, high)
    return zero if (x == zero and y == y) else value


cbrt = of_numpy(__name__, "cbrt", float=_cbrt_real)
hypot = of_numpy(__name__, "hypot", float=_hypot_real)


@by_type(float=_direction_real)
def direction(x, y):
    """Return x / hypot(x, y), and 0 where both are 0."""
    return outside(_direction_real)(x, y)


@by_type(float=_xlogy_real)
def xlogy(x, y):
    """Return x log(y), and 0 where x is 0 (unless y is nan)."""
    zero = (x == 0) & ~np.isnan(y)
    return np.where(zero, x * 0, x * np.log(np.where(zero, 1, y)))
