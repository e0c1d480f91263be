"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from .... import numpy as np
from ...numpy._dispatch import for_arrays
from ..special import gammaln, real

__all__ = ["logpdf", "pdf"]
__dir__ = __all__.copy


@for_arrays
def logpdf(x: Any, alpha: Any) -> Any:
    """Return the logarithm of the density at `x`, whose first axis holds the probabilities.

    `alpha` is a vector of that size.
    """
    x, alpha = real(x), real(alpha)
    powers = np.tensordot(alpha - 1, np.log(x), axes=1)
    return powers + gammaln(np.sum(alpha)) - np.sum(gammaln(alpha))


@for_arrays
def pdf(x: Any, alpha: Any) -> Any:
    """Return the density at `x`; arguments as for `logpdf`."""
    return np.exp(logpdf(x, alpha))
