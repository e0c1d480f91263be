"""Hyperbolic and logistic functions, in arithmetic that LLVM vectorises.

All rest on e**x = 2**n * (1 + r + t), see `exponential.exp_parts`. Where the simple formula adds
up the roundings of its steps, the largest are carried along as a second number, so that the
result has little more error than its last rounding.
"""

import cmath
from typing import Any

import numpy as np
from numba import types

from tinygrad_cg_kernels.elementary.exponential import (
    LN2,
    LN2_TAIL,
    LOG2E,
    exp_parts,
    nearest,
    power_of_two,
    scale_by_power,
)
from tinygrad_cg_kernels.runtime.compile import by_type, jitable
from tinygrad_cg_kernels.runtime.intrinsics import (
    bits,
    estrin,
    float_absolute,
    float_copysign,
    float_fma,
    float_maximum,
    float_minimum,
    from_bits,
    inlined,
    like,
)

F = np.float32


@jitable
def _rest(y, count):
    """Return y - count * log(2) as a number and a correction to subtract."""
    inlined()
    ln2 = like(LN2, y)
    low = count * like((LN2 - np.float64(ln2)) + LN2_TAIL, y)
    return float_fma(-count, ln2, y), low


# --- sinh, cosh -----------------------------------------------------------------------
# sinh(x) = (2**n - 2**-n) / 2 * cosh(r) + (2**n + 2**-n) / 2 * sinh(r), and cosh likewise: no
# cancellation, and no division.

# (sinh(r) - r) / r**3 and (cosh(r) - 1) / r**2 in r**2, for |r| <= log(2) / 2. These and the
# other polynomials here are minimax: found with Remez's exchange in 250 bits, each coefficient
# rounded in turn and the later ones fitted again.
POWERS_MULTIPLIED, POWERS_MULTIPLIED_32 = 2042 << 52, np.int32(250 << 23)
S = (
    *(0.16666666666666666, 0.008333333333334424, 0.00019841269837090483),
    *(2.755732621581287e-06, 2.5046788753928923e-08, 1.7576121702692842e-10),
)
C = (
    *(0.5, 0.041666666666666685, 0.0013888888888873283),
    *(2.4801587349202168e-05, 2.755725181956492e-07, 2.0921769982650523e-09),
)
S0_32, S1_32, S2_32 = F(0.16666667), F(0.008333175), F(0.00019974097)
C0_32, C1_32, C2_32 = F(0.5), F(0.04166646), F(0.0013935429)


@jitable
def _series64(z):
    inlined()
    return estrin(z, S), estrin(z, C)


@jitable
def _series32(z):
    inlined()
    return S0_32 + z * (S1_32 + z * S2_32), C0_32 + z * (C1_32 + z * C2_32)


def _series(z) -> Any:
    """Return (sinh(r) - r) / r**3 and (cosh(r) - 1) / r**2, with z = r**2."""


by_type(_series, {types.float64: _series64, types.float32: _series32})


@jitable
def _halves64(n):
    up = power_of_two(n - 2)
    opposite = POWERS_MULTIPLIED - bits(up)
    return up, from_bits(opposite if opposite > 0 else 0)


@jitable
def _halves32(n):
    up = power_of_two(np.int32(n - np.int32(2)))
    opposite = np.int32(POWERS_MULTIPLIED_32 - bits(up))
    return up, from_bits(opposite if opposite > np.int32(0) else np.int32(0))


def _halves(n) -> Any:
    """Return 2**n / 4 and 2**-n / 4, for n >= 0; the latter 0 where it would be subnormal."""


by_type(_halves, {types.int64: _halves64, types.int32: _halves32})


@jitable
def _parts(magnitude, limit):
    """Return r, sinh(r) - r, cosh(r) - 1, and a quarter of 2**n and of 2**-n, of a magnitude."""
    inlined()
    y = float_minimum(magnitude, limit)
    n, count = nearest(y * like(LOG2E, y))
    high, low = _rest(y, count)
    r = high - low
    z = r * r
    odd, even = _series(z)
    up, down = _halves(n)
    return high, float_fma(r * z, odd, -low), z * even, up, down


@jitable
def _sinh_real(x, limit, tiny, most):
    """Return sinh(x); where 2**n -+ 2**-n is not exact, its smaller part joins the smaller
    terms.
    """
    inlined()
    magnitude = float_absolute(x)
    r, odd, even, up, down = _parts(magnitude, limit)
    exact = up <= most
    first, second = (up - down, up + down) if exact else (up, up)
    rest = like(0, x) if exact else float_fma(down, r, -down)
    value = first + float_fma(second, r, float_fma(first, even, float_fma(second, odd, rest)))
    return x if magnitude < tiny else float_copysign(value + value, x)


@jitable
def _cosh_real(x, limit):
    inlined()
    r, odd, even, up, down = _parts(float_absolute(x), limit)
    first, second = up + down, up - down
    rest = down - (first - up)
    value = first + float_fma(second, r, float_fma(first, even, float_fma(second, odd, rest)))
    return value + value


@jitable
def _sinh64(x):
    inlined()
    return _sinh_real(x, 710.6, 1e-9, 2.0**24)


@jitable
def _sinh32(x):
    inlined()
    return _sinh_real(x, F(89.5), F(1e-5), F(2.0**9))


@jitable
def _cosh64(x):
    inlined()
    return _cosh_real(x, 710.6)


@jitable
def _cosh32(x):
    inlined()
    return _cosh_real(x, F(89.5))


@jitable
def _sinh_complex(x):
    return cmath.sinh(x)


@jitable
def _cosh_complex(x):
    return cmath.cosh(x)


def sinh(x):
    """Return the hyperbolic sine of x."""
    return np.sinh(x)


def cosh(x):
    """Return the hyperbolic cosine of x."""
    return np.cosh(x)


by_type(sinh, {types.float64: _sinh64, types.float32: _sinh32, types.Complex: _sinh_complex})
by_type(cosh, {types.float64: _cosh64, types.float32: _cosh32, types.Complex: _cosh_complex})

# --- tanh, sigmoid ----------------------------------------------------------------------
# Quotients of 1 + e**y = 1 + s + s w, where y = n log(2) + r, s = 2**n and w = e**r - 1. A
# division takes little more than a product; what takes time is one step waiting for another.

# (e**r - 1 - r - r**2 / 2) / r**3 for |r| <= log(2) / 2.
CUBIC = (
    *(0.1666666666666668, 0.04166666666666669, 0.00833333333331914, 0.0013888888888867335),
    *(0.00019841269891960833, 2.4801587361295457e-05, 2.7557238713578723e-06),
    *(2.7557241532035135e-07, 2.511084394024943e-08, 2.0924900418516288e-09),
)
CUBIC_32 = (0.16666528582572937, 0.04166639223694801, 0.008368045091629028, 0.0013941585784778)


@jitable
def _cubic64(r):
    inlined()
    return estrin(r, CUBIC)


@jitable
def _cubic32(r):
    inlined()
    return estrin(r, CUBIC_32)


def _cubic(r) -> Any:
    """Return (e**r - 1 - r - r**2 / 2) / r**3."""


by_type(_cubic, {types.float64: _cubic64, types.float32: _cubic32})


@jitable
def _expm1_near(high, low, r):
    """Return e**(high - low) - 1, where r is the rounded value of high - low."""
    inlined()
    z = r * r
    return high + float_fma(z * r, _cubic(r), float_fma(z, like(0.5, r), -low))


@jitable
def _tanh64(x):
    """Return (1 - e**y) / (1 + e**y) with y = -2 |x|."""
    inlined()
    magnitude = float_minimum(float_absolute(x), 22.0)
    n, count = nearest(magnitude * (-2.0 * LOG2E))
    high, low = _rest(-(magnitude + magnitude), count)
    w = _expm1_near(high, low, high)
    s = power_of_two(n)
    quotient = float_fma(-s, w, 1.0 - s) / float_fma(s, w, 1.0 + s)
    return float_copysign(quotient, x)


# tanh(x) / x - 1 = (z + T0 z**2) / (-3 + T1 z + T2 z**2) with z = x**2, for |x| <= 0.92.
T0_32, T1_32, T2_32 = F(0.044202376157045364), F(-1.3326070308685303), F(-0.04732917621731758)


@jitable
def _tanh32(x):
    """Return 1 - 2 / (1 + e**(2 |x|)) where that loses nothing, else a quotient of polynomials."""
    inlined()
    one, magnitude = F(1.0), float_absolute(x)
    limited = float_minimum(magnitude, F(10.0))
    n, count = nearest(limited * F(2.0 * LOG2E))
    r = float_fma(-count, F(LN2), limited + limited)
    square = r * r
    w = float_fma(square, float_fma(r, _cubic(r), F(0.5)), r)
    s = power_of_two(n)
    z = x * x
    small = magnitude < F(0.92)
    scale = magnitude if small else one
    above = float_fma(z * z, T0_32, z) if small else F(-2.0)
    near = float_fma(z, float_fma(z, T2_32, T1_32), F(-3.0))
    below = near if small else float_fma(s, w, one + s)
    return float_copysign(float_fma(scale, above / below, scale), x)


@jitable
def _tanh_complex(x):
    return cmath.tanh(x)


def tanh(x):
    """Return the hyperbolic tangent of x."""
    return np.tanh(x)


by_type(tanh, {types.float64: _tanh64, types.float32: _tanh32, types.Complex: _tanh_complex})


@jitable
def _logistic_parts(x, lowest, highest, shift):
    """Return s = 2**(n + shift) and w with e**-x = 2**n (1 + w)."""
    inlined()
    y = -float_minimum(float_maximum(x, lowest), highest)
    n, count = nearest(y * like(LOG2E, y))
    high, low = _rest(y, count)
    return power_of_two(like(n + shift, n)), _expm1_near(high, low, high - low)


@jitable
def _sigmoid64(x):
    """Return 2**-500 / (2**-500 + s + s w), of which nothing overflows.

    1 and 2**n are summed at once where nothing of the sum is lost.
    """
    inlined()
    s, w = _logistic_parts(x, -746.0, 40.0, -500)
    large = s if s > 2.0**-490 else 0.0
    return 2.0**-500 / (float_fma(s, w, 2.0**-500 + (s - large)) + large)


@jitable
def _sigmoid32(x):
    """Return the same with 2**-60, and what the sum and the quotient lost added to the latter."""
    inlined()
    unit = F(2.0**-60)
    s, w = _logistic_parts(x, F(-104.0), F(20.0), -60)
    rounded = unit + s
    total = float_fma(s, w, rounded)
    lost = float_fma(s, w, rounded - total) + (unit - (rounded - s))
    quotient = unit / total
    rest = float_fma(-quotient, lost, float_fma(-quotient, total, unit))
    return float_fma(quotient * F(2.0**60), rest, quotient)


def sigmoid(x):
    """Return 1 / (1 + exp(-x)), without overflow."""
    return 1 / (1 + np.exp(-x))


by_type(sigmoid, {types.float64: _sigmoid64, types.float32: _sigmoid32})

# --- softplus, log_sigmoid, logaddexp ---------------------------------------------------

# (2 atanh(s) - 2 s) / (8 s**3) in (2 s)**2, for s in [0, 1/3].
L0, L1, L2 = 0.666666666666777 / 8, 0.39999999996048374 / 32, 0.285714290581408 / 128
L3, L4, L5 = 0.22222192897202558 / 512, 0.1818281428506627 / 2048, 0.1536429200995423 / 8192
L6, L7 = 0.13586347821880748 / 32768, 0.09902649160209871 / 131072
L8 = 0.1774012349996194 / 524288
L0_32, L1_32, L2_32 = F(0.66666675 / 8), F(0.3999895 / 32), F(0.28615218 / 128)
L3_32, L4_32 = F(0.21443719 / 512), F(0.24246344 / 2048)


@jitable
def _log_series64(z):
    inlined()
    high = L4 + z * (L5 + z * (L6 + z * (L7 + z * L8)))
    return L0 + z * (L1 + z * (L2 + z * (L3 + z * high)))


@jitable
def _log_series32(z):
    inlined()
    return L0_32 + z * (L1_32 + z * (L2_32 + z * (L3_32 + z * L4_32)))


def _log_series(z) -> Any:
    """Return (2 atanh(s) - 2 s) / (8 s**3) with z = 4 s**2."""


by_type(_log_series, {types.float64: _log_series64, types.float32: _log_series32})


@jitable
def _exp_pair(x):
    """Return n, u and v with e**x = 2**n * (u + v), where v is the rounding error of u."""
    inlined()
    n, r, t = exp_parts(x)
    w = r + t
    u = like(1, x) + w
    return n, u, w - (u - like(1, x))


@jitable
def _log1p_exp(x, x_low, limit):
    """Return log(1 + exp(x + x_low)) for x <= 0, as a number and its rounding error.

    With e = exp(x) it is 2 atanh(s), s = e / (2 + e).
    """
    inlined()
    one, half = like(1, x), like(0.5, x)
    n, u, v = _exp_pair(limit if x < limit else x)
    e, missing = scale_by_power(u, n), scale_by_power(v + u * x_low, n)
    total = one + half * e
    lost = (half * e - (total - one)) + half * missing
    inverse = one / total
    q = e * inverse
    z = q * q
    rest = inverse * (float_fma(-q, total, e) + (missing - q * lost))
    return q, rest + (q * z) * _log_series(z)


@jitable
def _add_exactly(base, high, low):
    """Return base + high + low, the first sum exact."""
    inlined()
    total = base + high
    back = total - base
    lost = (base - (total - back)) + (high - back)
    return total + ((lost if lost == lost else like(0, base)) + low)


@jitable
def _softplus_real(x, limit):
    inlined()
    zero = like(0, x)
    high, low = _log1p_exp(-float_absolute(x), zero, limit)
    return _add_exactly(zero if x < zero else x, high, low)


@jitable
def _softplus64(x):
    inlined()
    return _softplus_real(x, -746.0)


@jitable
def _softplus32(x):
    inlined()
    return _softplus_real(x, F(-104.0))


def softplus(x):
    """Return log(1 + exp(x)), without overflow."""
    return np.logaddexp(x, np.zeros((), np.result_type(x)))


by_type(softplus, {types.float64: _softplus64, types.float32: _softplus32})


@jitable
def _log_sigmoid_real(x):
    inlined()
    return -softplus(-x)


def log_sigmoid(x):
    """Return log(sigmoid(x)), without overflow."""
    return -softplus(-x)


by_type(log_sigmoid, {types.Float: _log_sigmoid_real})


@jitable
def _logaddexp_real(x, y, limit):
    inlined()
    larger, smaller = (x, y) if x > y else (y, x)
    gap = smaller - larger
    back = gap + larger
    lost = (smaller - back) - ((gap - back) + larger)
    ordinary = float_absolute(gap) < -limit
    gap = gap if x != y else like(0, x)
    high, low = _log1p_exp(gap, lost if ordinary else like(0, x), limit)
    return _add_exactly(larger, high, low)


@jitable
def _logaddexp64(x, y):
    inlined()
    return _logaddexp_real(x, y, -746.0)


@jitable
def _logaddexp32(x, y):
    inlined()
    return _logaddexp_real(x, y, F(-104.0))


def logaddexp(x, y):
    """Return log(exp(x) + exp(y)), without overflow."""
    return np.logaddexp(x, y)


by_type(logaddexp, {types.float64: _logaddexp64, types.float32: _logaddexp32})
