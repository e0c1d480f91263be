"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

from .... import numpy as np
from ...numpy._numpy_functions import for_arrays
from ..special import gammaincc, gammaln, real

__all__ = ["cdf", "logpmf", "pmf"]
__dir__ = __all__.copy


@for_arrays
def logpmf(k: Any, mu: Any) -> Any:
    """Return the logarithm of the probability of the whole number `k` for mean `mu`."""
    k, mu = real(k), real(mu)
    return k * np.log(mu) - mu - gammaln(k + 1)


@for_arrays
def pmf(k: Any, mu: Any) -> Any:
    """Return the probability of `k`; arguments as for `logpmf`."""
    return np.exp(logpmf(k, mu))


@for_arrays
def cdf(k: Any, mu: Any) -> Any:
    """Return the probability of a number up to `k`; arguments as for `logpmf`."""
    count = np.floor(real(k)) + 1.0
    value = gammaincc(np.maximum(count, 1.0), real(mu))
    return np.where(count < 1.0, 0.0, value)
