"""Moves of elements: blocks of images to channels or to the batch, patches, reversed sequences.

All are a gather of the elements at indices that NumPy moves, or reshapes and transposes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from .._core.annotations import TensorLike
from .._core.conversion import convert
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .indexing import gather, getitem, put_at
from .padding import pad
from .shape import concatenate, reshape, transpose
from .validation import as_count, as_shape, check_shapes, normalize_axis
from .windows import ImageLayout


def rearrange(move: Callable[..., np.ndarray], *tensors: Tensor) -> Tensor:
    """Apply `move`, a function of arrays that only moves elements, to tensors of one dtype.

    It is asked for the indices of the elements, which are then gathered in one operation.
    """
    indices, first = [], 0
    for tensor in tensors:
        count = tensor.size
        indices.append(np.arange(first, first + count).reshape(tensor.shape))
        first += count
    flat = [reshape(tensor, (-1,)) for tensor in tensors]
    return gather(flat[0] if len(flat) == 1 else concatenate(flat), move(*indices), 0)


def space_to_depth(x: TensorLike, block_size: Any, data_format: str = "channels_last") -> Tensor:
    """Return images whose channels are the blocks of `block_size` by `block_size` of `x`.

    Modelled on ``tf.nn.space_to_depth``: height and width are that much smaller and must be
    multiples of `block_size` (otherwise InvalidArgumentError).
    """
    name, size = "space_to_depth", as_count("space_to_depth", "block_size", block_size, 1)
    layout = ImageLayout(name, data_format, 2)
    x = layout.images(convert(x))
    batch, height, width, channels = x.shape
    if height % size or width % size:
        raise InvalidArgumentError(
            f"{name}: height {height} and width {width} must be multiples of block_size {size}"
        )
    parts = reshape(x, (batch, height // size, size, width // size, size, channels))
    moved = transpose(parts, (0, 1, 3, 2, 4, 5))
    shape = (batch, height // size, width // size, size * size * channels)
    return layout.back(reshape(moved, shape))


def depth_to_space(x: TensorLike, block_size: Any, data_format: str = "channels_last") -> Tensor:
    """Return images whose blocks of `block_size` by `block_size` are the channels of `x`.

    Modelled on ``tf.nn.depth_to_space``, the inverse of `space_to_depth`. InvalidArgumentError
    unless the channels are a multiple of the square of `block_size`.
    """
    name, size = "depth_to_space", as_count("depth_to_space", "block_size", block_size, 1)
    layout = ImageLayout(name, data_format, 2)
    x = layout.images(convert(x))
    batch, height, width, channels = x.shape
    if channels % size**2:
        raise InvalidArgumentError(
            f"{name}: {channels} channels must be a multiple of the square of block_size {size}"
        )
    parts = reshape(x, (batch, height, width, size, size, channels // size**2))
    moved = transpose(parts, (0, 1, 3, 2, 4, 5))
    shape = (batch, height * size, width * size, channels // size**2)
    return layout.back(reshape(moved, shape))


def _blocks(name: str, block_shape: Any, widths: Any, x: Tensor) -> tuple[tuple, np.ndarray]:
    """Return the sizes of blocks, and a pair of widths for each."""
    sizes = as_shape(name, block_shape)
    pairs = np.asarray(widths)
    if pairs.shape != (len(sizes), 2) or x.ndim <= len(sizes) or min(sizes, default=1) < 1:
        raise InvalidArgumentError(
            f"{name}: block_shape must have a positive size, and the other argument a pair, for "
            f"each blocked axis of x after the first: got {sizes}, {pairs.tolist()} and x of shape "
            f"{tuple(x.shape)}"
        )
    return sizes, pairs


def space_to_batch(
    input: TensorLike, block_shape: Any, paddings: Any, name: str | None = None
) -> Tensor:
    """Return `input`, padded, cut into blocks of `block_shape` that become part of the batch.

    Modelled on ``tf.space_to_batch``: `paddings` is a pair for each axis of a block. The padded
    sizes must be multiples of the block's (otherwise InvalidArgumentError).
    """
    x = convert(input)
    sizes, pairs = _blocks("space_to_batch", block_shape, paddings, x)
    count = len(sizes)
    x = pad(x, [(0, 0), *pairs.tolist(), *[(0, 0)] * (x.ndim - 1 - count)])
    batch, *rest = x.shape
    if any(whole % size for whole, size in zip(rest, sizes, strict=False)):
        raise InvalidArgumentError(
            f"space_to_batch: padded sizes {rest[:count]} must be multiples of the block sizes, "
            f"{sizes}"
        )
    split = [
        part for whole, size in zip(rest, sizes, strict=False) for part in (whole // size, size)
    ]
    parts = reshape(x, (batch, *split, *rest[count:]))
    inside, outside = range(2, 2 * count + 1, 2), range(1, 2 * count, 2)
    parts = transpose(parts, (*inside, 0, *outside, *range(2 * count + 1, parts.ndim)))
    return reshape(parts, (batch * prod(sizes), *split[::2], *rest[count:]))


def batch_to_space(
    input: TensorLike, block_shape: Any, crops: Any, name: str | None = None
) -> Tensor:
    """Return the inverse of `space_to_batch`: blocks from the batch, then `crops` cut off.

    Modelled on ``tf.batch_to_space``. Raises InvalidArgumentError unless the batch is a multiple of
    the block size and the crops leave elements.
    """
    x = convert(input)
    sizes, pairs = _blocks("batch_to_space", block_shape, crops, x)
    count, (batch, *rest) = len(sizes), x.shape
    if batch % prod(sizes):
        raise InvalidArgumentError(
            f"batch_to_space: the batch, {batch}, must be a multiple of the size of blocks {sizes}"
        )
    parts = reshape(x, (*sizes, batch // prod(sizes), *rest))
    order = [axis for i in range(count) for axis in (count + 1 + i, i)]
    parts = transpose(parts, (count, *order, *range(2 * count + 1, parts.ndim)))
    wholes = [whole * size for whole, size in zip(rest, sizes, strict=False)]
    merged = reshape(parts, (batch // prod(sizes), *wholes, *rest[count:]))
    cuts = [
        slice(before, whole - after)
        for whole, (before, after) in zip(wholes, pairs.tolist(), strict=True)
    ]
    if any(cut.start < 0 or not cut.start <= cut.stop for cut in cuts) or pairs.min(initial=0) < 0:
        raise InvalidArgumentError(f"batch_to_space: crops {pairs.tolist()} exceed sizes {wholes}")
    return getitem(merged, (slice(None), *cuts))


def reverse_sequence(
    input: TensorLike,
    seq_lengths: Any,
    seq_axis: Any = None,
    batch_axis: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return `input` with the first of `seq_lengths` elements along `seq_axis` reversed, for each
    example along `batch_axis`, by default the first axis.

    Modelled on ``tf.reverse_sequence``. Raises InvalidArgumentError for lengths that `input` does
    not have.
    """
    x, counts = convert(input), np.asarray(convert(seq_lengths)._values())
    along = normalize_axis("reverse_sequence", seq_axis, x.ndim)
    batch_axis = 0 if batch_axis is None else batch_axis
    across = normalize_axis("reverse_sequence", batch_axis, x.ndim)
    size = x.shape[along]
    if (
        along == across
        or counts.shape != (x.shape[across],)
        or not ((counts >= 0) & (counts <= size)).all()
    ):
        raise InvalidArgumentError(
            f"reverse_sequence: lengths must be a number from 0 to {size} for each of axis "
            f"{across} of shape {tuple(x.shape)}, got {counts.tolist()}"
        )
    positions = np.arange(size)
    turned = np.where(positions < counts[:, None], counts[:, None] - 1 - positions, positions)
    sizes = [1] * x.ndim
    sizes[along], sizes[across] = size, len(counts)
    turned = (turned if across < along else turned.T).reshape(sizes)
    return rearrange(lambda indices: np.take_along_axis(indices, turned, along), x)


def frames(x: Any, length: Any, step: Any) -> Tensor:
    """Return the parts of `length` elements of the last axis that begin at every `step`."""
    x = convert(x)
    size, step = as_count("frames", "length", length, 1), as_count("frames", "step", step, 1)
    if not x.ndim or size > x.shape[-1]:
        raise InvalidArgumentError(
            f"frames: length must be no more than the last axis of x, got {size} and shape "
            f"{tuple(x.shape)}"
        )
    starts = np.arange(0, x.shape[-1] - size + 1, step)
    return gather(x, starts[:, None] + np.arange(size), x.ndim - 1)


def _patches(name: str, shape: Any, sizes: Any, gaps: Any, border: Any, steps: Any) -> tuple:
    """Return positions in padded planes (window, position), the padded sizes, and the border."""
    pairs = [as_shape(name, value) for value in (sizes, gaps, border, steps)]
    sizes, gaps, border, steps = (pair * 2 if len(pair) == 1 else pair for pair in pairs)
    wholes = [size + 2 * more for size, more in zip(shape, border, strict=True)]
    axes = []
    for whole, size, gap, step in zip(wholes, sizes, gaps, steps, strict=True):
        last = whole - gap * (size - 1) - 1
        if min(size, gap, step) < 1 or last < 0:
            raise InvalidArgumentError(
                f"{name}: no window of size {sizes} and dilation {gaps} fits into padded images of "
                f"size {tuple(wholes)}"
            )
        axes.append(gap * np.arange(size)[:, None] + np.arange(0, last + 1, step))
    rows, columns = axes
    flat = rows[:, None, :, None] * wholes[1] + columns[None, :, None, :]
    return flat.reshape(len(rows) * len(columns), -1), wholes, border


def unfold(
    x: TensorLike, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Return the patches under a window that moves over images: (batch, elements, positions).

    `x` is (batch, channels, height, width). Modelled on ``keras.ops.unfold``. InvalidArgumentError
    if no window fits.
    """
    x = convert(x)
    check_shapes("unfold", {"x": (x, "batch channels height width")})
    batch, channels, height, width = x.shape
    positions, wholes, (above, left) = _patches(
        "unfold", (height, width), kernel_size, dilation, padding, stride
    )
    padded = pad(x, [(0, 0), (0, 0), (above, above), (left, left)])
    patches = gather(reshape(padded, (batch, channels, prod(wholes))), positions, 2)
    return reshape(patches, (batch, channels * positions.shape[0], positions.shape[1]))


def fold(
    x: TensorLike,
    output_size: Any,
    kernel_size: Any,
    dilation: Any = 1,
    padding: Any = 0,
    stride: Any = 1,
) -> Tensor:
    """Return images of `output_size` in which the patches `x` are added up: `unfold` transposed.

    Modelled on ``keras.ops.fold``. Raises InvalidArgumentError unless `unfold` gives the same
    number of patches.
    """
    x, shape = convert(x), as_shape("fold", output_size)
    shape = shape * 2 if len(shape) == 1 else shape
    positions, wholes, (above, left) = _patches(
        "fold", shape, kernel_size, dilation, padding, stride
    )
    elements, count = positions.shape
    if x.ndim != 3 or x.shape[1] % elements or x.shape[2] != count:
        raise InvalidArgumentError(
            f"fold: x must have shape (batch, channels * {elements}, {count}), got {tuple(x.shape)}"
        )
    batch, channels = x.shape[0], x.shape[1] // elements
    parts = reshape(x, (batch, channels, *positions.shape))
    flat = put_at(parts, (batch, channels, prod(wholes)), (slice(None), slice(None), positions))
    whole = reshape(flat, (batch, channels, *wholes))
    (height, width) = shape
    cut = (slice(above, above + height), slice(left, left + width))
    return getitem(whole, (slice(None), slice(None), *cut))
