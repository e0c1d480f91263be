"""NumPy's ``numpy.random``: draws are float64; of `normal` and `uniform` tensors.

`RandomState`, `default_rng` and the other distributions are NumPy's own: arrays, NumPy's numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import promotion

from .._ops.sampling import set_seed
from .._spellings.spell import spell

_OF_NUMPY = (  # public here as they are: arrays, which need no gradient
    "Generator RandomState beta binomial choice default_rng dirichlet exponential gamma laplace "
    "multinomial multivariate_normal permutation poisson rand randint randn random shuffle "
    "standard_normal"
)
globals().update({_name: getattr(np.random, _name) for _name in _OF_NUMPY.split()})
__all__ = _OF_NUMPY.split()


def _sizes(size: Any, *parameters: Any) -> Any:
    return promotion.broadcast_shapes(*map(np.shape, parameters)) if size is None else size


def _seed(seed: int) -> None:
    """Seed the draws of this library, and those of NumPy that this module has as they are."""
    set_seed(seed)
    np.random.seed(seed)


_TABLE = """
    normal(loc=0.0, scale=1.0, size=None)
        = normal(_sizes(size, loc, scale), loc, scale, float64)
        # Draws (float64) from the normal distribution of mean `loc` and standard deviation
        `scale`.
    seed(seed) -> None = _seed(seed)
        # Start the sequences of all later draws without a seed of their own at `seed`: this
        library's, and NumPy's, from which the distributions draw that are NumPy's own.
    uniform(low=0.0, high=1.0, size=None)
        = uniform(_sizes(size, low, high), low, high, float64)  # Draws (float64) from [low, high).
"""
spell(globals(), _TABLE)
