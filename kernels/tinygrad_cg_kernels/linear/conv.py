"""Convolution of images and its two adjoints.

Channels come last: images are (n, height, width, channels), filters (height, width, channels of one
group, output channels). `windows` adds up the products. The transpose by images is a convolution of
the upstream gradient with the filters turned around; with strides, one for each remainder of a
position. Channels that are filtered one by one are repeated, once for each of their outputs.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import product
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.linear.windows import (
    Grid,
    Pair,
    Part,
    Shape,
    filter_sums,
    slack_of,
    window_sums,
)
from tinygrad_cg_kernels.runtime import promotion
from tinygrad_cg_kernels.runtime.errstate import cast, quiet
from tinygrad_cg_kernels.runtime.promotion import (
    is_bool,
    is_complex,
    loop_dtype,
    native,
    promote,
)


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


class Sizes(NamedTuple):
    """The shapes of the arrays of a convolution, and its geometry."""

    images: Shape
    filters: Shape
    windows: Shape
    geometry: Geometry

    def is_depthwise(self, dtype: np.dtype) -> bool:
        """Return whether channels are filtered one by one. (Complex ones are pairs of channels.)"""
        return self.geometry.groups > 1 and self.filters[2] == 1 and not is_complex(dtype)


def inside(padded: Any, size: Pair, padding: tuple[Pair, Pair]) -> Any:
    """Return the images (..., height, width, channels) within padded ones."""
    (top, _), (left, _) = padding
    return padded[..., top : top + size[0], left : left + size[1], :]


# The three maps ------------------------------------------------------------------------------

Plan = Callable[[np.dtype, Sizes], Callable[[Any, Any], Any]]
"""Returns a function of two arrays that fit together, of the dtype of the computation."""


@lru_cache(1024)
def _planned(
    name: str,
    plan: Plan,
    dtypes: tuple[np.dtype, np.dtype],
    x: Shape,
    y: Shape,
    geometry: Geometry,
    size: Pair,
) -> Callable[[Any, Any], Any]:
    """Return a map for arrays of these dtypes and shapes; ValueError unless they fit together.

    Kernels do not check shapes. `size` is that of the result's images or filters, if it has any.
    """
    dtype = promote(*[native(name, operand) for operand in dtypes])
    if is_bool(dtype):
        raise TypeError(f"{name}: does not support bool: cast to a numeric dtype first")
    loop, lead, groups = loop_dtype(dtype), x[:-3], geometry.groups
    first = prod(lead), *x[-3:]
    if name == "conv":
        images, filters = first, y
        result = windows = first[0], *geometry.output_size(first[1:3], y[:2]), y[3]
    elif name == "conv_input":
        windows, filters = first, y
        result = images = first[0], *size, y[2] * groups
    else:
        images, windows = first, y
        result = filters = *size, first[3] // groups, y[3]
    expected = images[0], *geometry.output_size(images[1:3], filters[:2]), filters[3]
    if filters[2] * groups != images[3] or expected != windows or filters[3] % groups:
        raise ValueError(
            f"{name}: images {images}, filters {filters} and windows {windows} do not fit together "
            f"with {geometry}"
        )
    run = plan(loop, Sizes(images, filters, windows, geometry))
    if (*dtypes, dtype) == (loop,) * 3 and len(lead) == 1:
        return run
    shape = result if name == "conv_filter" else (*lead, *result[1:])
    return lambda x, y: cast(run(cast(x, loop).reshape(first), cast(y, loop)), dtype).reshape(shape)


def _run(name: str, plan: Plan, x: Any, y: Any, geometry: Geometry, size: Pair = (0, 0)) -> Any:
    """Run a map. Axes before the last four, of one operand, or of both, are broadcast."""
    if y.ndim == 4 and (x.ndim == 4 or name != "conv_filter"):
        return _planned(name, plan, (x.dtype, y.dtype), x.shape, y.shape, geometry, size)(x, y)
    lead = promotion.broadcast_shapes(x.shape[:-4], y.shape[:-4])
    x, y = (np.broadcast_to(array, lead + array.shape[-4:]) for array in (x, y))
    parts = [_run(name, plan, x[k], y[k], geometry, size) for k in np.ndindex(lead)]
    if not parts:
        raise ValueError(f"{name}: the batch of images is empty")
    return np.stack(parts).reshape(lead + parts[0].shape)


def _taps_by_group(filters: Shape, groups: int) -> Shape:
    """Return the shape (taps, channels of a group, groups, outputs of a group)."""
    return prod(filters[:2]), filters[2], groups, filters[3] // groups


def _repeated(images: np.ndarray, outputs: int) -> np.ndarray:
    """Return images with a copy of each channel for each of its outputs."""
    multiple = outputs // images.shape[3]
    return images if multiple == 1 else images.repeat(multiple, 3)


def _pad(
    dtype: np.dtype, images: Shape, padding: tuple[Pair, Pair], slack: int = 0
) -> tuple[Shape, Callable[[np.ndarray], np.ndarray]]:
    """Return the shape of padded images, and a function that puts zeros around images.

    Its results are contiguous; `slack` elements of memory follow them. If a width is negative,
    images are cut.
    """
    n, *size, channels = images
    source, target = [slice(None)], [slice(None)]
    for extent, (before, after) in zip(size, padding, strict=True):
        first = max(-before, 0)
        stop = max(min(extent, extent + after), first)
        source.append(slice(first, stop))
        target.append(slice(first + before, stop + before))
    shape = n, *Geometry(padding=padding).padded_size((size[0], size[1])), channels
    inner, outer, count = tuple(source), tuple(target), prod(shape)
    if padding == ((0, 0), (0, 0)) and not slack:
        return shape, np.ascontiguousarray

    def pad(images: np.ndarray) -> np.ndarray:
        out = np.zeros(count + slack, dtype)[:count].reshape(shape)
        out[outer] = images[inner]
        return out

    return shape, pad


def _sums(
    dtype: np.dtype, images: Shape, filters: Shape, out: Shape, parts: list[Part], depthwise: bool
) -> Callable[[Any, Any, Any], object]:
    """Return the function of `window_sums`. The parts of a complex number are two channels."""
    if not is_complex(dtype):
        return window_sums(dtype, images, filters, out, parts, depthwise)
    part = np.dtype(dtype.char.lower())
    taps, channels, groups, outputs = filters
    both = taps, 2 * channels, groups, 2 * outputs
    images, out = ((*shape[:3], 2 * shape[3]) for shape in (images, out))
    run = window_sums(part, images, both, out, parts)

    def of_parts(images: np.ndarray, filters: Any, out: np.ndarray) -> None:
        real, imag = filters.real, filters.imag
        pairs = np.empty((taps, channels, 2, groups, outputs, 2), part)
        pairs[..., 0, :, :, 0], pairs[..., 1, :, :, 1] = real, real
        pairs[..., 0, :, :, 1], pairs[..., 1, :, :, 0] = imag, -imag
        run(images.view(part), pairs.reshape(both), out.view(part))

    return of_parts


def _conv(dtype: np.dtype, sizes: Sizes) -> Callable[[Any, Any], Any]:
    images, filters, windows, geometry = sizes
    depthwise, outputs = sizes.is_depthwise(dtype), windows[3]
    if depthwise:
        images = *images[:3], outputs
    slack = slack_of(dtype, outputs, True) if depthwise else 0
    padded, pad = _pad(dtype, images, geometry.padding, slack)
    weights = _taps_by_group(filters, 1 if depthwise else geometry.groups)
    size, window = (windows[1], windows[2]), (filters[0], filters[1])
    grid = Grid(size, geometry.strides, geometry.dilations)
    part = Part(grid, Grid(size, (1, 1), (1, 1)), window)
    add = _sums(dtype, padded, weights, windows, [part], depthwise)

    def run(images: np.ndarray, filters: np.ndarray) -> np.ndarray:
        out = np.empty(windows, dtype)
        if depthwise:
            images = _repeated(images, outputs)
        add(pad(images), filters.reshape(weights), out)
        return out

    return run


def conv(images: Any, filters: Any, geometry: Geometry, plan: Plan = _conv) -> Any:
    """Return the sum over a window of images times filters, at each position: no flipping.

    Images (n, height, width, channels) with filters (height, width, channels / groups, out)
    give (n, rows, columns, out). Leading axes of either broadcast. float16 is computed in
    float32; bool is a TypeError. `plan` gives what computes it, here and in the transposes.
    """
    return _run("conv", plan, images, filters, geometry)


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


def _turned_windows(sizes: Sizes) -> tuple[tuple[Pair, Pair], list[Part], list[int]]:
    """Return how `conv_input` is computed by convolutions with filters that are turned around.

    The results are the padding of the upstream gradient; a part for each pair of remainders, with
    windows on the padded gradient; and the taps of all parts.
    """
    images, window, out, (strides, pads, dilations, _) = sizes
    rows, columns = (
        _remainders(images[k + 1], out[k + 1], window[k], strides[k], dilations[k], pads[k][0])
        for k in range(2)
    )
    top, left = (max((part.lead for part in axis), default=0) for axis in (rows, columns))
    bottom, right = (max((part.trail for part in axis), default=0) for axis in (rows, columns))
    parts, order = [], []
    for row, column in product(rows, columns):
        count, start = (row.count, column.count), (top - row.lead, left - column.lead)
        grid = Grid(count, (1, 1), (row.dilation, column.dilation), start)
        positions = Grid(count, strides, (1, 1), (row.start, column.start))
        taps = range(window[0])[row.taps][::-1], range(window[1])[column.taps][::-1]
        parts.append(Part(grid, positions, (len(taps[0]), len(taps[1]))))
        order += [i * window[1] + j for i, j in product(*taps)]
    return ((top, bottom), (left, right)), parts, order


def _conv_input(dtype: np.dtype, sizes: Sizes) -> Callable[[Any, Any], Any]:
    images, filters, windows, geometry = sizes
    depthwise, outputs = sizes.is_depthwise(dtype), windows[3]
    padding, parts, order = _turned_windows(sizes)
    slack = slack_of(dtype, outputs, True) if depthwise else 0
    padded, pad = _pad(dtype, windows, padding, slack)
    shape = *images[:3], outputs if depthwise else images[3]
    new = np.empty if len(parts) == prod(map(min, geometry.strides, images[1:3])) else np.zeros
    taps = len(order), *_taps_by_group(filters, 1 if depthwise else geometry.groups)[1:]
    weights = taps if depthwise else (taps[0], taps[3], taps[2], taps[1])
    add, lines = _sums(dtype, padded, weights, shape, parts, depthwise), prod(filters[:2])
    is_ordered = order == [*range(lines)]
    each = *images, shape[3] // max(images[3], 1)

    def run(upstream: np.ndarray, filters: np.ndarray) -> np.ndarray:
        out = new(shape, dtype)
        turned = (
            filters if is_ordered else filters.reshape(lines, *filters.shape[2:]).take(order, 0)
        )
        turned = turned.reshape(taps)
        add(pad(upstream), turned if depthwise else turned.transpose(0, 3, 2, 1), out)
        if shape[3] != images[3]:
            return quiet.run(np.add.reduce, out.reshape(each), 4, dtype)
        return out

    return run


def conv_input(
    upstream: Any, filters: Any, geometry: Geometry, size: Pair, plan: Plan = _conv_input
) -> Any:
    """Return the transpose of `conv` by its images, which are of `size`: the transposed
    convolution.

    Upstream (n, rows, columns, out) gives (n, height, width, channels); the rest as in `conv`.
    """
    return _run("conv_input", plan, upstream, filters, geometry, size)


def _conv_filter(dtype: np.dtype, sizes: Sizes) -> Callable[[Any, Any], Any]:
    images, filters, windows, geometry = sizes
    depthwise, outputs = sizes.is_depthwise(dtype), windows[3]
    if depthwise:
        images = *images[:3], outputs
    groups, pair = 1 if depthwise else geometry.groups, 1 + is_complex(dtype)
    part = np.dtype(dtype.char.lower()) if pair == 2 else dtype
    slack = slack_of(part, outputs * pair // groups, depthwise)
    padded, pad = _pad(dtype, images, geometry.padding, slack if depthwise else 0)
    _, follow = _pad(dtype, windows, ((0, 0), (0, 0)), slack)
    padded = *padded[:3], padded[3] * pair
    upstream = *windows[:3], groups, outputs * pair // groups
    grid = Grid((windows[1], windows[2]), geometry.strides, geometry.dilations)
    window = filters[0], filters[1]
    add = filter_sums(part, padded, upstream, window, grid, depthwise)

    def run(images: np.ndarray, windows: np.ndarray) -> np.ndarray:
        if depthwise:
            images = _repeated(images, outputs)
        return add(pad(images).view(part), follow(windows).view(part).reshape(upstream))

    def of_parts(images: np.ndarray, windows: np.ndarray) -> np.ndarray:
        total = run(images, windows)
        shape = *filters[:3], groups, outputs // groups
        parts = total.reshape(*filters[:3], 2, *shape[3:], 2)
        result: Any = np.empty(shape, dtype)
        quiet.run(np.subtract, parts[..., 0, :, :, 0], parts[..., 1, :, :, 1], result.real)
        quiet.run(np.add, parts[..., 0, :, :, 1], parts[..., 1, :, :, 0], result.imag)
        return result.reshape(filters)

    return of_parts if pair == 2 else lambda x, y: run(x, y).reshape(filters)


def conv_filter(
    images: Any, upstream: Any, geometry: Geometry, window: Pair, plan: Plan = _conv_filter
) -> Any:
    """Return the transpose of `conv` by its filters, which are of `window`.

    Images (n, height, width, channels) and upstream (n, rows, columns, out) give
    (height, width, channels / groups, out); the rest as in `conv`.
    """
    return _run("conv_filter", plan, images, upstream, geometry, window)
