"""Convolution of images and its two adjoints, by patches and BLAS.

Channels come last: images are (n, height, width, channels), filters (height, width, channels of one
group, output channels). The patches under a block of windows are copied side by side, so each block
is one matrix product. Blocks fit into the cache, and BLAS takes nine tenths of the time. (One
product for each tap of the filters, without copies, took 1.1 times as long for many channels and 30
times for one channel; all patches at once took up to 1.9 times as long.) If each group has one
channel, products would have a single column, so taps are summed over vectors of channels instead.
"""

from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import promotion
from tinygrad_cg_kernels.runtime.entries import ByDtype, array_type, numbers, words
from tinygrad_cg_kernels.runtime.errstate import cast, quiet
from tinygrad_cg_kernels.runtime.intrinsics import wide_vectors
from tinygrad_cg_kernels.runtime.promotion import is_bool, loop_dtype, native, promote

Pair = tuple[int, int]

MAX_BLOCK_BYTES = 1 << 20
"""Limit for the patches of a block: about the size of a core's second-level cache."""
MIN_BLOCK_ROWS = 512
"""A block has at least this many windows, so that BLAS does not repack the filters for few rows."""

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
# `plan` has the numbers of `_plan`, then the first window and the number of windows. They are
# unsigned, so that indices are not tested for being negative.


@build.jitable
def _origin(window, plan):
    """Return the offset of a window in the images."""
    height, width, image, down, across = plan[:5]
    line = window // width
    return line // height * image + line % height * down + window % width * across


def _patch_kernel(added: bool) -> Callable:
    """Return a kernel that copies patches from images, or adds them to images."""

    def kernel(images, patches, plan):
        rows, row_step, columns, column_step, run, groups, channels, first, count = plan[5:]
        at = np.uintp(0)
        for group in range(groups):
            for k in range(count):
                origin = _origin(first + k, plan) + group * channels
                for i in range(rows):
                    for j in range(columns):
                        start = origin + i * row_step + j * column_step
                        for c in range(run):
                            if added:
                                images[start + c] += patches[at + c]
                            else:
                                patches[at + c] = images[start + c]
                        at += run

    return kernel


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


_copy = ByDtype(_patch_kernel(False), "copy_patches", _vectors(2))
_add = ByDtype(_patch_kernel(True), "add_patches", _vectors(2))
_sum = ByDtype(_tap_kernel(2), "sum_taps", _vectors(3))
_transpose = ByDtype(_tap_kernel(0), "transpose_taps", _vectors(3))
_correlate = ByDtype(_tap_kernel(1), "correlate_taps", _vectors(3))


# Patches -------------------------------------------------------------------------------------


def _plan(
    shape: tuple[int, ...], out: Pair, window: Pair, run: int, groups: int, geometry: Geometry
) -> tuple[int, ...]:
    """Return a plan for all windows, in which `run` elements of each tap are contiguous."""
    _, height, width, channels = shape
    line = width * channels
    (down, across), (row, column) = geometry.strides, geometry.dilations
    steps = (*out, height * line, down * line, across * channels)
    patch = (window[0], row * line, window[1], column * channels, run)
    return (*steps, *patch, groups, channels // groups)


class _PatchLayout(NamedTuple):
    """The windows on padded images, (n, height, width, channels) and contiguous."""

    groups: int
    count: int  # of windows
    size: int  # of a patch of one group
    step: int  # windows in a block
    is_pointwise: bool
    plan: tuple[int, ...]


@lru_cache(1024)
def _patch_layout(
    shape: tuple[int, ...], itemsize: int, window: Pair, out: Pair, geometry: Geometry
) -> _PatchLayout:
    groups, run = geometry.groups, shape[3] // geometry.groups
    count, size = shape[0] * prod(out), prod(window) * run
    is_pointwise = window == (1, 1) == geometry.strides and groups == 1
    most = max(MIN_BLOCK_ROWS, MAX_BLOCK_BYTES // max(groups * size * itemsize, 1))
    step = count if is_pointwise else min(most, count)
    columns = window[1]
    if geometry.dilations[1] == 1 and groups == 1:  # a row of the window is in one piece
        columns, run = 1, run * columns
    plan = _plan(shape, out, (window[0], columns), run, groups, geometry)
    return _PatchLayout(groups, count, size, step, is_pointwise, plan)


class _Patches:
    """The patches under the windows on padded images."""

    def __init__(self, images: np.ndarray, window: Pair, out: Pair, geometry: Geometry) -> None:
        self.images = images
        self.layout = _patch_layout(images.shape, images.itemsize, window, out, geometry)
        self.count, self.size = self.layout.count, self.layout.size

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield blocks of windows, with memory for their patches (groups, windows, patch)."""
        groups, all_windows, size, step, *_ = self.layout
        memory = np.empty(groups * step * size, self.images.dtype)
        for start in range(0, all_windows, max(step, 1)):
            count = min(step, all_windows - start)
            patches = memory[: groups * count * size].reshape(groups, count, size)
            yield slice(start, start + count), patches

    def copy_patches(self, block: slice, patches: np.ndarray) -> np.ndarray:
        """Return the patches of a block of windows, as a view if possible."""
        if self.layout.is_pointwise:
            return self.images.reshape(1, self.count, self.size)
        kind, parts = words(self.images.dtype)
        flat = (x.reshape(-1).view(kind) for x in (self.images, patches))
        _copy(kind, *flat, self._at(block, parts))
        return patches

    def add_patches(self, block: slice, patches: np.ndarray) -> None:
        """Add the patches of a block to the images, at their windows."""
        flat = (x.reshape(-1) for x in (self.images, patches))
        _add(self.images.dtype, *flat, self._at(block, 1))

    def _at(self, block: slice, parts: int) -> tuple[int, ...]:
        """Return the plan for a block. An element consists of `parts` words."""
        plan = self.layout.plan
        if parts != 1:
            counts = (0, 1, 5, 7, 10)  # all others are steps
            plan = tuple([n if i in counts else n * parts for i, n in enumerate(plan)])
        return (*plan, block.start, block.stop - block.start)


def _pad(images: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Return images with zeros around them, contiguous."""
    size = images.shape[1:3]
    if geometry.padded_size(size) == size:
        return np.ascontiguousarray(images)
    shape = images.shape[0], *geometry.padded_size(size), images.shape[3]
    out = np.zeros(shape, images.dtype)
    inside(out, size, geometry.padding)[...] = images
    return out


def inside(padded: Any, size: Pair, padding: tuple[Pair, Pair]) -> Any:
    """Return the images (..., height, width, channels) within padded ones."""
    (top, _), (left, _) = padding
    return padded[..., top : top + size[0], left : left + size[1], :]


def _by_group(matrix: np.ndarray, groups: int) -> np.ndarray:
    """Return (rows, groups * columns) as a view (groups, rows, columns)."""
    return matrix.reshape(matrix.shape[0], groups, matrix.shape[1] // groups).transpose(1, 0, 2)


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
        self.plan = _plan(images.shape, lines, window, channels * self.merged, 1, geometry)

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
    taps = _Taps(_pad(images, geometry), window, size, geometry)
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
    taps = _Taps(_pad(images, geometry), window, upstream.shape[1:3], geometry)
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


def _conv(images: np.ndarray, filters: np.ndarray, geometry: Geometry, size: Pair) -> np.ndarray:
    groups, window = geometry.groups, filters.shape[:2]
    if _alone(filters, groups):
        return _sum_alone(images, filters, geometry)
    patches = _Patches(_pad(images, geometry), window, size, geometry)
    weights = _by_group(filters.reshape(patches.size, filters.shape[3]), groups)
    out = np.empty((patches.count, filters.shape[3]), images.dtype)
    for block, part in patches.blocks():
        rows = patches.copy_patches(block, part)
        quiet.run(np.matmul, rows, weights, _by_group(out[block], groups))
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


def _conv_input(
    upstream: np.ndarray, filters: np.ndarray, geometry: Geometry, size: Pair
) -> np.ndarray:
    groups, outputs = geometry.groups, filters.shape[3]
    if _alone(filters, groups):
        return np.ascontiguousarray(_transpose_depthwise(upstream, filters, geometry, size))
    padded = upstream.shape[0], *geometry.padded_size(size), filters.shape[2] * groups
    window = filters.shape[:2]
    patches = _Patches(np.zeros(padded, upstream.dtype), window, upstream.shape[1:3], geometry)
    weights = _by_group(filters.reshape(patches.size, outputs), groups).transpose(0, 2, 1)
    values = upstream.reshape(patches.count, outputs)
    for block, part in patches.blocks():
        quiet.run(np.matmul, _by_group(values[block], groups), weights, part)
        patches.add_patches(block, part)
    return np.ascontiguousarray(inside(patches.images, size, geometry.padding))


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


def _conv_filter(
    images: np.ndarray, upstream: np.ndarray, geometry: Geometry, window: Pair
) -> np.ndarray:
    groups, outputs = geometry.groups, upstream.shape[3]
    if groups == images.shape[3] > 1:
        return _correlate_depthwise(images, upstream, geometry, window)
    patches = _Patches(_pad(images, geometry), window, upstream.shape[1:3], geometry)
    values = upstream.reshape(patches.count, outputs)
    total = np.zeros((groups, patches.size, outputs // groups), images.dtype)
    for block, part in patches.blocks():
        rows = patches.copy_patches(block, part).transpose(0, 2, 1)
        product = quiet.run(np.matmul, rows, _by_group(values[block], groups))
        quiet.run(np.add, total, product, total)
    return np.ascontiguousarray(total.transpose(1, 0, 2))


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
