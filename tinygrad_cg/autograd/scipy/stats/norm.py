"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from .... import numpy as np
from ...numpy._numpy_functions import for_arrays
from ..special import erfc, log_ndtr, real

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]
__dir__ = __all__.copy


@for_arrays
def logpdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the logarithm of the density at `x` for mean `loc` and deviation `scale`.

    Arguments broadcast. Correct at every order with respect to each.
    """
    scale = real(scale)
    return -0.5 * ((real(x) - loc) / scale) ** 2 - 0.5 * math.log(2 * math.pi) - np.log(scale)


@for_arrays
def pdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the density at `x`; arguments as for `logpdf`."""
    return np.exp(logpdf(x, loc, scale))


@for_arrays
def cdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the probability of a number up to `x`; arguments as for `logpdf`."""
    return 0.5 * erfc((loc - real(x)) / (real(scale) * math.sqrt(2)))


@for_arrays
def sf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the probability of a number above `x`; arguments as for `logpdf`."""
    return 0.5 * erfc((real(x) - loc) / (real(scale) * math.sqrt(2)))


@for_arrays
def logcdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the logarithm of `cdf`, without underflow; arguments as for `logpdf`."""
    return log_ndtr((real(x) - loc) / real(scale))


@for_arrays
def logsf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the logarithm of `sf`, without underflow; arguments as for `logpdf`."""
    return log_ndtr((loc - real(x)) / real(scale))
