"""Incomplete gamma and beta functions, and their derivatives with respect to parameters.

They are computed by quadrature. As functions of the logarithm of the variable (of the logit, for
beta functions), the logarithms of the integrands are concave: from the limit of integration on,
away from the mode, they decrease smoothly. Gauss's rule of 32 nodes is applied to a few intervals,
until the integrand is e**-40 times its first value. A derivative with respect to a parameter is the
integral of a polynomial in logarithms times the same integrand. It is taken on the side of the
limit where the polynomial of first order has one sign, so that no digits are lost. Below x = 1/2,
the incomplete gamma functions are power series.

A function whose name ends in `_of` returns the function for fixed orders of derivatives: order 0
has the least to compile. Nothing is vectorised, and all dtypes compute in float64. In sums of two
products, `float_fma` says which one is not rounded, so that compilers cannot choose.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from tinygrad_cg_kernels.elementary.exponential import exp, expm1
from tinygrad_cg_kernels.elementary.logarithm import INF, NAN, log1p, log_real
from tinygrad_cg_kernels.elementary.powers import power_real
from tinygrad_cg_kernels.elementary.special import (
    DIGAMMA_SERIES,
    LGAMMA,
    STIRLING,
    digamma_positive,
    lgamma_positive,
    polygamma,
)
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import (
    float_absolute,
    float_floor,
    float_fma,
    inlined,
    polynomial,
)
from tinygrad_cg_kernels.runtime.service import in_float64

# Gauss's rule of 32 nodes on an interval of length 1: their distances from its middle, on both
# sides of it, and the weights.
NODES = (
    *(0.02415383284386916, 0.07223598079139824, 0.11964368112606853),
    *(0.16593430114106383, 0.21067563806531767, 0.2534499544661147),
    *(0.29385787862038115, 0.3315221334651076, 0.36609105937014486),
    *(0.3972418979839712, 0.424683806866285, 0.44816057788302605),
    *(0.46745303796886983, 0.4823811277937532, 0.4928057557726342),
    0.4986319309247408,
)
WEIGHTS = (
    *(0.0482700442573639, 0.04781936003963743, 0.04692219954040228),
    *(0.045586939347881945, 0.043826046502201906, 0.041655962113473374),
    *(0.039096947893535156, 0.03617289705442425, 0.032911111388180925),
    *(0.029342046739267772, 0.025499029631188087, 0.02141794901111334),
    *(0.017136931456510716, 0.01269603265463103, 0.008137197365452835),
    0.003509305004735048,
)
FALL = 40.0  # integrands are followed until they have fallen by a factor of e**40
FIRST = 0.15  # of the way, the share that gets nodes of its own
# exp(s) - 1 - s over s**2, and (log1p(m) - 2 r) / (2 r**3) in r**2, for r = m / (2 + m).
EXPONENTIAL = tuple(1.0 / math.factorial(k) for k in range(2, 18))
LOGARITHM = tuple(1.0 / k for k in range(3, 33, 2))
TWO_PI = 6.283185307179586


@jitable
def _excess(s):
    """Return exp(s) - 1 - s."""
    near = s * s * polynomial(s, EXPONENTIAL)
    return near if float_absolute(s) < 0.5 else expm1(s) - s


@jitable
def _slack(m):
    """Return m - log1p(m)."""
    if float_absolute(m) >= 0.5:
        return m - log1p(m)
    r = m / (2.0 + m)
    square = r * r
    return float_fma(m, r, -2.0 * r * square * polynomial(square, LOGARITHM))


@jitable
def _stirling(a):
    """Return the difference of log(gamma(a)) and Stirling's formula, for a >= 10."""
    inverse = 1.0 / a
    return float_fma(inverse, polynomial(inverse * inverse, STIRLING), 0.0)


@jitable
def _digamma_deficit(a):
    """Return log(a) - digamma(1 + a), for a >= 10."""
    inverse = 1.0 / a
    square = inverse * inverse
    return float_fma(square, polynomial(square, DIGAMMA_SERIES), -0.5 * inverse)


@jitable
def _lgamma1p(a):
    """Return log(gamma(1 + a)) for a >= 0, small numbers without loss."""
    return a * polynomial(a, LGAMMA) - log1p(a) if a < 0.25 else lgamma_positive(1.0 + a)


@jitable
def _of_order(order, first, second, third, fourth):
    """Return the derivative of exp(f) over exp(f), from derivatives of f: a Bell polynomial."""
    square = first * first
    if order == 0.0:
        return 1.0
    if order == 1.0:
        return first
    if order == 2.0:
        return square + second
    if order == 3.0:
        return first * (square + 3.0 * second) + third
    return square * (square + 6.0 * second) + 4.0 * first * third + 3.0 * second * second + fourth


# --- gamma ------------------------------------------------------------------------------


@jitable
def _gamma_front(a, x):
    """Return x**a exp(-x) / gamma(1 + a) for a >= 0 and 0 < x < inf."""
    if a < 10.0:
        if x > 2000.0:
            return 0.0
        root = exp(-0.5 * x)
        return power_real(x, a) * exp(-_lgamma1p(a)) * root * root
    m = (x - a) / a
    gap = _slack(m) if float_absolute(m) < 0.5 else m - log_real(x / a)
    return exp(-a * gap - _stirling(a)) / math.sqrt(TWO_PI * a)


@jitable
def _gamma_slope(a, x):
    """Return the derivative of the logarithm of `_gamma_front` by a."""
    if a < 10.0:
        return log_real(x) - digamma_positive(1.0 + a)
    m = (x - a) / a
    return (log1p(m) if float_absolute(m) < 0.5 else log_real(x / a)) + _digamma_deficit(a)


@jitable
def _gamma_slopes(a, x):
    """Return the derivatives, up to order 4, of the logarithm of `_gamma_front` by a."""
    inlined()
    first, second = _gamma_slope(a, x), -polygamma(1.0, 1.0 + a)
    return first, second, -polygamma(2.0, 1.0 + a), -polygamma(3.0, 1.0 + a)


@jitable
def _gamma_factor(order, a, first, second, third, fourth):
    """Return the derivative of a exp(f) over exp(f)."""
    lower = 0.0
    if order > 0.0:
        lower = order * _of_order(order - 1.0, first, second, third, fourth)
    return float_fma(a, _of_order(order, first, second, third, fourth), lower)


@jitable
def _gamma_reach(a, x, side):
    """Return how far, in log(t / x) to one side, the integrand falls by about `FALL`."""
    slope = float_absolute(a - x)
    root = math.sqrt(float_fma(slope, slope, 2.0 * FALL * x)) if slope < 1e150 else slope
    reach = 2.0 * FALL / (slope + root)
    for _ in range(80):
        s = side * reach
        depth = float_fma(x, _excess(s), -(a - x) * s)
        if FALL - 2.0 < depth < FALL + 6.0:
            break
        steepness = side * (x * expm1(s) - (a - x))
        reach = reach - (depth - FALL) / steepness if steepness > 0.0 else 2.0 * reach
    return reach


@cache
def _gamma_integral_of(order: float) -> Callable:
    @jitable
    def integral(a, x, side):
        """Return the integral beyond x, above it or (for side -1) below, over `_gamma_front`."""
        slope, second, third, fourth = 0.0, 0.0, 0.0, 0.0
        if order > 0.0:
            slope, second, third, fourth = _gamma_slopes(a, x)
        reach = _gamma_reach(a, x, side)
        total, start = 0.0, 0.0
        for piece in range(2):
            end = reach if piece == 1 else FIRST * reach
            length, middle = end - start, 0.5 * (start + end)
            part = 0.0
            for k in range(2 * len(NODES)):
                offset = NODES[k >> 1] if k % 2 == 1 else -NODES[k >> 1]
                s = side * (middle + offset * length)
                value = exp(float_fma(a - x, s, -x * _excess(s)))
                if order > 0.0:
                    value *= _gamma_factor(order, a, slope + s, second, third, fourth)
                part += WEIGHTS[k >> 1] * value
            total += length * part
            start = end
        return total if order > 0.0 else a * total

    return integral


@jitable
def _series_of_order(j, a, x):
    """Return the derivative by a of the sum of (-x)**k a / (k! (a + k)), without its first term."""
    total, power, k = 0.0, 1.0, 0.0
    while float_absolute(power) > 1e-19 * float_absolute(total) or k < 2.0:
        k += 1.0
        power *= -x / k
        if j == 0:
            total += power * (a / (a + k))
        else:
            term = -power * k / (a + k)
            for i in range(1, j + 1):
                term *= -i / (a + k)
            total += term
        if k > 40.0:
            break
    return total


@cache
def _gamma_series_of(order: float) -> Callable:
    @jitable
    def series(a, x, upper):
        """Return the lower function below x = 1/2, or the upper one, for order 0."""
        if order == 0.0 and upper and a < 1.0:
            exponent = a * log_real(x) - _lgamma1p(a)
            rest = _series_of_order(0, a, x)
            return -expm1(exponent) * (1.0 + rest) - rest
        front = _gamma_front(a, x) * exp(x)
        if order == 0.0:
            value = front * (1.0 + _series_of_order(0, a, x))
            return 1.0 - value if upper else value
        slope, second, third, fourth = _gamma_slopes(a, x)
        total, choices = 0.0, 1.0
        for j in range(np.int64(order) + 1):
            factor = _series_of_order(j, a, x) + (1.0 if j == 0 else 0.0)
            total += choices * factor * _of_order(order - j, slope, second, third, fourth)
            choices *= (order - j) / (j + 1.0)
        return front * total if front > 0.0 else 0.0

    return series


@cache
def _incomplete_gamma_of(order: float) -> Callable:
    series, integral = _gamma_series_of(order), _gamma_integral_of(order)

    @jitable
    def incomplete(a, x, upper):
        """Return the derivative by a of the regularized function from 0 to x, or from x on."""
        if not (a >= 0.0 and x >= 0.0):
            return NAN
        if (a == 0.0 and x == 0.0) or (a == INF and x == INF):
            return NAN
        if a == INF or x == 0.0 or x == INF:
            is_whole = (x == INF) != upper
            return 1.0 if is_whole and order == 0.0 else 0.0
        if a == 0.0 and order == 0.0:
            return 0.0 if upper else 1.0
        if x < 0.5:
            value = series(a, x, upper)
            return -value if upper and order > 0.0 else value
        front = _gamma_front(a, x)
        if order == 0.0:
            above = x > a
            value = front * integral(a, x, 1.0 if above else -1.0) if front > 0.0 else 0.0
            return value if above == upper else 1.0 - value
        if front == 0.0:
            return 0.0
        above = a * _gamma_slope(a, x) + 1.0 > 0.0
        value = front * integral(a, x, 1.0 if above else -1.0)
        return value if above == upper else -value

    return incomplete


_incomplete_gamma = _incomplete_gamma_of(0.0)


@in_float64
def igamma(a, x):
    """Return the regularized lower incomplete gamma function."""
    return _incomplete_gamma(a, x, False)


@in_float64
def igammac(a, x):
    """Return the regularized upper incomplete gamma function."""
    return _incomplete_gamma(a, x, True)


def _gamma_derivative_of(order: float) -> Callable:
    incomplete = _incomplete_gamma_of(order)

    @in_float64
    def derivative(a, x):
        return incomplete(a, x, False)

    return derivative


@cache
def _gamma_density_of(order: float) -> Callable:
    @in_float64
    def density(a, x):
        """Return the derivative by a of x**(a - 1) exp(-x) / gamma(a); at x = 0 for any a."""
        if not (a > -INF and x >= 0.0):
            return NAN
        if x == 0.0:
            if a > 1.0:
                return 0.0
            odd = order == 1.0 or order == 3.0
            if a == 1.0:
                return 1.0 if order == 0.0 else (-INF if odd else INF)
            if a <= 0.0 and a == float_floor(a):
                return 0.0 if order == 0.0 else NAN
            negative = a < 0.0 and float_floor(a) % 2.0 == 1.0
            return -INF if negative != odd else INF
        if a < 0.0 or x == INF or a == INF:
            return 0.0 if a >= 0.0 and a != x else NAN
        front = _gamma_front(a, x)
        if order == 0.0 or front == 0.0:
            return (a * front / x) if front < 1e300 else NAN
        slope, second, third, fourth = _gamma_slopes(a, x)
        return _gamma_factor(order, a, slope, second, third, fourth) * front / x

    return density


_gamma_density = _gamma_density_of(0.0)


_ORDERS = 0.0, 1.0, 2.0, 3.0, 4.0
igamma_derivatives = list(map(_gamma_derivative_of, _ORDERS))
"""The derivatives of igamma by a, of orders up to 4."""
gamma_densities = list(map(_gamma_density_of, _ORDERS))
"""The same derivatives of the derivative of igamma by x."""


@in_float64
def gamma_transport(a, base, x):
    """Return y with igamma(a, y) = igamma(base, x): numbers of one distribution to another's.

    It is found by Newton's method on logarithms of the smaller tail.
    """
    if not (0.0 < a < INF and 0.0 < base < INF and 0.0 < x < INF):
        return NAN
    if a == base:
        return x
    upper = x > base
    share = _incomplete_gamma(base, x, upper)
    if share == 0.0:
        return INF if upper else 0.0
    if share > 0.5:
        upper = not upper
        share = _incomplete_gamma(base, x, upper)
    sign, wanted, place = (-1.0 if upper else 1.0), log_real(share), log_real(x)
    for _ in range(200):
        at = exp(place)
        value = _incomplete_gamma(a, at, upper)
        if value == 0.0:
            step = -sign
        else:
            slope = at * _gamma_density(a, at) / value
            gap = sign * (log_real(value) - wanted)
            step = gap / slope if slope > 0.0 else gap
        step = step if step < 2.0 else 2.0
        step = step if step > -2.0 else -2.0
        place -= step
        if not float_absolute(step) > 4e-16 * (1.0 + float_absolute(place)):
            break
    return exp(place)


# --- beta -------------------------------------------------------------------------------
# With y = log(t / (1 - t)) the integrand is t**a (1 - t)**b; all is done for x <= 1/2, and for
# larger x by exchanging a and b, t and 1 - t, which loses nothing since 1 - x is exact.


@jitable
def _beta_gap(a, b, x):
    """Return a - (a + b) x, to the digits of its terms' difference."""
    both = a + b
    lost = (a - both) + b if a > b else (b - both) + a
    product = both * x
    return (a - product) - float_fma(both, x, -product) - lost * x


@jitable
def _beta_front_mixed(a, b, x, log_y):
    """Return `_beta_front` for a < 10 <= b, from x and log(1 - x)."""
    both = a + b
    ends = exp(b * log_y)
    if ends == 0.0:
        return 0.0
    ratio = exp(_stirling(both) - _stirling(b) - b * _slack(a / b)) * math.sqrt(both / b)
    return power_real(x * both, a) * exp(-_lgamma1p(a)) * ratio * ends


@jitable
def _beta_front(a, b, x):
    """Return x**a (1 - x)**b gamma(1 + a + b) / (gamma(1 + a) gamma(1 + b)), 0 < x <= 1/2."""
    both, log_y = a + b, log1p(-x)
    if a >= 10.0 and b >= 10.0:
        gap = _beta_gap(a, b, x)
        below, above = -gap / a, gap / b
        left = _slack(below) if float_absolute(below) < 0.5 else below - log_real(x * (both / a))
        right = (
            _slack(above) if float_absolute(above) < 0.5 else above - (log_y + log_real(both / b))
        )
        part = _stirling(both) - _stirling(a) - _stirling(b)
        scale = math.sqrt(both / a) * math.sqrt(1.0 / (TWO_PI * b))
        return scale * exp(part - a * left - b * right)
    if a >= 10.0:
        return _beta_front_mixed(b, a, 1.0 - x, log_real(x))
    if b >= 10.0:
        return _beta_front_mixed(a, b, x, log_y)
    gammas = _lgamma1p(both) - _lgamma1p(a) - _lgamma1p(b)
    return power_real(x, a) * exp(b * log_y + gammas)


@jitable
def _beta_slope(a, b, x, log_x, below):
    """Return the derivative of the logarithm of `_beta_front` by a; `below` is the gap over -a.

    It is also that by b, with the roles of a and b exchanged.
    """
    both = a + b
    if a >= 10.0:
        near = float_absolute(below) < 0.5
        ratio = log1p(below) if near else log_x + log_real(both / a)
        return ratio + _digamma_deficit(a) - _digamma_deficit(both)
    if both >= 10.0:
        return log_x + log_real(both) - _digamma_deficit(both) - digamma_positive(1.0 + a)
    return log_x + digamma_positive(1.0 + both) - digamma_positive(1.0 + a)


@jitable
def _beta_share(a, b, first, second):
    """Return a derivative of a b / (a + b), of order `first` by a and `second` by b."""
    both = a + b
    left, right = a / both, b / both
    if first + second == 0.0:
        return a * right
    if first + second == 1.0:
        return right * right if first == 1.0 else left * left
    if first == 1.0:
        return 2.0 * left * right / both
    return -2.0 * (right * right if first == 2.0 else left * left) / both


@jitable
def _beta_factor(first, second, a, b, slope_a, slope_b, bend_a, bend_b, bend):
    """Return the derivative, up to order 2, of exp(f) a b / (a + b) over exp(f).

    The derivatives of f are `slope_a` and `slope_b`; `bend_a`, `bend_b` and, by both, `bend`.
    """
    value = _beta_share(a, b, 0.0, 0.0)
    if first + second == 0.0:
        return value
    slope = slope_a if first > 0.0 else slope_b
    if first + second == 1.0:
        return float_fma(value, slope, _beta_share(a, b, first, second))
    bottom = _beta_share(a, b, first, second)
    if first == 1.0:
        middle = float_fma(_beta_share(a, b, 1.0, 0.0), slope_b, bottom)
        middle = float_fma(_beta_share(a, b, 0.0, 1.0), slope_a, middle)
        return float_fma(value, float_fma(slope_a, slope_b, bend), middle)
    middle = float_fma(2.0 * slope, _beta_share(a, b, 0.5 * first, 0.5 * second), bottom)
    return float_fma(value, float_fma(slope, slope, bend_a if first == 2.0 else bend_b), middle)


@jitable
def _beta_log(x, s):
    """Return log(1 - x + x exp(s)), which is how log(1 - t) falls, s steps of y above x."""
    if s > 600.0:
        return s + log_real(x + (1.0 - x) * exp(-s))
    return log1p(x * expm1(s))


@jitable
def _beta_depth(a, b, x, gap, s):
    """Return how far the integrand's exponent falls, s steps of y above x."""
    if float_absolute(s) < 0.5:
        rest = x * _excess(s) - _slack(x * expm1(s))
        return float_fma(a + b, rest, -gap * s)
    return float_fma(a + b, _beta_log(x, s), -a * s)


@jitable
def _beta_reach(a, b, x, gap, side):
    """Return how far in y, to one side, the integrand falls by about `FALL`."""
    both = a + b
    slope = float_absolute(gap)
    root = math.sqrt(float_fma(slope, slope, 0.5 * FALL * both)) if slope < 1e150 else slope
    reach = 2.0 * FALL / (slope + root)
    for _ in range(200):
        s = side * reach
        depth = _beta_depth(a, b, x, gap, s)
        if FALL - 2.0 < depth < FALL + 6.0:
            break
        share = 1.0 / (1.0 + (1.0 - x) / x * exp(-s))
        steepness = side * (both * share - a)
        step = reach - (depth - FALL) / steepness if steepness > 0.0 else 2.0 * reach
        reach = step if step > 0.0 else 2.0 * reach
    return reach


@cache
def _beta_integral_of(first: float, second: float) -> Callable:
    order = first + second

    @jitable
    def integral(a, b, x, side):
        """Return the integral beyond x, above it or (for side -1) below, over `_beta_front`."""
        both, gap = a + b, _beta_gap(a, b, x)
        slope_a, slope_b, bend_a, bend_b, bend = 0.0, 0.0, 0.0, 0.0, 0.0
        log_x, log_y = log_real(x), log1p(-x)
        if order > 0.0:
            slope_a = _beta_slope(a, b, x, log_x, -gap / a)
            slope_b = _beta_slope(b, a, 1.0 - x, log_y, gap / b)
            bend = polygamma(1.0, 1.0 + both)
            bend_a = bend - polygamma(1.0, 1.0 + a)
            bend_b = bend - polygamma(1.0, 1.0 + b)
        reach = _beta_reach(a, b, x, gap, side)
        edge = FALL + log_real(both if both > 1.0 else 1.0)  # the integrand is exponential beyond
        at = side * (log_x - log_y)
        total, start, tail = 0.0, 0.0, False
        while start < reach:
            place, rest = at + start, reach - start
            if reach < 12.0 or place >= edge:
                length = rest if tail else FIRST * rest
                tail = True
            elif place < -edge - 1.0:  # a step to what is nearer might be lost in rounding
                length = -edge - place
            else:
                length = 6.0
            length = length if length < rest else rest
            middle, part = start + 0.5 * length, 0.0
            for k in range(2 * len(NODES)):
                offset = NODES[k >> 1] if k % 2 == 1 else -NODES[k >> 1]
                s = side * (middle + offset * length)
                value = exp(-_beta_depth(a, b, x, gap, s))
                if order > 0.0:
                    rise = _beta_log(x, s)
                    here_a, here_b = slope_a + s - rise, slope_b - rise
                    value *= _beta_factor(first, second, a, b, here_a, here_b, bend_a, bend_b, bend)
                part += WEIGHTS[k >> 1] * value
            total += length * part
            start += length
            if length >= rest:
                break
        return total if order > 0.0 else _beta_share(a, b, 0.0, 0.0) * total

    return integral


@cache
def _near_beta_of(first: float, second: float) -> Callable:
    order, integral = first + second, _beta_integral_of(first, second)

    @jitable
    def near(a, b, x, upper):
        """Return the derivative of the share below x, or above it, for 0 < x <= 1/2."""
        front = _beta_front(a, b, x)
        if order == 0.0:
            above = x > a / (a + b)
            if front == 0.0:
                return 0.0 if above == upper else 1.0
            value = front * integral(a, b, x, 1.0 if above else -1.0)
            if above == upper:
                return value
            if value < 0.75:
                return 1.0 - value
            return front * integral(a, b, x, -1.0 if above else 1.0)
        if front == 0.0:
            return 0.0
        gap = _beta_gap(a, b, x)
        if second == 0.0:
            slope = _beta_slope(a, b, x, log_real(x), -gap / a)
            above = a * slope + b / (a + b) > 0.0
        elif first == 0.0:
            slope = _beta_slope(b, a, 1.0 - x, log1p(-x), gap / b)
            above = b * slope + a / (a + b) < 0.0
        else:
            above = gap < 0.0
        value = front * integral(a, b, x, 1.0 if above else -1.0)
        return value if above == upper else -value

    return near


@cache
def _incomplete_beta_of(first: float, second: float) -> Callable:
    order, near, other = first + second, _near_beta_of(first, second), _near_beta_of(second, first)

    @in_float64
    def incomplete(a, b, x):
        """Return the derivative of the regularized function by a and b."""
        if not (a >= 0.0 and b >= 0.0 and 0.0 <= x <= 1.0):
            return NAN
        if (a == 0.0 and b == 0.0) or (a == INF and b == INF):
            return NAN
        if (a == 0.0 and x == 0.0) or (b == 0.0 and x == 1.0):
            return NAN
        if x == 0.0 or x == 1.0:
            return x if order == 0.0 else 0.0
        if a == 0.0 or b == INF:
            return 1.0 if order == 0.0 else (NAN if a == 0.0 else 0.0)
        if b == 0.0 or a == INF:
            return 0.0 if order == 0.0 else (NAN if b == 0.0 else 0.0)
        if a > 1e300 or b > 1e300:  # as steep as it can be
            a, b = a * 1e-8, b * 1e-8
            a = a if a > 1e-290 else 1e-290
            b = b if b > 1e-290 else 1e-290
        if x <= 0.5:
            return near(a, b, x, False)
        return other(b, a, 1.0 - x, True)

    return incomplete


_incomplete_beta = _incomplete_beta_of(0.0, 0.0)


@in_float64
def betainc(a, b, x):
    """Return the regularized incomplete beta function."""
    return _incomplete_beta(a, b, x)


@cache
def _beta_density_of(first: float, second: float) -> Callable:
    order = first + second

    @in_float64
    def density(a, b, x):
        """Return the derivative by a and b of x**(a - 1) (1 - x)**(b - 1) / beta(a, b).

        At x = 0 for any a, and at 1 for any b, where it is the limit.
        """
        n, m = first, second
        if not 0.0 <= x <= 1.0:
            return NAN
        if x == 0.0 or x == 1.0:
            if x == 1.0:
                a, b, n, m = b, a, m, n
            if a > 1.0 and b == b:
                return 0.0
            if a == 1.0 and n == 0.0:
                return b if m == 0.0 else 2.0 - m
            if order > 0.0:
                return NAN
            if -INF < a <= 0.0 and a == float_floor(a) and b == b:
                return 0.0
            return INF if a > 0.0 and b > 0.0 else NAN
        if not (0.0 < a < INF and 0.0 < b < INF):
            return NAN
        if x > 0.5:
            a, b, n, m = b, a, m, n
        small = x if x <= 0.5 else 1.0 - x
        front = _beta_front(a, b, small)
        if front == 0.0:
            return 0.0
        if order == 0.0:
            return front * _beta_share(a, b, 0.0, 0.0) / (small * (1.0 - small))
        log_x, log_y = log_real(small), log1p(-small)
        gap, bend = _beta_gap(a, b, small), polygamma(1.0, 1.0 + a + b)
        factor = _beta_factor(
            n,
            m,
            a,
            b,
            _beta_slope(a, b, small, log_x, -gap / a),
            _beta_slope(b, a, 1.0 - small, log_y, gap / b),
            bend - polygamma(1.0, 1.0 + a),
            bend - polygamma(1.0, 1.0 + b),
            bend,
        )
        return front * factor / (small * (1.0 - small))

    return density


_PAIRS = (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)
betainc_derivatives = {(n, m): _incomplete_beta_of(float(n), float(m)) for n, m in _PAIRS}
"""The derivatives of betainc by a and b, of orders up to 2 in all; betainc itself is (0, 0)."""
beta_densities = {(n, m): _beta_density_of(float(n), float(m)) for n, m in _PAIRS}
"""The same derivatives of the derivative of betainc by x."""
