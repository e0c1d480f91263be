"""Functions of stacks of matrices as Numba code, by the LAPACK loops inside NumPy's functions.

These take addresses, so the library's own layouts are views: the eigenvalues and eigenvectors of a
matrix, say, lie one below the other. All are computed in float64, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.objects import ufuncs
from tinygrad_cg_kernels.runtime.promotion import broadcast_shapes
from tinygrad_cg_kernels.runtime.views import address_of

from ...errors import MatrixError
from ..fusion.nodes import OpaqueNode
from .numba_operations import CodeOnArrays, array_code, places

Part = tuple[int, tuple[int, ...]]
"""A part of a matrix or of a result: its first element, and the steps of its axes."""

_F64 = np.dtype(np.float64)
_call_loop = ufuncs.call_loop


def matrix_code(node: OpaqueNode, aval: Any) -> CodeOnArrays | None:
    """Return the code of an operation on arrays, also of matrices; None if it has none."""
    build = None if node.op is None else _BUILDERS.get(node.op.name)
    if build is None:
        return array_code(node, aval)
    if any(x.dtype.kind == "c" or not x.size for x in (node, *node.operands)):
        return None
    return build(node)


def _words(name: str, sizes: Sequence[int], parts: Sequence[Part]) -> np.ndarray | None:
    """Return the arguments of the loop of a ufunc for a matrix; None if there is no such loop.

    These are the loop's address and data, the number of the matrices, their sizes, and steps.
    """
    ufunc = getattr(getattr(np.linalg, "_umath_linalg", None), name, None)
    loop = None if ufunc is None else ufuncs.inner_loop(ufunc, _F64)
    if loop is None:
        return None
    steps = [8 * step for _, own in parts for step in own]
    return np.array([*loop, 1, *sizes, *[0] * len(parts), *steps], np.int64)


def _rows(rows: int, columns: int, start: int = 0) -> Part:
    return start, (columns, 1)


@cache
def _by_loop(symmetric: bool, error: str, spare: int) -> Callable:
    """Return code that calls a loop for each matrix. Results without a place are not kept."""

    def run(out, x, words, starts, size):
        addresses, unread = np.empty(4, np.int64), np.empty(max(spare, 1))
        first, count = np.empty(size * size if symmetric else 1), words.size
        for b in range(starts.shape[0]):
            addresses[0] = address_of(x) + 8 * starts[b, 0]
            if symmetric:
                for i in range(size):
                    for j in range(size):
                        at = starts[b, 0]
                        first[i * size + j] = 0.5 * (x[at + i * size + j] + x[at + j * size + i])
                addresses[0] = address_of(first)
            for k in range(1, starts.shape[1]):
                if starts[b, k] < 0:
                    addresses[k] = address_of(unread)
                else:
                    addresses[k] = address_of(out) + 8 * starts[b, k]
            start = address_of(words)
            sizes, steps = start + 16, start + 8 * words[count - 1]
            _call_loop(words[0], address_of(addresses), sizes, steps, words[1])
            if error and np.isnan(out[starts[b, 1]]) and not _has_nan(x, starts[b, 0], size):
                raise MatrixError(error)
        addresses[0], first[0], unread[0] = 0, 0, 0  # they are in use until here

    return run


@jitable
def _has_nan(x, start, size):
    found = False
    for k in range(start, start + size * size):
        found = found or np.isnan(x[k])
    return found


def _of_matrix(
    ufunc: str,
    results: Callable[[int, int], Sequence[Part | None]],
    symmetric: bool = False,
    error: str = "",
) -> Callable[[OpaqueNode], CodeOnArrays | None]:
    """Return a function from nodes to code. ``results(height, width)`` has the parts of a result;
    None for results that are not kept.
    """

    def build(node: OpaqueNode) -> CodeOnArrays | None:
        *stack, height, width = node.operands[0].shape
        parts = results(height, width)
        sizes = [height] if height == width and ufunc[:3] != "svd" else [height, width]
        sizes += [min(height, width)] * (ufunc[:3] == "svd")
        words = _words(ufunc, sizes, [_rows(height, width), *[part or (0, ()) for part in parts]])
        if words is None:
            return None
        count = prod(stack)
        own = node.size // count
        starts = [np.arange(count) * height * width]
        for part in parts:
            starts.append(np.full(count, -1) if part is None else np.arange(count) * own + part[0])
        table = np.stack(starts, 1)
        words = np.array([*words, 3 + len(sizes)])
        message = f"{node.op.label}: {error}" if error else ""
        code = _by_loop(symmetric, message, 1)
        return CodeOnArrays(code, (words, table, np.int64(width)), [_F64], _F64)

    return build


# Systems of equations ------------------------------------------------------------------------


def _of_two(node: OpaqueNode) -> tuple[list[np.ndarray], np.ndarray]:
    """Return where the matrices of two operands begin, for each result, and the sizes."""
    x, y = [operand.shape for operand in node.operands]
    batch = broadcast_shapes(x[:-2], y[:-2])
    starts = [places(shape[:-2], batch) * prod(shape[-2:]) for shape in (x, y)]
    return starts, np.array([x[-1], y[-1]])


def _solve(node: OpaqueNode) -> CodeOnArrays | None:
    starts, (size, columns) = _of_two(node)
    parts = [_rows(size, size), _rows(size, columns), _rows(size, columns)]
    words = _words("solve", [size, columns], parts)
    if words is None:
        return None
    tables = (words, np.stack(starts, 1), np.array([size, columns]))
    return CodeOnArrays(_solved, tables, [_F64, _F64], _F64)


def _solved(out, x, y, words, starts, sizes):
    addresses = np.empty(3, np.int64)
    size, columns = sizes
    for b in range(starts.shape[0]):
        addresses[0] = address_of(x) + 8 * starts[b, 0]
        addresses[1] = address_of(y) + 8 * starts[b, 1]
        addresses[2] = address_of(out) + 8 * b * size * columns
        start = address_of(words)
        _call_loop(words[0], address_of(addresses), start + 16, start + 40, words[1])
        at = b * size * columns
        right = np.sum(y[starts[b, 1] : starts[b, 1] + size * columns])
        if np.isnan(out[at]) and not (np.isnan(right) or _has_nan(x, starts[b, 0], size)):
            raise MatrixError("solve: Singular matrix")
    addresses[0] = 0  # it is in use until here


def _triangular_solve(node: OpaqueNode) -> CodeOnArrays:
    starts, sizes = _of_two(node)
    code = _substituted(bool(node.params["lower"]))
    return CodeOnArrays(code, (*starts, sizes), [_F64, _F64], _F64)


@cache
def _substituted(lower: bool) -> Callable:
    def run(out, x, y, starts, others, sizes):
        size, columns = sizes
        for b in range(starts.size):
            for step in range(size):
                i = step if lower else size - 1 - step
                pivot = x[starts[b] + i * size + i]
                if pivot == 0:
                    raise MatrixError("triangular_solve: Singular matrix")
                to = (b * size + i) * columns
                for c in range(columns):
                    out[to + c] = y[others[b] + i * columns + c]
                for j in range(0 if lower else i + 1, i if lower else size):
                    factor = x[starts[b] + i * size + j]
                    for c in range(columns):
                        out[to + c] -= factor * out[(b * size + j) * columns + c]
                for c in range(columns):
                    out[to + c] /= pivot

    return run


# Factors -------------------------------------------------------------------------------------


def _qr(node: OpaqueNode) -> CodeOnArrays | None:
    *stack, height, width = node.operands[0].shape
    if height < width:
        return None
    matrix = _rows(height, width)
    raw = _words("qr_r_raw", [height, width, width], [matrix, (0, (1,))])
    reduced = _words("qr_reduced", [height, width, width], [matrix, (0, (1,)), matrix])
    if raw is None or reduced is None:
        return None
    tables = raw, reduced, np.array([prod(stack), height, width])
    return CodeOnArrays(_factored, tables, [_F64], _F64)


def _factored(out, x, raw, reduced, sizes):
    count, height, width = sizes
    size, whole = height * width, (height + width) * width
    addresses, turns, matrix = np.empty(3, np.int64), np.empty(width), np.empty(size)
    for b in range(count):
        matrix[:] = x[b * size : (b + 1) * size]
        addresses[0], addresses[1] = address_of(matrix), address_of(turns)
        start = address_of(raw)
        _call_loop(raw[0], address_of(addresses), start + 16, start + 48, raw[1])
        for i in range(width):
            for j in range(width):
                to = b * whole + size + i * width + j
                out[to] = matrix[i * width + j] if j >= i else 0.0
        addresses[2] = address_of(out) + 8 * b * whole
        start = address_of(reduced)
        _call_loop(reduced[0], address_of(addresses), start + 16, start + 48, reduced[1])
    addresses[0], turns[0], matrix[0] = 0, 0, 0  # they are in use until here


# Determinants --------------------------------------------------------------------------------


def _cofactors(node: OpaqueNode) -> CodeOnArrays | None:
    size = node.shape[-1]
    matrix = _rows(size, size)
    words = [_words("inv", [size], [matrix, matrix]), _words("det", [size], [matrix, (0, ())])]
    if any(table is None for table in words):
        return None
    if len(node.operands) == 1:
        starts = [np.arange(prod(node.shape[:-2])) * size * size] * 2
    else:
        starts, _ = _of_two(node)
    tables = (*words, *starts, np.int64(size))
    count = len(node.operands)
    return CodeOnArrays(_of_inverse(count, node.op.label), tables, [_F64] * count, _F64)


@cache
def _of_inverse(count: int, label: str) -> Callable:
    """Return code of the cofactors of regular matrices, or of their derivative by a direction."""
    error = f"{label}: in Numba code, the gradient of the determinant needs a regular matrix"

    def inverted(x, start, size, inverting, measuring, inverse):
        addresses, value = np.empty(2, np.int64), np.empty(1)
        addresses[0], addresses[1] = address_of(x) + 8 * start, address_of(inverse)
        table = address_of(inverting)
        _call_loop(inverting[0], address_of(addresses), table + 16, table + 32, inverting[1])
        addresses[1] = address_of(value)
        table = address_of(measuring)
        _call_loop(measuring[0], address_of(addresses), table + 16, table + 32, measuring[1])
        addresses[0] = 0  # it is in use until here
        if np.isnan(inverse[0]) and not _has_nan(x, start, size):
            raise MatrixError(error)
        return value[0]

    inverted = jitable(inverted)

    def one(out, x, inverting, measuring, starts, others, size):
        inverse = np.empty(size * size)
        for b in range(starts.size):
            value = inverted(x, starts[b], size, inverting, measuring, inverse)
            for i in range(size):
                for j in range(size):
                    out[starts[b] + i * size + j] = value * inverse[j * size + i]

    def two(out, x, y, inverting, measuring, starts, others, size):
        inverse = np.empty(size * size)
        for b in range(starts.size):
            value = inverted(x, starts[b], size, inverting, measuring, inverse)
            matrix = inverse.reshape((size, size))
            way = y[others[b] : others[b] + size * size].reshape((size, size))
            inner, trace = np.zeros((size, size)), 0.0
            for i in range(size):
                for k in range(size):
                    trace += matrix[i, k] * way[k, i]
                    for j in range(size):
                        inner[i, j] += matrix[i, k] * way[k, j]
            for i in range(size):
                for j in range(size):
                    change = trace * matrix[j, i]
                    for k in range(size):
                        change -= inner[j, k] * matrix[k, i]
                    out[(b * size + i) * size + j] = value * change

    return one if count == 1 else two


# Equal eigenvalues ---------------------------------------------------------------------------


def _coincide(node: OpaqueNode) -> CodeOnArrays:
    from ..._ops.matrices import tolerance

    size = node.operands[0].shape[-1]
    limit = tolerance(node.operands[0].dtype, size)
    code = _near(bool(node.params["sums"]))
    return CodeOnArrays(code, (np.int64(size), np.float64(limit)), [_F64])


@cache
def _near(sums: bool) -> Callable:
    def run(out, x, size, limit):
        for b in range(x.size // size):
            row = x[b * size : (b + 1) * size]
            most = limit * np.max(np.abs(row))
            for i in range(size):
                for j in range(size):
                    distance = row[i] + row[j] if sums else row[i] - row[j]
                    out[(b * size + i) * size + j] = abs(distance) <= most

    return run


def _vanish(node: OpaqueNode) -> CodeOnArrays:
    from ..._ops.matrices import tolerance

    x, values = [operand.shape for operand in node.operands]
    batch = broadcast_shapes(x[:-2], values[:-2])
    starts = [places(shape[:-2], batch) * prod(shape[-2:]) for shape in (x, values)]
    limit = np.float64(tolerance(node.operands[1].dtype, values[-1]))
    return CodeOnArrays(_vanished, (*starts, np.array(x[-2:]), limit), [_F64, _F64])


def _vanished(out, x, values, starts, others, sizes, limit):
    rows, columns = sizes
    for b in range(starts.size):
        lengths = np.zeros(columns)
        for i in range(rows):
            for j in range(columns):
                lengths[j] += x[starts[b] + i * columns + j] ** 2
        lengths = np.sqrt(lengths)
        row = values[others[b] : others[b] + columns]
        for j in range(columns):
            small = row[j] <= limit * max(np.max(row), 0.0)
            empty = lengths[j] <= 100 * limit * np.max(lengths)
            out[b * columns + j] = small and empty


def _copy(node: OpaqueNode) -> CodeOnArrays:
    """Return the code of a check, which does not warn in Numba code."""
    tables = (places(node.operands[0].shape, node.shape),)
    return CodeOnArrays(_copied(len(node.operands)), tables)


@cache
def _copied(count: int) -> Callable:
    def two(out, x, y, positions):
        for k in range(out.size):
            out[k] = x[positions[k]]

    def three(out, x, y, z, positions):
        for k in range(out.size):
            out[k] = x[positions[k]]

    return two if count == 2 else three


def _vectors(height: int, width: int) -> list[Part | None]:
    return [(0, (1,)), (width, (width, 1))]


def _three_factors(height: int, width: int) -> list[Part | None]:
    size = min(height, width)
    return [(size, (size, 1)), (0, (1,)), ((1 + height) * size, (1, size))]


_NUMBER: Part = (0, ())
_BUILDERS: dict[str, Callable[[OpaqueNode], CodeOnArrays | None]] = {
    "solve": _solve,
    "triangular_solve": _triangular_solve,
    "inverse": _of_matrix("inv", lambda m, n: [_rows(m, n)], error="Singular matrix"),
    "inverse_of_regular": _of_matrix("inv", lambda m, n: [_rows(m, n)], error="Singular matrix"),
    "determinant": _of_matrix("det", lambda m, n: [_NUMBER]),
    "log_abs_determinant": _of_matrix("slogdet", lambda m, n: [None, _NUMBER]),
    "determinant_sign": _of_matrix("slogdet", lambda m, n: [_NUMBER, None]),
    "cholesky": _of_matrix(
        "cholesky_lo", lambda m, n: [_rows(m, n)], True, "Matrix is not positive definite"
    ),
    "eigh": _of_matrix("eigh_lo", _vectors, True),
    "eigvalsh": _of_matrix("eigvalsh_lo", lambda m, n: [(0, (1,))], True),
    "svd": _of_matrix("svd_s", _three_factors),
    "svdvals": _of_matrix("svd", lambda m, n: [(0, (1,))]),
    "qr": _qr,
    **dict.fromkeys(("cofactors", "cofactor_change"), _cofactors),
    "coincide": _coincide,
    "vanish": _vanish,
    **dict.fromkeys(("check_coincident", "check_tangent"), _copy),
}
