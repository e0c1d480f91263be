"""Sums of a function of two values over one axis: dot products of rows, squares about a mean."""

from collections.abc import Callable
from functools import lru_cache
from math import prod

import numpy as np
from numpy import empty

from tinygrad_cg_kernels.loops.ranges import SPLIT, Compound, Ranged
from tinygrad_cg_kernels.reduce import reduction as reductions
from tinygrad_cg_kernels.reduce.combine import SPAN, add, column_sizes
from tinygrad_cg_kernels.runtime import threads
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.entries import compile_together
from tinygrad_cg_kernels.runtime.intrinsics import like, vectorised
from tinygrad_cg_kernels.runtime.views import parts, span, take


@jitable
def _sum_span(term, group, count, zero):
    vectorised()
    total = zero
    for i in range(np.uintp(count)):
        total = add(total, term(*take(group, i)))
    return total


@jitable
def sum_terms(term, group, count, zero):
    """Return the sum of a function of rows, or of values in place of rows, span by span."""
    vectorised()
    total = zero
    for first in range(0, count, SPAN):
        size = min(SPAN, count - first)
        total += _sum_span(term, parts(group, first, size), size, zero)
    return total


@jitable
def rows_core(term, unused, first, count, sizes, x, y, out):
    """Sum rows, or blocks of long rows.

    Sizes: length of a row, blocks in a row, length of a block, whether the second operand has
    as many elements as the first (or one for each row).
    """
    length, blocks, block, alike = sizes[0], sizes[1], sizes[2], sizes[3] != 0
    zero = like(0, term(x[0], y[0]))
    for unit in range(first, first + count):
        row, start = unit // blocks, unit % blocks * block
        begin, size = row * length + start, min(block, length - start)
        some = span(x, begin * x.itemsize, size)
        if alike:
            group = (some, span(y, begin * y.itemsize, size))
            out[np.uintp(unit)] = sum_terms(term, group, size, zero)
        else:
            value = span(y, row * y.itemsize, 1)[0]
            out[np.uintp(unit)] = sum_terms(term, (some, value), size, zero)


@jitable
def _add_one(term, total, x, y):
    vectorised()
    for k in range(np.uintp(total.size)):
        total[k] += term(x[k], y[k])


@jitable
def _add_four(term, total, x, offset, step, y, offset_y, step_y):
    vectorised()
    n = total.size
    a, p = span(x, offset, n), span(y, offset_y, n)
    b, q = span(x, offset + step, n), span(y, offset_y + step_y, n)
    c, r = span(x, offset + 2 * step, n), span(y, offset_y + 2 * step_y, n)
    d, s = span(x, offset + 3 * step, n), span(y, offset_y + 3 * step_y, n)
    for k in range(np.uintp(n)):
        left = term(a[k], p[k]) + term(b[k], q[k])
        total[k] += left + (term(c[k], r[k]) + term(d[k], s[k]))


@jitable
def columns_core(term, unused, first, count, sizes, x, y, out):
    """Reduce strips of bands of rows: see `column_sizes`.

    Further sizes: the steps of the second operand, from one matrix and one row to the next.
    """
    length, after, outer_step, step = sizes[0], sizes[1], sizes[2], sizes[3]
    band, bands, strip, strips = sizes[4], sizes[5], sizes[6], sizes[7]
    outer_step_y, step_y = sizes[8], sizes[9]
    for unit in range(first, first + count):
        left = unit % strips * strip
        line = unit // strips
        outer, top = line // bands, line % bands * band
        at = outer * outer_step + top * step + left * x.itemsize
        at_y = outer * outer_step_y + top * step_y + left * y.itemsize
        width, height = min(strip, after - left), min(band, length - top)
        total = span(out, (line * after + left) * out.itemsize, width)
        total[:] = 0
        done = 0
        while done + 4 <= height:
            _add_four(term, total, x, at + done * step, step, y, at_y + done * step_y, step_y)
            done += 4
        while done < height:
            a, b = span(x, at + done * step, width), span(y, at_y + done * step_y, width)
            _add_one(term, total, a, b)
            done += 1


MIN_WIDTH = 128
"""Shorter rows with the same second operand are joined: squares of 25,088 rows of 16 took 98 us, as
3,136 rows of 128 they take 48."""


class Sums(Compound):
    """The sum over one axis of a function of two values."""

    def __init__(self, name: str, term: Callable) -> None:
        self.name = name
        self.kernels = {
            "rows": Ranged(f"{name}_rows", rows_core, 4, (term,)),
            "columns": Ranged(f"{name}_columns", columns_core, 10, (term,)),
        }

    def compile(self, form: str, dtype: np.dtype) -> None:
        """Compile a kernel in addition to that of plain sums, for who needs both."""
        own, total = self.kernels[form].blocks, reductions.sum.kernels[form].blocks
        if (dtype,) * 3 not in own and (dtype,) * 2 not in total:
            compile_together((own, (dtype,) * 3), (total, (dtype,) * 2))

    def __call__(self, x: np.ndarray, y: np.ndarray, axis: int, result: np.dtype) -> np.ndarray:
        """Return sums of dtype `result`, with `axis` kept as 1.

        Operands are contiguous and not empty; `y` is of the shape of `x`, or 1 along `axis`.
        """
        return self._planned(x.shape, axis, y.shape == x.shape, (x.dtype, y.dtype, result))(x, y)

    @lru_cache(4096)  # noqa: B019  # there is one object for each function
    def _planned(
        self, shape: tuple[int, ...], axis: int, alike: bool, dtypes: tuple[np.dtype, ...]
    ) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Return a function of two operands of these layouts."""
        length, before, after = shape[axis], prod(shape[:axis]), prod(shape[axis + 1 :])
        kept = (*shape[:axis], 1, *shape[axis + 1 :])
        joins = not alike and 1 < after < MIN_WIDTH and prod(shape) >= SPLIT
        most = MIN_WIDTH // after if joins else 1
        joined = max(count for count in range(1, most + 1) if length % count == 0)
        length, width, units = length // joined, after * joined, before
        if after == 1:
            block = length if length < SPLIT else threads.BLOCK
            blocks = -(-length // block)
            sizes: tuple[int, ...] = (length, blocks, block, int(alike))
        else:
            row, row_y = (width * dtype.itemsize for dtype in dtypes[:2])
            sizes = column_sizes(length, width, length * row, row)
            blocks, units = sizes[5], before * sizes[7]
            sizes += (length * row_y, row_y) if alike else (row_y, 0)
        kernel = self.kernels["rows" if after == 1 else "columns"]
        run = kernel.bound(dtypes, sizes, units * blocks, prod(shape))

        def total(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            if joined > 1:
                y = y.reshape(before, 1, after).repeat(joined, 1)
            out = empty((before, blocks * joined, after), dtypes[2])
            run(x, y, out)
            return (out if blocks * joined == 1 else reductions.sum(out, (1,))).reshape(kept)

        return total
