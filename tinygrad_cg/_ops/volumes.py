"""Convolution and pooling along three axes, by those along two; pooling with gaps.

The windows along the depth are gathered, and are channels of a convolution in the plane; a maximum
or a mean is taken in the plane first, then along the depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.annotations import Shape, TensorLike
from .._core.conversion import convert, convert_operands
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .block_moves import batch_to_space, space_to_batch
from .convolution import conv
from .convolution import conv_transpose as conv2d_transpose
from .indexing import gather, getitem, scatter_rows
from .padding import pad
from .pooling import average_pool, max_pool
from .shape import concatenate, reshape, transpose
from .validation import as_choice, as_int, as_shape, check_shapes
from .windows import ImageLayout

_BY_TYPE = {"MAX": max_pool, "AVG": average_pool}


def _starts(name: str, size: int, window: int, gap: int, step: int, room: tuple) -> np.ndarray:
    """Return the positions of each window's elements along one axis, padding included."""
    reach = (window - 1) * gap + 1
    count = (size + sum(room) - reach) // step + 1
    if window < 1 or count < 1:
        raise InvalidArgumentError(
            f"{name}: a window of {window} (that spans {reach}) does not fit into {size} elements "
            f"with padding {room}"
        )
    return np.arange(count)[:, None] * step + np.arange(window) * gap


def _windows(
    layout: ImageLayout,
    filters: Tensor,
    sizes: Sequence[int],
    strides: Any,
    padding: Any,
    dilations: Any,
) -> tuple[Any, Any, Any, np.ndarray]:
    """Return steps, gaps and padding of windows along three axes, and their `_starts` in depth."""
    check_shapes(layout.name, {"filters": (filters, "depth height width channels outputs")})
    steps, gaps = layout.sizes("strides", strides), layout.sizes("dilations", dilations)
    window = filters.shape[:3]
    reach = [gap * (count - 1) + 1 for gap, count in zip(gaps, window, strict=True)]
    rooms = layout.padding(padding, sizes, reach, steps)
    starts = _starts(layout.name, sizes[0], window[0], gaps[0], steps[0], rooms[0])
    return steps, gaps, rooms, starts


def _flat_filters(filters: Tensor) -> Tensor:
    """Return filters (depth, height, width, a, b) as (height, width, depth * a, b)."""
    depth, height, width, a, b = filters.shape
    return reshape(transpose(filters, (1, 2, 0, 3, 4)), (height, width, depth * a, b))


def conv3d(
    input: TensorLike,
    filters: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the convolution (without flipping) of volumes with filters, along three axes.

    Modelled on ``tf.nn.conv3d``: `input` is (batch, depth, height, width, channels), or channels
    first if `data_format` says so; `filters` are (depth, height, width, channels of a group,
    outputs). The channels are divided into groups of this size (TensorFlow has one group).
    `padding` is "VALID", "SAME", or three pairs. Raises InvalidArgumentError for shapes that do not
    fit, TypeError for bool.
    """
    x, filters = convert_operands((input, filters))
    layout = ImageLayout("conv3d", data_format, 3, 3)
    x = layout.images(x)
    sizes, window = x.shape[1:4], filters.shape[:3]
    steps, gaps, rooms, starts = _windows(layout, filters, sizes, strides, padding, dilations)
    batch, _, height, width, channels = x.shape
    own = filters.shape[3]
    if not own or channels % own:
        raise InvalidArgumentError(
            f"conv3d: filters for {own} channels do not fit volumes with {channels} channels, "
            "which must be a multiple of them"
        )
    x = reshape(x, (batch, sizes[0], height, width, channels // own, own))
    x = pad(x, [(0, 0), rooms[0], *[(0, 0)] * 4]) if any(rooms[0]) else x
    slices = [slice(int(row[0]), int(row[-1]) + 1, steps[0]) for row in starts.T]
    x = concatenate([getitem(x, (slice(None), part)) for part in slices], -1)
    x = reshape(x, (batch * len(starts), height, width, channels * window[0]))
    result = conv(x, _flat_filters(filters), steps[1:], rooms[1:], "NHWC", gaps[1:])
    return layout.back(reshape(result, (batch, len(starts), *result.shape[1:])))


def conv3d_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Shape,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the transpose of ``conv3d``, a map of volumes, of `output_shape`: all axes, or space.

    Modelled on ``tf.nn.conv3d_transpose``: `filters` are (depth, height, width, outputs, channels),
    the filters of a ``conv3d`` from the result to the shape of `input`. Raises InvalidArgumentError
    if the shapes do not fit.
    """
    op_name = "conv3d_transpose"
    x, filters = convert_operands((input, filters))
    layout = ImageLayout(op_name, data_format, 3, 3)
    x = layout.images(x)
    asked, sizes = layout.output_shape(output_shape)
    steps, gaps, rooms, starts = _windows(layout, filters, sizes, strides, padding, dilations)
    window = filters.shape[:3]
    batch, depth, height, width, channels = x.shape
    if len(starts) != depth:
        raise InvalidArgumentError(
            f"{op_name}: a convolution of volumes of depth {sizes[0]} gives the depth "
            f"{len(starts)}, but x has shape {tuple(x.shape)}"
        )
    x = reshape(x, (batch * depth, height, width, channels))
    plane = (batch * depth, *sizes[1:], window[0] * filters.shape[3])
    flat = _flat_filters(filters)
    result = conv2d_transpose(x, flat, plane, steps[1:], rooms[1:], "NHWC", gaps[1:])
    result = reshape(result, (batch, depth, *sizes[1:], window[0], filters.shape[3]))
    result = transpose(result, (1, 4, 0, 2, 3, 5))  # each plane of a window to its depth
    result = reshape(result, (depth * window[0], *result.shape[2:]))
    whole = sizes[0] + sum(rooms[0])
    result = scatter_rows(result, convert(starts.reshape(-1)), whole)
    result = getitem(result, slice(rooms[0][0], rooms[0][0] + sizes[0]))
    return layout.check_output(asked, layout.back(transpose(result, (1, 0, 2, 3, 4))))


def pool3d(
    kind: str,
    x: Any,
    size: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: Any = None,
) -> Tensor:
    """Return the largest ("MAX") or the mean element ("AVG") under windows in volumes.

    Modelled on ``tf.nn.max_pool3d`` and ``tf.nn.avg_pool3d``; arguments as of ``max_pool2d``.
    """
    reduce, name = _BY_TYPE[kind], f"{kind.lower()}_pool3d"
    layout = ImageLayout(name, data_format, 3, 3)
    x = layout.images(convert(x))
    window = layout.sizes("the size of the window", size)
    steps = window if strides is None else layout.sizes("strides", strides)
    batch, depth, height, width, channels = x.shape
    rooms = layout.padding(padding, (depth, height, width), window, steps)
    x = reshape(x, (batch * depth, height, width, channels))
    x = reduce(x, window[1:], steps[1:], rooms[1:], "NHWC")
    plane = x.shape[1:3]
    x = reshape(x, (batch, depth, plane[0] * plane[1], channels))
    x = reduce(x, (window[0], 1), (steps[0], 1), (rooms[0], (0, 0)), "NHWC")
    return layout.back(reshape(x, (batch, x.shape[1], *plane, channels)))


# By the number of axes ---------------------------------------------------------------------------


def convolution(
    input: TensorLike,
    filters: TensorLike,
    strides: Any = None,
    padding: str = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the convolution (without flipping) of `input` with `filters`, along one to three axes.

    Modelled on ``tf.nn.convolution``: `input` is (batch, spatial axes, channels), or channels first
    if `data_format` says so; `filters` are (spatial axes, channels of a group, outputs). Channels
    are cut into as many groups as fit. `padding` is "VALID", "SAME", or (before, after) pairs.
    Raises InvalidArgumentError for shapes that do not fit, TypeError for bool.
    """
    x, filters = convert_operands((input, filters))
    along = conv3d if filters.ndim == 5 else conv
    return along(x, filters, strides, padding, data_format, dilations)


def conv_transpose(
    input: TensorLike,
    filters: TensorLike,
    output_shape: Shape,
    strides: Any,
    padding: str = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the transpose of a convolution along one to three axes, of `output_shape`.

    Modelled on ``tf.nn.conv_transpose``: `filters` are (spatial axes, outputs, channels), the
    filters of a convolution from the result to the shape of `input`. Raises InvalidArgumentError if
    the shapes do not fit.
    """
    x, filters = convert_operands((input, filters))
    along = conv3d_transpose if filters.ndim == 5 else conv2d_transpose
    return along(x, filters, output_shape, strides, padding, data_format, dilations)


def pool_by_rank(
    kind: str, x: Any, size: Any, strides: Any, padding: Any, data_format: Any
) -> Tensor:
    """Return the largest ("MAX") or mean element ("AVG") under windows, along one to three axes."""
    x = convert(x)
    if x.ndim == 5:
        return pool3d(kind, x, size, strides, padding, data_format)
    return _BY_TYPE[kind](x, size, strides, padding, data_format)


def pool(
    input: TensorLike,
    window_shape: Any,
    pooling_type: Any,
    strides: Any = None,
    padding: str = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the largest ("MAX") or the mean element ("AVG") under dilated windows.

    Modelled on ``tf.nn.pool``, along one to three axes: `window_shape`, `strides` (1 by default)
    and `dilations` have a number for each, or are one for all. Dilations above 1 need strides of 1
    and the padding "VALID"; otherwise this raises InvalidArgumentError.
    """
    x = convert(input)
    count = x.ndim - 2
    kind = pooling_type.upper() if isinstance(pooling_type, str) else pooling_type
    as_choice("pool", "pooling_type", kind, _BY_TYPE)
    steps = 1 if strides is None else strides
    gaps = as_shape("pool", 1 if dilations is None else dilations)
    gaps = gaps * count if len(gaps) == 1 else gaps
    if set(gaps) <= {1}:
        return pool_by_rank(kind, x, window_shape, steps, padding, data_format)
    if (
        not isinstance(padding, str)
        or padding.upper() != "VALID"
        or set(as_shape("pool", steps)) != {1}
    ):
        raise InvalidArgumentError(
            f"pool: with dilations {gaps} padding must be 'VALID' and strides 1, got {padding!r} "
            f"and {strides}"
        )
    return with_space_to_batch(
        x,
        gaps,
        "VALID",
        lambda part, count, valid: pool_by_rank(kind, part, window_shape, 1, valid, data_format),
        None,
        None,
        data_format,
    )


def with_space_to_batch(
    input: TensorLike,
    dilation_rate: Any,
    padding: Any,
    op: Any,
    filter_shape: Any = None,
    spatial_dims: Any = None,
    data_format: str | None = None,
) -> Tensor:
    """Return the dilated `op`: apply it to each part of `input` with every `dilation_rate`-th
    element.

    Modelled on ``tf.nn.with_space_to_batch``: ``op(part, number of axes, "VALID")`` is called once,
    with all parts as one batch, and its results are interleaved again; ``op(input, number of axes,
    padding)`` if all rates are 1. The axes are `spatial_dims`, ascending, by default those after
    the batch, or after the channels if `data_format` has them first. With the padding "SAME", zeros
    are added for filters of `filter_shape`. Raises InvalidArgumentError for sizes that do not fit.
    """
    name, x = "with_space_to_batch", convert(input)
    rates = as_shape(name, dilation_rate)
    first = 2 if isinstance(data_format, str) and data_format.startswith("NC") else 1
    default = range(first, first + len(rates))
    axes = tuple(default) if spatial_dims is None else as_shape(name, spatial_dims)
    if (
        len(axes) != len(rates)
        or not all(rate > 0 for rate in rates)
        or list(axes) != sorted({*axes})
        or not all(0 < axis < x.ndim for axis in axes)
    ):
        raise InvalidArgumentError(
            f"{name}: needs a positive dilation rate for each of ascending axes after the batch; "
            f"got rates {rates}, axes {axes} and shape {tuple(x.shape)}"
        )
    if set(rates) <= {1}:
        return op(x, len(axes), padding)
    how = padding.upper() if isinstance(padding, str) else padding
    if how not in ("SAME", "VALID") or (how == "SAME" and filter_shape is None):
        raise InvalidArgumentError(
            f"{name}: padding must be 'VALID', or 'SAME' with a filter_shape; got {padding!r}"
        )
    blocks = [1] * max(axes)
    rooms = [[0, 0] for _ in blocks]
    crops = [[0, 0] for _ in blocks]
    spans = (1,) * len(axes) if how == "VALID" else as_shape(name, filter_shape)
    for i, (axis, rate) in enumerate(zip(axes, rates, strict=True)):
        total = (as_int(name, "filter_shape", spans[i]) - 1) * rate
        before, after = total // 2, total - total // 2
        more = -(x.shape[axis] + total) % rate
        blocks[axis - 1] = rate
        rooms[axis - 1], crops[axis - 1] = [before, after + more], [0, more]
    result = op(space_to_batch(x, blocks, rooms), len(axes), "VALID")
    return batch_to_space(result, blocks, crops)


# Patches ------------------------------------------------------------------------------------------


def extract_volume_patches(x: Any, ksizes: Any, strides: Any, padding: Any) -> Tensor:
    """Return the elements under windows in volumes, as channels.

    Modelled on ``tf.extract_volume_patches``: `x` is (batch, depth, height, width, channels),
    `ksizes` and `strides` have five numbers, those for batch and channels 1. The channels of the
    result go through depth, height, width and channels of a window. Raises InvalidArgumentError for
    sizes that do not fit.
    """
    name = "extract_volume_patches"
    layout = ImageLayout(name, None, 3, 3)
    x = layout.images(convert(x))
    window, steps = layout.sizes("ksizes", ksizes), layout.sizes("strides", strides)
    sizes, channels = x.shape[1:4], x.shape[4]
    rooms = layout.padding(padding, sizes, window, steps)
    x = pad(x, [(0, 0), *rooms, (0, 0)])
    for i in range(3):  # (batch, out, window, out, window, out, window, channels)
        starts = _starts(name, sizes[i], window[i], 1, steps[i], rooms[i])
        x = gather(x, starts, 2 * i + 1)
    x = transpose(x, (0, 1, 3, 5, 2, 4, 6, 7))
    return reshape(x, (*x.shape[:4], window[0] * window[1] * window[2] * channels))
