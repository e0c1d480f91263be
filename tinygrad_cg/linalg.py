"""TensorFlow's ``tf.linalg``."""

from __future__ import annotations

from typing import Any

from ._core.conversion import convert
from ._core.tensor import Tensor
from ._ops.complex import conj
from ._ops.define import as_shape
from ._ops.shape import broadcast_to, swap_last
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


_TABLE = """
    adjoint(matrix, name=None) = _adjoint(matrix)
        # Return the conjugate transpose of each matrix in a stack of matrices.
    cholesky det(input, name=None) = {}(input)
    einsum(equation, *inputs, optimize="greedy", name=None) = einsum(equation, *inputs)
        # Return the sum over products of elements with equal indices: `equation` has a letter for
        each axis of each of `inputs` and, after "->", of the result. A letter that an input repeats
        takes its diagonal; "..." stands for axes that broadcast.
    eye(num_rows, num_columns=None, batch_shape=None, dtype=float32, name=None)
        = _broadcast_batch(eye(num_rows, num_columns, dtype), batch_shape)
        # Return the identity matrix of `num_rows` by `num_columns` (square by default), repeated to
        `batch_shape`.
    inv(input, adjoint=False, name=None) = inv(_adjoint(input) if adjoint else input)
        # Return the inverse of each square matrix of `input`, or of its adjoint.
    logdet(matrix, name=None) = slogdet(matrix)[1]
        # Return the logarithm of the determinant of each positive definite matrix of `matrix`.
    matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False,
        a_is_sparse=False, b_is_sparse=False, *, name=None)
        = matmul(a, b, transpose_a, transpose_b, adjoint_a, adjoint_b)
    matrix_transpose(a, name=None, conjugate=False)
        = conj(_swap_last(a)) if conjugate else _swap_last(a)
        # Return the transpose of each matrix in a stack of matrices; conjugated if asked.
    matvec(a, b, transpose_a=False, adjoint_a=False,
        a_is_sparse=False, b_is_sparse=False, name=None)
        = matvec(a, b, transpose_a, adjoint_a)
    slogdet(input, name=None) -> tuple[Tensor, Tensor] = slogdet(input)
    solve(matrix, rhs, adjoint=False, name=None)
        = solve(_adjoint(matrix) if adjoint else matrix, rhs)
        # Return the solution x of ``matrix x = rhs`` for square matrices, or for their adjoints.
    norm(tensor, ord="euclidean", axis=None, keepdims=False, name=None)
        = norm(tensor, ord, axis, keepdims)
    tensordot(a, b, axes, name=None) = tensordot(a, b, axes)
"""
spell(globals(), _TABLE)
