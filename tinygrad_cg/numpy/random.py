"""NumPy's ``numpy.random``: `normal` and `uniform` return tensors of float64.

`RandomState`, `default_rng` and the other distributions are NumPy's own: they return arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator as Generator
from numpy.random import RandomState as RandomState
from numpy.random import beta as beta
from numpy.random import binomial as binomial
from numpy.random import choice as choice
from numpy.random import default_rng as default_rng
from numpy.random import dirichlet as dirichlet
from numpy.random import exponential as exponential
from numpy.random import gamma as gamma
from numpy.random import laplace as laplace
from numpy.random import multinomial as multinomial
from numpy.random import multivariate_normal as multivariate_normal
from numpy.random import permutation as permutation
from numpy.random import poisson as poisson
from numpy.random import rand as rand
from numpy.random import randint as randint
from numpy.random import randn as randn
from numpy.random import random as random
from numpy.random import shuffle as shuffle
from numpy.random import standard_normal as standard_normal

from tinygrad_cg_kernels.runtime import promotion

from .._core.conversion import FLOAT64
from .._core.tensor import Tensor
from .._ops import sampling as _sampling
from .._ops.namespaces.namespace import export_functions
from .._ops.sampling import set_seed

# NumPy's are public here as they are: arrays, which need no gradient.
__all__ = [name for name in np.random.__all__ if name in globals()]


def _sizes(size: Any, *parameters: Any) -> Any:
    if size is None:
        return promotion.broadcast_shapes(*map(np.shape, parameters))
    return size if np.ndim(size) else (size,)


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Tensor:
    """Draws (float64) from the normal distribution of mean `loc` and standard deviation `scale`."""
    return _sampling.normal(_sizes(size, loc, scale), loc, scale, FLOAT64)


def seed(seed: int) -> None:
    """Set the seed of all later draws without their own seed: of this library, and of NumPy, which
    draws the other distributions."""
    set_seed(seed)
    np.random.seed(seed)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Tensor:
    """Draws (float64) from [low, high)."""
    return _sampling.uniform(_sizes(size, low, high), low, high, FLOAT64)


__all__ += export_functions(globals())
