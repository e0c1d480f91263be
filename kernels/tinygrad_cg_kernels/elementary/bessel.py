"""Modified Bessel functions of the first kind and Hurwitz's zeta function, by sums of one sign.

They are not vectorised, since the number of terms depends on the arguments, and compute in float64
for all dtypes.
"""

import math

import numpy as np

from tinygrad_cg_kernels.elementary.exponential import exp
from tinygrad_cg_kernels.elementary.powers import power_real
from tinygrad_cg_kernels.elementary.special import EULER_MACLAURIN
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import float_absolute, float_floor
from tinygrad_cg_kernels.runtime.service import in_float64

INF, NAN = np.inf, np.nan
HIGHEST = 170.0  # the largest order with a finite factorial


@jitable
def series(n, size, sign):
    """Return I(n, size), or J(n, size) for `sign` -1, by its power series for a small argument."""
    half = 0.5 * size
    term = 1.0
    for j in range(1, np.int64(n) + 1):
        term *= half / j
    square, total, k = sign * half * half, 0.0, 1.0
    while float_absolute(term) > 1e-18 * float_absolute(total):
        total += term
        term *= square / (k * (k + n))
        k += 1.0
    return total


@jitable
def _asymptotic(n, size):
    """Return exp(-size) I(n, size) by Hankel's expansion, for an argument large beside n**2."""
    total, term, k = 0.0, 1.0, 0.0
    while float_absolute(term) > 1e-18 and k < 60.0:
        total += term
        k += 1.0
        odd = 2.0 * k - 1.0
        term *= -((2.0 * n - odd) * (2.0 * n + odd)) / (8.0 * size * k)
    return total / math.sqrt(2.0 * math.pi * size)


@jitable
def _miller(n, size):
    """Return exp(-size) I(n, size) by Miller's recurrence from high orders down to 0.

    The sum I(0) + 2 I(1) + 2 I(2) + ... is exp(size).
    """
    order = np.int64(n)
    above, value, total, result = 0.0, 1e-290, 0.0, 0.0
    for k in range(order + np.int64(10.0 * math.sqrt(size)) + 15, 0, -1):
        result = value if k == order else result
        total += value
        above, value = value, above + (2.0 * k / size) * value
    result = value if order == 0 else result
    return result / (value + 2.0 * total)


@jitable
def _bessel(n, x, scaled):
    if not (0.0 <= n <= HIGHEST and n == float_floor(n)) or x != x:
        return NAN
    size = float_absolute(x)
    if size == INF:
        value = 0.0 if scaled else INF
    elif size * size < 16.0 * (n + 1.0):
        value = series(n, size, 1.0)
        value = value * exp(-size) if scaled else value
    else:
        value = _asymptotic(n, size) if size > 30.0 + n * n else _miller(n, size)
        if not scaled:
            root = exp(0.5 * size) if size > 700.0 else exp(size)
            value = value * root * root if size > 700.0 else value * root
    return -value if x < 0.0 and n % 2.0 == 1.0 else value


@in_float64
def bessel_i(n, x):
    """Return the modified Bessel function of the first kind, of whole order n from 0 to 170."""
    return _bessel(n, x, False)


@in_float64
def bessel_ie(n, x):
    """Return exp(-|x|) bessel_i(n, x), which does not overflow."""
    return _bessel(n, x, True)


@in_float64
def zeta(s, q):
    """Return Hurwitz's zeta function: the sum over k >= 0 of (q + k)**-s.

    The first terms are added up, and the rest is found by Euler and Maclaurin.

    Below 0 it is real for whole s only; at 0, -1, ... there is a pole.
    """
    if s != s or q != q or s < 1.0:
        return NAN
    if s == 1.0:
        return INF
    if q <= 0.0:
        if q == float_floor(q):
            return INF
        if s != float_floor(s):
            return NAN
    if s == INF:
        return INF if float_absolute(q) < 1.0 else (1.0 if q == 1.0 else (0.0 if q > 1.0 else NAN))
    if q == INF:
        return 0.0
    if q < -1e7:
        return NAN
    total, limit = 0.0, 12.0 + s
    while q < limit:
        term = power_real(q, -s)
        total += term
        if q > 0.0 and term <= 1e-18 * total:
            return total
        q += 1.0
    term = power_real(q, -s)
    total += q * term / (s - 1.0) + 0.5 * term
    factor, inverse = s * term / q, 1.0 / (q * q)
    for k in range(len(EULER_MACLAURIN)):
        total += EULER_MACLAURIN[k] * factor
        factor *= (s + 2 * k + 1.0) * (s + 2 * k + 2.0) * inverse
    return total
