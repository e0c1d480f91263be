"""Powers and roots, in arithmetic that LLVM vectorises."""

import cmath
import math
from typing import Any

import numpy as np
from numba import types

from tinygrad_cg_kernels.compile import (
    by_type,
    float_absolute,
    float_copysign,
    float_floor,
    float_fma,
    inlined,
    jitable,
    like,
)
from tinygrad_cg_kernels.exponential import (
    LN2_HI,
    LN2_LO,
    exp_parts,
    log_edges,
    log_pair,
    log_parts,
    log_split,
    nearest,
    power_of_two,
    scaled,
)

F = np.float32
INF, NAN = np.inf, np.nan

# --- power ----------------------------------------------------------------------------
# exp(y log(x)). In float64 the logarithm is needed to about 2**-64 of itself. It is
# 2 atanh(s) = 2 s + s z (2/3 + z P(z)) with s = f / (2 + f), z = s * s, |s| <= 0.1716; all but
# P with what rounding loses of it. In float32 it is taken in float64, to base 2: fewer steps
# than pairs of float32 need, and the error is just above half an ulp.

# Minimax, as in `hyperbolic`: (2 atanh(s) - 2 s - 2/3 s**3) / s**5 in s**2.
P0, P1, P2 = 0.40000000000002256, 0.2857142857009956, 0.2222222251992978
P3, P4, P5 = 0.1818178436627728, 0.15386757377988594, 0.13256816520699485
P6 = 0.1319634110942323
TWO_THIRDS, TWO_THIRDS_TAIL = 0.6666666666666666, 3.700743415417188e-17

# Minimax, for float32: 2 atanh(s) / (s log(2)) in s**2, and 2**r for |r| <= 1/2.
A0, A1, A2 = 2.8853900817900864, 0.9617966733415568, 0.5770835850026481
A3, A4 = 0.411672717024417, 0.34073014051235945
B0, B1, B2 = 1.0000000005550505, 0.6931472057670709, 0.24022646886083818
B3, B4, B5 = 0.055503287119293074, 0.009618489244401646, 0.0013399957592659542
B6 = 0.00015345788929471484


@jitable
def _log_wide(x):
    """log(x) for positive finite x, as a number and what rounding lost of it."""
    inlined()
    k, f = log_split(x)
    total = 2.0 + f
    inverse = 1.0 / total
    s = f * inverse
    s_low = inverse * (float_fma(-s, total, f) - s * (f - (total - 2.0)))
    z = s * s
    z_low = float_fma(s, s, -z) + 2.0 * s * s_low
    high = P3 + z * (P4 + z * (P5 + z * P6))
    series = z * (P0 + z * (P1 + z * (P2 + z * high)))
    a = TWO_THIRDS + series
    a_low = (series - (a - TWO_THIRDS)) + TWO_THIRDS_TAIL
    t = z * a
    t_low = float_fma(z, a, -t) + (z_low * a + z * a_low)
    cube = s * t
    cube_low = float_fma(s, t, -cube) + (s * t_low + s_low * t)
    whole = k * LN2_HI
    near = whole + 2.0 * s
    high = near + cube
    low = (2.0 * s - (near - whole)) + (cube - (high - near))
    low = low + (cube_low + (2.0 * s_low + k * LN2_LO))
    value = high + low
    return value, low - (value - high)


@jitable
def _magnitude64(x, y):
    """exp(y log(x)) for x >= 0."""
    inlined()
    big, small = _log_wide(x)
    big = big if x < INF else x
    big = -INF if x == 0.0 else big
    p = y * big
    lost = float_fma(y, big, -p) + y * small
    kept = 710.0 if p > 710.0 else p
    kept = -746.0 if kept < -746.0 else kept
    n, r, t = exp_parts(kept)
    w = r + t
    w = w + (lost + lost * w if kept == p else 0.0)
    return scaled(1.0 + w, n)


@jitable
def _magnitude32(x, y):
    inlined()
    wide = np.float64(x)  # where subnormal numbers of float32 are normal
    k, m = log_parts(wide)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    log2 = k + s * (A0 + z * (A1 + z * (A2 + z * (A3 + z * A4))))
    log2 = log2 if wide < INF else wide
    log2 = -INF if wide == 0.0 else log2
    p = np.float64(y) * log2
    p = 200.0 if p > 200.0 else p
    p = -200.0 if p < -200.0 else p
    n, count = nearest(p)
    r = p - count
    value = B0 + r * (B1 + r * (B2 + r * (B3 + r * (B4 + r * (B5 + r * B6)))))
    return F(value * power_of_two(n))


def _magnitude(x, y) -> Any:
    """x**y for x >= 0 and finite y."""


by_type(_magnitude, {types.float64: _magnitude64, types.float32: _magnitude32})


@jitable
def _power_real(x, y, limit):
    """Exponents beyond the limit give what infinite ones do, except 1 * inf."""
    inlined()
    one, zero = like(1, x), like(0, x)
    exponent = limit if y > limit else y
    value = _magnitude(float_absolute(x), -limit if exponent < -limit else exponent)
    half = like(0.5, x) * y
    whole = float_floor(y) == y
    odd = whole and float_floor(half) != half
    value = float_copysign(value, x) if odd else value
    value = like(NAN, x) if (x < zero and x > like(-INF, x) and not whole) else value
    return one if (x == one or y == zero) else value


@jitable
def power64(x, y):
    inlined()
    return _power_real(x, y, 1e290)


@jitable
def power32(x, y):
    inlined()
    return _power_real(x, y, F(1e30))


# --- roots ------------------------------------------------------------------------------

# Minimax of m**(-1/3), relative, for m in [sqrt(1/2), sqrt(2)].
K0, K1, K2 = 1.9991696601232456, -2.4859155355840707, 2.7922037771418364
K3, K4, K5 = -1.8981272312023432, 0.7007371846052137, -0.10806400819044505
K0_32, K1_32, K2_32 = F(1.8745192), F(-1.8618314), F(1.5613059)
K3_32, K4_32 = F(-0.70238644), F(0.12836935)
THIRD, CBRT_2, CBRT_HALF = 0.3333333333333333, 1.2599210498948732, 0.7937005259840998


@jitable
def _inverse_cbrt64(m):
    """To 2**-33."""
    inlined()
    z = K0 + m * (K1 + m * (K2 + m * (K3 + m * (K4 + m * K5))))
    return z + z * THIRD * (1.0 - m * (z * z * z))


@jitable
def _inverse_cbrt32(m):
    """To 2**-14."""
    inlined()
    return K0_32 + m * (K1_32 + m * (K2_32 + m * (K3_32 + m * K4_32)))


def _inverse_cbrt(m) -> Any:
    """Nearly m**(-1/3) for m in [sqrt(1/2), sqrt(2)]."""


by_type(_inverse_cbrt, {types.float64: _inverse_cbrt64, types.float32: _inverse_cbrt32})


@jitable
def _cbrt_real(x):
    """2**j cbrt(2**q m), q in -1, 0, 1: a first value from the inverse, and one Newton step."""
    inlined()
    magnitude = float_absolute(x)
    k, f = log_split(magnitude)
    j, count = nearest(k * like(THIRD, x))
    q = k - like(3, x) * count
    m = like(1, x) + f
    a, root, slope = m, like(1, x), like(THIRD, x)
    if q > like(0.5, x):
        a, root, slope = like(2, x) * m, like(CBRT_2, x), like(THIRD / CBRT_2**2, x)
    if q < like(-0.5, x):
        a, root, slope = like(0.5, x) * m, like(CBRT_HALF, x), like(THIRD / CBRT_HALF**2, x)
    inverse = _inverse_cbrt(m)
    inverse_square = inverse * inverse
    y = m * inverse_square * root
    square = y * y
    excess = float_fma(square, y, -a) + float_fma(y, y, -square) * y
    y = y - excess * (slope * inverse_square)
    value = float_copysign(y * power_of_two(j), x)
    return value if like(0, x) < magnitude < like(INF, x) else x


@jitable
def _rsqrt_real(x):
    """The rounding errors of root and quotient, removed by a Newton step."""
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
    """sqrt(x**2 + y**2), scaled by a power of two where squares would overflow or vanish."""
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
    """Cube root."""
    return np.cbrt(x)


def rsqrt(x):
    """1 / sqrt(x): infinite at zero, nan below."""
    return 1 / np.sqrt(x)


def hypot(x, y):
    """sqrt(x**2 + y**2), without overflow."""
    return np.hypot(x, y)


def xlogy(x, y):
    """x log(y), and 0 where x is 0 (unless y is nan)."""
    zero = (x == 0) & ~np.isnan(y)
    return np.where(zero, x * 0, x * np.log(np.where(zero, 1, y)))


by_type(cbrt, {types.Float: _cbrt_real})
by_type(rsqrt, {types.Float: _rsqrt_real, types.Complex: _rsqrt_complex})
by_type(hypot, {types.float64: _hypot64, types.float32: _hypot32})
by_type(xlogy, {types.Float: _xlogy_real})
