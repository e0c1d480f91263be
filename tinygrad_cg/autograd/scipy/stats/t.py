"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

from .... import numpy as np
from ...numpy._numpy_functions import for_arrays
from ..special import betainc, gammaln, real

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]
__dir__ = __all__.copy


@for_arrays
def logpdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the logarithm of the density at `x` with `df` degrees of freedom.

    Arguments broadcast; `loc` and `scale` shift and stretch. Correct at every order.
    """
    df, scale = real(df), real(scale)
    z = (real(x) - loc) / scale
    norm = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * math.pi) - np.log(scale)
    return norm - (df + 1) / 2 * np.log1p(z**2 / df)


@for_arrays
def pdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the density at `x`; arguments as for `logpdf`."""
    return np.exp(logpdf(x, df, loc, scale))


@for_arrays
def cdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the probability of a number up to `x`; arguments as for `logpdf`.

    By betainc(df/2, df/2, (1 + z/sqrt(z**2 + df)) / 2), which is smooth at z = 0.
    """
    df = real(df)
    z = (real(x) - loc) / real(scale)
    root = np.sqrt(z**2 + df)
    below, above = np.minimum(z, 0.0), np.maximum(z, 0.0)
    share = np.where(z < 0, df / (2 * root * (root - below)), (root + above) / (2 * root))
    return betainc(df / 2, df / 2, share)


@for_arrays
def logcdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the logarithm of `cdf`; arguments as for `logpdf`."""
    return np.log(cdf(x, df, loc, scale))
