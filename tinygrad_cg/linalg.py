"""TensorFlow's ``tf.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core.conversion import convert, convert_operands
from ._core.tensor import Tensor
from ._ops.complex import conj
from ._ops.creation import zeros
from ._ops.decompositions import triangular_solve as _triangular_solve
from ._ops.define import as_shape
from ._ops.elementwise import multiply, sqrt
from ._ops.factorizations import svd as _svd
from ._ops.factorizations import svdvals
from ._ops.least_squares import lstsq as _lstsq
from ._ops.matrices import real_dtype
from ._ops.shape import broadcast_to, cast, concatenate, stack, swap_last, unstack
from ._spellings.spell import spell
from .errors import InvalidArgumentError


def _broadcast_batch(matrix: Tensor, batch_shape: Any) -> Tensor:
    if batch_shape is None:
        return matrix
    return broadcast_to(matrix, (*as_shape("eye", batch_shape), *matrix.shape))


def _adjoint(matrix: Any) -> Tensor:
    return conj(_swap_last(matrix))


def _swap_last(matrix: Any) -> Tensor:
    tensor = convert(matrix)
    if tensor.ndim < 2:
        raise InvalidArgumentError(
            f"matrix_transpose: needs at least 2 dimensions, got shape {tuple(tensor.shape)}"
        )
    return swap_last(tensor)


def _regularized(matrix: Any, rhs: Any, strength: Any) -> Tensor:
    """Return the solution of least squares, of more rows if its length counts, too."""
    x, y = convert_operands((matrix, rhs))
    if isinstance(strength, (int, float)) and not strength:
        return _lstsq(x, y)
    width, count = x.shape[-1], y.shape[-1]
    root = sqrt(cast(strength, real_dtype(x.dtype)))
    unit = multiply(np.eye(width, dtype=x.dtype), cast(root, x.dtype))
    more = broadcast_to(unit, (*x.shape[:-2], width, width))
    nothing = zeros((*y.shape[:-2], width, count), y.dtype)
    return _lstsq(concatenate([x, more], -2), concatenate([y, nothing], -2))


def _triangular(matrix: Any, rhs: Any, lower: bool, adjoint: bool) -> Tensor:
    """Return the solution of triangular systems, or of their adjoints."""
    if not adjoint:
        return _triangular_solve(matrix, rhs, lower)
    return _triangular_solve(_adjoint(matrix), rhs, not lower)


def _singular(tensor: Any, full_matrices: bool, compute_uv: bool) -> Any:
    if not compute_uv:
        return svdvals(tensor)
    left, values, right = _svd(tensor, full_matrices)
    return values, left, right


def _with_indices(found: tuple[Tensor, Tensor], kind: Any) -> tuple[Tensor, Tensor]:
    return found[0], cast(found[1], kind)


def _cross(a: Any, b: Any) -> Tensor:
    x, y = convert_operands((a, b))
    if not x.ndim or not y.ndim or x.shape[-1] != 3 or y.shape[-1] != 3:
        raise InvalidArgumentError(
            f"cross: vectors must have 3 elements, got shapes {tuple(x.shape)} and {tuple(y.shape)}"
        )
    (x0, x1, x2), (y0, y1, y2) = unstack(x, -1), unstack(y, -1)
    return stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], -1)


_TABLE = """
    adjoint(matrix, name=None) = _adjoint(matrix)
        # Return the conjugate transpose of each matrix in a stack of matrices.
    band_part(input, num_lower, num_upper, name=None) = band_part(input, num_lower, num_upper)
    cholesky det(input, name=None) = {}(input)
    cholesky_solve(chol, rhs, name=None) = cholesky_solve(chol, rhs)
        # Return the solution x of ``a x = rhs`` from the lower Cholesky factor `chol` of ``a``.
    cross(a, b, name=None) = _cross(a, b)
        # Return the cross products of vectors of 3 elements, along the last axis.
    diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1, padding_value=0,
        align="RIGHT_LEFT")
        = matrix_diag(diagonal, k, num_rows, num_cols, padding_value, align)
    diag_part(input, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT")
        = matrix_diag_part(input, k, padding_value, align)
    eig(tensor, name=None) -> tuple[Tensor, Tensor] = eig(tensor)
    eigh(tensor, name=None) -> tuple[Tensor, Tensor] = eigh(tensor)
    eigvals(tensor, name=None) = eigvals(tensor)
    eigvalsh(tensor, name=None) = eigvalsh(tensor)
    einsum(equation, *inputs, optimize="greedy", name=None) = einsum(equation, *inputs)
        # Return the sum over products of elements with equal indices: `equation` has a letter for
        each axis of each of `inputs` and, after "->", of the result. A letter that an input repeats
        takes its diagonal; "..." stands for axes that broadcast.
    eye(num_rows, num_columns=None, batch_shape=None, dtype=float32, name=None)
        = _broadcast_batch(eye(num_rows, num_columns, dtype), batch_shape)
        # Return the identity matrix of `num_rows` by `num_columns` (square by default), repeated to
        `batch_shape`.
    banded_triangular_solve(bands, rhs, lower=True, adjoint=False, name=None)
        = banded_triangular_solve(bands, rhs, lower, adjoint)
    eigh_tridiagonal(alpha, beta, eigvals_only=True, select="a", select_range=None, tol=None,
        name=None) -> Tensor | Any
        = eigh_tridiagonal(alpha, beta, eigvals_only, select, select_range)
    expm logm sqrtm(input, name=None) = {}(input)
    global_norm(t_list, name=None) = global_norm(t_list)
    inv(input, adjoint=False, name=None) = inv(_adjoint(input) if adjoint else input)
        # Return the inverse of each square matrix of `input`, or of its adjoint.
    logdet(matrix, name=None) = slogdet(matrix)[1]
        # Return the logarithm of the determinant of each positive definite matrix of `matrix`.
    l2_normalize(x, axis=None, epsilon=1e-12, name=None) = l2_normalize(x, axis, epsilon)
    lstsq(matrix, rhs, l2_regularizer=0.0, fast=True, name=None)
        = _regularized(matrix, rhs, l2_regularizer)
        # Return the x for which the squared length of ``matrix x - rhs`` and `l2_regularizer` times
        that of x are together the least; of the least length where there are several. By singular
        values; `fast` makes no difference.
    lu(input, output_idx_type=int32, name=None) -> tuple[Tensor, Tensor]
        = _with_indices(lu(input), output_idx_type)
        # Return L and U of matrices in one, L without its diagonal of ones, and the order of rows
        in which ``L U`` is `input`.
    lu_matrix_inverse(lower_upper, perm, validate_args=False, name=None)
        = lu_matrix_inverse(lower_upper, perm)
    lu_reconstruct(lower_upper, perm, validate_args=False, name=None)
        = lu_reconstruct(lower_upper, perm)
    lu_solve(lower_upper, perm, rhs, validate_args=False, name=None)
        = lu_solve(lower_upper, perm, rhs)
    matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False,
        a_is_sparse=False, b_is_sparse=False, *, name=None)
        = matmul(a, b, transpose_a, transpose_b, adjoint_a, adjoint_b)
    matrix_rank(a, tol=None, validate_args=False, name=None) = cast(matrix_rank(a, tol), int32)
        # Return the number (int32) of singular values above `tol`, by default the larger size of
        the matrix times eps times the largest. It has no gradient.
    matrix_transpose(a, name=None, conjugate=False)
        = conj(_swap_last(a)) if conjugate else _swap_last(a)
        # Return the transpose of each matrix in a stack of matrices; conjugated if asked.
    matvec(a, b, transpose_a=False, adjoint_a=False,
        a_is_sparse=False, b_is_sparse=False, name=None)
        = matvec(a, b, transpose_a, adjoint_a)
    normalize(tensor, ord="euclidean", axis=None, name=None) -> tuple[Tensor, Tensor]
        = normalized(tensor, ord, axis)
        # Return `tensor` divided by its `norm` of order `ord`, and that norm, whose axes have size
        1.
    pinv(a, rcond=None, validate_args=False, name=None) = pinv(a, rcond)
    qr(input, full_matrices=False, name=None) -> tuple[Tensor, Tensor] = qr(input, full_matrices)
    set_diag(input, diagonal, name="set_diag", k=0, align="RIGHT_LEFT")
        = matrix_set_diag(input, diagonal, k, align)
    slogdet(input, name=None) -> LogMatrixDeterminant = slogdet(input)
    solve(matrix, rhs, adjoint=False, name=None)
        = solve(_adjoint(matrix) if adjoint else matrix, rhs)
        # Return the solution x of ``matrix x = rhs`` for square matrices, or for their adjoints.
    svd(tensor, full_matrices=False, compute_uv=True, name=None) -> Tensor | Any
        = _singular(tensor, full_matrices, compute_uv)
        # Return the singular values s, falling, U and V of matrices ``U diag(s) adjoint(V)``; s
        alone unless `compute_uv`. See `eigh` for what derivatives there are.
    norm(tensor, ord="euclidean", axis=None, keepdims=False, name=None)
        = norm(tensor, ord, axis, keepdims)
    tensor_diag(diagonal, name=None) = tensor_diag(diagonal)
    tensor_diag_part(input, name=None) = tensor_diag_part(input)
    tensordot(a, b, axes, name=None) = tensordot(a, b, axes)
    trace(x, name=None) = reduce_sum(matrix_diag_part(x), -1)
        # Return the sum of the diagonal of each matrix of `x`.
    tridiagonal_matmul(diagonals, rhs, diagonals_format="compact", name=None)
        = tridiagonal_matmul(diagonals, rhs, diagonals_format)
    tridiagonal_solve(diagonals, rhs, diagonals_format="compact", transpose_rhs=False,
        conjugate_rhs=False, name=None, partial_pivoting=True, perturb_singular=False)
        = tridiagonal_solve(diagonals, rhs, diagonals_format, transpose_rhs, conjugate_rhs,
        partial_pivoting, perturb_singular)
    triangular_solve(matrix, rhs, lower=True, adjoint=False, name=None)
        = _triangular(matrix, rhs, lower, adjoint)
        # Return the solution x of ``matrix x = rhs``, or of its adjoint, where only the lower (or
        upper) triangle of `matrix` is read.
"""
spell(globals(), _TABLE)
