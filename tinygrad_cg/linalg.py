"""TensorFlow's ``tf.linalg``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .dtypes import float32
from .ops.shape import broadcast_to, swap_last
from .spell import spell

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def _batched(matrix: Any, batch_shape: Any) -> Any:
    return matrix if batch_shape is None else broadcast_to(matrix, (*batch_shape, *matrix.shape))


_TABLE = """
    adjoint(matrix, name=None) = conj(swap_last(convert(matrix)))
    eye(num_rows, num_columns=None, batch_shape=None, dtype=float32, name=None) = _batched(eye(num_rows, num_columns, dtype), batch_shape)
    matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, a_is_sparse=False, b_is_sparse=False, *, name=None) = matmul(a, b, transpose_a, transpose_b, adjoint_a, adjoint_b)
    matrix_transpose(a, name=None, conjugate=False) = conj(swap_last(convert(a))) if conjugate else swap_last(convert(a))
    matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False, name=None) = matvec(a, b, transpose_a, adjoint_a)
    tensordot(a, b, axes, name=None) = tensordot(a, b, axes)
"""
__all__ = spell(globals(), _TABLE)
