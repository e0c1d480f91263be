"""TensorFlow's ``tf.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core.annotations import Axes, DTypeLike, Shape, TensorLike
from ._core.conversion import FLOAT32, INT32, convert, convert_operands
from ._core.suggestions import reads_own_arguments
from ._core.tensor import Tensor
from ._ops import creation as _creation
from ._ops import decompositions as _decompositions
from ._ops import diagonals as _diagonals
from ._ops import eigenvectors as _eigenvectors
from ._ops import einsum as _einsum
from ._ops import factorizations as _factorizations
from ._ops import least_squares as _least_squares
from ._ops import linear_algebra as _linear_algebra
from ._ops import matrix_functions as _matrix_functions
from ._ops import norms as _norms
from ._ops import reductions as _reductions
from ._ops.complex import conj
from ._ops.creation import zeros
from ._ops.decompositions import LogMatrixDeterminant
from ._ops.diagonals import tensor_diag, tensor_diag_part
from ._ops.elementwise import multiply, sqrt
from ._ops.matrices import real_dtype
from ._ops.namespaces.namespace import export_functions, restates, unary_of_input, unary_of_tensor
from ._ops.normalizations import global_norm
from ._ops.norms import normalize
from ._ops.shape import broadcast_to, cast, concatenate, stack, swap_last, unstack
from ._ops.systems import (
    banded_triangular_solve,
    eigh_tridiagonal,
    lu_matrix_inverse,
    lu_reconstruct,
    lu_solve,
    tridiagonal_matmul,
    tridiagonal_solve,
)
from ._ops.validation import as_shape
from .errors import InvalidArgumentError
from .math import l2_normalize

__all__ = [
    "banded_triangular_solve",
    "eigh_tridiagonal",
    "global_norm",
    "l2_normalize",
    "lu_matrix_inverse",
    "lu_reconstruct",
    "lu_solve",
    "normalize",
    "tensor_diag",
    "tensor_diag_part",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]


def _adjoint(matrix: Any) -> Tensor:
    return conj(_swap_last(matrix))


def _swap_last(matrix: Any) -> Tensor:
    tensor = convert(matrix)
    if tensor.ndim < 2:
        raise InvalidArgumentError(
            f"matrix_transpose: needs at least 2 dimensions, got shape {tuple(tensor.shape)}"
        )
    return swap_last(tensor)


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Return the conjugate transpose of each matrix in a stack of matrices."""
    return _adjoint(matrix)


def band_part(input: TensorLike, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Return matrices `input` with zeros outside a band around the diagonal.

    It keeps `num_lower` diagonals below and `num_upper` above; a negative number keeps all.
    Modelled on ``tf.linalg.band_part``.
    """
    return _diagonals.band_part(input, num_lower, num_upper)


cholesky = unary_of_input(_decompositions.cholesky, __name__)
det = unary_of_input(_decompositions.det, __name__)
expm = unary_of_input(_matrix_functions.expm, __name__)
logm = unary_of_input(_matrix_functions.logm, __name__)
sqrtm = unary_of_input(_matrix_functions.sqrtm, __name__)
eig = unary_of_tensor(_eigenvectors.eig, __name__)
eigvals = unary_of_tensor(_eigenvectors.eigvals, __name__)
eigh = unary_of_tensor(_factorizations.eigh, __name__)
eigvalsh = unary_of_tensor(_factorizations.eigvalsh, __name__)


def cholesky_solve(chol: Any, rhs: TensorLike, name: str | None = None) -> Tensor:
    """Return the solution x of ``a x = rhs`` from the lower Cholesky factor `chol` of ``a``."""
    return _decompositions.cholesky_solve(chol, rhs)


def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """Return the cross products of vectors of 3 elements, along the last axis."""
    x, y = convert_operands((a, b))
    if not x.ndim or not y.ndim or x.shape[-1] != 3 or y.shape[-1] != 3:
        raise InvalidArgumentError(
            f"cross: vectors must have 3 elements, got shapes {tuple(x.shape)} and {tuple(y.shape)}"
        )
    (x0, x1, x2), (y0, y1, y2) = unstack(x, -1), unstack(y, -1)
    return stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], -1)


def diag(
    diagonal: Any,
    name: str | None = "diag",
    k: int = 0,
    num_rows: int = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return matrices with `diagonal` (..., n) on diagonal `k`, and `padding_value` elsewhere.

    Modelled on ``tf.linalg.diag``. The matrices are square unless a size is given; then -1 means
    the smallest size that fits. If `k` is a pair, the lowest and the highest diagonal, `diagonal`
    (..., their number, n) has them from the highest to the lowest; `align` says on which side
    shorter diagonals above and below the main diagonal are padded. Raises InvalidArgumentError for
    sizes that do not fit.
    """
    return _diagonals.matrix_diag(diagonal, k, num_rows, num_cols, padding_value, align)


def diag_part(
    input: TensorLike,
    name: str | None = "diag_part",
    k: int = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return diagonal `k` of each matrix of `input`: shape (..., length).

    Modelled on ``tf.linalg.diag_part``. If `k` is a pair, the result has the diagonals from the
    highest to the lowest, (..., their number, length): shorter diagonals are padded with
    `padding_value`, and `align` says on which side above and below the main diagonal. Raises
    InvalidArgumentError for a diagonal that the matrices do not have.
    """
    return _diagonals.matrix_diag_part(input, k, padding_value, align)


@restates(_decompositions.slogdet)
def slogdet(input: TensorLike, name: str | None = None) -> LogMatrixDeterminant:
    return _decompositions.slogdet(input)


def einsum(
    equation: str, *inputs: Any, optimize: str = "greedy", name: str | None = None
) -> Tensor:
    """Return the sum over products of elements with equal indices: `equation` has a letter for each
    axis of each of `inputs` and, after "->", of the result. A letter that an input repeats takes
    its diagonal; "..." stands for axes that broadcast."""
    return _einsum.einsum(equation, *inputs)


@reads_own_arguments
def eye(
    num_rows: int,
    num_columns: int | None = None,
    batch_shape: Shape | None = None,
    dtype: DTypeLike = FLOAT32,
    name: str | None = None,
) -> Tensor:
    """Return the identity matrix of `num_rows` by `num_columns` (square by default), repeated to
    `batch_shape`."""
    matrix = _creation.eye(num_rows, num_columns, dtype)
    if batch_shape is None:
        return matrix
    return broadcast_to(matrix, (*as_shape("eye", batch_shape), *matrix.shape))


def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Return the inverse of each square matrix of `input`, or of its adjoint."""
    return _decompositions.inv(_adjoint(input) if adjoint else input)


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Return the logarithm of the determinant of each positive definite matrix of `matrix`."""
    return _decompositions.slogdet(matrix)[1]


def lstsq(
    matrix: TensorLike,
    rhs: TensorLike,
    l2_regularizer: Any = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """Return the x that minimizes ``norm(matrix x - rhs)**2 + l2_regularizer * norm(x)**2``; the
    shortest x if there are several. By singular values; `fast` has no effect."""
    x, y = convert_operands((matrix, rhs))
    if isinstance(l2_regularizer, (int, float)) and not l2_regularizer:
        return _least_squares.lstsq(x, y)
    width, count = x.shape[-1], y.shape[-1]
    root = sqrt(cast(l2_regularizer, real_dtype(x.dtype)))
    unit = multiply(np.eye(width, dtype=x.dtype), cast(root, x.dtype))
    more = broadcast_to(unit, (*x.shape[:-2], width, width))
    nothing = zeros((*y.shape[:-2], width, count), y.dtype)
    return _least_squares.lstsq(concatenate([x, more], -2), concatenate([y, nothing], -2))


def lu(
    input: TensorLike, output_idx_type: Any = INT32, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return L and U in one matrix, L without its diagonal of ones, and the order of rows in which
    ``L U`` is `input`."""
    factors, order = _eigenvectors.lu(input)
    return factors, cast(order, output_idx_type)


def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    *,
    name: str | None = None,
) -> Tensor:
    """Return the matrix product over the last two axes; the axes before them broadcast.

    A 1-D operand is a row on the left or a column on the right, as in NumPy. The transpose flags
    first swap an operand's last two axes; the adjoint flags also conjugate it. The dtypes promote.
    Raises InvalidArgumentError for scalars and shapes that do not fit.
    """
    return _linear_algebra.matmul(a, b, transpose_a, transpose_b, adjoint_a, adjoint_b)


def matrix_rank(
    a: TensorLike, tol: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Return the number (int32) of singular values above `tol`, by default the larger size of the
    matrix times eps times the largest. It has no gradient."""
    return cast(_least_squares.matrix_rank(a, tol), INT32)


def matrix_transpose(a: TensorLike, name: str | None = None, conjugate: bool = False) -> Tensor:
    """Return the transpose of each matrix in a stack of matrices; conjugated if `conjugate`."""
    return conj(_swap_last(a)) if conjugate else _swap_last(a)


@restates(_linear_algebra.matvec)
def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    return _linear_algebra.matvec(a, b, transpose_a, adjoint_a)


@restates(_least_squares.pinv)
def pinv(
    a: TensorLike, rcond: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    return _least_squares.pinv(a, rcond)


def qr(
    input: TensorLike, full_matrices: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return Q, with orthonormal columns, and the upper triangular R of matrices ``input = Q R``.

    `input` has shape (..., m, n), and k is the smaller of m and n: Q is (..., m, k), R (..., k, n);
    with `full_matrices` (..., m, m) and (..., m, n). The derivative needs the first k columns to be
    independent, otherwise it raises errors.MatrixError. Integers become float64.
    """
    return _factorizations.qr(input, full_matrices)


def set_diag(
    input: TensorLike,
    diagonal: Any,
    name: str | None = "set_diag",
    k: int = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return matrices `input` with diagonal `k` replaced by `diagonal` (..., length).

    Modelled on ``tf.linalg.set_diag``. If `k` is a pair, `diagonal` has several diagonals, as
    ``diag_part`` returns them. Raises InvalidArgumentError for another length.
    """
    return _diagonals.matrix_set_diag(input, diagonal, k, align)


def solve(
    matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Return the solution x of ``matrix x = rhs`` for square matrices, or for their adjoints."""
    return _decompositions.solve(_adjoint(matrix) if adjoint else matrix, rhs)


def svd(
    tensor: TensorLike,
    full_matrices: bool = False,
    compute_uv: bool = True,
    name: str | None = None,
) -> Tensor | Any:
    """Return the singular values s, descending, U and V of matrices ``U diag(s) adjoint(V)``; only
    s unless `compute_uv`. See `eigh` for derivatives."""
    if not compute_uv:
        return _factorizations.svdvals(tensor)
    left, values, right = _factorizations.svd(tensor, full_matrices)
    return values, left, right


def norm(
    tensor: TensorLike,
    ord: str = "euclidean",
    axis: Axes = None,
    keepdims: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the norm of vectors along one axis or of all elements; of matrices along two.

    Modelled on ``tf.norm``. `ord` is "euclidean" or a positive number of vectors, which may be inf;
    of matrices (a list or tuple of two axes) "euclidean" or "fro", 1, 2 or inf. Real for complex
    `tensor`; integers become float64. Raises InvalidArgumentError for other orders; `vector_norm`
    and `matrix_norm` have more.
    """
    return _norms.norm(tensor, ord, axis, keepdims)


@restates(_linear_algebra.tensordot)
def tensordot(a: TensorLike, b: TensorLike, axes: Any, name: str | None = None) -> Tensor:
    return _linear_algebra.tensordot(a, b, axes)


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """Return the sum of the diagonal of each matrix of `x`."""
    return _reductions.reduce_sum(_diagonals.matrix_diag_part(x), -1)


def triangular_solve(
    matrix: TensorLike,
    rhs: TensorLike,
    lower: bool = True,
    adjoint: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the solution x of ``matrix x = rhs``, or of its adjoint, where only the lower (or
    upper) triangle of `matrix` is read."""
    if not adjoint:
        return _decompositions.triangular_solve(matrix, rhs, lower)
    return _decompositions.triangular_solve(_adjoint(matrix), rhs, not lower)


__all__ += export_functions(globals())
