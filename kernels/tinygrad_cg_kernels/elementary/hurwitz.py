"""Derivatives of Hurwitz's zeta function by its order, by Euler and Maclaurin's sum.

Each term of the function's sum and remainder is differentiated. Nothing is vectorised, and all
dtypes compute in float64.
"""

from collections.abc import Callable

from tinygrad_cg_kernels.elementary.bessel import zeta
from tinygrad_cg_kernels.elementary.logarithm import INF, NAN, log_real
from tinygrad_cg_kernels.elementary.powers import power_real
from tinygrad_cg_kernels.elementary.special import EULER_MACLAURIN
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import float_absolute, float_fma
from tinygrad_cg_kernels.runtime.service import in_float64


@jitable
def _of_product(order, log, value, slope, bend):
    """Return the derivative by s, over q**-s, of q**-s f(s), from log(q) and derivatives of f."""
    if order == 1.0:
        return float_fma(-log, value, slope)
    return float_fma(log, float_fma(log, value, -2.0 * slope), bend)


@jitable
def _zeta_derivative64(order, s, q):
    """Return the derivative of order 1 or 2 by s, for s > 1 and q > 0; NaN elsewhere."""
    if order == 0.0:
        return zeta(s, q)
    if not (s > 1.0 and q > 0.0):
        return NAN
    if s == INF:
        return 0.0 if q > 1.0 else NAN
    if q == INF:
        return 0.0
    total, limit = 0.0, 12.0 + s
    while q < limit:
        term = power_real(q, -s) * _of_product(order, log_real(q), 1.0, 0.0, 0.0)
        total += term
        if q > 3.0 and float_absolute(term) <= 1e-18 * float_absolute(total):
            return total
        q += 1.0
    power, log, inverse = power_real(q, -s), log_real(q), 1.0 / (s - 1.0)
    square = inverse * inverse
    integral = _of_product(order, log, inverse, -square, 2.0 * inverse * square)
    rest = float_fma(q, integral, 0.5 * _of_product(order, log, 1.0, 0.0, 0.0))
    # rising factorials s (s + 1) ... and their derivatives, over powers of q
    value, slope, bend, scale = s, 1.0, 0.0, 1.0 / q
    for k in range(len(EULER_MACLAURIN)):
        rest += EULER_MACLAURIN[k] * scale * _of_product(order, log, value, slope, bend)
        for j in range(2):
            more = s + 2 * k + 1.0 + j
            bend = float_fma(bend, more, 2.0 * slope)
            slope = float_fma(slope, more, value)
            value *= more
        scale /= q * q
    return float_fma(power, rest, total)


def _zeta_derivative_of(order: float) -> Callable:
    @in_float64
    def derivative(s, q):
        return _zeta_derivative64(order, s, q)

    return derivative


zeta_derivatives = list(map(_zeta_derivative_of, (0.0, 1.0, 2.0)))
"""The derivatives of zeta by its order, the first argument, of orders up to 2."""
