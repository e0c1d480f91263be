"""Scans along one axis: cumulative sums and products, and linear recurrences."""

from collections.abc import Callable
from math import prod

import numpy as np

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.ranges import Compound, Ranged
from tinygrad_cg_kernels.runtime.compile import by_type, jitable
from tinygrad_cg_kernels.runtime.errstate import cast
from tinygrad_cg_kernels.runtime.intrinsics import like, vectorised
from tinygrad_cg_kernels.runtime.memory import empty
from tinygrad_cg_kernels.runtime.promotion import BOOL, INT64, loop_dtype, native
from tinygrad_cg_kernels.runtime.views import span

STRIP = 512  # columns that are scanned at a time


@by_type(float32=lambda x: np.float64(x), any=lambda x: x)
def _wide(x):
    return np.float64(x)


# Functions from the state and an element of each operand to the next state. Sums of float32 are
# kept in float64, which is no slower, since each addition waits for the one before.


@jitable
def _next_sum(state, x, y):
    return like(state + x, state)


@jitable
def _next_product(state, x, y):
    return like(state * x, state)


@jitable
def _next_recurrence(state, x, y):
    return like(y + x * state, state)


@jitable
def _next_pull(state, x, y):
    return like(y + elementary.multiply_upstream(state, x), state)


@jitable
def _zero(x):
    return _wide(like(0, x))


@jitable
def _narrow_zero(x):
    return like(0, x)


@jitable
def _one(x):
    return like(1, x)


@jitable
def _scan_one(advance, start, x, y, out, backwards, exclusive):
    state = start(x[0])
    for k in range(out.size):
        i = np.uintp(out.size - 1 - k if backwards else k)
        before, state = state, advance(state, x[i], y[i])
        out[i] = before if exclusive else state


@jitable
def _scan_four(advance, start, x, y, out, length, backwards, exclusive):
    # Each step waits for the one before, so four rows are scanned at a time.
    a = b = c = d = start(x[0])
    n = np.uintp(length)
    for k in range(length):
        i = np.uintp(length - 1 - k if backwards else k)
        j, p, q = i + n, i + n + n, i + n + n + n
        old_a, old_b, old_c, old_d = a, b, c, d
        a, b = advance(a, x[i], y[i]), advance(b, x[j], y[j])
        c, d = advance(c, x[p], y[p]), advance(d, x[q], y[q])
        out[i] = old_a if exclusive else a
        out[j] = old_b if exclusive else b
        out[p] = old_c if exclusive else c
        out[q] = old_d if exclusive else d


@jitable
def rows_core(advance, start, first, count, sizes, x, y, out):
    """Scan rows. Sizes: length, then whether reversed, and whether exclusive (0 or 1)."""
    length, backwards, exclusive = sizes[0], sizes[1] != 0, sizes[2] != 0
    unit, end = first, first + count
    while unit < end:
        rows = 4 if unit + 4 <= end else 1
        begin, size = unit * length, rows * length
        a = span(x, begin * x.itemsize, size)
        b = span(y, begin * y.itemsize, size)
        target = span(out, begin * out.itemsize, size)
        if rows == 4:
            _scan_four(advance, start, a, b, target, length, backwards, exclusive)
        else:
            _scan_one(advance, start, a, b, target, backwards, exclusive)
        unit += rows


@jitable
def _scan_line(advance, state, x, y, out, exclusive):
    vectorised()
    for k in range(np.uintp(out.size)):
        before = state[k]
        after = advance(before, x[k], y[k])
        state[k] = after
        out[k] = before if exclusive else after


@jitable
def columns_core(advance, start, first, count, sizes, x, y, out):
    """Scan strips of columns. Sizes: rows, columns, strips, reversed, exclusive."""
    length, after, strips = sizes[0], sizes[1], sizes[2]
    backwards, exclusive = sizes[3] != 0, sizes[4] != 0
    states = np.full(STRIP, start(x[0]))
    for unit in range(first, first + count):
        outer, left = unit // strips, unit % strips * STRIP
        width = min(STRIP, after - left)
        states[:] = start(x[0])
        state = span(states, 0, width)
        for k in range(length):
            i = length - 1 - k if backwards else k
            at = (outer * length + i) * after + left
            a = span(x, at * x.itemsize, width)
            b = span(y, at * y.itemsize, width)
            _scan_line(advance, state, a, b, span(out, at * out.itemsize, width), exclusive)


class Scan(Compound):
    """A scan made into array kernels: each result is a function of the one before it.

    Called with one operand, or two of one shape, the axis, whether it runs in `reverse`, and
    whether results are `exclusive` of their own element. Bool counts as int64. `advance` returns
    the next state, and `first` is the initial state. A `wide` scan computes float32 in float64.
    """

    def __init__(self, name: str, advance: Callable, start: Callable, first: int) -> None:
        self.name, self.advance, self.start, self.first = name, advance, start, first
        self.wide = start is not _narrow_zero
        self.kernels = {
            "rows": Ranged(f"{name}_rows", rows_core, 3, (advance, start)),
            "columns": Ranged(f"{name}_columns", columns_core, 5, (advance, start)),
        }

    def result_dtype(self, dtype: np.dtype) -> np.dtype:
        """Return the dtype itself; int64 for bool."""
        dtype = native(self.name, dtype)
        return INT64 if dtype == BOOL else dtype

    def __call__(
        self,
        x: np.ndarray,
        axis: int,
        reverse: bool = False,
        exclusive: bool = False,
        y: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the scan of `x` (with `y`) along `axis`: an array of the same shape."""
        result = self.result_dtype(x.dtype)
        loop = loop_dtype(result)
        length, before, after = x.shape[axis], prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
        out = empty(x.shape, loop)
        if not out.size:
            return cast(out, result)
        x = np.require(x, loop, ("C", "A"))
        y = x if y is None else np.require(y, loop, ("C", "A"))
        flags = (int(reverse), int(exclusive))
        if after == 1:
            self.kernels["rows"]((x, y, out), (length, *flags), before, x.size)
        else:
            strips = -(-after // STRIP)
            sizes = (length, after, strips, *flags)
            self.kernels["columns"]((x, y, out), sizes, before * strips, x.size)
        return cast(out, result)


cumsum = Scan("cumsum", _next_sum, _zero, 0)
cumprod = Scan("cumprod", _next_product, _one, 1)
recurrence = Scan("recurrence", _next_recurrence, _narrow_zero, 0)
pull = Scan("pull_recurrence", _next_pull, _narrow_zero, 0)
"""The recurrence of an upstream gradient: 0 times a factor that is not finite is 0."""
