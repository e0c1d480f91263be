"""Sets of indices in compressed rows: gathers, unions, Boolean products and transposes.

A table of sets is a pair of arrays: row i has ``indices[indptr[i] : indptr[i + 1]]``, sorted and
without duplicates. `indptr` is int64, `indices` int32. All functions return new tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tinygrad_cg_kernels.runtime.entries import ByDtype, array_type, numbers
from tinygrad_cg_kernels.runtime.promotion import INT64

INT32 = np.dtype(np.int32)
Table = tuple[np.ndarray, np.ndarray]
TABLE = INT64, INT32
SHORT = 64
"""Rows of products up to this length are sorted by insertion, longer ones by two transposes."""


def compiled(function: Callable, name: str, *dtypes: np.dtype) -> Callable:
    """Return a compiled function of arrays of these dtypes, and of a tuple with one size."""
    types = (*map(array_type, dtypes), numbers(1))
    run = ByDtype(function, name, lambda _: types)
    return lambda *operands: run(INT32, *operands)


def _take(indptr, indices, rows, out_indptr, out, sizes):
    for i in range(np.uintp(sizes[0])):
        if rows[i] >= 0:
            row = np.uintp(rows[i])
            begin, target = indptr[row], out_indptr[i]
            for k in range(np.uintp(indptr[row + 1] - begin)):
                out[np.uintp(target) + k] = indices[np.uintp(begin) + k]


def _merge(first_indptr, first, second_indptr, second, out_indptr, out, sizes):
    at = np.int64(0)
    out_indptr[0] = 0
    for i in range(np.uintp(sizes[0])):
        a, a_end = first_indptr[i], first_indptr[i + 1]
        b, b_end = second_indptr[i], second_indptr[i + 1]
        while a < a_end or b < b_end:
            x = first[np.uintp(a)] if a < a_end else np.int32(2147483647)
            y = second[np.uintp(b)] if b < b_end else np.int32(2147483647)
            out[np.uintp(at)] = min(x, y)
            at += 1
            a += 1 if x <= y else 0
            b += 1 if y <= x else 0
        out_indptr[i + 1] = at


def _multiply(first_indptr, first, second_indptr, second, marks, out_indptr, out, sizes):
    """Count the entries of each row if `out` is empty, else write them."""
    counts = out.size == 0
    for i in range(np.uintp(sizes[0])):
        stamp = np.int32(i)
        begin = out_indptr[i]
        full = begin + marks.size if counts else out_indptr[i + 1]
        inserts = not counts and full - begin <= SHORT
        at = begin
        for k in range(first_indptr[i], first_indptr[i + 1]):
            row = np.uintp(first[np.uintp(k)])
            end = second_indptr[row + 1] if at < full else second_indptr[row]
            for j in range(second_indptr[row], end):
                column = second[np.uintp(j)]
                if marks[np.uintp(column)] != stamp:
                    marks[np.uintp(column)] = stamp
                    place = at
                    if inserts:
                        while place > begin and out[np.uintp(place - 1)] > column:
                            out[np.uintp(place)] = out[np.uintp(place - 1)]
                            place -= 1
                    if not counts:
                        out[np.uintp(place)] = column
                    at += 1
        out_indptr[i + 1] = at


def _transpose(indptr, indices, starts, lines, sizes):
    """The place of the next entry of column j stands in ``starts[j + 1]``."""
    for k in range(np.uintp(indices.size)):
        starts[np.uintp(indices[k]) + np.uintp(2)] += 1
    for j in range(np.uintp(2), np.uintp(starts.size)):
        starts[j] += starts[j - np.uintp(1)]
    for i in range(np.uintp(sizes[0])):
        for k in range(np.uintp(indptr[i]), np.uintp(indptr[i + np.uintp(1)])):
            j = np.uintp(indices[k]) + np.uintp(1)
            lines[np.uintp(starts[j])] = i
            starts[j] += 1


_run_take = compiled(_take, "take_rows", *TABLE, INT64, *TABLE)
_run_merge = compiled(_merge, "merge_rows", *TABLE, *TABLE, *TABLE)
_run_multiply = compiled(_multiply, "multiply_rows", *TABLE, *TABLE, INT32, *TABLE)
_run_transpose = compiled(_transpose, "transpose_rows", *TABLE, *TABLE)


def starts(lengths: np.ndarray) -> np.ndarray:
    """Return `indptr` for rows of these lengths."""
    indptr = np.zeros(lengths.size + 1, INT64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr


def unit_rows(count: int, first: int = 0) -> Table:
    """Return `count` rows with one number each, counted from `first`."""
    return np.arange(count + 1), np.arange(first, first + count, dtype=INT32)


def take_rows(table: Table, rows: np.ndarray) -> Table:
    """Return the rows at the positions `rows`; -1 gives an empty row."""
    rows = np.ascontiguousarray(rows, INT64)
    lengths = np.diff(table[0])
    taken = lengths[rows] if lengths.size else np.zeros(rows.size, INT64)
    indptr = starts(np.where(rows < 0, 0, taken))
    out = np.empty(indptr[-1], INT32)
    _run_take(*table, rows, indptr, out, (rows.size,))
    return indptr, out


def merge_rows(first: Table, second: Table) -> Table:
    """Return the union of each row of `first` with the same row of `second`."""
    indptr = np.empty_like(first[0])
    out = np.empty(first[1].size + second[1].size, INT32)
    _run_merge(*first, *second, indptr, out, (indptr.size - 1,))
    size = indptr[-1]
    return indptr, out if size == out.size else out[:size].copy()


def multiply_rows(groups: Table, table: Table, columns: int) -> Table:
    """Return the Boolean product: for each row of `groups` the union of the table's rows in it."""
    count, indptr = groups[0].size - 1, np.zeros_like(groups[0])

    def run(out: np.ndarray) -> np.ndarray:
        marks = np.full(columns, -1, INT32)
        _run_multiply(*groups, *table, marks, indptr, out, (count,))
        return out

    run(np.empty(0, INT32))
    out = run(np.empty(indptr[-1], INT32))
    if out.size and np.diff(indptr).max() > SHORT:
        return transpose_rows(transpose_rows((indptr, out), columns), count)
    return indptr, out


def stack_rows(tables: Sequence[Table]) -> Table:
    """Return the rows of all tables, one table after the other."""
    if len(tables) == 1:
        return tables[0]
    lengths = np.concatenate([np.diff(indptr) for indptr, _ in tables])
    return starts(lengths), np.concatenate([indices for _, indices in tables])


def transpose_rows(table: Table, columns: int) -> Table:
    """Return the transposed table, of `columns` rows; rows of `table` may be unsorted."""
    starts, lines = np.zeros(columns + 2, INT64), np.empty(table[1].size, INT32)
    _run_transpose(*table, starts, lines, (table[0].size - 1,))
    return starts[:-1], lines


def transposed_places(table: Table, columns: int) -> np.ndarray:
    """Return for each entry of the transposed table its position in `table`: uint32."""
    entries = np.arange(table[1].size + 1), table[1]  # a row for each
    return transpose_rows(entries, columns)[1].view(np.uint32)
