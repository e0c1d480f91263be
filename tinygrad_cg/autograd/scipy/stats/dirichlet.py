"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import numpy

from .... import numpy as np
from .... import stop_gradient
from ...numpy._numpy_functions import for_arrays
from ..special import gammaln, real

__all__ = ["logpdf", "pdf", "rvs"]
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


def rvs(alpha: Any, size: Any = 1, random_state: Any = None) -> numpy.ndarray:
    """Return draws, an array whose last axis holds the probabilities; no gradient flows to `alpha`.

    `random_state` is a seed or a NumPy generator; by default NumPy's global state. SciPy draws the
    same numbers.
    """
    if random_state is None:
        random_state = numpy.random
    elif isinstance(random_state, (int, numpy.integer)):
        random_state = numpy.random.RandomState(random_state)
    return random_state.dirichlet(numpy.asarray(stop_gradient(alpha)), size)
