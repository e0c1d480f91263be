"""The chi-squared distribution."""

from __future__ import annotations

import math
from typing import Any

from .... import numpy as np
from ...numpy._numpy_functions import for_arrays
from ..special import gammainc, gammaln, real

__all__ = ["cdf", "logpdf", "pdf"]
__dir__ = __all__.copy


@for_arrays
def logpdf(x: Any, df: Any) -> Any:
    """Return the logarithm of the density at positive `x` for `df` degrees of freedom."""
    x, df = real(x), real(df)
    return (df / 2 - 1) * np.log(x) - x / 2 - df / 2 * math.log(2) - gammaln(df / 2)


@for_arrays
def pdf(x: Any, df: Any) -> Any:
    """Return the density at `x`; arguments as for `logpdf`."""
    return np.exp(logpdf(x, df))


@for_arrays
def cdf(x: Any, df: Any) -> Any:
    """Return the probability of a number up to `x`; arguments as for `logpdf`."""
    return gammainc(real(df) / 2, np.maximum(real(x), 0.0) / 2)
