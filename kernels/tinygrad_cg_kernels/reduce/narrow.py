"""logsumexp, softmax and log_softmax over many narrow rows.

Such a row is shorter than a vector. Each step is done for all elements, or for a column, of a chunk
of rows before the next step.
"""

from math import prod

import numpy as np

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.ranges import Ranged
from tinygrad_cg_kernels.loops.rows import run_noalias
from tinygrad_cg_kernels.reduce.combine import larger
from tinygrad_cg_kernels.reduce.exponentials import (
    exp_of_difference,
    finite,
    log_softmax_of,
    plus_log,
    product,
    reciprocal,
)
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import like, noalias, outlined
from tinygrad_cg_kernels.runtime.promotion import FLOAT32, FLOAT64
from tinygrad_cg_kernels.runtime.views import span

MAX_COLUMNS = 16
"""Longer rows are reduced by a kernel that goes row by row."""
MIN_SIZE = 2**13
"""So are smaller arrays: that kernel takes less time for them."""
CHUNK = 128
"""Rows that are reduced at a time."""


def is_narrow(shape: tuple[int, ...], axes: int | tuple[int, ...]) -> bool:
    """Return whether arrays of this shape have many narrow rows along these axes."""
    last = len(shape) - 1
    return (
        last >= 1
        and shape[last] <= MAX_COLUMNS
        and axes in (last, (last,))
        and prod(shape) >= MIN_SIZE
    )


def serves(x: np.ndarray, axes: int | tuple[int, ...]) -> bool:
    """Return whether the kernels here take an array: contiguous, float32 or float64, narrow."""
    in_order = x.flags.c_contiguous and x.flags.aligned
    return is_narrow(x.shape, axes) and in_order and x.dtype in (FLOAT32, FLOAT64)


@jitable
def _sum(x, y):
    return x + y


@jitable
def _fold(combine, start, x, width, out):
    """Combine the elements of each row."""
    outlined()
    noalias()
    for c in range(width):
        for i in range(np.uintp(out.size)):
            total = out[i] if c > 0 else start
            out[i] = combine(total, x[i * width + c])


@jitable
def _repeat(f, values, width, out):
    """Write a function of the value of each row for each of its elements."""
    outlined()
    noalias()
    for i in range(np.uintp(values.size)):
        value = f(values[i])
        for c in range(width):
            out[i * width + c] = value


@jitable
def _core(finish, unused, first, count, sizes, x, out):
    """Compute rows of exponentials. Sizes: elements of a row, and of its result."""
    columns, results = sizes[0], sizes[1]
    width = np.uintp(columns)
    top, total = np.empty(CHUNK, x.dtype), np.empty(CHUNK, x.dtype)
    repeated, powers = np.empty(CHUNK * columns, x.dtype), np.empty(CHUNK * columns, x.dtype)
    for start in range(first, first + count, CHUNK):
        rows = min(CHUNK, first + count - start)
        size = rows * columns
        some = span(x, start * columns * x.itemsize, size)
        tops, totals = span(top, 0, rows), span(total, 0, rows)
        same, power = span(repeated, 0, size), span(powers, 0, size)
        _fold(larger, like(-np.inf, x[0]), some, width, tops)
        _repeat(finite, tops, width, same)
        run_noalias(exp_of_difference, None, None, (some, same), (power,), size)
        _fold(_sum, like(0, x[0]), power, width, totals)
        target = span(out, start * results * out.itemsize, rows * results)
        finish(some, width, tops, totals, same, power, target)


@jitable
def _logsumexp(x, width, top, total, same, power, out):
    run_noalias(_finite_plus_log, None, None, (top, total), (out,), out.size)


@jitable
def _softmax(x, width, top, total, same, power, out):
    _repeat(reciprocal, total, width, same)
    run_noalias(product, None, None, (power, same), (out,), out.size)


@jitable
def _finite_plus_log(top, total):
    return plus_log(finite(top), total)


@jitable
def _itself(x):
    return x


@jitable
def _log_softmax(x, width, top, total, same, power, out):
    run_noalias(elementary.log, None, None, (total,), (top,), top.size)
    _repeat(_itself, top, width, power)
    run_noalias(log_softmax_of, None, None, (x, same, power), (out,), out.size)


def _over_rows(kernel: Ranged, x: np.ndarray, results: int) -> np.ndarray:
    columns = x.shape[-1]
    out = np.empty((*x.shape[:-1], results), x.dtype)
    kernel((x, out), (columns, results), x.size // columns, x.size)
    return out


KERNELS = {
    name: Ranged(f"{name}_narrow", _core, 2, (finish,))
    for name, finish in (
        ("logsumexp", _logsumexp),
        ("softmax", _softmax),
        ("log_softmax", _log_softmax),
    )
}


def normalise(name: str, x: np.ndarray) -> np.ndarray:
    """Return softmax or log_softmax of rows that `serves` is true for."""
    return _over_rows(KERNELS[name], x, x.shape[-1])


def logsumexp(x: np.ndarray, keepdims: bool) -> np.ndarray:
    """Return the logsumexp of rows that `serves` is true for."""
    result = _over_rows(KERNELS["logsumexp"], x, 1)
    return result if keepdims else result.reshape(x.shape[:-1])
