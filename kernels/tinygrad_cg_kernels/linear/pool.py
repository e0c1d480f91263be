"""Pooling of images: the largest element under a window, its index, and the mean.

Images are (..., height, width, channels). Elements outside an image do not count, not even for the
mean. The inner loops run over channels, in vectors.
"""

from math import prod
from typing import NamedTuple

import numpy as np

from tinygrad_cg_kernels.elementary import maximum
from tinygrad_cg_kernels.linear.conv import Geometry, Pair
from tinygrad_cg_kernels.loops.ranges import Ranged
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime.errstate import cast
from tinygrad_cg_kernels.runtime.intrinsics import like, noalias, short_rows, wide_vectors
from tinygrad_cg_kernels.runtime.promotion import (
    FLOAT64,
    INT64,
    is_complex,
    is_exact,
    loop_dtype,
    native,
)


class Window(NamedTuple):
    """A window, and how it moves. Entries are pairs, for height and width."""

    size: Pair
    strides: Pair
    padding: tuple[Pair, Pair] = ((0, 0), (0, 0))

    def output_size(self, size: Pair) -> Pair:
        """Return how many windows fit; ValueError if none does, or if one would be empty."""
        if min(size) < 1 or any(
            max(pads) >= count for pads, count in zip(self.padding, self.size, strict=True)
        ):
            raise ValueError(
                f"images of {tuple(size)} with padding {self.padding}: padding must be less than "
                f"the window, {self.size}, and images not empty; otherwise a window could be empty"
            )
        return Geometry(self.strides, self.padding).output_size(size, self.size)


# Kernels over a range of lines of windows, or of images in the transpose. `plan` is (images,
# height, width, channels, rows, columns, *window, *strides, top, left).


@build.jitable
def _bounds(position, stride, before, window, size):
    """Return the part of a window that lies within the image, along one axis."""
    first = position * stride - before
    return max(first, 0), min(first + window, size)


@build.jitable
def _rows(line, plan):
    """Return the first and the last row under a line of windows, among the rows of all images."""
    start, stop = _bounds(line % plan[4], plan[8], plan[10], plan[6], plan[1])
    base = line // plan[4] * plan[1]
    return base, base + start, base + stop


@build.jitable
def max_windows(unused, none, begin, count, plan, images, out):
    wide_vectors()
    noalias()
    short_rows()
    width, channels, columns, run = plan[2], plan[3], plan[5], np.uintp(plan[3])
    for line in range(begin, begin + count):
        _, start, stop = _rows(line, plan)
        for column in range(columns):
            first, last = _bounds(column, plan[9], plan[11], plan[7], width)
            target = np.uintp((line * columns + column) * channels)
            origin = np.uintp((start * width + first) * channels)
            for c in range(run):
                out[target + c] = images[origin + c]
            for y in range(start, stop):
                for x in range(first, last):
                    source = np.uintp((y * width + x) * channels)
                    for c in range(run):
                        out[target + c] = maximum(out[target + c], images[source + c])


@build.jitable
def argmax_windows(unused, none, begin, count, plan, images, out):
    wide_vectors()
    noalias()
    short_rows()
    width, channels, columns, run = plan[2], plan[3], plan[5], np.uintp(plan[3])
    best = np.empty(channels, images.dtype)
    for line in range(begin, begin + count):
        base, start, stop = _rows(line, plan)
        for column in range(columns):
            first, last = _bounds(column, plan[9], plan[11], plan[7], width)
            target = np.uintp((line * columns + column) * channels)
            origin = np.uintp((start * width + first) * channels)
            for c in range(run):
                best[c] = images[origin + c]
                out[target + c] = (start - base) * width + first
            for y in range(start, stop):
                for x in range(first, last):
                    source = np.uintp((y * width + x) * channels)
                    index = (y - base) * width + x
                    for c in range(run):
                        value, largest, other = images[source + c], best[c], out[target + c]
                        better = (value > largest) | ((value != value) & (largest == largest))
                        best[c] = value if better else largest
                        out[target + c] = index if better else other


@build.jitable
def mean_windows(unused, none, begin, count, plan, images, means):
    wide_vectors()
    noalias()
    short_rows()
    width, channels, columns, run = plan[2], plan[3], plan[5], np.uintp(plan[3])
    for line in range(begin, begin + count):
        _, start, stop = _rows(line, plan)
        for column in range(columns):
            first, last = _bounds(column, plan[9], plan[11], plan[7], width)
            target = np.uintp((line * columns + column) * channels)
            origin = np.uintp((start * width + first) * channels)
            for c in range(run):
                means[target + c] = images[origin + c] + like(0, images[origin + c])  # -0 is 0
            for y in range(start, stop):
                for x in range(first + 1 if y == start else first, last):
                    source = np.uintp((y * width + x) * channels)
                    for c in range(run):
                        means[target + c] += images[source + c]
            number = like((stop - start) * (last - first), means[target])
            for c in range(run):
                means[target + c] /= number


@build.jitable
def mean_adjoint_windows(unused, none, begin, count, plan, means, images):
    """Add the shares of means to images; a unit is an image."""
    wide_vectors()
    noalias()
    short_rows()
    width, channels, columns, run = plan[2], plan[3], plan[5], np.uintp(plan[3])
    size = plan[1] * width * channels
    for k in range(begin * size, (begin + count) * size):
        images[np.uintp(k)] = like(0, images[np.uintp(k)])
    for line in range(begin * plan[4], (begin + count) * plan[4]):
        _, start, stop = _rows(line, plan)
        for column in range(columns):
            first, last = _bounds(column, plan[9], plan[11], plan[7], width)
            source = np.uintp((line * columns + column) * channels)
            number = like((stop - start) * (last - first), means[source])
            for y in range(start, stop):
                for x in range(first, last):
                    target = np.uintp((y * width + x) * channels)
                    for c in range(run):
                        images[target + c] += means[source + c] / number


KERNELS = {
    "max_pool": max_windows,
    "max_pool_indices": argmax_windows,
    "mean_pool": mean_windows,
    "mean_pool_adjoint": mean_adjoint_windows,
}
"""The kernels in the kernel language, by operation."""

_RANGED = {name: Ranged(kernel.__name__, kernel, 12, ()) for name, kernel in KERNELS.items()}


def _run(name: str, source: np.ndarray, out: np.ndarray, plan: tuple[int, ...]) -> np.ndarray:
    """Fill `out` by the kernel of an operation."""
    if out.size:
        units = plan[0] if name == "mean_pool_adjoint" else plan[0] * plan[4]
        arrays = np.ascontiguousarray(source), out
        _RANGED[name](arrays, plan, units, max(source.size, out.size))
    return out


def plan_of(shape: tuple[int, ...], out: Pair, window: Window) -> tuple[int, ...]:
    (top, _), (left, _) = window.padding
    return (prod(shape[:-3]), *shape[-3:], *out, *window.size, *window.strides, top, left)


def ordered_dtype(name: str, images: np.ndarray) -> np.dtype:
    """Return the native dtype of images; TypeError for complex ones."""
    dtype = native(name, images.dtype)
    if is_complex(dtype):
        raise TypeError(f"{name}: complex numbers have no order: use abs, real or imag first")
    return dtype


def _pool(name: str, images: np.ndarray, window: Window, target: np.dtype) -> np.ndarray:
    """Return the result of an operation, of dtype `target`."""
    *lead, height, width, channels = images.shape
    out = window.output_size((height, width))
    result = np.empty((*lead, *out, channels), target)
    return _run(name, images, result, plan_of(images.shape, out, window))


def max_pool(images: np.ndarray, window: Window) -> np.ndarray:
    """Return the largest element under each window, channel by channel; NaN if there is one."""
    dtype = ordered_dtype("max_pool", images)
    loop = loop_dtype(dtype)
    return cast(_pool("max_pool", cast(images, loop), window, loop), dtype)


def max_pool_indices(images: np.ndarray, window: Window) -> np.ndarray:
    """Return the indices of `max_pool` (int64): row * width + column, the first of equals."""
    dtype = loop_dtype(ordered_dtype("max_pool_indices", images))
    return _pool("max_pool_indices", cast(images, dtype), window, INT64)


def mean_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype itself; float64 for integers and bool."""
    dtype = native("mean_pool", dtype)
    return FLOAT64 if is_exact(dtype) else dtype


def mean_pool(images: np.ndarray, window: Window) -> np.ndarray:
    """Return the mean of the elements under each window, channel by channel; see `mean_dtype`."""
    dtype = mean_dtype(images.dtype)
    loop = loop_dtype(dtype)
    return cast(_pool("mean_pool", cast(images, loop), window, loop), dtype)


def check_adjoint(upstream: np.ndarray, window: Window, size: Pair) -> tuple[np.dtype, Pair]:
    """Return the dtype of `mean_pool_adjoint`, and its windows; an error unless they fit."""
    dtype, out = mean_dtype(upstream.dtype), window.output_size(size)
    if out != (upstream.shape[-3], upstream.shape[-2]):
        raise ValueError(f"mean_pool_adjoint: {window} on {size} gives {out}, not {upstream.shape}")
    return dtype, out


def mean_pool_adjoint(upstream: np.ndarray, window: Window, size: Pair) -> np.ndarray:
    """Return the transpose of `mean_pool` on images of `size`."""
    dtype, out = check_adjoint(upstream, window, size)
    shape = *upstream.shape[:-3], *size, upstream.shape[-1]
    result = np.empty(shape, loop_dtype(dtype))
    _run("mean_pool_adjoint", cast(upstream, result.dtype), result, plan_of(shape, out, window))
    return cast(result, dtype)
