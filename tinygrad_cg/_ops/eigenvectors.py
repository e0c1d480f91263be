"""Eigenvalues and eigenvectors of general square matrices, and their LU factors.

The rules are those of M. Giles, "An extended collection of matrix derivative results" (2008); that
for eigenvectors of unit length is PyTorch's, as its documentation describes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import devices
from .._core.kinds import is_complex
from .._core.tensor import Aval, Tensor
from .comparison import equal
from .complex import conj, imag, real
from .decompositions import inv, triangular
from .define import Case, operation, public
from .elementwise import add, multiply, subtract, where
from .factorizations import _stack_rows, coincide, over_gaps, values_of
from .indexing import gather
from .matrices import (
    MATRIX,
    NOT_SQUARE,
    STACK,
    adjoint,
    band,
    columns,
    complex_dtype,
    matrices,
    of_matrices,
    product,
    rows,
    square_matrices,
)
from .reductions import reduce_sum
from .shape import cast, concatenate, expand_dims, swap_last
from .spectral import for_vectors, gradient_by_values

_REAL_VALUES = np.array([[1.0, 0.5, 0.0], [0.25, 2.0, 0.5], [0.125, 0.25, 3.5]])


def _complex(x: np.ndarray) -> np.ndarray:
    return x.astype(np.result_type(x, np.complex64))


def _eig_rule(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    values, vectors = rows(out, 0, 1), rows(out, 1)
    d_vectors = rows(dy, 1)
    close = coincide(values)
    inner = product(adjoint(vectors), d_vectors)
    along = reduce_sum(multiply(conj(vectors), d_vectors), -2, True)
    lengths = cast(real(along), along.dtype)
    if not is_complex(x.dtype):  # the vectors of real values are real: they have no phase
        lengths = where(equal(imag(values), 0), along, lengths)
    inner = subtract(inner, multiply(product(adjoint(vectors), vectors), lengths))
    gaps = conj(subtract(values, swap_last(values)))
    inner = over_gaps(inner, gaps, close, d_vectors, "eig")
    unit = np.eye(values._data.shape[-1], dtype=bool)
    inner = where(unit, rows(dy, 0, 1), inner)
    inverse = adjoint(inv(vectors))
    return product(product(inverse, inner), adjoint(vectors))


_eig = of_matrices(
    "eig",
    lambda x: _complex(_stack_rows(*map(_complex, np.linalg.eig(x)))),
    _eig_rule,
    lambda shape: (*shape[:-2], shape[-2] + 1, shape[-1]),
    complex_dtype,
    samples=(_REAL_VALUES,),
    analytic=False,
)


def _eigvals_rule(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    factors = _eig(for_vectors(x))
    values, vectors = rows(factors, 0, 1), rows(factors, 1)
    return gradient_by_values("eigvals", x, out, dy, adjoint(inv(vectors)), values, vectors)


_eigvals = of_matrices(
    "eigvals",
    lambda x: _complex(np.linalg.eigvals(x)),
    _eigvals_rule,
    lambda shape: shape[:-1],
    complex_dtype,
    samples=(MATRIX,),
    analytic=False,
    errors=(NOT_SQUARE,),
)


def eig(x: Any) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and eigenvectors of square matrices: always complex.

    `x` has shape (..., n, n), the values (..., n), in any order; the vectors are the
    columns of (..., n, n), of unit length. The gradient needs n independent vectors; otherwise it
    is large or raises errors.MatrixError. With respect to vectors of equal eigenvalues the gradient
    is set to 0, with an errors.DerivativeWarning. For symmetric or Hermitian matrices use `eigh`.
    """
    x = square_matrices("eig", x)
    result = _eig(x)
    return values_of(x, result, "eig"), rows(result, 1)


@public(_eigvals)
def eigvals(x: Any) -> Tensor:
    """Return the eigenvalues of square matrices (..., n, n), complex, in any order; see `eig`."""
    return _eigvals(square_matrices("eigvals", x))


# LU ----------------------------------------------------------------------------------------------


def _eliminate(x: np.ndarray, pivots: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return L and U in one matrix, and the order of rows; with the largest pivots, or without."""
    library = devices.library_of(x)
    x = library.array(x, np.result_type(x, np.float32))
    height, width = x.shape[-2:]
    x = x.reshape(-1, height, width)
    order = np.tile(library.arange(height), (len(x), 1))
    each = library.arange(len(x))
    for i in range(min(height, width)):
        if pivots:
            column = x[:, i:, i]
            best = i + (np.abs(np.real(column)) + np.abs(np.imag(column))).argmax(-1)  # as LAPACK
            for array in (x, order):
                array[each, i], array[each, best] = array[each, best], array[each, i].copy()
        pivot = x[:, i, i, None]
        safe = np.where(pivot == 0, 1, pivot)
        x[:, i + 1 :, i] = np.where(pivot == 0, x[:, i + 1 :, i], x[:, i + 1 :, i] / safe)
        x[:, i + 1 :, i + 1 :] -= x[:, i + 1 :, i, None] * x[:, i, None, i + 1 :]
    return x, order


_order = operation(
    "lu_order",
    lambda x: _eliminate(x, True)[1].reshape(x.shape[:-1]).astype(np.int32),
    lambda x: Aval(x.shape[:-1], np.dtype(np.int32)),
    kind="contraction",
    core=(2,),
    samples=[Case((matrix.shape,), {}, {0: matrix}) for matrix in (MATRIX[::-1].copy(), STACK)],
)


def _run_pivots(order: np.ndarray, size: int) -> np.ndarray:
    library, height = devices.library_of(order), order.shape[-1]
    wanted = order.reshape(-1, height)
    current = np.tile(library.arange(height), (len(wanted), 1))
    pivots = library.empty((len(wanted), size), np.int32)
    for i in range(size):
        pivots[:, i] = best = (current == wanted[:, i, None]).argmax(-1)
        current[library.arange(len(wanted)), best] = current[:, i]
        current[:, i] = wanted[:, i]
    return pivots.reshape(*order.shape[:-1], size)


_pivots = operation(
    "lu_pivots",
    _run_pivots,
    lambda order, size: Aval((*order.shape[:-1], size), np.dtype(np.int32)),
    kind="contraction",
    inputs=("order",),
    core=(1,),
    samples=[Case(((3,),), {"size": 2}, {0: np.array([2, 0, 1])})],
)


def lu_pivots(x: Any) -> tuple[Tensor, Tensor]:
    """Return L and U as `lu` does, and the row that each row was exchanged with, as in LAPACK.

    The pivots (int32), from 0, have shape (..., min(m, n)).
    """
    packed, order = lu(x)
    return packed, _pivots(order, size=min(packed.shape[-2:]))


def _lu_rule(dy: Tensor, out: Tensor) -> Tensor:
    unit = np.eye(out._data.shape[-1], dtype=out.dtype)
    lower, upper = add(band(out, None, -1), unit), band(out, 0, None)
    below = band(product(adjoint(lower), band(dy, None, -1)), None, -1)
    above = band(product(band(dy, 0, None), adjoint(upper)), 0, None)
    solved = triangular(adjoint(lower), add(below, above), lower=False)
    return adjoint(triangular(upper, adjoint(solved), lower=False))


_lu = of_matrices(
    "lu",
    lambda x: _eliminate(x, False)[0].reshape(x.shape),
    _lu_rule,
    analytic=False,
)


def lu(x: Any) -> tuple[Tensor, Tensor]:
    """Return L and U of matrices with their rows reordered, in one matrix, and that order.

    ``take(x, order) = L U``: L has ones on its diagonal, which are not stored, and the largest
    elements as pivots. `x` has shape (..., m, n), the order (int32) (..., m). The gradient needs
    independent first rows and columns, otherwise it raises errors.MatrixError.
    """
    x = matrices("lu", x)
    order = _order(x)
    height, width = x._data.shape[-2:]
    size = min(height, width)
    leading = x._data.ndim - 2
    whole = gather(x, order, leading, leading)
    result = _lu(rows(columns(whole, 0, size), 0, size))
    if height > width:
        rest = adjoint(rows(whole, size))
        below = adjoint(triangular(adjoint(band(result, 0, None)), rest, lower=True))
        result = concatenate([result, below], -2)
    if width > height:
        unit = np.eye(size, dtype=result.dtype)
        lower = add(band(result, None, -1), unit)
        result = concatenate([result, triangular(lower, columns(whole, size), lower=True)], -1)
    return result, order


def lu_factors(x: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Return P, L and U of matrices ``x = P L U``; P permutes rows; see `lu`."""
    packed, order = lu(x)
    height, width = packed._data.shape[-2:]
    size = min(height, width)
    unit = np.eye(height, size, dtype=packed.dtype)
    lower = add(band(columns(packed, 0, size), None, -1), unit)
    positions = np.arange(height, dtype=np.int32)[:, None]
    permutation = cast(equal(positions, expand_dims(order, -2)), packed.dtype)
    return permutation, lower, band(rows(packed, 0, size), 0, None)
