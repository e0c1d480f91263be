"""Convolution and pooling of images on the device, with the functions of the array library.

A tap of a window is a strided part of the images. Patches are these parts side by side, so a
convolution is a matrix product for each group, as on the CPU. Its transpose adds the parts of a
product at the positions of the taps, one tap after another, as do sums over windows. So each run
gives the same bits.
"""

from collections.abc import Callable, Iterator
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.linear import conv as of_host
from tinygrad_cg_kernels.linear.conv import Geometry, Pair, inside
from tinygrad_cg_kernels.linear.pool import Window, check_adjoint, mean_dtype, ordered_dtype
from tinygrad_cg_kernels.move.scatter import limits
from tinygrad_cg_kernels.runtime.errstate import cast
from tinygrad_cg_kernels.runtime.promotion import INT64, is_floating, loop_dtype

MAX_PATCH_BYTES = 2**28
"""Limit for the patches that are in memory at a time."""


def _pad(images: Any, padding: tuple[Pair, Pair], value: Any = 0) -> Any:
    """Return images (..., height, width, channels) with a value around them."""
    if padding == ((0, 0), (0, 0)):
        return images
    pairs = ((0, 0),) * (images.ndim - 3) + (*padding, (0, 0))
    return adapter.array_module().pad(images, pairs, constant_values=value)


def _taps(window: Pair, out: Pair, strides: Pair, dilations: Pair = (1, 1)) -> Iterator[tuple]:
    """Yield for each tap of a window the index of its elements in padded images."""
    for tap in np.ndindex(*window):
        starts = [place * step for place, step in zip(tap, dilations, strict=True)]
        reach = [(count - 1) * step + 1 for count, step in zip(out, strides, strict=True)]
        rows, columns = (
            slice(start, start + length, step)
            for start, length, step in zip(starts, reach, strides, strict=True)
        )
        yield ..., rows, columns, slice(None)


# Convolution -----------------------------------------------------------------------------------


def _patches(images: Any, window: Pair, out: Pair, geometry: Geometry) -> Any:
    """Return the windows on padded images as (groups, windows, taps * channels of a group)."""
    taps = _taps(window, out, geometry.strides, geometry.dilations)
    parts = adapter.array_module().stack([images[tap] for tap in taps], axis=3)
    count, groups = images.shape[0] * prod(out), geometry.groups
    parts = parts.reshape(count, prod(window), groups, images.shape[3] // groups)
    return parts.transpose(2, 0, 1, 3).reshape(groups, count, -1)


def _by_group(windows: Any, groups: int) -> Any:
    """Return windows (..., groups * outputs) as (groups, windows, outputs)."""
    return windows.reshape(-1, groups, windows.shape[-1] // groups).transpose(1, 0, 2)


def _some(images: Any, window: Pair, out: Pair) -> Iterator[slice]:
    """Yield slices of images, with patches within the limit."""
    size = prod(out) * prod(window) * images.shape[3] * images.dtype.itemsize
    step = max(1, MAX_PATCH_BYTES // max(size, 1))
    for start in range(0, images.shape[0], step):
        yield slice(start, start + step)


def _conv(images: Any, filters: Any, geometry: Geometry, size: Pair) -> Any:
    window, library = filters.shape[:2], adapter.array_module()
    weights = _by_group(filters, geometry.groups)
    out = library.empty((images.shape[0], *size, filters.shape[3]), dtype=images.dtype)
    for some in _some(images, window, size):
        part = _patches(_pad(images[some], geometry.padding), window, size, geometry)
        product = library.matmul(part, weights).transpose(1, 0, 2)
        out[some] = product.reshape(out[some].shape)
    return out


def _conv_input(upstream: Any, filters: Any, geometry: Geometry, size: Pair) -> Any:
    own, window, out = filters.shape[2], filters.shape[:2], upstream.shape[1:3]
    groups, library = geometry.groups, adapter.array_module()
    shape = upstream.shape[0], *geometry.padded_size(size), own * groups
    weights = _by_group(filters, groups).transpose(0, 2, 1)
    padded = library.zeros(shape, dtype=upstream.dtype)
    for some in _some(padded, window, out):
        product = library.matmul(_by_group(upstream[some], groups), weights)
        parts = product.reshape(groups, -1, *out, prod(window), own).transpose(4, 1, 2, 3, 0, 5)
        taps = _taps(window, out, geometry.strides, geometry.dilations)
        for tap, part in zip(taps, parts, strict=True):
            padded[some][tap] += part.reshape(-1, *out, own * groups)
    return library.ascontiguousarray(inside(padded, size, geometry.padding))


def _conv_filter(images: Any, upstream: Any, geometry: Geometry, window: Pair) -> Any:
    groups, out, library = geometry.groups, upstream.shape[1:3], adapter.array_module()
    shape = groups, prod(window) * (images.shape[3] // groups), upstream.shape[3] // groups
    total = library.zeros(shape, dtype=images.dtype)
    for some in _some(images, window, out):
        part = _patches(_pad(images[some], geometry.padding), window, out, geometry)
        total += library.matmul(part.transpose(0, 2, 1), _by_group(upstream[some], groups))
    return library.ascontiguousarray(total.transpose(1, 0, 2))


def _planned(function: Callable, result: str) -> of_host.Plan:
    """Return a plan of a function that takes the geometry, and rows and columns of its result."""

    def plan(dtype: np.dtype, sizes: of_host.Sizes) -> Callable:
        shape = getattr(sizes, result)
        size = shape[:2] if result == "filters" else shape[1:3]
        return lambda x, y: function(x, y, sizes.geometry, size).reshape(shape)

    return plan


conv = partial(of_host.conv, plan=_planned(_conv, "windows"))
conv_input = partial(of_host.conv_input, plan=_planned(_conv_input, "images"))
conv_filter = partial(of_host.conv_filter, plan=_planned(_conv_filter, "filters"))


# Pooling ---------------------------------------------------------------------------------------


def _under(images: Any, window: Window, value: Any = 0) -> list[Any]:
    """Return for each tap of the window the elements under it, of images with a value around."""
    padded, out = _pad(images, window.padding, value), window.output_size(images.shape[-3:-1])
    return [padded[tap] for tap in _taps(window.size, out, window.strides)]


def max_pool(images: Any, window: Window) -> Any:
    """Return the largest element under each window, as the CPU's function."""
    dtype = ordered_dtype("max_pool", images)
    images = cast(images, loop_dtype(dtype))
    parts = _under(images, window, limits(images.dtype)[0])
    return cast(reduce(adapter.array_module().maximum, parts, parts[0]), dtype)


def max_pool_indices(images: Any, window: Window) -> Any:
    """Return the indices of `max_pool`, as the CPU's function."""
    images = cast(images, loop_dtype(ordered_dtype("max_pool_indices", images)))
    library, size, low = adapter.array_module(), images.shape[-3:-1], limits(images.dtype)[0]
    parts = _under(images, window, low)
    best = library.full(parts[0].shape, low, dtype=images.dtype)
    positions = library.full(best.shape, -1, dtype=INT64)
    places = library.arange(prod(size), dtype=INT64).reshape(*size, 1)
    for part, place in zip(parts, _under(places, window, -1), strict=True):
        better = (part > best) | ((positions < 0) & (place >= 0))  # the first, or a larger one
        if is_floating(part.dtype):
            better |= (part != part) & (best == best)
        best, positions = library.where(better, part, best), library.where(better, place, positions)
    return positions


def _counts(window: Window, out: Pair, size: Pair, dtype: np.dtype) -> Any:
    """Return the number of elements of the image in each window, as (rows, columns, 1)."""
    counts = []
    for axis in (0, 1):
        first = np.arange(out[axis]) * window.strides[axis] - window.padding[axis][0]
        last = np.minimum(first + window.size[axis], size[axis])
        counts.append(last - np.maximum(first, 0))
    whole = (counts[0][:, None, None] * counts[1][:, None]).astype(dtype)
    return adapter.array_module().asarray(whole)


def mean_pool(images: Any, window: Window) -> Any:
    """Return the mean of the elements under each window, as the CPU's function."""
    dtype = mean_dtype(images.dtype)
    images, size = cast(images, loop_dtype(dtype)), images.shape[-3:-1]
    parts = _under(images, window)
    total = adapter.array_module().zeros(parts[0].shape, dtype=images.dtype)
    for part in parts:
        total += part
    total /= _counts(window, total.shape[-3:-1], size, images.dtype)
    return cast(total, dtype)


def mean_pool_adjoint(upstream: Any, window: Window, size: Pair) -> Any:
    """Return the transpose of `mean_pool` on images of `size`, as the CPU's function."""
    dtype, out = check_adjoint(upstream, window, size)
    upstream, library = cast(upstream, loop_dtype(dtype)), adapter.array_module()
    room = Geometry(padding=window.padding).padded_size(size)
    padded = library.zeros((*upstream.shape[:-3], *room, upstream.shape[-1]), dtype=upstream.dtype)
    share = upstream / _counts(window, out, size, upstream.dtype)
    for tap in _taps(window.size, out, window.strides):
        padded[tap] += share
    return cast(library.ascontiguousarray(inside(padded, size, window.padding)), dtype)
