"""The gamma and beta functions and their logarithms, in float64 for all dtypes.

The value of a gamma function is kept as a number, its rounding error and a power of two. Below 10
it is a polynomial near 2 times the factors of the recurrence, above 10 Stirling's formula, whose
exponent also has a rounding error. So quotients and logarithms of gamma functions are rounded once.
Formulas of beta functions for large arguments follow DiDonato and Morris, "Algorithm 708" (1992).
"""

import numpy as np

from tinygrad_cg_kernels.elementary.exponential import limited, scale_by_power
from tinygrad_cg_kernels.elementary.logarithm import INF, NAN, log1p, log_real
from tinygrad_cg_kernels.elementary.powers import exp_pair64, log_wide
from tinygrad_cg_kernels.elementary.special import (
    PI,
    STIRLING,
    STIRLING_HALF,
    digamma_positive,
    lgamma,
    sin_cos_quadrant,
)
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import float_floor, float_fma, polynomial
from tinygrad_cg_kernels.runtime.service import in_float64

# (gamma(2 + d) - 1) / d, |d| <= 1/2.
GAMMA = (
    *(0.42278433509846713, 0.4118403304264397, 0.0815769192470858),
    *(0.07424901075351413, -0.00026698206868206766, 0.011154045718099517),
    *(-0.0028526458243686085, 0.002103933342304082, -0.0009195737556751735),
    *(0.0004903884092456326, -0.00024094266875000244, 0.00012167442301820698),
    *(-6.078180215145502e-05, 3.0448012248631827e-05, -1.5296289519910945e-05),
    *(7.652457677804413e-06, -3.609421076900372e-06, 1.8051430716886604e-06),
    *(-1.3131191509664216e-06, 6.566145752712689e-07),
)
STIRLING_HALF_LOW = 1.6728209650585413e-17
HALF_LOG_TWO_PI, HALF_LOG_TWO_PI_LOW = 0.9189385332046728, -3.8782941580672414e-17


@jitable
def _sum(x, y):
    """Return x + y as a number and its rounding error."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


@jitable
def _product(x, x_low, y, y_low):
    """Return the product of two numbers with rounding errors, in the same form."""
    value = x * y
    return value, float_fma(x, y_low, float_fma(x_low, y, float_fma(x, y, -value)))


@jitable
def _quotient(x, x_low, y, y_low):
    """Return the quotient of two numbers with rounding errors, in the same form."""
    value = x / y
    rest = float_fma(-value, y, x) + (x_low - value * y_low)
    return value, rest / y


@jitable
def _log1p_wide(x, x_low):
    """Return log(1 + x + x_low), x > 0, as a number and its rounding error."""
    total, lost = _sum(1.0, x)
    high, low = log_wide(total, 0.0)
    return high, low + (lost + x_low) / total


@jitable
def _stirling(x):
    """Return the difference of log(gamma(x)) and Stirling's formula, for x >= 8.5."""
    inverse = 1.0 / x
    return inverse * polynomial(inverse * inverse, STIRLING)


@jitable
def _by_recurrence(x):
    """Return gamma(x), -1/2 < x < 20 or so, as a number and its rounding error."""
    y, over, over_low = x, 1.0, 0.0
    while y > 2.5:
        y -= 1.0
        over, over_low = _product(over, over_low, y, 0.0)
    d, under, under_low = y - 2.0, 1.0, 0.0
    if x < 0.5:
        d = x
        under, under_low = _sum(1.0, x)
        under, under_low = _product(under, under_low, x, 0.0)
    elif x < 1.5:
        d, under = x - 1.0, x
    near, near_low = _sum(1.0, d * polynomial(d, GAMMA))
    over, over_low = _product(over, over_low, near, near_low)
    return (over, over_low) if x >= 1.5 else _quotient(over, over_low, under, under_low)


@jitable
def _gamma_parts(x):
    """Return v, w and n with gamma(x) = (v + w) * 2**n, for x > -1/2; from 250 on as at 250."""
    if x < 10.0:
        value, low = _by_recurrence(x)
        return value, low, np.int64(0)
    x = 250.0 if x > 250.0 else x
    log, log_low = log_wide(x, 0.0)
    power, power_low = _product(x - 0.5, 0.0, log - 1.0, log_low)
    exponent, lost = _sum(power, STIRLING_HALF)
    n, value = exp_pair64(exponent, lost + (power_low + (STIRLING_HALF_LOW + _stirling(x))))
    return value, 0.0, n


@jitable
def _reflection(size):
    """Return s = x sin(pi x) / pi for a positive x: gamma(-x) gamma(x) is -1 / s."""
    sine, _ = sin_cos_quadrant(size)
    return size * sine / PI


@in_float64
def gamma(x):
    """Return the gamma function; infinite at 0 with its sign, nan at the negative integers."""
    if x != x or (x < 0.0 and x == float_floor(x)):
        return NAN
    if x == INF or -1e-300 < x < 1e-300:
        return 1.0 / x if x < INF else x
    value, low, n = _gamma_parts(x if x > -0.5 else -x)
    if x > -0.5:
        return scale_by_power(value + low, n)
    return -scale_by_power(1.0 / (_reflection(-x) * (value + low)), -n)


@in_float64
def rgamma(x):
    """Return 1 / gamma(x): 0 where gamma has a pole."""
    if x != x:
        return x
    if -1e-300 < x < 1e-300 or (x < 0.0 and x == float_floor(x)):
        return x if x > -1.0 else 0.0
    value, low, n = _gamma_parts(x if x > -0.5 else -x)
    if x > -0.5:
        inverse, rest = _quotient(1.0, 0.0, value, low)
        return scale_by_power(inverse + rest, -n)
    return -scale_by_power(_reflection(-x) * (value + low), n)


# --- beta -------------------------------------------------------------------------------


@jitable
def _log_of_large(smaller, larger):
    """Return log(beta) for two arguments from 10 on, as a number and its rounding error."""
    ratio, ratio_low = _quotient(larger, 0.0, smaller, 0.0)
    log, log_low = _log1p_wide(ratio, ratio_low)
    first, first_low = _product(smaller - 0.5, 0.0, log, log_low)
    ratio, ratio_low = _quotient(smaller, 0.0, larger, 0.0)
    log, log_low = _log1p_wide(ratio, ratio_low)
    second, second_low = _product(larger, 0.0, log, log_low)
    total, lost = _sum(first, second)
    log, log_low = log_wide(larger, 0.0)
    edge, edge_lost = _sum(HALF_LOG_TWO_PI, -0.5 * log)
    value, value_lost = _sum(edge, -total)
    rest = (_stirling(smaller) + _stirling(larger)) - _stirling(smaller + larger)
    rest += HALF_LOG_TWO_PI_LOW - 0.5 * log_low
    return value, value_lost + ((edge_lost - lost) + (rest - (first_low + second_low)))


@jitable
def _log_of_ratio(smaller, larger):
    """Return log(gamma(larger) / gamma(larger + smaller)), larger >= 10 > smaller, as a pair."""
    total, total_low = _sum(larger, smaller)
    ratio, ratio_low = _quotient(smaller, 0.0, larger, 0.0)
    log, log_low = _log1p_wide(ratio, ratio_low)
    first, first_low = _product(larger - 0.5, 0.0, log, log_low)
    log, log_low = log_wide(total, 0.0)
    second, second_low = _product(smaller, 0.0, log, log_low + total_low / total)
    head, head_lost = _sum(smaller, -first)
    value, value_lost = _sum(head, -second)
    rest = (_stirling(larger) - _stirling(total)) - (first_low + second_low)
    return value, value_lost + (head_lost + rest)


@jitable
def _beta_of_small(x, y):
    """Return beta of two positive numbers below 10, as a number and its rounding error."""
    total, lost = _sum(x, y)
    first, first_low = _by_recurrence(x)
    second, second_low = _by_recurrence(y)
    under, under_low = _by_recurrence(total)
    under_low += under * lost * digamma_positive(total)
    over, over_low = _product(first, first_low, second, second_low)
    return _quotient(over, over_low, under, under_low)


@in_float64
def betaln(x, y):
    """Return log(|beta(x, y)|)."""
    smaller, larger = (x, y) if x < y else (y, x)
    if not smaller > 0.0 or larger == INF:
        return lgamma(x) + (lgamma(y) - lgamma(x + y))
    if smaller < 1e-150:
        return log1p(smaller / larger) - log_real(smaller)
    if larger < 10.0:
        value, low = _beta_of_small(smaller, larger)
        return log_real(value) + low / value
    if smaller >= 10.0:
        value, low = _log_of_large(smaller, larger)
        return value + low
    value, low = _log_of_ratio(smaller, larger)
    return lgamma(smaller) + value + low


@jitable
def _exp_of_pair(high, low):
    """Return n and v with exp(high + low) = 2**n v."""
    kept = limited(high, -800.0, 800.0)
    return exp_pair64(kept, low if kept == high else 0.0)


@jitable
def _gamma_sign(x):
    """Return the sign of gamma(x), nan at its poles below 0."""
    if x >= 0.0:
        return 1.0
    whole = float_floor(x)
    if x == whole:
        return NAN
    return 1.0 if whole == 2.0 * float_floor(0.5 * whole) else -1.0


@in_float64
def beta(x, y):
    """Return gamma(x) gamma(y) / gamma(x + y)."""
    smaller, larger = (x, y) if x < y else (y, x)
    if not smaller > 0.0 or larger == INF:
        n, value = _exp_of_pair(betaln(x, y), 0.0)
        return scale_by_power(value, n) * (_gamma_sign(x) * _gamma_sign(y) * _gamma_sign(x + y))
    if smaller < 1e-150:
        return (1.0 + smaller / larger) / smaller
    if larger < 10.0:
        value, low = _beta_of_small(smaller, larger)
        return value + low
    if smaller >= 10.0:
        high, low = _log_of_large(smaller, larger)
        n, value = _exp_of_pair(high, low)
        return scale_by_power(value, n)
    high, low = _log_of_ratio(smaller, larger)
    n, value = _exp_of_pair(high, low)
    factor, factor_low = _by_recurrence(smaller)
    return scale_by_power(value * factor + value * factor_low, n)
