"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

from .... import numpy as np
from ...numpy._dispatch import for_arrays
from ..special import gammaln, real

__all__ = ["logpdf", "pdf"]
__dir__ = __all__.copy


@for_arrays
def logpdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the logarithm of the density at `x` with `df` degrees of freedom.

    Arguments broadcast; `loc` and `scale` shift and stretch. Correct at every order by each.
    """
    df, scale = real(df), real(scale)
    z = (real(x) - loc) / scale
    norm = gammaln((df + 1) / 2) - gammaln(df / 2) - 0.5 * np.log(df * math.pi) - np.log(scale)
    return norm - (df + 1) / 2 * np.log1p(z**2 / df)


@for_arrays
def pdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the density at `x`; arguments as for `logpdf`."""
    return np.exp(logpdf(x, df, loc, scale))
