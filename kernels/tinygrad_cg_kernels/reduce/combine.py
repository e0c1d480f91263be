"""Reductions in kernels: combining two values, totals of a row, and cores for whole arrays."""

from collections.abc import Callable

import numpy as np

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.runtime.compile import by_type, jitable, of_numpy
from tinygrad_cg_kernels.runtime.intrinsics import (
    largest_number,
    like,
    nan_of_either,
    outlined,
    reassociating_add,
    reassociating_multiply,
    smallest_number,
    vectorised,
)
from tinygrad_cg_kernels.runtime.views import span

SPAN = 1024  # elements with a partial result of their own, to keep rounding errors small
STRIP = 2048  # columns that are accumulated at a time
BAND = 128 * 1024  # elements of a strip with one partial result
MAX_ROW_BYTES = 448  # longer rows are reduced one by one, shorter ones four at a time

# --- combining two values ---------------------------------------------------------------


add = of_numpy(
    __name__, "add", float=lambda x, y: reassociating_add(x, y), number=lambda x, y: like(x + y, x)
)
multiply = of_numpy(
    __name__,
    "multiply",
    float=lambda x, y: reassociating_multiply(x, y),
    number=lambda x, y: like(x * y, x),
)


def _larger_float(x, y):
    best = x if x > y else y
    return x if x != x else best


def _smaller_float(x, y):
    best = x if x < y else y
    return x if x != x else best


_LARGER_EXACT = {"any": lambda x, y: elementary.maximum(x, y)}
_SMALLER_EXACT = {"any": lambda x, y: elementary.minimum(x, y)}


@by_type(float=_larger_float, **_LARGER_EXACT)
def larger(x, y):
    """Return the larger of two values, nan if one is. IEEE's maximum takes five instructions."""
    return np.maximum(x, y)


@by_type(float=_smaller_float, **_SMALLER_EXACT)
def smaller(x, y):
    return np.minimum(x, y)


@by_type(float=lambda x, y: largest_number(x, y), **_LARGER_EXACT)
def larger_number(x, y):
    """Return the larger of two values in one instruction; undefined if one is nan."""
    return np.maximum(x, y)


@by_type(float=lambda x, y: smallest_number(x, y), **_SMALLER_EXACT)
def smaller_number(x, y):
    return np.minimum(x, y)


@jitable
def _nothing(x, y):
    return like(0, x)


@by_type(float=lambda x, y: nan_of_either(x, y), any=_nothing)
def mixed(x, y):
    """Return nan if one of two values is: their sum, which is cheaper than a comparison.

    It is 0 for types without nan. It is also nan for opposite infinities, so a nan has to be
    confirmed.
    """
    return np.add(x, y)


@jitable
def either(x, y):
    return (x != 0) | (y != 0)


@jitable
def both(x, y):
    return (x != 0) & (y != 0)


# --- totals of a row --------------------------------------------------------------------


@jitable
def _total(combine, start, row):
    """Combine a contiguous row, span by span."""
    vectorised()
    total = start
    for first in range(0, row.size, SPAN):
        part = span(row, first * row.itemsize, min(SPAN, row.size - first))
        total = combine(total, _span_total(combine, start, part))
    return total


@jitable
def _span_total(combine, start, row):
    vectorised()
    total = start
    for i in range(np.uintp(row.size)):
        total = combine(total, row[i])
    return total


@jitable
def sum_span(row):
    """Return the sum of a row of no more elements than a span."""
    return _span_total(add, like(0, row[0]), row)


@jitable
def best(pick, row):
    """Return the best element by `pick`, and nan if one may be among them."""
    vectorised()
    value, nan = row[0], like(0, row[0])
    for i in range(np.uintp(row.size)):
        value = pick(value, row[i])
        nan = mixed(nan, row[i])
    return value, nan


@jitable
def first_nan(row):
    """Return the index of the first nan in a row, -1 if it has none."""
    for i in range(np.uintp(row.size)):
        if row[i] != row[i]:
            return np.intp(i)
    return -1


@jitable
def _nan_or(row, value):
    """Return the first nan in a row, or a value if it has none."""
    outlined()
    index = first_nan(row)
    return value if index < 0 else row[index]


# --- totals of four rows ----------------------------------------------------------------
# For short rows, this takes .25 (3 elements) to .8 (48) of the time of one row after another. For
# long rows it takes as much, and more if they do not fit the cache.


@jitable
def _totals(combine, start, a, b, c, d):
    """Combine four short rows of one length, each in the same way."""
    vectorised()
    s, t, u, v = start, start, start, start
    for i in range(np.uintp(a.size)):
        s, t = combine(s, a[i]), combine(t, b[i])
        u, v = combine(u, c[i]), combine(v, d[i])
    return s, t, u, v


# --- rows into a row of totals ------------------------------------------------------------


@jitable
def _add_eight_rows(combine, detect, total, x, offset, step):
    """Combine eight rows from a byte offset on into totals; return what `detect` finds."""
    vectorised()
    n, flag = total.size, like(0, x[0])
    a, b = span(x, offset, n), span(x, offset + step, n)
    c, d = span(x, offset + 2 * step, n), span(x, offset + 3 * step, n)
    e, f = span(x, offset + 4 * step, n), span(x, offset + 5 * step, n)
    g, h = span(x, offset + 6 * step, n), span(x, offset + 7 * step, n)
    for k in range(np.uintp(n)):
        left = combine(combine(a[k], b[k]), combine(c[k], d[k]))
        right = combine(combine(e[k], f[k]), combine(g[k], h[k]))
        upper = detect(detect(a[k], b[k]), detect(c[k], d[k]))
        lower = detect(detect(e[k], f[k]), detect(g[k], h[k]))
        flag = detect(flag, detect(upper, lower))
        total[k] = combine(total[k], combine(left, right))  # last, since nothing is read after it
    return flag


@jitable
def _add_row(combine, detect, total, line):
    """Combine a row into a row of totals."""
    vectorised()
    flag = like(0, line[0])
    for k in range(np.uintp(total.size)):
        flag = detect(flag, line[k])
        total[k] = combine(total[k], line[k])
    return flag


@jitable
def _reduce_columns(combine, detect, total, x, offset, step, height):
    """Combine rows from a byte offset on into a row of totals; return whether none was nan."""
    flag, done = _add_row(_second, detect, total, span(x, offset, total.size)), 1
    while done + 8 <= height:
        more = _add_eight_rows(combine, detect, total, x, offset + done * step, step)
        flag, done = detect(flag, more), done + 8
    while done < height:
        line = span(x, offset + done * step, total.size)
        flag, done = detect(flag, _add_row(combine, detect, total, line)), done + 1
    return flag == flag


@jitable
def _second(x, y):
    return y


@jitable
def _put_nan(total, x, offset, step, height):
    """Write nan to the totals of columns that have one."""
    outlined()
    for i in range(height):
        line = span(x, offset + i * step, total.size)
        for k in range(np.uintp(total.size)):
            total[k] = line[k] if line[k] != line[k] else total[k]


# --- the functions of each reduction ------------------------------------------------------


def _folds(combine: Callable, start: Callable) -> tuple[Callable, Callable, Callable]:
    """Return the total of a row, the totals of four rows, and those of the columns of some rows.

    The last function puts totals of rows of `x`, from a byte offset on, into `total`.
    """

    @jitable
    def row(x):
        return _total(combine, start(x[0]), x)

    @jitable
    def four(a, b, c, d):
        return _totals(combine, start(a[0]), a, b, c, d)

    @jitable
    def rows(total, x, offset, step, height):
        _reduce_columns(combine, _nothing, total, x, offset, step, height)

    return row, four, rows


def _extremes(pick: Callable) -> tuple[Callable, Callable]:
    """Return the best element of a row by `pick`, nan if one is, and those of the columns."""

    @jitable
    def row(x):
        value, nan = best(pick, x)
        return value if nan == nan else _nan_or(x, value)

    @jitable
    def rows(total, x, offset, step, height):
        if not _reduce_columns(pick, mixed, total, x, offset, step, height):
            _put_nan(total, x, offset, step, height)

    return row, rows


sum_row, sum_four, sum_rows = _folds(add, jitable(lambda x: like(0, x)))
prod_row, prod_four, prod_rows = _folds(multiply, jitable(lambda x: like(1, x)))
any_row, any_four, any_rows = _folds(either, jitable(lambda x: False))
all_row, all_four, all_rows = _folds(both, jitable(lambda x: True))
max_row, max_rows = _extremes(larger_number)
min_row, min_rows = _extremes(smaller_number)


# --- cores ------------------------------------------------------------------------------


@jitable
def rows_core(total, unused, first, count, sizes, x, out):
    """Reduce rows, or blocks of long rows, of contiguous elements.

    Sizes: length of a row, step from row to row, blocks in a row, length of a block, and the
    step from element to element.
    """
    for unit in range(first, first + count):
        offset, size = row_of(sizes, unit)
        out[np.uintp(unit)] = total(span(x, offset, size))


@jitable
def strided_core(total, unused, first, count, sizes, x, out):
    """Reduce rows, or blocks of long rows, with strided elements."""
    block, gap = sizes[3], sizes[4]
    buffer, parts = np.empty(SPAN, x.dtype), np.empty(block // SPAN + 1, out.dtype)
    for unit in range(first, first + count):
        offset, size = row_of(sizes, unit)
        out[np.uintp(unit)] = _strided_total(total, x, offset, gap, size, buffer, parts)


@jitable
def row_of(sizes, unit):
    """Return the byte offset of a unit, and its length."""
    length, step, blocks, block, gap = sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]
    if blocks == 1:
        return unit * step, length
    start = unit % blocks * block
    return unit // blocks * step + start * gap, min(block, length - start)


@jitable
def fours_core(four, unused, first, count, sizes, x, out):
    """Reduce short rows of contiguous elements, four at a time.

    If the last group has fewer than four, the last row fills it up. Blocks are multiples of four
    rows, so which rows are reduced together depends on their positions only.
    """
    length, step = sizes[0], sizes[1]
    last = first + count
    for unit in range(first, last, 4):
        i, j, k = min(unit + 1, last - 1), min(unit + 2, last - 1), min(unit + 3, last - 1)
        a, b = span(x, unit * step, length), span(x, i * step, length)
        c, d = span(x, j * step, length), span(x, k * step, length)
        totals = four(a, b, c, d)
        out[np.uintp(unit)], out[np.uintp(i)] = totals[0], totals[1]
        out[np.uintp(j)], out[np.uintp(k)] = totals[2], totals[3]


@jitable
def _pack(x, offset, gap, out):
    vectorised()
    for i in range(np.uintp(out.size)):
        out[i] = span(x, offset + np.intp(i) * gap, 1)[0]


@jitable
def _row_total(total, row):
    """Return the total of a row, without inlining."""
    outlined()
    return total(row)


@jitable
def _strided_total(total, x, offset, gap, size, buffer, parts):
    """Return the total of strided elements, packed a span at a time."""
    count = 0
    for first in range(0, size, SPAN):
        packed = span(buffer, 0, min(SPAN, size - first))
        _pack(x, offset + first * gap, gap, packed)
        parts[count] = _row_total(total, packed)
        count += 1
    return _row_total(total, span(parts, 0, count))


@jitable
def columns_core(reduce_columns, unused, first, count, sizes, x, out):
    """Reduce strips of bands of rows: see `column_sizes`."""
    length, after, outer_step, step = sizes[0], sizes[1], sizes[2], sizes[3]
    band, bands, strip, strips = sizes[4], sizes[5], sizes[6], sizes[7]
    for unit in range(first, first + count):
        left = unit % strips * strip
        line = unit // strips
        top = line % bands * band
        offset = line // bands * outer_step + top * step + left * x.itemsize
        total = span(out, (line * after + left) * out.itemsize, min(strip, after - left))
        reduce_columns(total, x, offset, step, min(band, length - top))


def column_sizes(length: int, after: int, outer_step: int, step: int) -> tuple[int, ...]:
    """Return the sizes for a core of columns of an array (..., length, after).

    Rows are contiguous. They are taken in bands, each with a partial result, and columns in strips.
    """
    strip = min(after, STRIP)
    band = min(max(BAND // strip, 64), SPAN) // 8 * 8 + 1  # a first row, and eights
    bands = -(-length // band)
    strips = -(-after // strip)
    return (length, after, outer_step, step, band, bands, strip, strips)
