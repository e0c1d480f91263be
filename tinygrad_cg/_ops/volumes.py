"""Convolution and pooling along three axes, by those along two; pooling with gaps.

The windows along the depth are gathered, and are channels of a convolution in the plane; a maximum
or a mean is taken in the plane first, then along the depth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.conversion import convert, convert_operands
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .block_moves import batch_to_space, space_to_batch
from .convolution import conv, conv_transpose
from .define import as_int, as_shape
from .indexing import gather, getitem, scatter_rows
from .padding import pad
from .pooling import average_pool, max_pool
from .shape import concatenate, reshape, transpose
from .windows import _same

_LAST, _FIRST = ("NDHWC", "channels_last"), ("NCDHW", "channels_first")
_BY_TYPE = {"MAX": max_pool, "AVG": average_pool}


class _Volumes:
    """The layout of volumes: a batch, three axes of space, and channels, last or first."""

    def __init__(self, name: str, data_format: Any):
        if data_format not in (None, *_LAST, *_FIRST):
            raise InvalidArgumentError(
                f"{name}: data_format must be one of {(*_LAST, *_FIRST)}, got {data_format!r}"
            )
        self.name, self.first = name, data_format in _FIRST

    def read(self, x: Tensor) -> Tensor:
        """Return volumes with channels last."""
        if x.ndim != 5:
            raise InvalidArgumentError(
                f"{self.name}: volumes must have 5 dimensions: a batch, 3 of space, and channels; "
                f"got shape {tuple(x.shape)}"
            )
        return transpose(x, (0, 2, 3, 4, 1)) if self.first else x

    def back(self, x: Tensor) -> Tensor:
        return transpose(x, (0, 4, 1, 2, 3)) if self.first else x

    def inner(self, entries: tuple) -> tuple:
        """Return the entries for space, of those for all axes."""
        return entries[2:] if self.first else entries[1:-1]

    def three(self, argument: str, value: Any) -> tuple[int, ...]:
        """Return numbers for three axes: from one for all, one each, or five; None is 1."""
        sizes = (1,) if value is None else as_shape(self.name, value)
        if len(sizes) == 5:
            others, sizes = (sizes[0], sizes[1 if self.first else 4]), self.inner(sizes)
        else:
            others, sizes = (1, 1), sizes * 3 if len(sizes) == 1 else sizes
        if others != (1, 1) or len(sizes) != 3 or min(sizes) < 1:
            raise InvalidArgumentError(
                f"{self.name}: {argument} must be one positive integer, 3 or 5 of them, those for "
                f"batch and channels 1; got {value}"
            )
        return sizes

    def padding(
        self, value: Any, sizes: Sequence[int], reach: Sequence[int], steps: Sequence[int]
    ) -> tuple[tuple[int, int], ...]:
        """Return padding before and after along three axes, from "SAME", "VALID", or pairs."""
        if isinstance(value, str):
            if value.upper() == "VALID":
                return ((0, 0),) * 3
            if value.upper() == "SAME":
                return tuple(map(_same, sizes, reach, steps))
        pairs: Any = np.zeros(0) if isinstance(value, str) else np.asarray(value)
        if pairs.shape == (5, 2):
            pairs = pairs[2:] if self.first else pairs[1:-1]
        if pairs.shape != (3, 2) or pairs.dtype.kind not in "iu" or pairs.min() < 0:
            raise InvalidArgumentError(
                f"{self.name}: padding must be 'SAME', 'VALID' or 3 pairs of numbers that are not "
                f"negative, got {value!r}"
            )
        return tuple((before, after) for before, after in pairs.tolist())


def _starts(name: str, size: int, window: int, gap: int, step: int, room: tuple) -> np.ndarray:
    """Return the positions of each window's elements along one axis, padding included."""
    reach = (window - 1) * gap + 1
    count = (size + sum(room) - reach) // step + 1
    if window < 1 or count < 1:
        raise InvalidArgumentError(
            f"{name}: a window of {window} (that spans {reach}) does not fit on {size} elements "
            f"with padding {room}"
        )
    return np.arange(count)[:, None] * step + np.arange(window) * gap


def _pad_depth(x: Tensor, room: tuple[int, int]) -> Tensor:
    return pad(x, [(0, 0), room, *[(0, 0)] * (x.ndim - 2)]) if any(room) else x


def _flat_filters(filters: Tensor) -> Tensor:
    """Return filters (depth, height, width, a, b) as (height, width, depth * a, b)."""
    depth, height, width, a, b = filters.shape
    return reshape(transpose(filters, (1, 2, 0, 3, 4)), (height, width, depth * a, b))


def conv3d(
    x: Any,
    filters: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    data_format: Any = None,
    dilations: Any = 1,
) -> Tensor:
    """Return the convolution (without flipping) of volumes with filters, along three axes."""
    x, filters = convert_operands((x, filters))
    layout = _Volumes("conv3d", data_format)
    x = layout.read(x)
    if filters.ndim != 5:
        raise InvalidArgumentError(
            "conv3d: filters must have 5 dimensions: depth, height, width, channels and outputs; "
            f"got shape {tuple(filters.shape)}"
        )
    steps, gaps = layout.three("strides", strides), layout.three("dilations", dilations)
    window, sizes = filters.shape[:3], x.shape[1:4]
    reach = [gap * (count - 1) + 1 for gap, count in zip(gaps, window, strict=True)]
    rooms = layout.padding(padding, sizes, reach, steps)
    starts = _starts("conv3d", sizes[0], window[0], gaps[0], steps[0], rooms[0])
    batch, _, height, width, channels = x.shape
    own = filters.shape[3]
    if not own or channels % own:
        raise InvalidArgumentError(
            f"conv3d: filters for {own} channels do not fit on volumes with {channels} channels, "
            "which must be a multiple of them"
        )
    x = reshape(x, (batch, sizes[0], height, width, channels // own, own))
    x = _pad_depth(x, rooms[0])
    slices = [slice(int(row[0]), int(row[-1]) + 1, steps[0]) for row in starts.T]
    x = concatenate([getitem(x, (slice(None), part)) for part in slices], -1)
    x = reshape(x, (batch * len(starts), height, width, channels * window[0]))
    result = conv(x, _flat_filters(filters), steps[1:], rooms[1:], "NHWC", gaps[1:])
    return layout.back(reshape(result, (batch, len(starts), *result.shape[1:])))


def conv3d_transpose(
    x: Any,
    filters: Any,
    output_shape: Any,
    strides: Any = 1,
    padding: Any = "SAME",
    data_format: Any = None,
    dilations: Any = 1,
) -> Tensor:
    """Return the transpose of ``conv3d`` by its volumes, of `output_shape`: all axes, or of
    space."""
    name = "conv3d_transpose"
    x, filters = convert_operands((x, filters))
    layout = _Volumes(name, data_format)
    x = layout.read(x)
    asked = as_shape(name, output_shape)
    sizes = layout.inner(asked) if len(asked) == 5 else asked
    if filters.ndim != 5 or len(sizes) != 3 or min(sizes) < 0:
        raise InvalidArgumentError(
            f"{name}: filters must have 5 dimensions, output_shape 3 or 5 sizes; got shape "
            f"{tuple(filters.shape)} and {asked}"
        )
    steps, gaps = layout.three("strides", strides), layout.three("dilations", dilations)
    window = filters.shape[:3]
    reach = [gap * (count - 1) + 1 for gap, count in zip(gaps, window, strict=True)]
    rooms = layout.padding(padding, sizes, reach, steps)
    starts = _starts(name, sizes[0], window[0], gaps[0], steps[0], rooms[0])
    batch, depth, height, width, channels = x.shape
    if len(starts) != depth:
        raise InvalidArgumentError(
            f"{name}: a convolution of volumes of depth {sizes[0]} gives the depth {len(starts)}, "
            f"but x has shape {tuple(x.shape)}"
        )
    x = reshape(x, (batch * depth, height, width, channels))
    plane = (batch * depth, *sizes[1:], window[0] * filters.shape[3])
    flat = _flat_filters(filters)
    result = conv_transpose(x, flat, plane, steps[1:], rooms[1:], "NHWC", gaps[1:])
    result = reshape(result, (batch, depth, *sizes[1:], window[0], filters.shape[3]))
    result = transpose(result, (1, 4, 0, 2, 3, 5))  # each plane of a window to its depth
    result = reshape(result, (depth * window[0], *result.shape[2:]))
    whole = sizes[0] + sum(rooms[0])
    result = scatter_rows(result, convert(starts.reshape(-1)), whole)
    result = getitem(result, slice(rooms[0][0], rooms[0][0] + sizes[0]))
    result = layout.back(transpose(result, (1, 0, 2, 3, 4)))
    if len(asked) == 5 and asked != tuple(result.shape):
        raise InvalidArgumentError(
            f"{name}: output_shape is {asked}, but the batch and the channels of x and filters "
            f"make {tuple(result.shape)}"
        )
    return result


def pool3d(
    kind: str,
    x: Any,
    size: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: Any = None,
) -> Tensor:
    """Return the largest ("MAX") or the mean element ("AVG") under windows in volumes.

    After ``tf.nn.max_pool3d`` and ``tf.nn.avg_pool3d``; arguments as of ``max_pool2d``.
    """
    reduce, name = _BY_TYPE[kind], f"{kind.lower()}_pool3d"
    layout = _Volumes(name, data_format)
    x = layout.read(convert(x))
    window = layout.three("the size of the window", size)
    steps = window if strides is None else layout.three("strides", strides)
    batch, depth, height, width, channels = x.shape
    rooms = layout.padding(padding, (depth, height, width), window, steps)
    x = reshape(x, (batch * depth, height, width, channels))
    x = reduce(x, window[1:], steps[1:], rooms[1:], "NHWC")
    plane = x.shape[1:3]
    x = reshape(x, (batch, depth, plane[0] * plane[1], channels))
    x = reduce(x, (window[0], 1), (steps[0], 1), (rooms[0], (0, 0)), "NHWC")
    return layout.back(reshape(x, (batch, x.shape[1], *plane, channels)))


# By the number of axes ---------------------------------------------------------------------------


def convolve(
    x: Any, filters: Any, strides: Any, padding: Any, data_format: Any, dilations: Any
) -> Tensor:
    """Return the convolution (without flipping) of `x` with `filters`, along one to three axes."""
    x, filters = convert_operands((x, filters))
    along = conv3d if filters.ndim == 5 else conv
    return along(x, filters, strides, padding, data_format, dilations)


def convolve_transpose(
    x: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
) -> Tensor:
    """Return the transpose of a convolution along one to three axes, of `output_shape`."""
    x, filters = convert_operands((x, filters))
    along = conv3d_transpose if filters.ndim == 5 else conv_transpose
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
    x: Any,
    window_shape: Any,
    pooling_type: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: Any = None,
    dilations: Any = None,
) -> Tensor:
    """Return the largest ("MAX") or the mean element ("AVG") under windows with gaps between."""
    x = convert(x)
    count = x.ndim - 2
    if not isinstance(pooling_type, str) or pooling_type.upper() not in _BY_TYPE:
        raise InvalidArgumentError(
            f"pool: pooling_type must be 'MAX' or 'AVG', got {pooling_type!r}"
        )
    kind, steps = pooling_type.upper(), 1 if strides is None else strides
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
    x: Any,
    dilation_rate: Any,
    padding: Any,
    op: Callable[..., Any],
    filter_shape: Any = None,
    spatial_dims: Any = None,
    data_format: Any = None,
) -> Tensor:
    """Return `op` of each part of `x` that has every `dilation_rate`-th element along some axes."""
    name, x = "with_space_to_batch", convert(x)
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

    After ``tf.extract_volume_patches``: `x` is (batch, depth, height, width, channels), `ksizes`
    and `strides` have five numbers, those for batch and channels 1. The channels of the result go
    through depth, height, width and channels of a window. Raises InvalidArgumentError for what does
    not fit.
    """
    name = "extract_volume_patches"
    layout = _Volumes(name, None)
    x = layout.read(convert(x))
    window, steps = layout.three("ksizes", ksizes), layout.three("strides", strides)
    sizes, channels = x.shape[1:4], x.shape[4]
    rooms = layout.padding(padding, sizes, window, steps)
    x = pad(x, [(0, 0), *rooms, (0, 0)])
    for i in range(3):  # (batch, out, window, out, window, out, window, channels)
        starts = _starts(name, sizes[i], window[i], 1, steps[i], rooms[i])
        x = gather(x, starts, 2 * i + 1)
    x = transpose(x, (0, 1, 3, 5, 2, 4, 6, 7))
    return reshape(x, (*x.shape[:4], window[0] * window[1] * window[2] * channels))
