"""Convolution of images and its two adjoints.

Channels come last: images are (n, height, width, channels), filters (height, width, channels of one
group, output channels). `windows` adds up the products. The transpose by images is a convolution of
the upstream gradient with the filters turned around; with strides, one for each remainder of a
position. If each group has one channel, tiles would have a single output, so taps are summed over
vectors of channels instead.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from itertools import product
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.linear.windows import Grid, Pair, correlate, plan_of, sum_windows
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import promotion
from tinygrad_cg_kernels.runtime.entries import ByDtype, array_type, numbers
from tinygrad_cg_kernels.runtime.errstate import cast, quiet
from tinygrad_cg_kernels.runtime.intrinsics import wide_vectors
from tinygrad_cg_kernels.runtime.promotion import is_bool, is_complex, loop_dtype, native, promote

MAX_BLOCK_BYTES = 1 << 20
"""Limit for filters that are repeated side by side: about the size of a core's second-level
cache."""
MIN_BLOCK_ROWS = 512
"""Windows whose products are added in one sum, for the gradient by filters of single channels."""

MIN_LOOP_BYTES = 256
"""Channels are copied by a loop of their own if those of one window take at least this much."""


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


# The kernels ---------------------------------------------------------------------------------
# For channels one by one. `plan` has the numbers of `plan_of`, then the first window and the number
# of windows. They are unsigned, so that indices are not tested for being negative.


@build.jitable
def _origin(window, plan):
    """Return the offset of a window in the images."""
    width, height, across, down, image = plan[:5]
    line = window // width
    return line // height * image + line % height * down + window % width * across


def _tap_kernel(written: int) -> Callable:
    """Return a kernel that adds the products of two operands to the third (0, 1 or 2)."""

    def kernel(images, filters, windows, plan):
        wide_vectors()
        rows, row_step, columns, column_step, run = plan[5:10]
        first, count = plan[12:]
        for k in range(count):
            origin, window = _origin(first + k, plan), (first + k) * run
            tap = np.uintp(0)
            for i in range(rows):
                for j in range(columns):
                    start = origin + i * row_step + j * column_step
                    for c in range(run):
                        if written == 0:
                            images[start + c] += windows[window + c] * filters[tap + c]
                        elif written == 1:
                            filters[tap + c] += images[start + c] * windows[window + c]
                        else:
                            windows[window + c] += images[start + c] * filters[tap + c]
                    tap += run

    return kernel


def _vectors(count: int) -> Callable[[np.dtype], tuple]:
    return lambda dtype: (array_type(dtype),) * count + (numbers(14),)


_sum = ByDtype(_tap_kernel(2), "sum_taps", _vectors(3))
_transpose = ByDtype(_tap_kernel(0), "transpose_taps", _vectors(3))
_correlate = ByDtype(_tap_kernel(1), "correlate_taps", _vectors(3))


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


def _pad(images: np.ndarray, padding: tuple[Pair, Pair]) -> np.ndarray:
    """Return images with zeros around them, contiguous. If a width is negative, they are cut."""
    if padding == ((0, 0), (0, 0)):
        return np.ascontiguousarray(images)
    n, height, width, channels = images.shape
    room, source, target = _cut((height, width), padding)
    out = np.zeros((n, *room, channels), images.dtype)
    out[target] = images[source]
    return out


def inside(padded: Any, size: Pair, padding: tuple[Pair, Pair]) -> Any:
    """Return the images (..., height, width, channels) within padded ones."""
    (top, _), (left, _) = padding
    return padded[..., top : top + size[0], left : left + size[1], :]


# Channel by channel --------------------------------------------------------------------------


class _Taps:
    """Windows whose channels are filtered one by one.

    If channels are few and windows are neighbours, a line of windows is processed as one, with the
    filters repeated side by side, so that the inner loop is as long as the line. (With 16 channels
    that is 1.6 times as fast, with 64 channels it makes no difference.)
    """

    def __init__(self, images: np.ndarray, window: Pair, out: Pair, geometry: Geometry) -> None:
        self.images, self.taps = images, prod(window)
        channels = images.shape[3]
        repeated = self.taps * out[1] * channels * images.itemsize
        few = channels * images.itemsize < MIN_LOOP_BYTES
        merge = few and geometry.strides[1] == 1 and repeated <= MAX_BLOCK_BYTES
        self.merged = out[1] if merge else 1
        self.count = images.shape[0] * prod(out) // self.merged
        lines = out[0], out[1] // self.merged
        grid = Grid(lines, geometry.strides, geometry.dilations)
        self.plan = plan_of(images.shape, window, channels * self.merged, 1, grid)

    def repeat_filters(self, filters: np.ndarray) -> np.ndarray:
        """Return filters (height, width, 1, channels) as (taps, merged, channels)."""
        shape = self.taps, self.merged, filters.shape[3]
        rows = filters.reshape(self.taps, 1, filters.shape[3])
        return np.ascontiguousarray(np.broadcast_to(rows, shape))

    def run(self, kernel: ByDtype, filters: np.ndarray, windows: np.ndarray, block: slice) -> None:
        flat = (x.reshape(-1) for x in (self.images, filters, windows))
        kernel(self.images.dtype, *flat, (*self.plan, block.start, block.stop - block.start))


def _alone(filters: np.ndarray, groups: int) -> bool:
    """Return whether each group has one channel."""
    return groups > 1 and filters.shape[2] == 1


def _repeat_channels(images: np.ndarray, outputs: int) -> np.ndarray:
    """Return images with a copy of each channel for each of its outputs."""
    multiple = outputs // images.shape[3]
    return images if multiple == 1 else np.repeat(images, multiple, axis=3)


def _sum_alone(images: np.ndarray, filters: np.ndarray, geometry: Geometry) -> np.ndarray:
    images = _repeat_channels(images, filters.shape[3])
    window = filters.shape[:2]
    size = geometry.output_size(images.shape[1:3], window)
    taps = _Taps(_pad(images, geometry.padding), window, size, geometry)
    out = np.zeros((images.shape[0], *size, filters.shape[3]), images.dtype)
    taps.run(_sum, taps.repeat_filters(filters), out, slice(0, taps.count))
    return out


def _transpose_depthwise(
    upstream: np.ndarray, filters: np.ndarray, geometry: Geometry, size: Pair
) -> np.ndarray:
    outputs, groups = filters.shape[3], geometry.groups
    shape = upstream.shape[0], *geometry.padded_size(size), outputs
    window = filters.shape[:2]
    taps = _Taps(np.zeros(shape, upstream.dtype), window, upstream.shape[1:3], geometry)
    upstream = np.ascontiguousarray(upstream)
    taps.run(_transpose, taps.repeat_filters(filters), upstream, slice(0, taps.count))
    images = inside(taps.images, size, geometry.padding)
    if outputs == groups:
        return images
    return quiet.run(np.add.reduce, images.reshape(*images.shape[:3], groups, outputs // groups), 4)


def _correlate_depthwise(
    images: np.ndarray, upstream: np.ndarray, geometry: Geometry, window: Pair
) -> np.ndarray:
    images = _repeat_channels(images, upstream.shape[3])
    taps = _Taps(_pad(images, geometry.padding), window, upstream.shape[1:3], geometry)
    total = np.zeros((taps.taps, taps.merged, upstream.shape[3]), images.dtype)
    part, upstream = np.empty_like(total), np.ascontiguousarray(upstream)
    for start in range(0, taps.count, MIN_BLOCK_ROWS):  # sums of sums, for precision
        part[...] = 0
        taps.run(_correlate, part, upstream, slice(start, min(start + MIN_BLOCK_ROWS, taps.count)))
        quiet.run(np.add, total, part, total)
    return quiet.run(np.add.reduce, total, 1).reshape(*window, 1, upstream.shape[3])


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


def _sum_products(images: Any, filters: Any, grid: Grid, out: Any, positions: Grid) -> None:
    """Do the work of `sum_windows`. The parts of a complex number are two channels."""
    if is_complex(images.dtype):
        *window, channels, groups, outputs = filters.shape
        real, imag = filters.real, filters.imag
        parts = np.empty((*window, channels, 2, groups, outputs, 2), real.dtype)
        parts[..., 0, :, :, 0], parts[..., 1, :, :, 1] = real, real
        parts[..., 0, :, :, 1], parts[..., 1, :, :, 0] = imag, -imag
        filters = parts.reshape(*window, 2 * channels, groups, 2 * outputs)
        images, out = images.view(real.dtype), out.view(real.dtype)
    sum_windows(images, filters, grid, out, positions)


@lru_cache(1024)
def _grids(size: Pair, geometry: Geometry) -> tuple[Grid, Grid]:
    """Return the windows of a convolution, and the positions of their results."""
    return Grid(size, geometry.strides, geometry.dilations), Grid(size, (1, 1), (1, 1))


def _conv(images: np.ndarray, filters: np.ndarray, geometry: Geometry, size: Pair) -> np.ndarray:
    if _alone(filters, geometry.groups):
        return _sum_alone(images, filters, geometry)
    grid, positions = _grids(size, geometry)
    out = np.empty((images.shape[0], *size, filters.shape[3]), images.dtype)
    weights = _by_group(filters, geometry.groups)
    _sum_products(_pad(images, geometry.padding), weights, grid, out, positions)
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
    if _alone(filters, geometry.groups):
        return np.ascontiguousarray(_transpose_depthwise(upstream, filters, geometry, size))
    key = size, upstream.shape[1:3], filters.shape[:2], geometry
    padding, parts, covers = _turned_windows(*key)
    shape = upstream.shape[0], *size, filters.shape[2] * geometry.groups
    out = (np.empty if covers else np.zeros)(shape, upstream.dtype)
    upstream = _pad(upstream, padding)
    weights = _by_group(filters, geometry.groups).transpose(0, 1, 4, 3, 2)
    for taps, grid, positions in parts:
        _sum_products(upstream, weights[taps][::-1, ::-1], grid, out, positions)
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
    if geometry.groups == images.shape[3] > 1:
        return _correlate_depthwise(images, upstream, geometry, window)
    images, upstream = _pad(images, geometry.padding), np.ascontiguousarray(upstream)
    grid, _ = _grids(upstream.shape[1:3], geometry)
    dtype, part = images.dtype, images.real.dtype
    upstream = _by_group(upstream.view(part), geometry.groups)
    total = correlate(images.view(part), upstream, window, grid)
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
