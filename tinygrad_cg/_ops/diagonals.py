"""Diagonals of matrices: taken out, put in, and matrices made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.annotations import TensorLike
from .._core.conversion import convert, convert_operands, is_tensor
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .creation import full
from .elementwise import where
from .indexing import getitem, put_at
from .matrices import band, matrices
from .padding import pad
from .shape import expand_dims, reshape, stack
from .validation import as_choice, as_int, check_shapes

_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def _offsets(name: str, k: Any, align: Any) -> tuple[int, list[int] | None]:
    """Return one diagonal and None; or 0 and several diagonals, the highest first."""
    as_choice(name, "align", align, _ALIGNMENTS)
    if is_tensor(k) or isinstance(k, np.ndarray):
        k = np.asarray(k).tolist()
    if not isinstance(k, (tuple, list)):
        return as_int(name, "k", k), None
    ends = [as_int(name, "k", offset) for offset in k]
    if len(ends) not in (1, 2) or ends[0] > ends[-1]:
        raise InvalidArgumentError(
            f"{name}: k must be a diagonal, or the lowest and the highest of several, got {k}"
        )
    if ends[0] == ends[-1]:
        return ends[0], None
    return 0, list(range(ends[-1], ends[0] - 1, -1))


def _room(k: int, missing: int, align: str) -> tuple[int, int]:
    """Return how many elements are missing before and after those of diagonal k."""
    above, below = align.split("_")
    first = (k >= 0 and above == "LEFT") or (k <= 0 and below == "LEFT")
    return (0, missing) if first else (missing, 0)


def _taken_apart(
    name: str, diagonals: Tensor, shape: tuple[int, ...], offsets: list[int], align: str
) -> list[Tensor]:
    """Return each of several diagonals of matrices of a shape, from one tensor of all."""
    sizes = [_length(name, shape, k) for k in offsets]
    expected = (len(offsets), max(sizes))
    what = f"diagonals {offsets[-1]} to {offsets[0]} of matrices of shape {tuple(shape[-2:])}"
    check_shapes(name, {what: (diagonals, f"... {expected[0]} {expected[1]}")})
    parts = []
    for i, (k, size) in enumerate(zip(offsets, sizes, strict=True)):
        before, _ = _room(k, expected[1] - size, align)
        parts.append(getitem(diagonals, (Ellipsis, i, slice(before, before + size))))
    return parts


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
    *leading, length = values._data.shape
    first, column = -min(k, 0), values
    if length != height:
        column = put_at(values, (*leading, height), (Ellipsis, slice(first, first + length)))
    rows = np.arange(height)[:, None]
    inside = (np.arange(width) - rows == k) & (rows >= first) & (rows < first + length)
    return where(inside, expand_dims(column, -1), other)


def matrix_diag(
    diagonal: Any,
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return matrices with `diagonal` (..., n) on diagonal `k`, and `padding_value` elsewhere."""
    values = convert(diagonal)
    offset, offsets = _offsets("diag", k, align)
    if offsets is not None:
        return _several_diagonals(values, offsets, num_rows, num_cols, padding_value, align)
    check_shapes("diag", {"diagonal": (values, "... n")})
    length = values._data.shape[-1]
    least = length - min(offset, 0), length + max(offset, 0)
    sizes = as_int("diag", "num_rows", num_rows), as_int("diag", "num_cols", num_cols)
    if sizes == (-1, -1):
        shape = (length + abs(offset),) * 2
    elif sizes[0] == -1:
        shape = (least[0], sizes[1])
    elif sizes[1] == -1:
        shape = (sizes[0], least[1])
    else:
        shape = sizes
    if not length or _length("diag", shape, offset) != length:
        raise InvalidArgumentError(
            f"diag: {length} elements are not diagonal {offset} of matrices of shape {shape}"
        )
    return _on_diagonal(values, shape, offset, full((), padding_value, values.dtype))


def _several_diagonals(
    values: Tensor, offsets: list[int], num_rows: Any, num_cols: Any, other: Any, align: str
) -> Tensor:
    """Return matrices with several diagonals, and `other` elsewhere."""
    what = "of several diagonals, diagonal"
    check_shapes("diag", {what: (values, f"... {len(offsets)} n")})
    length, high, low = values._data.shape[-1], offsets[0], offsets[-1]
    rows, columns = as_int("diag", "num_rows", num_rows), as_int("diag", "num_cols", num_cols)
    least = length - min(high, 0), length + max(low, 0)
    if rows == columns == -1:
        rows = columns = max(least)
    else:
        rows, columns = (
            wanted if size == -1 else size
            for size, wanted in zip((rows, columns), least, strict=True)
        )
    parts = _taken_apart("diag", values, (rows, columns), offsets, align)
    shape = (*values._data.shape[:-2], rows, columns)
    result = full(shape, other, values.dtype)
    for k, part in zip(offsets, parts, strict=True):
        result = _on_diagonal(part, (rows, columns), k, result)
    return result


def matrix_diag_part(
    x: Any, k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Return diagonal `k` of each matrix of `x`: shape (..., length)."""
    x = matrices("diag_part", x)
    offset, offsets = _offsets("diag_part", k, align)
    if offsets is not None:
        parts = [matrix_diag_part(x, offset) for offset in offsets]
        longest = max(part._data.shape[-1] for part in parts)
        lead = [(0, 0)] * (x._data.ndim - 2)
        rooms = [
            _room(offset, longest - part._data.shape[-1], align)
            for offset, part in zip(offsets, parts, strict=True)
        ]
        return stack(
            [
                pad(part, [*lead, room], value=padding_value)
                for part, room in zip(parts, rooms, strict=True)
            ],
            -2,
        )
    shape = tuple(x._data.shape)
    length, width = _length("diag_part", shape, offset), shape[-1]
    first, step = max(offset, 0) - min(offset, 0) * width, width + 1
    elements = reshape(x, (*shape[:-2], shape[-2] * width))
    return getitem(elements, (Ellipsis, slice(first, first + length * step, step)))


def matrix_set_diag(x: Any, diagonal: Any, k: Any = 0, align: str = "RIGHT_LEFT") -> Tensor:
    """Return matrices `x` with diagonal `k` replaced by `diagonal` (..., length)."""
    x, values = convert_operands((x, diagonal))
    x, (offset, offsets) = matrices("set_diag", x), _offsets("set_diag", k, align)
    if offsets is not None:
        shape = tuple(x._data.shape)
        for position, part in zip(
            offsets, _taken_apart("set_diag", values, shape, offsets, align), strict=True
        ):
            x = _on_diagonal(part, shape[-2:], position, x)
        return x
    length = _length("set_diag", tuple(x._data.shape), offset)
    if not values._data.ndim or values._data.shape[-1] != length:
        raise InvalidArgumentError(
            f"set_diag: diagonal {offset} has {length} elements, got shape {tuple(values.shape)}"
        )
    return _on_diagonal(values, x._data.shape[-2:], offset, x) if length else x


def band_part(x: Any, num_lower: Any, num_upper: Any) -> Tensor:
    """Return matrices `x` with zeros outside a band around the diagonal."""
    x = matrices("band_part", x)
    below = as_int("band_part", "num_lower", num_lower)
    above = as_int("band_part", "num_upper", num_upper)
    return band(x, None if below < 0 else below, None if above < 0 else above)


def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Return a tensor of twice the rank: `diagonal` where both halves of the index are equal."""
    x = convert(diagonal)
    shape = tuple(x._data.shape)
    flat = reshape(x, (-1,))
    return reshape(matrix_diag(flat), shape + shape)


def tensor_diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the elements of `input` for which both halves of the index are equal."""
    x = convert(input)
    half, odd = divmod(x._data.ndim, 2)
    shape = tuple(x._data.shape)
    if odd or not half or shape[:half] != shape[half:]:
        raise InvalidArgumentError(
            f"tensor_diag_part: both halves of the shape must be equal, got {shape}"
        )
    size = int(np.prod(shape[:half]))
    return reshape(matrix_diag_part(reshape(x, (size, size))), shape[:half])
