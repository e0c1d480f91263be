"""Convolution of images and its two adjoints.

Channels come last: images are (n, height, width, channels), filters (height, width, channels of one
group, output channels). `windows` adds up the products. The transpose by images is a convolution of
the upstream gradient with the filters turned around; with strides, one for each remainder of a
position. Channels that are filtered one by one are repeated, once for each of their outputs.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import product
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.linear.windows import Grid, Pair, correlate, slack_of, sum_windows
from tinygrad_cg_kernels.runtime import promotion
from tinygrad_cg_kernels.runtime.errstate import cast, quiet
from tinygrad_cg_kernels.runtime.promotion import is_bool, is_complex, loop_dtype, native, promote


class Geometry(NamedTuple):
    """The geometry of windows on an image. Entries are pairs, for height and width."""

    strides: Pair = (1, 1)
    padding: tuple[Pair, Pair] = ((0, 0), (0, 0))
    dilations: Pair = (1, 1)
    groups: int = 1

    @lru_cache(1024)  # noqa: B019  # the cache keeps tuples of numbers alone
    def output_size(self, size: Pair, window: Pair) -> Pair:
        """Return how many windows fit; ValueError if none does."""
        counts = []
        for axis in (0, 1):
            reach = self.dilations[axis] * (window[axis] - 1) + 1
            room = size[axis] + sum(self.padding[axis]) - reach
            if room < 0:
                raise ValueError(
                    f"a window of {tuple(window)} with dilations {self.dilations} does not fit "
                    f"into images of {tuple(size)} with padding {self.padding}"
                )
            counts.append(room // self.strides[axis] + 1)
        return counts[0], counts[1]

    def padded_size(self, size: Pair) -> Pair:
        """Return the size of an image with its padding."""
        return size[0] + sum(self.padding[0]), size[1] + sum(self.padding[1])


@lru_cache(1024)
def _cut(size: Pair, padding: tuple[Pair, Pair]) -> tuple[Pair, tuple, tuple]:
    """Return the size of padded images, and the same positions on images and on padded ones."""
    room, source, target = Geometry(padding=padding).padded_size(size), [], []
    for count, extent, (before, _) in zip(room, size, padding, strict=True):
        first = max(-before, 0)
        stop = max(min(extent, count - before), first)
        source.append(slice(first, stop))
        target.append(slice(first + before, stop + before))
    return room, (slice(None), *source), (slice(None), *target)


_NO_PADDING = ((0, 0), (0, 0))


def _pad(images: np.ndarray, padding: tuple[Pair, Pair], slack: int = 0) -> np.ndarray:
    """Return images with zeros around them, contiguous. If a width is negative, they are cut.

    `slack` elements of memory follow them.
    """
    if padding == _NO_PADDING and not slack:
        return np.ascontiguousarray(images)
    n, height, width, channels = images.shape
    room, source, target = _cut((height, width), padding)
    shape = n, *room, channels
    out = np.zeros(prod(shape) + slack, images.dtype)[: prod(shape)].reshape(shape)
    out[target] = images[source]
    return out


def inside(padded: Any, size: Pair, padding: tuple[Pair, Pair]) -> Any:
    """Return the images (..., height, width, channels) within padded ones."""
    (top, _), (left, _) = padding
    return padded[..., top : top + size[0], left : left + size[1], :]


# The three maps ------------------------------------------------------------------------------


@cache
def _dtypes(name: str, *dtypes: np.dtype) -> tuple[np.dtype, np.dtype]:
    """Return the dtype of the result, and that of the computation."""
    dtype = promote(*[native(name, dtype) for dtype in dtypes])
    if is_bool(dtype):
        raise TypeError(f"{name}: does not support bool: cast to a numeric dtype first")
    return dtype, loop_dtype(dtype)


def promote_operands(name: str, *operands: np.ndarray) -> tuple[np.dtype, list[np.ndarray]]:
    """Return the dtype of the result, and the operands in the dtype of the computation."""
    dtype, loop = _dtypes(name, *[operand.dtype for operand in operands])
    return dtype, [cast(operand, loop) for operand in operands]


@lru_cache(1024)
def fit(name: str, images: Any, filters: Any, windows: Any, geometry: Geometry) -> None:
    """Raise ValueError unless the three shapes fit together. Kernels do not check them."""
    size, window = images[1:3], filters[:2]
    out = images[0], *geometry.output_size(size, window), filters[3]
    channels = filters[2] * geometry.groups
    if channels != images[3] or out != tuple(windows) or filters[3] % geometry.groups:
        raise ValueError(
            f"{name}: images {tuple(images)}, filters {tuple(filters)} and windows "
            f"{tuple(windows)} do not fit together with {geometry}"
        )


def each(function: Any, x: np.ndarray, y: np.ndarray, *rest: Any) -> np.ndarray:
    """Apply a function over all axes before the operands' last four, which are broadcast."""
    lead = promotion.broadcast_shapes(x.shape[:-4], y.shape[:-4])
    x, y = (np.broadcast_to(array, lead + array.shape[-4:]) for array in (x, y))
    parts = [function(x[index], y[index], *rest) for index in np.ndindex(lead)]
    if not parts:
        raise ValueError(f"{function.__name__}: the batch of images is empty")
    return np.stack(parts).reshape(lead + parts[0].shape)


def _by_group(array: np.ndarray, groups: int) -> np.ndarray:
    """Return filters, or images, as a view whose last axes are groups and outputs of a group."""
    return array.reshape(*array.shape[:3], groups, array.shape[3] // groups)


def _is_depthwise(images: np.ndarray, channels: int, groups: int) -> bool:
    """Return whether channels are filtered one by one. (Complex ones are pairs of channels.)"""
    return groups > 1 and channels == 1 and not is_complex(images.dtype)


def _pad_channels(images: np.ndarray, padding: tuple[Pair, Pair], depthwise: bool) -> np.ndarray:
    """Return padded images, with the slack of channels if these are filtered one by one."""
    return _pad(images, padding, slack_of(images.dtype) if depthwise else 0)


def _repeated(images: np.ndarray, outputs: int) -> np.ndarray:
    """Return images with a copy of each channel for each of its outputs."""
    multiple = outputs // images.shape[3]
    return images if multiple == 1 else np.repeat(images, multiple, axis=3)


def _sum_products(
    images: Any, filters: Any, grid: Grid, out: Any, positions: Grid, depthwise: bool
) -> None:
    """Do the work of `sum_windows`. The parts of a complex number are two channels."""
    if is_complex(images.dtype):
        *window, channels, groups, outputs = filters.shape
        real, imag = filters.real, filters.imag
        parts = np.empty((*window, channels, 2, groups, outputs, 2), real.dtype)
        parts[..., 0, :, :, 0], parts[..., 1, :, :, 1] = real, real
        parts[..., 0, :, :, 1], parts[..., 1, :, :, 0] = imag, -imag
        filters = parts.reshape(*window, 2 * channels, groups, 2 * outputs)
        images, out = images.view(real.dtype), out.view(real.dtype)
    sum_windows(images, filters, grid, out, positions, depthwise)


@lru_cache(1024)
def _grids(size: Pair, geometry: Geometry) -> tuple[Grid, Grid]:
    """Return the windows of a convolution, and the positions of their results."""
    return Grid(size, geometry.strides, geometry.dilations), Grid(size, (1, 1), (1, 1))


def _conv(images: np.ndarray, filters: np.ndarray, geometry: Geometry, size: Pair) -> np.ndarray:
    depthwise = _is_depthwise(images, filters.shape[2], geometry.groups)
    if depthwise:
        images = _repeated(images, filters.shape[3])
    grid, positions = _grids(size, geometry)
    out = np.empty((images.shape[0], *size, filters.shape[3]), images.dtype)
    weights = _by_group(filters, 1 if depthwise else geometry.groups)
    padded = _pad_channels(images, geometry.padding, depthwise)
    _sum_products(padded, weights, grid, out, positions, depthwise)
    return out


def conv(images: Any, filters: Any, geometry: Geometry, run: Callable = _conv) -> Any:
    """Return the sum over a window of images times filters, at each position: no flipping.

    Images (n, height, width, channels) with filters (height, width, channels / groups, out)
    give (n, rows, columns, out). Leading axes of either broadcast. float16 is computed in
    float32; bool is a TypeError. `run` computes it for operands that fit together, here and in
    the transposes.
    """
    if filters.ndim > 4:
        return each(conv, images, filters, geometry, run)
    dtype, (images, filters) = promote_operands("conv", images, filters)
    lead, images = images.shape[:-3], images.reshape(-1, *images.shape[-3:])
    size = geometry.output_size(images.shape[1:3], filters.shape[:2])
    shape = *size, filters.shape[3]
    fit("conv", images.shape, filters.shape, (images.shape[0], *shape), geometry)
    return cast(run(images, filters, geometry, size), dtype).reshape(*lead, *shape)


class _Remainder(NamedTuple):
    """The positions of an axis that have one remainder, divided by the stride."""

    start: int
    count: int
    taps: slice
    """The taps that are above windows at these positions."""
    dilation: int
    lead: int
    """How far the first window begins before the upstream gradient."""
    trail: int
    """How far the last window ends behind it."""


def _remainders(
    size: int, out: int, window: int, stride: int, dilation: int, before: int
) -> list[_Remainder]:
    """Return the remainders of the positions of an axis that windows reach.

    Tap i of window k reads position k * stride + i * dilation - before.
    """
    step, parts = stride // gcd(stride, dilation), []
    for start in range(min(stride, size)):
        for tap in range(min(step, window)):
            place = start + before - tap * dilation
            if place % stride == 0:
                gap, count = step * dilation // stride, -(-(size - start) // stride)
                reach = (window - tap - 1) // step * gap
                lead = reach - place // stride
                trail = count + reach - lead - out
                parts.append(_Remainder(start, count, slice(tap, None, step), gap, lead, trail))
    return parts


@lru_cache(1024)
def _turned_windows(
    size: Pair, out: Pair, window: Pair, geometry: Geometry
) -> tuple[tuple[Pair, Pair], list[tuple[tuple[slice, slice], Grid, Grid]], bool]:
    """Return how `conv_input` is computed by convolutions with filters that are turned around.

    The results are the padding of the upstream gradient; for each pair of remainders the taps, the
    windows on the padded gradient, and the positions of their results; and whether these are all
    positions.
    """
    strides, padding = geometry.strides, geometry.padding
    rows, columns = (
        _remainders(size[k], out[k], window[k], strides[k], geometry.dilations[k], padding[k][0])
        for k in range(2)
    )
    top, left = (max((part.lead for part in axis), default=0) for axis in (rows, columns))
    bottom, right = (max((part.trail for part in axis), default=0) for axis in (rows, columns))
    parts = []
    for row, column in product(rows, columns):
        count, start = (row.count, column.count), (top - row.lead, left - column.lead)
        grid = Grid(count, (1, 1), (row.dilation, column.dilation), start)
        positions = Grid(count, strides, (1, 1), (row.start, column.start))
        parts.append(((row.taps, column.taps), grid, positions))
    covers = len(parts) == prod(map(min, strides, size))
    return ((top, bottom), (left, right)), parts, covers


def _conv_input(
    upstream: np.ndarray, filters: np.ndarray, geometry: Geometry, size: Pair
) -> np.ndarray:
    groups, outputs = geometry.groups, filters.shape[3]
    depthwise = _is_depthwise(upstream, filters.shape[2], groups)
    key = size, upstream.shape[1:3], filters.shape[:2], geometry
    padding, parts, covers = _turned_windows(*key)
    shape = upstream.shape[0], *size, outputs if depthwise else filters.shape[2] * groups
    out = (np.empty if covers else np.zeros)(shape, upstream.dtype)
    upstream = _pad_channels(upstream, padding, depthwise)
    weights = _by_group(filters, 1 if depthwise else groups)
    if not depthwise:
        weights = weights.transpose(0, 1, 4, 3, 2)
    for taps, grid, positions in parts:
        turned = weights[taps][::-1, ::-1]
        _sum_products(upstream, turned, grid, out, positions, depthwise)
    if depthwise and outputs != groups:
        return quiet.run(np.add.reduce, _by_group(out, groups), 4)
    return out


def conv_input(
    upstream: Any, filters: Any, geometry: Geometry, size: Pair, run: Callable = _conv_input
) -> Any:
    """Return the transpose of `conv` by its images, which are of `size`: the transposed
    convolution.

    Upstream (n, rows, columns, out) gives (n, height, width, channels); the rest as in `conv`.
    """
    if filters.ndim > 4:
        return each(conv_input, upstream, filters, geometry, size, run)
    dtype, (upstream, filters) = promote_operands("conv_input", upstream, filters)
    lead, upstream = upstream.shape[:-3], upstream.reshape(-1, *upstream.shape[-3:])
    shape = *size, filters.shape[2] * geometry.groups
    fit("conv_input", (upstream.shape[0], *shape), filters.shape, upstream.shape, geometry)
    return cast(run(upstream, filters, geometry, size), dtype).reshape(*lead, *shape)


def _conv_filter(images: Any, upstream: Any, geometry: Geometry, window: Pair) -> Any:
    depthwise = _is_depthwise(images, images.shape[3] // geometry.groups, geometry.groups)
    if depthwise:
        images = _repeated(images, upstream.shape[3])
    images = _pad_channels(images, geometry.padding, depthwise)
    groups = 1 if depthwise else geometry.groups
    dtype, part = images.dtype, images.real.dtype
    outputs = upstream.shape[3] * dtype.itemsize // part.itemsize // groups
    upstream = _pad(upstream, _NO_PADDING, slack_of(part, 1 if depthwise else outputs))
    grid, _ = _grids(upstream.shape[1:3], geometry)
    upstream = _by_group(upstream.view(part), groups)
    total = correlate(images.view(part), upstream, window, grid, depthwise)
    if is_complex(dtype):
        *shape, channels, groups, outputs = total.shape
        parts = total.reshape(*shape, channels // 2, 2, groups, outputs // 2, 2)
        result: Any = np.empty((*shape, channels // 2, groups, outputs // 2), dtype)
        quiet.run(np.subtract, parts[..., 0, :, :, 0], parts[..., 1, :, :, 1], result.real)
        quiet.run(np.add, parts[..., 0, :, :, 1], parts[..., 1, :, :, 0], result.imag)
        return result
    return total


def conv_filter(
    images: Any, upstream: Any, geometry: Geometry, window: Pair, run: Callable = _conv_filter
) -> Any:
    """Return the transpose of `conv` by its filters, which are of `window`.

    Images (n, height, width, channels) and upstream (n, rows, columns, out) give
    (height, width, channels / groups, out); the rest as in `conv`.
    """
    if max(images.ndim, upstream.ndim) > 4:
        return each(conv_filter, images, upstream, geometry, window, run)
    dtype, (images, upstream) = promote_operands("conv_filter", images, upstream)
    shape = *window, images.shape[3] // geometry.groups, upstream.shape[3]
    fit("conv_filter", images.shape, shape, upstream.shape, geometry)
    return cast(run(images, upstream, geometry, window), dtype).reshape(shape)
