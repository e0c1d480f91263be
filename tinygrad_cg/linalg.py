"""TensorFlow's ``tf.linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .convert import convert
from .errors import InvalidArgumentError
from .ops.define import as_shape
from .ops.elementwise import absolute, power, sqrt, square
from .ops.reductions import reduce_max, reduce_sum
from .ops.shape import broadcast_to, swap_last
from .spell import spell
from .tensor import Tensor

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def _batched(matrix: Tensor, batch_shape: Any) -> Tensor:
    if batch_shape is None:
        return matrix
    return broadcast_to(matrix, (*as_shape("eye", batch_shape), *matrix.shape))


def _swapped(matrix: Any) -> Tensor:
    tensor = convert(matrix)
    if tensor.ndim < 2:
        raise InvalidArgumentError(
            f"matrix_transpose: needs at least 2 dimensions, got shape {tuple(tensor.shape)}"
        )
    return swap_last(tensor)


def _norm(tensor: Any, order: Any, axis: Any, keepdims: bool) -> Tensor:
    """The norm of vectors for any order; of matrices (two axes) the Euclidean one only."""
    size = absolute(tensor)
    if order in ("euclidean", "fro") or (order == 2 and not isinstance(axis, (tuple, list))):
        return sqrt(reduce_sum(square(size), axis, keepdims))
    if isinstance(axis, (tuple, list)):
        raise InvalidArgumentError(f"norm: of matrices only 'euclidean', got {order!r}")
    if order == 1:
        return reduce_sum(size, axis, keepdims)
    if order == np.inf:
        return reduce_max(size, axis, keepdims)
    return power(reduce_sum(power(size, order), axis, keepdims), 1 / order)


_TABLE = """
    adjoint(matrix, name=None) = conj(_swapped(matrix))
    eye(num_rows, num_columns=None, batch_shape=None, dtype=float32, name=None)
        = _batched(eye(num_rows, num_columns, dtype), batch_shape)
    matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False,
        a_is_sparse=False, b_is_sparse=False, *, name=None)
        = matmul(a, b, transpose_a, transpose_b, adjoint_a, adjoint_b)
    matrix_transpose(a, name=None, conjugate=False)
        = conj(_swapped(a)) if conjugate else _swapped(a)
    matvec(a, b, transpose_a=False, adjoint_a=False,
        a_is_sparse=False, b_is_sparse=False, name=None)
        = matvec(a, b, transpose_a, adjoint_a)
    norm(tensor, ord="euclidean", axis=None, keepdims=False, name=None)
        = _norm(tensor, ord, axis, bool(keepdims))
    tensordot(a, b, axes, name=None) = tensordot(a, b, axes)
"""
spell(globals(), _TABLE)
