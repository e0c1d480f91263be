"""Variance and Euclidean norm over any axes, and standardized rows: sums of squares about a centre.

A row is read once, for its mean, and again for the squares while it is in the cache. Columns, and
rows that are so long that threads share them, take two passes over memory.
"""

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.ranges import SPLIT, Compound, Ranged
from tinygrad_cg_kernels.reduce import reduction as reductions
from tinygrad_cg_kernels.reduce.axes import reduced_shape
from tinygrad_cg_kernels.reduce.combine import rows_core, sum_row
from tinygrad_cg_kernels.reduce.exponentials import apply
from tinygrad_cg_kernels.reduce.sums import Sums, sum_terms
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.errstate import cast, in_order, quiet
from tinygrad_cg_kernels.runtime.intrinsics import by_width, like
from tinygrad_cg_kernels.runtime.memory import empty
from tinygrad_cg_kernels.runtime.promotion import loop_dtype
from tinygrad_cg_kernels.runtime.views import into, span


@jitable
def _squared_distance(x, centre):
    return (x - centre) * (x - centre)


_squares = Sums("squares", _squared_distance)


@jitable
def _variance_of_row(row):
    zero, count = like(0, row[0]), like(row.size, row[0])
    return sum_terms(_squared_distance, (row, sum_row(row) / count), row.size, zero) / count


LIMITS = 2.0**-960, float(np.finfo(np.float64).max), 2.0**600
LIMITS_32 = 2.0**-100, float(np.finfo(np.float32).max), 2.0**90
SQUARES = {np.dtype(np.float64): LIMITS, np.dtype(np.float32): LIMITS_32}
"""The least and largest sum of squares without loss of digits, and the factor for others."""


@jitable
def scaled_square(x, scale):
    return (x * scale) * (x * scale)


@jitable
def _norm_of_row(row):
    zero, one = like(0, row[0]), like(1, row[0])
    least, largest, factor = by_width(row[0], LIMITS, LIMITS_32)
    total = sum_terms(scaled_square, (row, one), row.size, zero)
    if least <= total <= largest or total != total:
        return np.sqrt(total)
    scale = factor if total < least else one / factor
    return np.sqrt(sum_terms(scaled_square, (row, scale), row.size, zero)) / scale


def _variance(x: np.ndarray) -> np.ndarray:
    count = np.array(x.shape[1], x.dtype)
    mean = quiet.run(np.divide, reductions.sum(x, (1,), True), count)
    return quiet.run(np.divide, _squares(x, mean, 1, x.dtype), count)


def _norm(x: np.ndarray) -> np.ndarray:
    centre = np.zeros((x.shape[0], 1, x.shape[2]), x.dtype)
    total = _squares(x, centre, 1, x.dtype)
    least, largest, factor = SQUARES[x.dtype]
    small, large = total < least, total > largest
    if not (small.any() or large.any()):
        return quiet.run(np.sqrt, total)
    scale = np.where(small, factor, np.where(large, 1 / factor, 1)).astype(x.dtype)
    scaled = quiet.run(np.multiply, x, scale)
    return quiet.run(np.divide, np.sqrt(_squares(scaled, centre, 1, x.dtype)), scale)


class Moment(Compound):
    """A function of the sum of squares about a centre.

    Called with an array, the axes (distinct, not negative) and `keepdims`. Integers and bool
    become float64; float16 is computed in float32. `identity` is the value over an empty axis.
    """

    def __init__(self, name: str, row: Callable, function: Callable, identity: float) -> None:
        rows = Ranged(f"{name}_rows", rows_core, 5, (row,), reductions.BLOCK)
        self.name, self.kernels = name, {"row": rows, **_squares.kernels}
        self._function, self.identity, self.row = function, identity, row

    def __call__(self, x: np.ndarray, axes: tuple[int, ...], keepdims: bool = False) -> np.ndarray:
        """Reduce `x` over `axes`."""
        return self._planned(x.shape, axes, keepdims, x.dtype)(x)

    @lru_cache(4096)  # noqa: B019  # there is one object for each function
    def _planned(
        self, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool, dtype: np.dtype
    ) -> Callable[[np.ndarray], np.ndarray]:
        """Return a function of arrays of this shape and dtype."""
        result, reduced = self.result_dtype(dtype), reduced_shape(shape, axes, keepdims)
        if not prod(shape):
            return lambda x: np.full(reduced, self.identity, result)
        first, order = min(axes, default=0), [*range(len(shape))]
        if sorted(axes) != order[first : first + len(axes)]:
            kept = [axis for axis in order if axis not in axes]
            order, first = [*kept, *axes], len(kept)
        sizes = [shape[axis] for axis in order]
        before, after = prod(sizes[:first]), prod(sizes[first + len(axes) :])
        length, loop = prod(shape) // (before * after), loop_dtype(result)
        if after == 1 and length < SPLIT:
            rows = length, length * loop.itemsize, 1, length, loop.itemsize
            run = self.kernels["row"].bound((loop, loop), rows, before, prod(shape))

            def compute(x: np.ndarray) -> np.ndarray:
                out = np.empty(before, loop)
                run(x, out)
                return out
        else:  # for means and blocks of long rows, kernels of sums are needed, too
            _squares.compile("rows" if after == 1 else "columns", loop)
            compute = self._function

        def reduce(x: np.ndarray) -> np.ndarray:
            x = in_order(x.transpose(order), loop).reshape(before, length, after)
            return cast(compute(x).reshape(reduced), result)

        return reduce


variance = Moment("variance", _variance_of_row, _variance, np.nan)
norm = Moment("norm", _norm_of_row, _norm, 0.0)


# Standardized rows -----------------------------------------------------------------------


@jitable
def _standardized(x, mean, factor):
    return (x - mean) * factor


@jitable
def _standardize(row, epsilon, out):
    """Write a row less its mean, over the root of its variance plus epsilon; return 1 / root."""
    zero, count = like(0, row[0]), like(row.size, row[0])
    mean = sum_row(row) / count
    variance = sum_terms(_squared_distance, (row, mean), row.size, zero) / count
    factor = elementary.rsqrt(variance + epsilon)
    apply(_standardized, (row, mean, factor), (out,), row.size)
    return factor


@jitable
def _standardize_rows(unused, none, first, count, sizes, x, epsilon, out):
    """Standardize rows. Sizes: the length of a row."""
    length = sizes[0]
    for unit in range(first, first + count):
        at = unit * length * x.itemsize
        _standardize(span(x, at, length), epsilon[0], span(out, at, length))


@jitable
def _gradient_of_standardized(dy, y, mean, along, factor):
    slope = (dy - mean) - elementary.multiply_upstream(along, y)
    return elementary.multiply_upstream(slope, factor)


@jitable
def _gradient_rows(unused, none, first, count, sizes, dy, x, epsilon, out):
    """Compute gradients of standardized rows. Sizes: the length of a row."""
    length = sizes[0]
    zero, size = like(0, x[0]), like(length, x[0])
    for unit in range(first, first + count):
        at = unit * length * x.itemsize
        upstream, y = span(dy, at, length), span(out, at, length)
        factor = _standardize(span(x, at, length), epsilon[0], y)
        along = sum_terms(elementary.multiply_upstream, (upstream, y), length, zero) / size
        group = upstream, y, sum_row(upstream) / size, along, factor
        apply(_gradient_of_standardized, group, into(1), length)


class Standardization(Compound):
    """Rows less their means, over their standard deviations, or the gradient by the rows.

    Called with the upstream gradient, for a gradient alone; with the rows, along the last axis;
    and with a number that is added to variances.
    """

    def __init__(self, name: str, core: Callable) -> None:
        self.name = name
        self.kernels = {"rows": Ranged(f"{name}_rows", core, 1, ())}

    def __call__(self, *operands: Any) -> np.ndarray:
        """Return an array of the shape of the rows."""
        *arrays, epsilon = operands
        result, shape = self.result_dtype(arrays[-1].dtype), arrays[-1].shape
        arrays = [in_order(array, loop_dtype(result)) for array in arrays]
        out = empty(shape, arrays[0].dtype)
        if out.size:
            arrays += [np.array([epsilon], out.dtype), out]
            self.kernels["rows"](arrays, shape[-1:], out.size // shape[-1], out.size)
        return cast(out, result)


standardize = Standardization("standardize", _standardize_rows)
standardize_grad = Standardization("standardize_grad", _gradient_rows)
