"""Hyperbolic and logistic functions, in arithmetic that LLVM vectorises.

All use e**x = 2**n * (1 + r + t) (see `exponential.exp_parts`). Where rounding errors of a simple
formula would add up, the largest ones are kept in a second number, so the error of the result is
little more than that of its last rounding.
"""

import numpy as np

from tinygrad_cg_kernels.elementary.exponential import (
    LN2,
    LN2_TAIL,
    LOG2E,
    LOWEST,
    LOWEST_32,
    TWO_BIASES,
    exp_parts,
    nearest_biased,
    nearest_product,
    power_of_biased,
    power_of_two,
    two_powers,
)
from tinygrad_cg_kernels.elementary.logarithm import log, log1p
from tinygrad_cg_kernels.elementary.of_complex import cosh_complex, sinh_complex, tanh_complex
from tinygrad_cg_kernels.runtime.compile import BY_VALUE, by_type, jitable, of_numpy
from tinygrad_cg_kernels.runtime.intrinsics import (
    bits,
    by_width,
    estrin,
    float_absolute,
    float_copysign,
    float_fma,
    float_maximum,
    float_minimum,
    from_bits,
    inlined,
    like,
    polynomial,
)

F = np.float32


LN2_LOW_32 = (LN2 - float(F(LN2))) + LN2_TAIL


@jitable
def _rest(y, count):
    """Return y - count * log(2) as a number and a correction to subtract."""
    inlined()
    low = count * by_width(y, LN2_TAIL, LN2_LOW_32)
    return float_fma(-count, like(LN2, y), y), low


# --- sinh, cosh -----------------------------------------------------------------------
# sinh(x) = (2**n - 2**-n) / 2 * cosh(r) + (2**n + 2**-n) / 2 * sinh(r), and cosh likewise: no
# cancellation, and no division.

# (sinh(r) - r) / r**3 and (cosh(r) - 1) / r**2 in r**2, for |r| <= log(2) / 2. These and the
# other polynomials here are minimax: found with Remez's exchange in 250 bits, each coefficient
# rounded in turn and the later ones fitted again.
POWERS_MULTIPLIED, POWERS_MULTIPLIED_32 = 2042 << 52, 250 << 23
S = (
    *(0.16666666666666666, 0.008333333333334424, 0.00019841269837090483),
    *(2.755732621581287e-06, 2.5046788753928923e-08, 1.7576121702692842e-10),
)
C = (
    *(0.5, 0.041666666666666685, 0.0013888888888873283),
    *(2.4801587349202168e-05, 2.755725181956492e-07, 2.0921769982650523e-09),
)
S_32, C_32 = (0.16666667, 0.008333175, 0.00019974097), (0.5, 0.04166646, 0.0013935429)


@jitable
def _halves(n):
    """Return 2**m and 2**-m / 16, for n of 2**m with its bias, m >= -2.

    The latter is 0 where it would be subnormal.
    """
    inlined()
    up = power_of_biased(n)
    opposite = like(by_width(n, POWERS_MULTIPLIED, POWERS_MULTIPLIED_32) - bits(up), n)
    return up, from_bits(opposite if opposite > like(0, n) else like(0, n))


@jitable
def _parts(magnitude):
    """Return r, sinh(r) - r, cosh(r) - 1, and a quarter of 2**n and of 2**-n, of a magnitude."""
    inlined()
    y = float_minimum(magnitude, by_width(magnitude, 710.6, 89.5))
    n, count = nearest_biased(y, like(LOG2E, y), by_width(y, 1021.0, 125.0))
    high, low = _rest(y, count)
    r = high - low
    z = r * r
    odd = by_width(z, estrin(z, S), polynomial(z, S_32))
    even = by_width(z, estrin(z, C), polynomial(z, C_32))
    up, down = _halves(n)
    return high, float_fma(r * z, odd, -low), z * even, up, down


def _sinh_real(x):
    """Return sinh(x); where 2**n -+ 2**-n is inexact, its smaller part joins the smaller terms."""
    inlined()
    tiny, most = by_width(x, (1e-9, 2.0**24), (1e-5, 2.0**9))
    magnitude = float_absolute(x)
    r, odd, even, up, down = _parts(magnitude)
    exact = up <= most
    first, second = (up - down, up + down) if exact else (up, up)
    rest = like(0, x) if exact else float_fma(down, r, -down)
    value = first + float_fma(second, r, float_fma(first, even, float_fma(second, odd, rest)))
    return x if magnitude < tiny else float_copysign(value + value, x)


def _cosh_real(x):
    inlined()
    r, odd, even, up, down = _parts(float_absolute(x))
    first, second = up + down, up - down
    rest = down - (first - up)
    value = first + float_fma(second, r, float_fma(first, even, float_fma(second, odd, rest)))
    return value + value


sinh = of_numpy(__name__, "sinh", float=_sinh_real, complex=sinh_complex)
cosh = of_numpy(__name__, "cosh", float=_cosh_real, complex=cosh_complex)


# --- tanh, sigmoid ----------------------------------------------------------------------
# Quotients of 1 + e**y = 1 + s + s w, where y = n log(2) + r, s = 2**n and w = e**r - 1. A division
# takes little longer than a product: the time is that of steps that wait for one another.

# (e**r - 1 - r - r**2 / 2) / r**3 for |r| <= log(2) / 2.
CUBIC = (
    *(0.1666666666666668, 0.04166666666666669, 0.00833333333331914, 0.0013888888888867335),
    *(0.00019841269891960833, 2.4801587361295457e-05, 2.7557238713578723e-06),
    *(2.7557241532035135e-07, 2.511084394024943e-08, 2.0924900418516288e-09),
)
CUBIC_32 = (0.16666528582572937, 0.04166639223694801, 0.008368045091629028, 0.0013941585784778)


@jitable
def _expm1_near(high, low, r):
    """Return e**(high - low) - 1, where r is the rounded value of high - low."""
    inlined()
    z = r * r
    cubic = estrin(r, by_width(r, CUBIC, CUBIC_32))
    return high + float_fma(z * r, cubic, float_fma(z, like(0.5, r), -low))


@jitable
def _tanh_exponential64(x):
    """Return s and w with e**(-2 |x|) = 2**-64 s (1 + w)."""
    inlined()
    magnitude = float_minimum(float_absolute(x), 374.0)
    n, count = nearest_biased(magnitude, -2.0 * LOG2E, 1023.0 + 64.0)
    high, low = _rest(-(magnitude + magnitude), count)
    return power_of_biased(n), _expm1_near(high, low, high - low)


def _tanh64(x):
    """Return (1 - e) / (1 + e) with e = e**(-2 |x|)."""
    inlined()
    s, w = _tanh_exponential64(x)
    quotient = float_fma(-s, w, 2.0**64 - s) / float_fma(s, w, 2.0**64 + s)
    return float_copysign(quotient, x)


def _tanh_slope_of64(x, value):
    """Return e (1 + |tanh(x)|)**2, as 1 + |tanh(x)| is 2 / (1 + e)."""
    inlined()
    s, w = _tanh_exponential64(x)
    twice = 1.0 + float_absolute(value)
    return (float_fma(s, w, s) * (twice * twice)) * 2.0**-64


# tanh(x) / x - 1 = z / (T0 + T1 z + T2 z**2 + T3 z**3) with z = x**2, for |x| <= 0.98.
T_32 = (-3.0, -1.1999971866607666, 0.005699818022549152, -0.0002308087277924642)


@jitable
def _tanh_parts32(x, most, unit, bias):
    """Return a, b and c with |tanh(x)| = a + b c for |x| <= most, and whether |x| is small.

    1 - 2 / (1 + e**(2 |x|)) where that loses nothing, else a quotient of polynomials. The sum is
    computed in units of 1 / unit = 2**(127 - bias).
    """
    inlined()
    magnitude = float_absolute(x)
    limited = float_minimum(magnitude, most)
    n, count = nearest_biased(limited, F(2.0 * LOG2E), bias)
    r = float_fma(-count, F(LN2_LOW_32), float_fma(-count, F(LN2), limited + limited))
    s = power_of_biased(n)
    square = r * r
    w = float_fma(square, float_fma(r, estrin(r, CUBIC_32), F(0.5)), r)
    z = x * x
    small = magnitude < F(0.98)
    above = z if small else F(-2.0)
    below = polynomial(z, T_32) if small else float_fma(s, w, unit + s)
    a, b = (magnitude, magnitude) if small else (F(1.0), unit)
    return a, b, above / below, small


def _tanh32(x):
    inlined()
    a, b, c, _ = _tanh_parts32(x, F(10.0), F(1.0), F(127.0))
    return float_copysign(float_fma(b, c, a), x)


@jitable
def _tanh_slope_by_parts(value, b, c, small):
    """Return 1 - tanh(x)**2, with 1 - |tanh(x)| = -b c where |x| is not small."""
    inlined()
    far = (-c * (F(1.0) + float_absolute(value))) * b
    return float_fma(-value, value, F(1.0)) if small else far


def _tanh_slope_of32(x, value):
    inlined()
    _, b, c, small = _tanh_parts32(x, F(53.0), F(2.0**-64), F(63.0))
    return _tanh_slope_by_parts(value, b, c, small)


tanh = of_numpy(__name__, "tanh", float64=_tanh64, float32=_tanh32, complex=tanh_complex)


@jitable
def _unsaturated(x, value):
    inlined()
    return float_absolute(value) < like(0.8, value)


@jitable
def _tanh_slope_unsaturated(x, value):
    inlined()
    return float_fma(-value, value, like(1, value))


@by_type(float64=_tanh_slope_of64, float32=_tanh_slope_of32)
def tanh_slope_of(x, value):
    """Return the derivative of tanh, given also its value: a loop shares common work."""
    return 1 - value * value


BY_VALUE[tanh_slope_of] = _unsaturated, _tanh_slope_unsaturated


def _tanh_slope64(x):
    inlined()
    return tanh_slope_of(x, tanh(x))


def _tanh_slope32(x):
    inlined()
    a, b, c, small = _tanh_parts32(x, F(53.0), F(2.0**-64), F(63.0))
    return _tanh_slope_by_parts(float_fma(b, c, a), b, c, small)


@by_type(float64=_tanh_slope64, float32=_tanh_slope32)
def tanh_slope(x):
    """Return 1 - tanh(x)**2, the derivative of tanh, without cancellation."""
    return 1 / np.cosh(x) ** 2


@jitable
def _logistic_parts(x, limit):
    """Return n and w with e**-x = 2**n (1 + w)."""
    inlined()
    y = -float_minimum(float_maximum(x, -limit), limit)
    n, count = nearest_product(y, like(LOG2E, y))
    high, low = _rest(y, count)
    return n, _expm1_near(high, low, high - low)


@jitable
def _sigmoid64(x):
    """Return 2**-500 / (2**-500 + s + s w), where nothing overflows.

    1 and 2**n are summed at once where nothing of the sum is lost.
    """
    inlined()
    n, w = _logistic_parts(x, 746.0)
    s = power_of_two((n if n > -500 else -500) - 500)
    large = s if s > 2.0**-490 else 0.0
    return 2.0**-500 / (float_fma(s, w, 2.0**-500 + (s - large)) + large)


def _sigmoid32(x):
    """Return `_sigmoid64` with 2**-60; the rounding errors of sum and quotient are added."""
    inlined()
    unit = F(2.0**-60)
    n, w = _logistic_parts(x, F(104.0))
    s = power_of_two(np.int32((n if n > np.int32(-60) else np.int32(-60)) - 60))
    rounded = unit + s
    total = float_fma(s, w, rounded)
    lost = float_fma(s, w, rounded - total) + (unit - (rounded - s))
    quotient = unit / total
    rest = float_fma(-quotient, lost, float_fma(-quotient, total, unit))
    return float_fma(quotient * F(2.0**60), rest, quotient)


@by_type(float64=_sigmoid64, float32=_sigmoid32)
def sigmoid(x):
    """Return 1 / (1 + exp(-x)), without overflow."""
    return 1 / (1 + np.exp(-x))


@jitable
def _sigmoid_slope_of_real(x, value):
    """Return value (1 - value), where 1 - value is e**-x value, without cancellation for x > 0."""
    inlined()
    one, zero = like(1, x), like(0, x)
    n, w = _logistic_parts(x, by_width(x, 746.0, 104.0))
    s = power_of_two(like((n if n < like(0, n) else like(0, n)) + like(64, n), n))
    above = (float_fma(s, w, s) * value) * value * like(2.0**-64, x)
    return value * (one - value) if x < zero else above


@jitable
def _sigmoid_slope_unsaturated(x, value):
    inlined()
    return float_fma(-value, value, value)


@by_type(float=_sigmoid_slope_of_real)
def sigmoid_slope_of(x, value):
    """Return the derivative of sigmoid, given also its value: a loop shares common work."""
    return value * (1 - value)


BY_VALUE[sigmoid_slope_of] = _unsaturated, _sigmoid_slope_unsaturated


def _sigmoid_slope_real(x):
    inlined()
    return _sigmoid_slope_of_real(x, sigmoid(x))


@by_type(float=_sigmoid_slope_real)
def sigmoid_slope(x):
    """Return sigmoid(x) sigmoid(-x), the derivative of sigmoid, without cancellation."""
    return sigmoid(x) * sigmoid(-x)


def _logit_real(x):
    """Return log(x / (1 - x)), near 1/2 as log1p((2 x - 1) / (1 - x)) with an exact numerator."""
    inlined()
    one = like(1, x)
    under = one - x
    near = log1p(((x + x) - one) / under)
    far = log(x / under)
    return near if like(0.25, x) < x < like(0.75, x) else far


@by_type(float=_logit_real)
def logit(x):
    """Return log(x / (1 - x)): infinite at 0 and 1, nan beyond."""
    return np.log(x / (1 - x))


# --- softplus, log_sigmoid, logaddexp ---------------------------------------------------

FAINT, FAINT_32 = 1e-20, 1e-10  # powers of a quotient below change no bit, and could underflow
# (2 atanh(s) - 2 s) / (8 s**3) in (2 s)**2, for s in [0, 1/3].
LOG_SERIES = (
    *(0.666666666666777 / 8, 0.39999999996048374 / 32, 0.285714290581408 / 128),
    *(0.22222192897202558 / 512, 0.1818281428506627 / 2048, 0.1536429200995423 / 8192),
    *(0.13586347821880748 / 32768, 0.09902649160209871 / 131072, 0.1774012349996194 / 524288),
)
LOG_SERIES_32 = (
    *(0.66666675 / 8, 0.3999895 / 32, 0.28615218 / 128),
    *(0.21443719 / 512, 0.24246344 / 2048),
)


@jitable
def _exp_pair(x):
    """Return u, v, a and b with e**x = (u + v) * a * b, where v is the rounding error of u.

    a and b are powers of two.
    """
    inlined()
    n, r, t = exp_parts(x, by_width(x, *TWO_BIASES))
    w = r + t
    u = like(1, x) + w
    return u, w - (u - like(1, x)), *two_powers(n)


@jitable
def _log1p_exp(x, x_low):
    """Return log(1 + exp(x + x_low)) for x <= 0, as a number and its rounding error.

    With e = exp(x) it is 2 atanh(s), s = e / (2 + e).
    """
    inlined()
    one, half, limit = like(1, x), like(0.5, x), by_width(x, LOWEST, LOWEST_32)
    u, v, first, second = _exp_pair(limit if x < limit else x)
    e, missing = u * first * second, (v + u * x_low) * first * second
    total = one + half * e
    lost = (half * e - (total - one)) + half * missing
    inverse = one / total
    q = e * inverse
    strong = q if q > by_width(x, FAINT, FAINT_32) else like(0, x)
    z = strong * strong
    rest = inverse * (float_fma(-q, total, e) + (missing - strong * lost))
    return q, rest + (strong * z) * polynomial(z, by_width(z, LOG_SERIES, LOG_SERIES_32))


@jitable
def _add_exactly(base, high, low):
    """Return base + high + low, the first sum exact."""
    inlined()
    total = base + high
    back = total - base
    lost = (base - (total - back)) + (high - back)
    return total + ((lost if lost == lost else like(0, base)) + low)


def _softplus_real(x):
    inlined()
    zero = like(0, x)
    high, low = _log1p_exp(-float_absolute(x), zero)
    return _add_exactly(zero if x < zero else x, high, low)


@by_type(float=_softplus_real)
def softplus(x):
    """Return log(1 + exp(x)), without overflow."""
    return np.logaddexp(x, np.zeros((), np.result_type(x)))


@jitable
def log_sigmoid(x):
    """Return log(sigmoid(x)), without overflow."""
    inlined()
    return -softplus(-x)


def _logaddexp_real(x, y):
    inlined()
    zero = like(0, x)
    larger, smaller = (x, y) if x > y else (y, x)
    gap = smaller - larger
    back = gap + larger
    lost = (smaller - back) - ((gap - back) + larger)
    ordinary = float_absolute(gap) < -by_width(x, LOWEST, LOWEST_32)
    high, low = _log1p_exp(gap if x != y else zero, lost if ordinary else zero)
    return _add_exactly(larger, high, low)


logaddexp = of_numpy(__name__, "logaddexp", float=_logaddexp_real)
