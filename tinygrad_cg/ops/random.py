"""Random tensors from NumPy's Philox generator. A seed gives the same numbers everywhere."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ..convert import FLOAT32, as_dtype
from ..errors import InvalidArgumentError
from ..tensor import Tensor
from .define import as_shape

_lock = threading.Lock()
_generator = np.random.Generator(np.random.Philox())


def set_seed(seed: int) -> None:
    """Start the sequence of all later draws without a seed of their own at `seed`."""
    global _generator
    with _lock:
        _generator = np.random.Generator(np.random.Philox(seed))


def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = FLOAT32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws from [minval, maxval); integers need `maxval`, floats have 1 by default.

    With `seed` the result is always the same; without, see `set_seed`.
    """
    wanted, sizes = as_dtype(dtype), as_shape("uniform", shape)
    if wanted.kind in "iu":
        if maxval is None:
            raise InvalidArgumentError("uniform: integers need maxval")
        return Tensor(_draw("integers", seed, int(minval), int(maxval), sizes, wanted))
    high = 1 if maxval is None else maxval
    draws = _draw("random", seed, sizes)
    return Tensor(np.asarray(minval + draws * (np.asarray(high) - minval), wanted))


def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = FLOAT32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draws from the normal distribution of the given mean and standard deviation."""
    draws = _draw("standard_normal", seed, as_shape("normal", shape))
    return Tensor(np.asarray(mean + draws * np.asarray(stddev), as_dtype(dtype)))


def _draw(method: str, seed: int | None, *arguments: Any) -> np.ndarray:
    if seed is not None:
        generator = np.random.Generator(np.random.Philox(seed))
        return np.asarray(getattr(generator, method)(*arguments))
    with _lock:
        return np.asarray(getattr(_generator, method)(*arguments))
