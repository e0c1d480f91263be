"""The gamma distribution."""

from __future__ import annotations

from typing import Any

from .... import numpy as np
from ...numpy._numpy_functions import for_arrays
from ..special import gammainc, gammaln, real

__all__ = ["cdf", "logpdf", "pdf"]
__dir__ = __all__.copy


@for_arrays
def logpdf(x: Any, a: Any) -> Any:
    """Return the logarithm of the density at positive `x` for shape parameter `a`."""
    x, a = real(x), real(a)
    return (a - 1) * np.log(x) - x - gammaln(a)


@for_arrays
def pdf(x: Any, a: Any) -> Any:
    """Return the density at `x`; arguments as for `logpdf`."""
    return np.exp(logpdf(x, a))


@for_arrays
def cdf(x: Any, a: Any) -> Any:
    """Return the probability of a number up to `x`; arguments as for `logpdf`."""
    return gammainc(real(a), np.maximum(real(x), 0.0))
