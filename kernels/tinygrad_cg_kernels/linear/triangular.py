"""Triangular systems of equations, by substitution.

Only one triangle of a matrix is read. The solutions replace the right sides, in C order.
"""

from math import prod

import numpy as np

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.linear import blas
from tinygrad_cg_kernels.loops.ranges import Compound, Ranged
from tinygrad_cg_kernels.reduce.sums import sum_terms
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import like, vectorised
from tinygrad_cg_kernels.runtime.views import span

STRIP = 64
"""Right sides that one thread solves together."""
TINY = {char: float(np.finfo(char).tiny) for char in "fd"}
MIN_SIZE = 64
"""OpenBLAS solves systems of at least this size, if they have several right sides: 1.7 times as
fast for 150 of both, 4 times for 300."""


@jitable
def _subtract_one(row, weight, other):
    vectorised()
    for c in range(np.uintp(row.size)):
        row[c] = row[c] - weight * other[c]


@jitable
def _subtract_four(row, weights, others):
    """Subtract four products: the row is read and written once for them."""
    vectorised()
    a, b, c, d = weights
    first, second, third, fourth = others
    for k in range(np.uintp(row.size)):
        row[k] = row[k] - a * first[k] - b * second[k] - c * third[k] - d * fourth[k]


@jitable
def substitute(x, out, sizes, begin, width):
    """Solve a system for `width` of its right sides, from `begin` on: each unknown by those before.

    Sizes: unknowns, all right sides, whether lower, the steps of rows and of columns of `x`.
    """
    size, columns, row_step, step = sizes[0], sizes[1], sizes[3], sizes[4]
    pitch, start = columns * out.itemsize, begin * out.itemsize
    for count in range(size):
        i = count if sizes[2] else size - 1 - count
        j, stop = (0, i) if sizes[2] else (i + 1, size)
        row = span(out, i * pitch + start, width)
        at = i * row_step
        if columns == 1 and step == 1:
            n = stop - j
            group = span(x, (at + j) * x.itemsize, n), span(out, j * pitch, n)
            row[0] = row[0] - sum_terms(elementary.multiply, group, n, like(0, row[0]))
            j = stop
        while j + 4 <= stop:
            k, line = at + j * step, j * pitch + start
            weights = (
                x[np.uintp(k)],
                x[np.uintp(k + step)],
                x[np.uintp(k + 2 * step)],
                x[np.uintp(k + 3 * step)],
            )
            first, second = span(out, line, width), span(out, line + pitch, width)
            third, fourth = span(out, line + 2 * pitch, width), span(out, line + 3 * pitch, width)
            _subtract_four(row, weights, (first, second, third, fourth))
            j += 4
        while j < stop:
            _subtract_one(row, x[np.uintp(at + j * step)], span(out, j * pitch + start, width))
            j += 1
        divisor = x[np.uintp(at + i * step)]
        for c in range(np.uintp(width)):
            row[c] = row[c] / divisor


@jitable
def eliminate(x, out, size, lower):
    """Solve a system of the transpose of `x` with one right side.

    Each unknown is subtracted from the others, so that rows of `x` are read in order.
    """
    for count in range(size):
        i = count if lower else size - 1 - count
        begin, stop = (i + 1, size) if lower else (0, i)
        line, at = span(x, i * size * x.itemsize, size), np.uintp(i)
        out[at] = out[at] / line[at]
        rest = span(out, begin * out.itemsize, stop - begin)
        _subtract_one(rest, out[at], span(line, begin * x.itemsize, stop - begin))


@jitable
def _systems(unused, none, first, count, sizes, x, out):
    """Solve systems, a strip of right sides a unit. Sizes: those of `substitute`, then strips."""
    size, columns, strips = sizes[0], sizes[1], sizes[5]
    for unit in range(first, first + count):
        system, begin = unit // strips, unit % strips * STRIP
        matrix = span(x, system * size * size * x.itemsize, size * size)
        result = span(out, system * size * columns * out.itemsize, size * columns)
        if columns == 1 and sizes[3] == 1:
            eliminate(matrix, result, size, sizes[2] != 0)
        else:
            substitute(matrix, result, sizes, begin, min(STRIP, columns - begin))


class TriangularSolve(Compound):
    """The solution of triangular systems, of the dtype of both operands."""

    name = "triangular_solve"

    def __init__(self) -> None:
        self.kernels = {"systems": Ranged("triangular_solve_systems", _systems, 6, ())}

    def __call__(self, x: np.ndarray, y: np.ndarray, lower: bool) -> np.ndarray:
        """Solve ``x @ z = y``. LinAlgError if a diagonal has a zero."""
        diagonal = np.diagonal(x, 0, -2, -1)
        if not diagonal.all():
            raise np.linalg.LinAlgError("Singular matrix: its diagonal has a zero")
        size, columns = y.shape[-2:]
        leading = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
        if x.shape[:-2] != leading:
            x = np.broadcast_to(x, (*leading, size, size))
        out = np.empty((*leading, size, columns), y.dtype)
        out[...] = y
        turned = np.swapaxes(x, -1, -2)
        is_turned = turned.flags.c_contiguous and size > 1
        steps = (1, size) if is_turned else (size, 1)
        x = turned if is_turned else np.ascontiguousarray(x)
        by_blas = columns > 1 and size >= MIN_SIZE
        solve = blas.triangular_solver(x.dtype.char) if by_blas else None
        # OpenBLAS multiplies by reciprocals: those of subnormal numbers may be infinite
        if solve is not None and np.abs(diagonal).min(initial=1) >= TINY[x.dtype.char]:
            matrices, results = x.reshape(-1, size, size), out.reshape(-1, size, columns)
            with blas.threads_for(size):
                for matrix, right in zip(matrices, results, strict=True):
                    solve(matrix, right, lower, is_turned)
            return out
        strips = -(-columns // STRIP)
        units = prod(leading) * strips if x.size else 0
        sizes = size, columns, lower, *steps, strips
        self.kernels["systems"]((x, out), sizes, units, x.size * columns // 2)
        return out


triangular_solve = TriangularSolve()
