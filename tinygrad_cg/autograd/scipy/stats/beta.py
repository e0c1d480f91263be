"""The beta distribution."""

from __future__ import annotations

from typing import Any

from .... import numpy as np
from ...numpy._numpy_functions import for_arrays
from ..special import betainc, betaln, real

__all__ = ["cdf", "logpdf", "pdf"]
__dir__ = __all__.copy


@for_arrays
def logpdf(x: Any, a: Any, b: Any) -> Any:
    """Return the logarithm of the density at `x` between 0 and 1 for shape parameters `a`, `b`."""
    x, a, b = real(x), real(a), real(b)
    return (a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - betaln(a, b)


@for_arrays
def pdf(x: Any, a: Any, b: Any) -> Any:
    """Return the density at `x`; arguments as for `logpdf`."""
    return np.exp(logpdf(x, a, b))


@for_arrays
def cdf(x: Any, a: Any, b: Any) -> Any:
    """Return the probability of a number up to `x`; arguments as for `logpdf`."""
    return betainc(real(a), real(b), np.clip(real(x), 0.0, 1.0))
