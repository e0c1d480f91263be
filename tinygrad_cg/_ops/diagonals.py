"""Diagonals of matrices: taken out, put in, and matrices made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.conversion import convert, convert_operands
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .define import as_int
from .elementwise import where
from .indexing import gather, getitem
from .matrices import band, matrices
from .shape import expand_dims, reshape


def _offset(name: str, k: Any) -> int:
    if isinstance(k, (tuple, list)) and len(k) == 2 and k[0] == k[1]:
        k = k[0]
    if isinstance(k, (tuple, list)):
        raise InvalidArgumentError(
            f"{name}: k must be one diagonal, got {k}: bands of several are not supported; call it "
            "for each of them"
        )
    return as_int(name, "k", k)


def _length(name: str, shape: tuple[int, ...], k: int) -> int:
    height, width = shape[-2:]
    length = min(height + min(k, 0), width - max(k, 0))
    if length < 1 and (height and width):
        raise InvalidArgumentError(
            f"{name}: matrices of shape {(height, width)} have no diagonal {k}"
        )
    return max(length, 0)


def _on_diagonal(values: Tensor, shape: tuple[int, int], k: int, other: Any) -> Tensor:
    """Return matrices with `values` on diagonal k, and `other` elsewhere."""
    height, width = shape
    length = values._data.shape[-1]
    rows = np.arange(height) + min(k, 0)
    column = gather(values, np.clip(rows, 0, max(length - 1, 0)), values._data.ndim - 1)
    inside = np.arange(width) - np.arange(height)[:, None] == k
    inside &= ((rows >= 0) & (rows < length))[:, None]
    return where(inside, expand_dims(column, -1), other)


def matrix_diag(
    diagonal: Any, k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0
) -> Tensor:
    """Return matrices with `diagonal` (..., n) on diagonal `k`, and `padding_value` elsewhere.

    After ``tf.linalg.diag``, for one diagonal. The matrices are square unless a size is given; then
    -1 stands for the least that holds it. Raises InvalidArgumentError for sizes that do not fit.
    """
    values = convert(diagonal)
    offset = _offset("diag", k)
    if not values._data.ndim:
        raise InvalidArgumentError("diag: diagonal must have at least 1 dimension, got a scalar")
    length = values._data.shape[-1]
    least = length - min(offset, 0), length + max(offset, 0)
    given = as_int("diag", "num_rows", num_rows), as_int("diag", "num_cols", num_cols)
    if given == (-1, -1):
        shape = (length + abs(offset),) * 2
    elif given[0] == -1:
        shape = (least[0], given[1])
    elif given[1] == -1:
        shape = (given[0], least[1])
    else:
        shape = given
    if not length or _length("diag", shape, offset) != length:
        raise InvalidArgumentError(
            f"diag: {length} elements are not diagonal {offset} of matrices of shape {shape}"
        )
    return _on_diagonal(values, shape, offset, padding_value)


def matrix_diag_part(x: Any, k: Any = 0) -> Tensor:
    """Return diagonal `k` of each matrix of `x`: shape (..., length).

    After ``tf.linalg.diag_part``, for one diagonal. Raises InvalidArgumentError for a diagonal that
    the matrices do not have.
    """
    x = matrices("diag_part", x)
    offset = _offset("diag_part", k)
    places = np.arange(_length("diag_part", tuple(x._data.shape), offset))
    return getitem(x, (Ellipsis, places - min(offset, 0), places + max(offset, 0)))


def matrix_set_diag(x: Any, diagonal: Any, k: Any = 0) -> Tensor:
    """Return matrices `x` with diagonal `k` replaced by `diagonal` (..., length).

    After ``tf.linalg.set_diag``, for one diagonal. Raises InvalidArgumentError for another length.
    """
    x, values = convert_operands((x, diagonal))
    x, offset = matrices("set_diag", x), _offset("set_diag", k)
    length = _length("set_diag", tuple(x._data.shape), offset)
    if not values._data.ndim or values._data.shape[-1] != length:
        raise InvalidArgumentError(
            f"set_diag: diagonal {offset} has {length} elements, got shape {tuple(values.shape)}"
        )
    return _on_diagonal(values, x._data.shape[-2:], offset, x) if length else x


def band_part(x: Any, num_lower: Any, num_upper: Any) -> Tensor:
    """Return matrices `x` with zeros outside a band around the diagonal.

    It has `num_lower` diagonals below and `num_upper` above; a negative number stands for all.
    After ``tf.linalg.band_part``.
    """
    x = matrices("band_part", x)
    below = as_int("band_part", "num_lower", num_lower)
    above = as_int("band_part", "num_upper", num_upper)
    return band(x, None if below < 0 else below, None if above < 0 else above)


def tensor_diag(diagonal: Any) -> Tensor:
    """Return a tensor of twice the rank: `diagonal` where both halves of the index are equal."""
    x = convert(diagonal)
    shape = tuple(x._data.shape)
    flat = reshape(x, (-1,))
    return reshape(matrix_diag(flat), shape + shape)


def tensor_diag_part(x: Any) -> Tensor:
    """Return the elements of `x` for which both halves of the index are equal."""
    x = convert(x)
    half, odd = divmod(x._data.ndim, 2)
    shape = tuple(x._data.shape)
    if odd or not half or shape[:half] != shape[half:]:
        raise InvalidArgumentError(
            f"tensor_diag_part: both halves of the shape must be equal, got {shape}"
        )
    size = int(np.prod(shape[:half]))
    return reshape(matrix_diag_part(reshape(x, (size, size))), shape[:half])
