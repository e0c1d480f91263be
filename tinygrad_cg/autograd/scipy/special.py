"""Special functions under SciPy's names, differentiable at every order.

Of arrays and numbers they give arrays, of tensors tensors; Python's floats are float64.
"""

from __future__ import annotations

from typing import Any

from ... import math, stop_gradient
from ... import numpy as np
from ..._core.tensor import Tensor
from ..numpy._dispatch import for_arrays

__all__ = [
    "beta",
    "betaln",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "expit",
    "gamma",
    "gammaln",
    "logit",
    "logsumexp",
    "multigammaln",
    "polygamma",
    "psi",
]
__dir__ = __all__.copy


def real(x: Any) -> Tensor:
    """Return `x` as a tensor of real floats: integers as float64."""
    x = np.asarray(x)
    return (
        x if np.isdtype(x.dtype, ("real floating", "complex floating")) else np.astype(x, "float64")
    )


@for_arrays
def gammaln(x: Any) -> Any:
    """Return log(abs(gamma(x))); the shape of `x`. Its derivative is `digamma`."""
    return math.lgamma(real(x))


@for_arrays
def digamma(x: Any) -> Any:
    """Return the derivative of `gammaln`."""
    return math.digamma(real(x))


psi = digamma


@for_arrays
def polygamma(n: Any, x: Any) -> Any:
    """Return the derivative of order `n` of `digamma` at `x`, for whole orders from 0 to 170."""
    x = real(x)
    return math.polygamma(np.astype(np.asarray(n), x.dtype), x)


@for_arrays
def gamma(x: Any) -> Any:
    """Return the gamma function: (x - 1)! at whole numbers, NaN at -1, -2, ...

    Its gradient is ``gamma(x) * digamma(x)``.
    """
    x = real(x)
    magnitude = np.exp(math.lgamma(x))
    odd = np.mod(np.floor(x), 2.0) == 1.0  # gamma is negative in (-1, 0), (-3, -2), ...
    signed = np.where(np.logical_and(x < 0, odd), -magnitude, magnitude)
    return np.where(np.logical_and(x < 0, x == np.floor(x)), np.nan, signed)


@for_arrays
def betaln(a: Any, b: Any) -> Any:
    """Return log(abs(beta(a, b)))."""
    a, b = real(a), real(b)
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


@for_arrays
def beta(a: Any, b: Any) -> Any:
    """Return gamma(a) gamma(b) / gamma(a + b), for positive `a` and `b`."""
    return np.exp(betaln(a, b))


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


@for_arrays
def erf(x: Any) -> Any:
    """Return the error function; the shape of `x`."""
    return math.erf(real(x))


@for_arrays
def erfc(x: Any) -> Any:
    """Return 1 - erf(x), accurate where that is small."""
    return math.erfc(real(x))


@for_arrays
def erfinv(x: Any) -> Any:
    """Return the number whose `erf` is x."""
    return math.erfinv(real(x))


@for_arrays
def expit(x: Any) -> Any:
    """Return 1 / (1 + exp(-x)), without overflow."""
    return math.sigmoid(real(x))


@for_arrays
def logit(x: Any) -> Any:
    """Return log(x / (1 - x)), the inverse of `expit`."""
    x = real(x)
    return np.log(x) - np.log1p(-x)


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
