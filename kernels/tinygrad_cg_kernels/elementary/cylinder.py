"""Bessel functions of the first and second kind of whole order, modified ones of both kinds.

Below 8, orders 0 and 1 of the first two kinds come from Miller's recurrence: the second kind by
Neumann's series over the same values. Beyond, amplitudes of the sine and the cosine are
polynomials in 64 / x**2. Modified functions are their power series below 1, and beyond polynomials
in (x - 2) / (x + 2). The polynomials interpolate at Chebyshev's points, by mpmath in 45 digits.
Other orders follow by recurrence, upwards where that is stable. Modified functions of the first
kind of an order that is not whole are their power series, and Hankel's or Debye's expansion for
large arguments. Nothing is vectorised, and all dtypes compute in float64.
"""

import math

import numpy as np

from tinygrad_cg_kernels.elementary import bessel
from tinygrad_cg_kernels.elementary.exponential import exp
from tinygrad_cg_kernels.elementary.inverse import arcsinh
from tinygrad_cg_kernels.elementary.logarithm import INF, NAN, log_real
from tinygrad_cg_kernels.elementary.special import lgamma
from tinygrad_cg_kernels.elementary.trigonometric import _reduce_argument, sin_or_cos
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import (
    float_absolute,
    float_floor,
    float_fma,
    polynomial,
)
from tinygrad_cg_kernels.runtime.service import in_float64

HIGHEST = 10_000.0  # of the orders
EULER = 0.5772156649015329
TWO_OVER_PI = 0.6366197723675814
LARGE = 1e250
FAR = 600.0  # up to here the power series does not overflow
# Debye's polynomials u(k) in the square of t, over its k-th power, for k = 1 to 5.
DEBYE = (
    (3 / 24, -5 / 24),
    (81 / 1152, -462 / 1152, 385 / 1152),
    (30375 / 414720, -369603 / 414720, 765765 / 414720, -425425 / 414720),
    (
        *(4465125 / 39813120, -94121676 / 39813120, 349922430 / 39813120),
        *(-446185740 / 39813120, 185910725 / 39813120),
    ),
    (
        *(1519035525 / 6688604160, -49286948607 / 6688604160, 284499769554 / 6688604160),
        *(-614135872350 / 6688604160, 566098157625 / 6688604160, -188699385875 / 6688604160),
    ),
)

# Amplitudes by order, as polynomials in 128 / x**2 - 1 for x >= 8: P, and Q times x, in
# J = sqrt(2 / (pi x)) (P cos(c) - Q sin(c)), Y = sqrt(2 / (pi x)) (P sin(c) + Q cos(c)),
# where c is x - (order / 2 + 1 / 4) pi.
P0 = (
    *(0.9994572757882519, -0.0005363673192129672, 6.137416080109497e-06, -2.0527448261170675e-07),
    *(1.280376144080092e-08, -1.2121098178951377e-09, 1.5500565496632596e-10),
    *(-2.491146535471666e-11, 4.786995821368028e-12, -1.0157485021065676e-12),
    *(2.4531772967345006e-13, -1.0251790052831013e-13, 3.339452259070809e-14),
)
Q0 = (
    *(-0.12444091103610815, 0.0005466519279475109, -1.1817110661200976e-05, 5.68497188761875e-07),
    *(-4.534972837363434e-08, 5.146225268539058e-09, -7.5763304988972e-10, 1.36265138876175e-10),
    *(-2.8707211071105146e-11, 6.878054876576861e-12, -1.873640743543296e-12),
    *(5.570266801419967e-13, -1.3137515498826537e-13, 3.750385225206321e-14),
    *(-4.0574096424030336e-14, 1.7159223662634758e-14),
)
P1 = (
    *(1.0009070262780821, 0.0008988049416705183, -7.9596946984383e-06, 2.453676633366693e-07),
    *(-1.4708512991275258e-08, 1.3602969253877949e-09, -1.713107485294131e-10),
    *(2.72345126828134e-11, -5.191158004646548e-12, 1.0954826479277623e-12),
    *(-2.6335760672461096e-13, 1.0923713653079462e-13, -3.5455617466606254e-14),
)
Q1 = (
    *(0.3742149922195918, -0.0007697167057643706, 1.4569614809851411e-05, -6.633568561050814e-07),
    *(5.136105997071193e-08, -5.720890888840857e-09, 8.316077350038262e-10),
    *(-1.4816588916791194e-10, 3.100364837230575e-11, -7.465104477698295e-12),
    *(2.002728774766585e-12, -4.91574062967655e-13, 1.3996264453471973e-13),
    *(-1.0759215471978615e-13, 4.275621822194818e-14),
)
# exp(x) sqrt(x) K(x) in (3 u - 1) / 2 for u = (x - 2) / (x + 2), x >= 1, by order.
K0_FAR = (
    *(1.2185953385133905, 0.046607192737334456, -0.016479589795551194, 0.006447012177775315),
    *(-0.0026326997405237713, 0.0011095595271738315, -0.0004777577090091837),
    *(0.00020922432450649396, -9.282781549913457e-05, 4.1631981661562654e-05),
    *(-1.8836821715751466e-05, 8.586842744715823e-06, -3.9394906713884144e-06),
    *(1.8194879817703452e-06, -8.440496909048304e-07, 3.878776912313005e-07),
    *(-1.802722965746922e-07, 9.404721511295714e-08, -4.564667489597168e-08, 9.315388792599932e-09),
    *(-3.105969463153586e-09, 1.21784275871745e-08, -6.563079821791178e-09),
    *(-2.9689632672406586e-09, 1.6864115883328243e-09, 1.2253650110363853e-09),
    *(-6.279224099418854e-10,),
)
K1_FAR = (
    *(1.363151890371342, -0.15502460663079778, 0.0649871610852339, -0.028714078450354025),
    *(0.013002147203582684, -0.005987127464077228, 0.0027890060944649967, -0.001310688281418),
    *(0.0006201473234254915, -0.0002950292100774468, 0.00014098511078907848),
    *(-6.762587231343645e-05, 3.25404677055063e-05, -1.5695052825633883e-05, 7.588933627834839e-06),
    *(-3.6948010892148675e-06, 1.7977725147586163e-06, -8.357521575973126e-07),
    *(4.0027722844697615e-07, -2.5734283762551654e-07, 1.3380282829083023e-07),
    *(5.629935541521034e-09, -9.53916521429516e-09, -5.1475639384210695e-08),
    *(2.8915329391108834e-08, 1.5014189458363388e-08, -8.549397920410795e-09),
    *(-4.784416628367346e-09, 2.5198700366733137e-09),
)
# Power series in (x / 2)**2: of I(0), of I(1) / (x / 2), and of the other terms of K.
_INVERSE = tuple(1.0 / math.factorial(k) ** 2 for k in range(9))
_HARMONIC = tuple(math.fsum(1.0 / j for j in range(1, k + 1)) for k in range(11))
I0_NEAR = _INVERSE
I1_NEAR = tuple(_INVERSE[k] / (k + 1) for k in range(9))
K0_NEAR = tuple(_INVERSE[k] * (_HARMONIC[k] - EULER) for k in range(9))
K1_NEAR = tuple(
    _INVERSE[k] / (k + 1) * (0.5 * (_HARMONIC[k] + _HARMONIC[k + 1]) - EULER) for k in range(9)
)


@jitable
def _far(x):
    """Return J(0), J(1), Y(0), Y(1) for x >= 8."""
    inverse = 8.0 / x
    t = float_fma(2.0 * inverse, inverse, -1.0)
    quadrant, high, low = _reduce_argument(x)
    sine, cosine = sin_or_cos(quadrant, high, low), sin_or_cos(quadrant + 1, high, low)
    scale = 1.0 / (math.sqrt(math.pi) * math.sqrt(x))
    plus, minus = scale * (cosine + sine), scale * (sine - cosine)
    p, q = polynomial(t, P0), polynomial(t, Q0) / x
    j0, y0 = float_fma(p, plus, -q * minus), float_fma(p, minus, q * plus)
    p, q = polynomial(t, P1), polynomial(t, Q1) / x
    return j0, float_fma(p, minus, q * plus), y0, float_fma(-p, plus, q * minus)


@jitable
def _near(x):
    """Return J(0), J(1), Y(0), Y(1) for 0 < x < 8 by Miller's recurrence; the sums are Neumann's.

    J(0) + 2 J(2) + 2 J(4) + ... is 1.
    """
    above, value, total, even, odd = 0.0, 1e-290, 0.0, 0.0, 0.0
    start = 32 if x > 2.0 else 20
    for k in range(start, 0, -1):
        half = k // 2
        part = -value if half % 2 == 1 else value
        if k % 2 == 0:
            total += value
            even += part / half
        elif k > 1:
            odd += part * (k / (half * (half + 1.0)))
        above, value = value, float_fma(2.0 * k / x, value, -above)
    norm = 1.0 / (value + 2.0 * total)
    j0, j1 = value * norm, above * norm
    log = log_real(0.5 * x) + EULER
    y0 = TWO_OVER_PI * float_fma(log, j0, -2.0 * (even * norm))
    y1 = TWO_OVER_PI * (float_fma(log - 1.0, j1, -odd * norm) - j0 / x)
    return j0, j1, y0, y1


@jitable
def _low_orders(x):
    """Return J(0), J(1), Y(0), Y(1) for x > 0; those of the first kind vanish at infinity."""
    if x < 1e-8:
        log = log_real(0.5 * x) + EULER
        return 1.0, 0.5 * x, TWO_OVER_PI * log, -TWO_OVER_PI / x
    return _near(x) if x < 8.0 else _far(x)


@jitable
def _downwards(n, x):
    """Return J(n, x), n > x, by Miller's recurrence from far above the order."""
    order = np.int64(n)
    start = order + 2 * np.int64(7.0 * exp(log_real(n) / 3.0) + 12.0)
    above, value, total, result = 0.0, 1e-290, 0.0, 0.0
    for k in range(start, 0, -1):
        result = value if k == order else result
        total += value if k % 2 == 0 else 0.0
        above, value = value, float_fma(2.0 * k / x, value, -above)
        if float_absolute(value) > LARGE:
            value, above = value / LARGE, above / LARGE
            total, result = total / LARGE, result / LARGE
    return result / (value + 2.0 * total)


@jitable
def _is_order(n):
    return float_absolute(n) <= HIGHEST and n == float_floor(n)


@in_float64
def bessel_j(n, x):
    """Return the Bessel function of the first kind, of whole order n up to 10,000 in size."""
    if not _is_order(n) or not float_absolute(x) < INF:
        return NAN
    order, size = float_absolute(n), float_absolute(x)
    odd = order % 2.0 == 1.0
    if size * size < order + 1.0:
        value = bessel.series(order, size, -1.0)
    elif order > size:
        value = _downwards(order, size)
    else:
        low, value, _, _ = _low_orders(size)
        if order == 0.0:
            value = low
        for k in range(1, np.int64(order)):
            low, value = value, float_fma(2.0 * k / size, value, -low)
    return -value if odd and (x < 0.0) != (n < 0.0) else value


@in_float64
def bessel_y(n, x):
    """Return the Bessel function of the second kind, of whole order n up to 10,000 in size."""
    if not _is_order(n) or not (x >= 0.0 and x < INF):
        return NAN
    order = float_absolute(n)
    odd = order % 2.0 == 1.0
    if x == 0.0:
        value = -INF
    else:
        _, _, low, value = _low_orders(x)
        if order == 0.0:
            value = low
        for k in range(1, np.int64(order)):
            if value > -INF:
                low, value = value, float_fma(2.0 * k / x, value, -low)
    return -value if odd and n < 0.0 else value


@jitable
def _bessel_k(n, x, scaled):
    if not _is_order(n) or not x >= 0.0:
        return NAN
    if x == 0.0 or x == INF:
        return INF if x == 0.0 else 0.0
    order = float_absolute(n)
    if x < 1.0:
        half = 0.5 * x
        square, log = half * half, -log_real(half)
        low = float_fma(log, polynomial(square, I0_NEAR), polynomial(square, K0_NEAR))
        inner = float_fma(-log, polynomial(square, I1_NEAR), -polynomial(square, K1_NEAR))
        value = 1.0 / x + half * inner
        factor, again = exp(x) if scaled else 1.0, 1.0
    else:
        inverse = 1.0 / math.sqrt(x)
        t = float_fma(1.5, (x - 2.0) / (x + 2.0), -0.5)
        low, value = inverse * polynomial(t, K0_FAR), inverse * polynomial(t, K1_FAR)
        factor, again = 1.0, 1.0
        if not scaled:
            factor, again = (exp(-x), 1.0) if x < 700.0 else (exp(-0.5 * x), exp(-0.5 * x))
    low, value = low * factor, value * factor  # before it may overflow
    if order == 0.0:
        value = low
    for k in range(1, np.int64(order)):
        low, value = value, float_fma(2.0 * k / x, value, low)
    return value * again


@in_float64
def bessel_k(n, x):
    """Return the modified Bessel function of the second kind, of whole order n."""
    return _bessel_k(n, x, False)


@in_float64
def bessel_ke(n, x):
    """Return exp(x) bessel_k(n, x), which does not underflow."""
    return _bessel_k(n, x, True)


@jitable
def _debye(n, x):
    """Return exp(-x) I(n, x) where n**2 + x**2 is large, by Debye's uniform expansion."""
    root = math.hypot(n, x)
    exponent = n * n / (x + root) - n * arcsinh(n / x)
    inverse = 1.0 / root
    ratio = n * inverse
    square, step = ratio * ratio, inverse
    total = 1.0 + step * polynomial(square, DEBYE[0])
    step *= inverse
    total += step * polynomial(square, DEBYE[1])
    step *= inverse
    total += step * polynomial(square, DEBYE[2])
    step *= inverse
    total += step * polynomial(square, DEBYE[3])
    step *= inverse
    total += step * polynomial(square, DEBYE[4])
    return total * exp(exponent) * math.sqrt(inverse / (2.0 * math.pi))


@jitable
def _of_real_order(n, x, scaled):
    """Return I(n, x), or exp(-x) times it, for an order that is not whole, by its power series.

    Below 0 the first terms alternate in sign; they are small where x is large.
    """
    if not x >= 0.0 or not float_absolute(n) <= bessel.HIGHEST:
        return NAN
    if x == 0.0:
        odd = float_floor(n) % 2.0 == 0.0
        return 0.0 if n > 0.0 else (-INF if odd else INF)
    if x == INF:
        return 0.0 if scaled else INF
    if x > 30.0 + n * n or x > FAR:
        value = bessel._asymptotic(n, x) if x > 30.0 + n * n else _debye(float_absolute(n), x)
        root = 1.0 if scaled else exp(0.5 * x)
        return value * root * root
    half = 0.5 * x
    square, term, total, k = half * half, 1.0, 0.0, 1.0
    while float_absolute(term) > 1e-18 * float_absolute(total) or k <= -n:
        total += term
        term *= square / (k * (k + n))
        k += 1.0
    if n < -1.0 and float_floor(n) % 2.0 == 0.0:  # where gamma(n + 1) is negative
        total = -total
    total = total * exp(-x) if scaled else total
    front = n * log_real(half) - lgamma(n + 1.0)
    if float_absolute(front) < 600.0:
        return total * exp(front)
    root = exp(0.5 * front)
    return total * root * root


@jitable
def _of_any_order(n, x, scaled):
    if n == float_floor(n):
        return bessel._bessel(float_absolute(n), x, scaled)
    return _of_real_order(n, x, scaled)


@in_float64
def bessel_iv(n, x):
    """Return the modified Bessel function of the first kind, of an order from -170 to 170."""
    return _of_any_order(n, x, False)


@in_float64
def bessel_ive(n, x):
    """Return exp(-|x|) bessel_iv(n, x), which does not overflow."""
    return _of_any_order(n, x, True)
