"""Variance and Euclidean norm over any axes: sums of squares about a centre."""

from collections.abc import Callable
from math import prod

import numpy as np

from tinygrad_cg_kernels import reduce as reductions
from tinygrad_cg_kernels.compile import jitable
from tinygrad_cg_kernels.dtypes import computing, real_float
from tinygrad_cg_kernels.quiet import cast, quietly
from tinygrad_cg_kernels.ranges import Compound
from tinygrad_cg_kernels.sums import Sums


@jitable
def _squared_distance(x, centre):
    return (x - centre) * (x - centre)


_squares = Sums("squares", _squared_distance)


def _variance(x: np.ndarray) -> np.ndarray:
    count = np.array(x.shape[1], x.dtype)
    mean = quietly(np.divide, reductions.sum(x, (1,), True), count)
    return quietly(np.divide, _squares(x, mean, 1, x.dtype), count)


def _norm(x: np.ndarray) -> np.ndarray:
    centre = np.zeros((x.shape[0], 1, x.shape[2]), x.dtype)
    return quietly(np.sqrt, _squares(x, centre, 1, x.dtype))


class Moment(Compound):
    """A function of the sum of squares about a centre.

    Called with an array, the axes (distinct, not negative) and `keepdims`. Integers and bool
    become float64; float16 is computed in float32. `empty` is the value over an empty axis.
    """

    def __init__(self, name: str, function: Callable, empty: float) -> None:
        self.name, self.kernels = name, _squares.kernels
        self._function, self._empty = function, empty

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        """The dtype itself; float64 for integers and bool."""
        return real_float(self.name, dtype)

    def __call__(self, x: np.ndarray, axes: tuple[int, ...], keepdims: bool = False) -> np.ndarray:
        """Reduce `x` over `axes`."""
        result = self.result_dtype(x.dtype)
        kept = [axis for axis in range(x.ndim) if axis not in axes]
        sizes = [x.shape[axis] for axis in kept]
        shape = tuple(
            [1 if axis in axes else size for axis, size in enumerate(x.shape)]
            if keepdims
            else sizes
        )
        if not x.size:
            return np.full(shape, self._empty, result)
        first = min(axes, default=0)
        if sorted(axes) != list(range(first, first + len(axes))):
            x, first = x.transpose(*kept, *axes), len(kept)
            axes = tuple(range(first, x.ndim))
        before, after = prod(x.shape[:first]), prod(x.shape[first + len(axes) :])
        x = np.require(x, computing(result), ("C", "A")).reshape(before, -1, after)
        return cast(self._function(x).reshape(shape), result)


variance = Moment("variance", _variance, np.nan)
norm = Moment("norm", _norm, 0.0)
