"""The data of the programs, in NumPy, the same for each library."""

from itertools import pairwise

import numpy as np

rng = np.random.default_rng()


def restart() -> None:
    """Draw the same numbers again."""
    global rng
    rng = np.random.default_rng(0)


def layers(*sizes: int, dtype: str = "float32") -> list[np.ndarray]:
    """Return a matrix and a bias of zeros for each layer of a perceptron."""
    arrays = []
    for rows, columns in pairwise(sizes):
        arrays.append((rng.normal(size=(rows, columns)) / np.sqrt(rows)).astype(dtype))
        arrays.append(np.zeros(columns, dtype))
    return arrays


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Return standard normal numbers."""
    return rng.normal(size=shape).astype(dtype)


def uniform(low: float, high: float, *shape: int, dtype: str = "float32") -> np.ndarray:
    """Return numbers between two others."""
    return rng.uniform(low, high, shape).astype(dtype)


def labels(x: np.ndarray) -> np.ndarray:
    """Return 0 or 1 for each row, by a plane and some noise."""
    plane = rng.normal(size=x.shape[1])
    return (x @ plane + rng.normal(size=len(x)) > 0).astype(x.dtype)
