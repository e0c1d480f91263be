"""NumPy's ``numpy.random``: draws are float64, and tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._spellings.spell import spell


def _sizes(size: Any, *parameters: Any) -> Any:
    return np.broadcast_shapes(*map(np.shape, parameters)) if size is None else size


_TABLE = """
    normal(loc=0.0, scale=1.0, size=None)
        = normal(_sizes(size, loc, scale), loc, scale, float64)
        # Draws (float64) from the normal distribution of mean `loc` and standard deviation
        `scale`.
    seed(seed) -> None = set_seed(seed)
    uniform(low=0.0, high=1.0, size=None)
        = uniform(_sizes(size, low, high), low, high, float64)  # Draws (float64) from [low, high).
"""
spell(globals(), _TABLE)
