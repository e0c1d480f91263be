"""Converters that several libraries' spellings share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.conversion import convert
from ..._core.kinds import is_integer
from ..._core.tensor import Tensor
from ...errors import InvalidArgumentError
from ..creation import linspace
from ..elementwise import floor, multiply
from ..indexing import getitem
from ..reductions import reduce_variance
from ..shape import cast, expand_dims, reshape


def neither(x: Any, y: Any) -> bool:
    """Return whether x and y are both missing; ValueError if one of them is."""
    if (x is None) != (y is None):
        raise ValueError("where: x and y must both be given, or neither")
    return x is None


def check_count(parts: list[Tensor], num: int | None) -> list[Tensor]:
    """Return the parts of `unstack`; InvalidArgumentError if their number is not `num`."""
    if num is not None and num != len(parts):
        raise InvalidArgumentError(f"unstack: num is {num}, but there are {len(parts)} slices")
    return parts


def arg_extremum(find: Callable, x: Any, axis: Any, keepdims: bool) -> Tensor:
    """Return `argmax` or `argmin`, of the flattened tensor by default; reduced axes may stay."""
    x = convert(x)
    index = find(x, axis)
    if not keepdims:
        return index
    return reshape(index, (1,) * x.ndim) if axis is None else expand_dims(index, axis)


def flattened(x: Any, axis: Any) -> tuple[Any, Any]:
    """Return `x` and the axis; the flattened tensor and its only axis if that is None."""
    return (reshape(x, (-1,)), 0) if axis is None else (x, axis)


def taken(take: Callable, x: Any, indices: Any, axis: Any) -> Tensor:
    """Return `gather` or `take_along_axis`, from the flattened tensor if the axis is None."""
    x, axis = flattened(x, axis)
    return take(x, indices, axis)


def transposed_conv_sizes(
    inputs: Any,
    kernel: Any,
    strides: Any,
    padding: str,
    output_padding: Any,
    data_format: Any,
    dilation_rate: Any,
) -> list[int]:
    """Return the spatial sizes of the result of Keras's transposed convolution."""
    shape, window = convert(inputs).shape, convert(kernel).shape[:-2]
    sizes = shape[2:] if data_format == "channels_first" else shape[1:-1]
    parameters = (strides, dilation_rate, output_padding)
    each = [
        parameter if isinstance(parameter, (list, tuple)) else [parameter] * len(window)
        for parameter in parameters
    ]
    lengths = []
    for size, count, step, gap, more in zip(sizes, window, *each, strict=True):
        reach = (count - 1) * gap + 1
        if padding.lower() == "valid":
            last = reach + (max(step - reach, 0) if more is None else more)
        else:
            last = step if more is None else reach % 2 + more
        lengths.append((size - 1) * step + last)
    return lengths


def grid_axes(points: Sequence[Any], indexing: str) -> list[Tensor]:
    """Return the coordinates of each axis of a grid, of size 1 along the other axes."""
    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    order = list(range(len(points)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    return [
        reshape(x, [-1 if dim == own else 1 for dim in range(len(points))])
        for own, x in zip(order, points, strict=True)
    ]


def variance(x: Tensor, axis: Any, ddof: float, keepdims: bool) -> Tensor:
    """Return the variance: the sum of squares over the number of elements less `ddof`."""
    result = reduce_variance(x, axis, keepdims)
    if not ddof:
        return result
    count = x.size // result.size if result.size else 0
    with np.errstate(all="ignore"):
        return multiply(result, float(np.float64(count) / max(count - ddof, 0)))


def space_evenly(start: Any, stop: Any, num: Any, endpoint: bool, dtype: Any) -> Tensor:
    """Return `linspace`, with or without its last point; rounded down if integers are asked."""
    if dtype is not None and is_integer(np.dtype(dtype)):
        return cast(floor(space_evenly(start, stop, num, endpoint, np.float64)), dtype)
    if endpoint:
        return linspace(start, stop, num, dtype)
    return getitem(linspace(start, stop, num + 1, dtype), slice(None, -1))
