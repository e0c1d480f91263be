"""Operations on whole arrays for programs that Numba code calls, in one thread.

The functions take a result, then the operands, in the shapes that `_function.codegen` gives them:
axes before and after the one that counts are joined.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from tinygrad_cg_kernels.reduce import scan, search
from tinygrad_cg_kernels.runtime.compile import jitable


@jitable
def write(out, x):
    """Write an array into another. Numba compiles an error's message for `out[:] = x`: a second."""
    for index in np.ndindex(x.shape):
        out[index] = x[index]


@jitable
def part(block, start, size):
    return block[start : start + size]


@jitable
def inside(index, size):
    """Return an index counted from 0; raise IndexError if it is out of range."""
    if index < -size or index >= size:
        raise IndexError("an index is out of range")
    return index + size if index < 0 else np.int64(index)


def gather(out, x, indices):
    for b, m, k, a in np.ndindex(out.shape):
        out[b, m, k, a] = x[b, m, inside(indices[b, k], x.shape[2]), a]


def gather_adjoint(out, x, indices):
    out[:] = 0
    for b, m, k, a in np.ndindex(x.shape):
        out[b, m, inside(indices[b, k], out.shape[2]), a] += x[b, m, k, a]


def take_along_axis(out, x, indices):
    for m, k, a in np.ndindex(out.shape):
        out[m, k, a] = x[m, inside(indices[m, k, a], x.shape[1]), a]


def add_along_axis(out, x, indices):
    out[:] = 0
    for m, k, a in np.ndindex(x.shape):
        out[m, inside(indices[m, k, a], out.shape[1]), a] += x[m, k, a]


def one_hot(out, indices):
    for m, k, a in np.ndindex(out.shape):
        out[m, k, a] = indices[m, a] == k


def set_row(out, x, row, index):
    write(out, x)
    for b in range(index.size):
        if 0 <= index[b] < out.shape[1]:
            out[b, index[b]] = row[b]
        elif index.size == 1:
            raise IndexError("set_row: an index is out of range")


@cache
def segment_extremum(largest: bool) -> Callable:
    def run(out, x, indices, first):
        out[:] = first
        for b, k, a in np.ndindex(x.shape):
            row, value = inside(indices[b, k], out.shape[1]), x[b, k, a]
            better = value > out[b, row, a] if largest else value < out[b, row, a]
            if better or value != value:
                out[b, row, a] = value

    return run


def last_sources(out, indices):
    out[:] = -1
    for b, k in np.ndindex(indices.shape):
        out[b, inside(indices[b, k], out.shape[1])] = k


def flat_positions(out, indices, sizes):
    out[:] = 0
    for k, axis in np.ndindex(indices.shape):
        if indices[k, axis] < 0 or indices[k, axis] >= sizes[axis]:
            raise IndexError("an index is out of range")
        out[k] = out[k] * sizes[axis] + indices[k, axis]


def segment_rows(out, ids, size):
    for k in range(ids.size):
        if ids[k] >= size:
            raise ValueError("a segment's id is out of range")
        out[k] = ids[k] if ids[k] >= 0 else size


def labels(out, indices, classes):
    for k in range(indices.size):
        if not 0 <= indices[k] < classes:
            raise ValueError("sparse_cross_entropy: a label is outside the classes")
        out[k] = indices[k]


def positions(out, indices, size, parts):
    each = max(indices.size // max(parts, 1), 1)
    for k in range(indices.size):
        out[k] = inside(indices[k], size) + (k // each * size if parts > 1 else 0)


@cache
def searchsorted(right: bool) -> Callable:
    def run(out, table, values):
        for k, j in np.ndindex(out.shape):
            row, value = table[k % table.shape[0]], values[k % values.shape[0], j]
            found = np.searchsorted(row, value, "right") if right else np.searchsorted(row, value)
            out[k, j] = found

    return run


@jitable
def moved(out, x, places):
    for k in range(places.size):
        out[k] = x[places[k]]


def copied(out, x, *rest):
    """Move elements of the first of several operands."""
    moved(out, x, rest[-1])


def moved_back(out, x, places):
    out[:] = 0
    for k in range(places.size):
        out[places[k]] += x[k]


# Rows: `starts` are the positions of their first elements, `steps` those from there on ---------


@jitable
def row_at(x, start, steps):
    row = np.empty(steps.size, x.dtype)
    for j in range(steps.size):
        row[j] = x[start + steps[j]]
    return row


@jitable
def put_row(out, row, start, steps):
    for j in range(steps.size):
        out[start + steps[j]] = row[j]


@cache
def reduced(function: Callable) -> Callable:
    """Return code that puts a function of each row into `out`."""

    def run(out, x, starts, steps):
        for k in range(starts.size):
            out[k] = function(row_at(x, starts[k], steps))

    return run


@cache
def mapped(function: Callable, count: int) -> Callable:
    """Return code that computes each row from a row of one or two operands."""

    def one(out, x, starts, steps):
        result = np.empty(steps.size, out.dtype)
        for k in range(starts.size):
            function(row_at(x, starts[k], steps), result)
            put_row(out, result, starts[k], steps)

    def two(out, x, y, starts, steps):
        result = np.empty(steps.size, out.dtype)
        for k in range(starts.size):
            rows = row_at(x, starts[k], steps), row_at(y, starts[k], steps)
            function(*rows, result)
            put_row(out, result, starts[k], steps)

    return one if count == 1 else two


@cache
def mean(total: Callable) -> Callable:
    return jitable(lambda row: total(row) / row.size)


@cache
def pulled(total: Callable, pull: Callable) -> Callable:
    """Return the gradient of a normalisation of a row."""

    def run(dy, y, result):
        sum_of_row = total(dy, y)
        for j in range(y.size):
            result[j] = pull(dy[j], y[j], sum_of_row)

    return jitable(run)


@cache
def scanned(advance: Callable, start: Callable, reverse: int, exclusive: int) -> Callable:
    """Return the scan of a row of one or two operands, which the result follows."""

    def run(*rows):
        sizes = np.array([rows[0].size, reverse, exclusive])
        scan.rows_core(advance, start, 0, 1, sizes, rows[0], rows[-2], rows[-1])

    return jitable(run)


@cache
def best(pick: Callable, better: Callable) -> Callable:
    """Return the index of the best element of a row."""

    def index(row):
        found = np.empty(1, np.int64)
        search.rows_core(pick, better, 0, 1, np.array([row.size]), row, found)
        return found[0]

    return jitable(index)


@cache
def order(indices: bool, descending: bool) -> Callable:
    """Return a function that sorts a row, or gives the stable order of its elements."""

    def values(row, result):
        ordered = np.sort(row)
        write(result, ordered[::-1] if descending else ordered)

    def places(row, result):
        if descending:
            found = np.argsort(row[::-1].copy(), kind="mergesort")
            write(result, row.size - 1 - found[::-1])
        else:
            write(result, np.argsort(row, kind="mergesort"))

    return jitable(places if indices else values)


@jitable
def inverse_order(row, result):
    for j in range(row.size):
        result[row[j]] = j


# Elements: a table for each operand says which of its elements belongs to which of `out` --------


@cache
def elements(function: Callable, count: int) -> Callable:
    def one(out, x, a):
        for k in range(out.size):
            out[k] = function(x[a[k]])

    def two(out, x, y, a, b):
        for k in range(out.size):
            out[k] = function(x[a[k]], y[b[k]])

    def three(out, x, y, z, a, b, c):
        for k in range(out.size):
            out[k] = function(x[a[k]], y[b[k]], z[c[k]])

    return (one, two, three)[count - 1]
