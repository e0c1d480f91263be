"""Positions of the largest and smallest elements along one axis."""

from collections.abc import Callable
from math import prod

import numpy as np

from tinygrad_cg_kernels.compile import jitable, span, vectorised
from tinygrad_cg_kernels.dtypes import INT64, computing, native
from tinygrad_cg_kernels.folds import max_row, min_row
from tinygrad_cg_kernels.ranges import Compound, Ranged

SEARCH = 64  # elements that are searched at a time
STRIP = 512  # columns that are searched at a time


@jitable
def _holds(row, value):
    """Whether a row has a value, or nan, which a row that holds one is said to be best at."""
    vectorised()
    found = False
    for i in range(np.uintp(row.size)):
        found |= (row[i] == value) | (row[i] != row[i])
    return found


@jitable
def _place(row, value):
    """The first place of a value, or of nan."""
    for first in range(0, row.size, SEARCH):
        part = span(row, first * row.itemsize, min(SEARCH, row.size - first))
        if _holds(part, value):
            for i in range(np.uintp(part.size)):
                if part[i] == value or part[i] != part[i]:
                    return first + np.intp(i)
    return 0


@jitable
def rows_core(best, unused, first, count, sizes, x, out):
    """Units are rows. Sizes: the length of a row."""
    length = sizes[0]
    for unit in range(first, first + count):
        row = span(x, unit * length * x.itemsize, length)
        out[np.uintp(unit)] = _place(row, best(row))


@jitable
def above(x, best):
    """Whether a value comes before the best so far: if larger, or the first nan."""
    return not (x <= best) and best == best


@jitable
def below(x, best):
    """The same for the smallest."""
    return not (x >= best) and best == best


@jitable
def _improve(better, line, index, best, places):
    vectorised()
    for k in range(np.uintp(best.size)):
        value, known = line[k], best[k]
        replaced = better(value, known)
        best[k] = value if replaced else known
        places[k] = index if replaced else places[k]


@jitable
def columns_core(better, unused, first, count, sizes, x, out):
    """Units are strips of columns. Sizes: rows, columns, strips."""
    length, after, strips = sizes[0], sizes[1], sizes[2]
    buffer = np.empty(STRIP, x.dtype)
    for unit in range(first, first + count):
        outer, left = unit // strips, unit % strips * STRIP
        width = min(STRIP, after - left)
        places = span(out, (outer * after + left) * out.itemsize, width)
        best = span(buffer, 0, width)
        start = outer * length * after + left
        line = span(x, start * x.itemsize, width)
        for k in range(np.uintp(width)):
            best[k] = line[k]
            places[k] = 0
        for i in range(1, length):
            line = span(x, (start + i * after) * x.itemsize, width)
            _improve(better, line, i, best, places)


class ArgReduction(Compound):
    """The index of the best element along one axis; the first of equals; nan is best."""

    def __init__(self, name: str, best: Callable, better: Callable) -> None:
        self.name = name
        self.kernels = {
            "rows": Ranged(f"{name}_rows", rows_core, 2, 1, (best,)),
            "columns": Ranged(f"{name}_columns", columns_core, 2, 3, (better,)),
        }

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        """Always int64."""
        native(self.name, dtype)
        return INT64

    def __call__(self, x: np.ndarray, axis: int, keepdims: bool = False) -> np.ndarray:
        """Indices along `axis`, which is dropped (or kept as 1)."""
        loop = computing(native(self.name, x.dtype))
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


argmax = ArgReduction("argmax", max_row, above)
argmin = ArgReduction("argmin", min_row, below)
