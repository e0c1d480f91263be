"""Special functions under SciPy's names, differentiable at every order.

For arrays and numbers they return arrays, for tensors tensors; Python's floats are float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ... import math, stop_gradient
from ... import numpy as np
from ..._core.tensor import Tensor
from ..._ops import bessel, distribution_functions
from ..._ops.namespaces.namespace import own_functions, spelled
from ..numpy._numpy_functions import for_arrays


def real(x: Any) -> Tensor:
    """Return `x` as a tensor of real floats: integers as float64."""
    x = np.asarray(x)
    return (
        x if np.isdtype(x.dtype, ("real floating", "complex floating")) else np.astype(x, "float64")
    )


def _of_real(name: str, operation: Callable[[Any], Any], doc: str) -> Callable[[Any], Any]:
    """Return an operation on real numbers as SciPy's function of a name."""

    def function(x: Any) -> Any:
        return operation(real(x))

    function.__doc__ = doc
    return for_arrays(spelled(function, name))


gammaln = _of_real(
    "gammaln",
    math.lgamma,
    "Return log(abs(gamma(x))); the shape of `x`. Its derivative is `digamma`.",
)
digamma = _of_real("digamma", math.digamma, "Return the derivative of `gammaln`.")
psi = digamma


@for_arrays
def polygamma(n: Any, x: Any) -> Any:
    """Return the derivative of order `n` of `digamma` at `x`, for whole orders from 0 to 170."""
    x = real(x)
    return math.polygamma(np.astype(np.asarray(n), x.dtype), x)


gamma = _of_real(
    "gamma",
    distribution_functions.gamma,
    """Return the gamma function: (x - 1)! at whole numbers, NaN at -1, -2, ...

    Its gradient is ``gamma(x) * digamma(x)``.
    """,
)


@for_arrays
def gammasgn(x: Any) -> Any:
    """Return the sign of gamma(x): NaN at -1, -2, ..., and no gradient."""
    x = real(x)
    odd = np.mod(np.floor(x), 2.0) == 1.0
    signs = np.where(np.logical_and(x < 0, odd), -1.0, 1.0)
    return np.where(np.logical_and(x < 0, x == np.floor(x)), np.nan, signs)


rgamma = _of_real(
    "rgamma",
    distribution_functions.rgamma,
    "Return 1 / gamma(x): 0 where gamma has a pole; the gradient is NaN there.",
)


@for_arrays
def gammainc(a: Any, x: Any) -> Any:
    """Return the regularized lower incomplete gamma function; gradients with respect to both
    arguments."""
    return math.igamma(real(a), real(x))


@for_arrays
def gammaincc(a: Any, x: Any) -> Any:
    """Return 1 - gammainc(a, x), accurate for small results."""
    return math.igammac(real(a), real(x))


@for_arrays
def betainc(a: Any, b: Any, x: Any) -> Any:
    """Return the regularized incomplete beta function; gradients with respect to all arguments."""
    return math.betainc(real(a), real(b), real(x))


@for_arrays
def betaln(a: Any, b: Any) -> Any:
    """Return log(abs(beta(a, b)))."""
    return distribution_functions.betaln(real(a), real(b))


@for_arrays
def beta(a: Any, b: Any) -> Any:
    """Return gamma(a) gamma(b) / gamma(a + b); NaN where `a` or `b` is 0, -1, -2, ..."""
    return distribution_functions.beta(real(a), real(b))


@for_arrays
def multigammaln(a: Any, d: int) -> Any:
    """Return the logarithm of the multivariate gamma function of dimension `d`.

    For a > (d - 1)/2.
    """
    a = real(a)
    total = np.asarray(d * (d - 1) / 4 * _LOG_PI)
    for j in range(1, d + 1):
        total = total + math.lgamma(a + (1 - j) / 2)
    return total


_LOG_PI = 1.1447298858494002
_HALF_LOG_2_PI = 0.9189385332046728


erf = _of_real("erf", math.erf, "Return the error function; the shape of `x`.")
erfc = _of_real("erfc", math.erfc, "Return 1 - erf(x), accurate for small results.")
erfinv = _of_real("erfinv", math.erfinv, "Return the number whose `erf` is x.")
erfcinv = _of_real("erfcinv", math.erfcinv, "Return the number whose `erfc` is x.")
ndtr = _of_real(
    "ndtr",
    distribution_functions.ndtr,
    "Return the distribution function of the normal distribution, accurate in its left tail.",
)
ndtri = _of_real(
    "ndtri", math.ndtri, "Return the quantile `x` of the standard normal distribution."
)


@for_arrays
def log_ndtr(x: Any) -> Any:
    """Return log(ndtr(x)), without underflow: far on the left by the asymptotic series."""
    x = real(x)
    bound = -20.0 if x.dtype == np.float64 else -10.0
    far = x < bound
    near, beyond = np.where(far, bound, x), np.where(far, x, bound)
    inverse, series = 1.0 / beyond**2, 1.0
    for k in range(19, 0, -2):  # 1 - 1/x**2 (1 - 3/x**2 (1 - 5/x**2 ...
        series = 1.0 - k * inverse * series
    tail = -0.5 * beyond**2 - _HALF_LOG_2_PI - np.log(-beyond) + np.log(series)
    above = np.log1p(-distribution_functions.ndtr(-np.maximum(near, 0.0)))
    below = np.log(distribution_functions.ndtr(np.minimum(near, 0.0)))
    return np.where(far, tail, np.where(x > 0, above, below))


i0 = _of_real(
    "i0", math.bessel_i0, "Return the modified Bessel function of the first kind of order 0."
)
i1 = _of_real(
    "i1", math.bessel_i1, "Return the modified Bessel function of the first kind of order 1."
)


@for_arrays
def iv(v: Any, z: Any) -> Any:
    """Return the modified Bessel function of the first kind of real order `v`, from -170 to 170.

    NaN for negative `z` unless the order is whole, as in SciPy. No gradient flows to the order.
    """
    return bessel.bessel_iv(*_of_order(v, z))


@for_arrays
def ive(v: Any, z: Any) -> Any:
    """Return ``exp(-abs(z)) * iv(v, z)``, which does not overflow."""
    return bessel.bessel_ive(*_of_order(v, z))


j0 = _of_real("j0", bessel.bessel_j0, "Return the Bessel function of the first kind of order 0.")
j1 = _of_real("j1", bessel.bessel_j1, "Return the Bessel function of the first kind of order 1.")


@for_arrays
def jn(n: Any, x: Any) -> Any:
    """Return the Bessel function of the first kind of whole order `n`, up to 10,000 in size.

    Orders that are not whole raise ValueError. No gradient flows to the order.
    """
    return bessel.bessel_j(*_of_order(n, x, "jn"))


y0 = _of_real(
    "y0", bessel.bessel_y0, "Return the Bessel function of the second kind of order 0: NaN below 0."
)
y1 = _of_real(
    "y1", bessel.bessel_y1, "Return the Bessel function of the second kind of order 1: NaN below 0."
)


@for_arrays
def yn(n: Any, x: Any) -> Any:
    """Return the Bessel function of the second kind of whole order `n`; otherwise as `jn`."""
    return bessel.bessel_y(*_of_order(n, x, "yn"))


def _of_order(n: Any, x: Any, whole: str | None = None) -> tuple[Any, Any]:
    """Return an order and an argument of its dtype; ValueError for orders that must be whole."""
    if whole is not None and not isinstance(n, Tensor):
        orders = numpy.asarray(n)
        if (orders != numpy.floor(orders)).any() or (numpy.abs(orders) > _HIGHEST).any():
            raise ValueError(f"{whole}: orders must be whole, up to {_HIGHEST} in size, got {n}")
    x = real(x)
    return np.astype(np.asarray(n), x.dtype), x


_HIGHEST = 10_000


expit = _of_real("expit", math.sigmoid, "Return 1 / (1 + exp(-x)), without overflow.")


@for_arrays
def logit(x: Any) -> Any:
    """Return log(x / (1 - x)), the inverse of `expit`."""
    x = real(x)
    if np.isdtype(x.dtype, "complex floating"):
        return np.log(x) - np.log1p(-x)
    return distribution_functions.logit(x)


@for_arrays
def logsumexp(x: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    """Return log(sum(b * exp(x))) over axes, without overflow; `b` is 1 by default.

    A negative sum gives NaN, as in SciPy.
    """
    x = real(x)
    if b is None:
        return math.reduce_logsumexp(x, axis, keepdims)
    x, b = np.broadcast_arrays(x, real(b))
    largest = np.max(np.where(b == 0, -np.inf, x), axis=axis, keepdims=True)
    shift = stop_gradient(np.where(np.isfinite(largest), largest, 0.0))
    exponent = np.where(np.logical_and(b == 0, x - shift > 700), 700.0, x - shift)  # 0 * inf is NaN
    total = np.log(np.sum(b * np.exp(exponent), axis=axis, keepdims=True))
    total = total + shift
    return total if keepdims else np.squeeze(total, axis=axis)


__all__ = [name for name in own_functions(globals()) if name != "real"]
__dir__ = __all__.copy
