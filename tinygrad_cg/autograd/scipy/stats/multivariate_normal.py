"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from .... import numpy as np
from ...._core.tensor import Tensor
from ...numpy._numpy_functions import for_arrays
from ..special import real

__all__ = ["entropy", "logpdf", "pdf"]
__dir__ = __all__.copy


@for_arrays
def logpdf(x: Any, mean: Any, cov: Any) -> Any:
    """Return the logarithm of the density at `x`.

    The last axis of `x` has the variables; `mean` is a vector or a number. `cov` is a matrix, a
    vector (a diagonal) or a number (a multiple of the identity). In one dimension `x` may be a
    number, and a vector is several points. Raises numpy.linalg.LinAlgError for a `cov` that is not
    positive definite. Correct at every order with respect to each argument. Modelled on
    ``scipy.stats.multivariate_normal.logpdf``.
    """
    x, mean, cov = real(x), real(mean), real(cov)
    size = max(mean.shape[0] if mean.ndim else 1, cov.shape[0] if cov.ndim else 1)
    if size == 1 and x.ndim < 2:
        x = np.reshape(x, (*x.shape, 1))
    lower = np.linalg.cholesky(_matrix(cov, size))
    centered = np.reshape(np.broadcast_to(x - mean, (*x.shape[:-1], size)), (-1, size))
    whitened = np.linalg.solve(lower, np.transpose(centered))
    square = np.reshape(np.sum(whitened**2, axis=0), x.shape[:-1])
    return -0.5 * (square + size * math.log(2 * math.pi)) - _half_logdet(lower)


@for_arrays
def pdf(x: Any, mean: Any, cov: Any) -> Any:
    """Return the density at `x`; arguments as for `logpdf`."""
    return np.exp(logpdf(x, mean, cov))


@for_arrays
def entropy(mean: Any, cov: Any) -> Any:
    """Return the entropy of the distribution; arguments as for `logpdf`."""
    mean, cov = real(mean), real(cov)
    size = max(mean.shape[0] if mean.ndim else 1, cov.shape[0] if cov.ndim else 1)
    lower = np.linalg.cholesky(_matrix(cov, size))
    return 0.5 * size * (1 + math.log(2 * math.pi)) + _half_logdet(lower)


def _matrix(cov: Tensor, size: int) -> Tensor:
    """Return the covariance as a symmetric matrix; half of its gradient goes to each triangle."""
    if cov.ndim == 0:
        return cov * np.eye(size)
    if cov.ndim == 1:
        return np.diag(cov)
    return (cov + np.transpose(cov)) / 2


def _half_logdet(lower: Tensor) -> Tensor:
    return np.sum(np.log(np.diagonal(lower)))
