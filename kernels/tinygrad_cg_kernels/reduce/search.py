"""Positions of the largest and smallest elements along one axis."""

from collections.abc import Callable
from math import prod

import numpy as np

from tinygrad_cg_kernels.loops.ranges import Compound, Ranged
from tinygrad_cg_kernels.reduce.combine import best, first_nan, larger_number, mixed, smaller_number
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import like, vectorised
from tinygrad_cg_kernels.runtime.promotion import INT64, loop_dtype, native
from tinygrad_cg_kernels.runtime.views import span

SEARCH = 128  # elements of a row that are searched at a time
STRIP = 512  # columns that are searched at a time


@jitable
def _first(row, value):
    """Return the index of the first occurrence of a value in a short row that has it."""
    vectorised()
    index = np.int32(row.size)
    for i in range(np.uintp(row.size)):
        index = min(index, np.int32(i) if row[i] == value else np.int32(row.size))
    return np.intp(index)


@jitable
def _best_index(pick, better, row):
    """Return the index of the first best element, or of nan, by searching the block that has it."""
    extreme, nan, where = row[0], like(0, row[0]), 0
    for first in range(0, row.size, SEARCH):
        part = span(row, first * row.itemsize, min(SEARCH, row.size - first))
        value, more = best(pick, part)
        nan = mixed(nan, more)
        if better(value, extreme):
            extreme, where = value, first
    index = first_nan(row) if nan != nan else -1
    if index < 0:
        part = span(row, where * row.itemsize, min(SEARCH, row.size - where))
        index = where + _first(part, extreme)
    return index


@jitable
def rows_core(pick, better, first, count, sizes, x, out):
    """Search rows. Sizes: the length of a row."""
    length = sizes[0]
    for unit in range(first, first + count):
        out[np.uintp(unit)] = _best_index(pick, better, span(x, unit * length * x.itemsize, length))


@jitable
def above(x, best):
    """Return whether a value comes before the best so far: if larger, or the first nan."""
    return not (x <= best) and best == best


@jitable
def below(x, best):
    """Return whether a value comes before the best so far: if smaller, or the first nan."""
    return not (x >= best) and best == best


@jitable
def _improve(better, line, index, best, indices):
    vectorised()
    for k in range(np.uintp(best.size)):
        value, current = line[k], best[k]
        replaced = better(value, current)
        best[k] = value if replaced else current
        indices[k] = index if replaced else indices[k]


@jitable
def columns_core(better, unused, first, count, sizes, x, out):
    """Search strips of columns. Sizes: rows, columns, strips."""
    length, after, strips = sizes[0], sizes[1], sizes[2]
    buffer = np.empty(STRIP, x.dtype)
    for unit in range(first, first + count):
        outer, left = unit // strips, unit % strips * STRIP
        width = min(STRIP, after - left)
        indices = span(out, (outer * after + left) * out.itemsize, width)
        best = span(buffer, 0, width)
        start = outer * length * after + left
        line = span(x, start * x.itemsize, width)
        for k in range(np.uintp(width)):
            best[k] = line[k]
            indices[k] = 0
        for i in range(1, length):
            line = span(x, (start + i * after) * x.itemsize, width)
            _improve(better, line, i, best, indices)


class ArgReduction(Compound):
    """The index of the best element along one axis; the first of equals; nan is best."""

    def __init__(self, name: str, pick: Callable, better: Callable) -> None:
        self.name, self.functions = name, (pick, better)
        self.kernels = {
            "rows": Ranged(f"{name}_rows", rows_core, 1, (pick, better)),
            "columns": Ranged(f"{name}_columns", columns_core, 3, (better,)),
        }

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        """Return always int64."""
        native(self.name, dtype)
        return INT64

    def __call__(self, x: np.ndarray, axis: int, keepdims: bool = False) -> np.ndarray:
        """Return indices along `axis`, which is dropped (or kept as 1)."""
        loop = loop_dtype(native(self.name, x.dtype))
        length, before, after = x.shape[axis], prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
        shape = x.shape[:axis] + ((1,) if keepdims else ()) + x.shape[axis + 1 :]
        out = np.empty(shape, INT64)
        if not out.size:
            return out
        if not length:
            raise ValueError(f"{self.name} of an empty axis has no identity")
        x = np.require(x, loop, ("C", "A"))
        if after == 1:
            self.kernels["rows"]((x, out), (length,), before, x.size)
        else:
            strips = -(-after // STRIP)
            self.kernels["columns"]((x, out), (length, after, strips), before * strips, x.size)
        return out


argmax = ArgReduction("argmax", larger_number, above)
argmin = ArgReduction("argmin", smaller_number, below)
