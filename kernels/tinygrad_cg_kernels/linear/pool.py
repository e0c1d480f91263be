"""Pooling of images: the largest element under a window, its index, and the mean.

Images are (..., height, width, channels). Elements outside an image do not count, not even for the
mean. The inner loops run over channels, in vectors.
"""

from collections.abc import Callable
from math import prod
from typing import NamedTuple

import numpy as np

from tinygrad_cg_kernels.elementary import maximum
from tinygrad_cg_kernels.linear.conv import Geometry, Pair
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime.entries import ByDtype, array_type
from tinygrad_cg_kernels.runtime.errstate import cast
from tinygrad_cg_kernels.runtime.intrinsics import inlined, like, wide_vectors
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


# `plan` is (images, height, width, channels, rows, columns, *window, *strides, top, left).


@build.jitable
def _bounds(position, stride, before, window, size):
    """Return the part of a window that lies within the image, along one axis."""
    first = position * stride - before
    return max(first, 0), min(first + window, size)


@build.jitable
def _place(k, plan):
    """Return the rows and the columns of a window, and the first row of its image among all."""
    inlined()
    height, width, rows, columns = plan[1], plan[2], plan[4], plan[5]
    tall, broad, down, across, top, left = plan[6:]
    line = k // columns
    start, stop = _bounds(line % rows, down, top, tall, height)
    first, last = _bounds(k % columns, across, left, broad, width)
    return start, stop, first, last, line // rows * height


def _max_windows(images, out, plan):
    wide_vectors()
    width, channels, run = plan[2], plan[3], np.uintp(plan[3])
    for k in range(plan[0] * plan[4] * plan[5]):
        start, stop, first, last, base = _place(k, plan)
        target = np.uintp(k * channels)
        origin = np.uintp(((base + start) * width + first) * channels)
        for c in range(run):
            out[target + c] = images[origin + c]
        for y in range(start, stop):
            for x in range(first, last):
                source = np.uintp(((base + y) * width + x) * channels)
                for c in range(run):
                    out[target + c] = maximum(out[target + c], images[source + c])


def _argmax_windows(images, best, out, plan):
    wide_vectors()
    width, channels, run = plan[2], plan[3], np.uintp(plan[3])
    for k in range(plan[0] * plan[4] * plan[5]):
        start, stop, first, last, base = _place(k, plan)
        target = np.uintp(k * channels)
        origin = np.uintp(((base + start) * width + first) * channels)
        for c in range(run):
            best[c] = images[origin + c]
            out[target + c] = start * width + first
        for y in range(start, stop):
            for x in range(first, last):
                source = np.uintp(((base + y) * width + x) * channels)
                index = y * width + x
                for c in range(run):
                    value, largest = images[source + c], best[c]
                    better = (value > largest) | ((value != value) & (largest == largest))
                    best[c] = value if better else largest
                    out[target + c] = index if better else out[target + c]


def _mean_kernel(adjoint: bool) -> Callable:
    """Return a kernel that computes means, or adds their shares to images."""

    def kernel(images, means, plan):
        wide_vectors()
        width, channels, run = plan[2], plan[3], np.uintp(plan[3])
        for k in range(plan[0] * plan[4] * plan[5]):
            start, stop, first, last, base = _place(k, plan)
            window = np.uintp(k * channels)
            number = like((stop - start) * (last - first), means[window])
            for y in range(start, stop):
                for x in range(first, last):
                    at = np.uintp(((base + y) * width + x) * channels)
                    for c in range(run):
                        if adjoint:
                            images[at + c] += means[window + c] / number
                        else:
                            means[window + c] += images[at + c]
            if not adjoint:
                for c in range(run):
                    means[window + c] /= number

    return kernel


KERNELS = {
    "max_pool": _max_windows,
    "max_pool_indices": _argmax_windows,
    "mean_pool": _mean_kernel(False),
    "mean_pool_adjoint": _mean_kernel(True),
}
"""The kernels in the kernel language, by operation."""

_PLAN = ("i64",) * 12


def _arrays(*dtypes: np.dtype | None) -> Callable[[np.dtype], tuple]:
    """Return the argument types: vectors of dtypes (None is the kernel's own), and a plan."""
    return lambda own: (*(array_type(dtype or own) for dtype in dtypes), _PLAN)


_max = ByDtype(_max_windows, "max_windows", _arrays(None, None))
_argmax = ByDtype(_argmax_windows, "argmax_windows", _arrays(None, None, INT64))
_mean = ByDtype(KERNELS["mean_pool"], "mean_windows", _arrays(None, None))
_mean_adjoint = ByDtype(KERNELS["mean_pool_adjoint"], "mean_adjoint_windows", _arrays(None, None))


def plan_of(shape: tuple[int, ...], out: Pair, window: Window) -> tuple[int, ...]:
    (top, _), (left, _) = window.padding
    return (prod(shape[:-3]), *shape[-3:], *out, *window.size, *window.strides, top, left)


def ordered_dtype(name: str, images: np.ndarray) -> np.dtype:
    """Return the native dtype of images; TypeError for complex ones."""
    dtype = native(name, images.dtype)
    if is_complex(dtype):
        raise TypeError(f"{name}: complex numbers have no order: use abs, real or imag first")
    return dtype


def _pool(
    kernel: ByDtype, images: np.ndarray, window: Window, target: np.dtype, *buffers: np.ndarray
) -> np.ndarray:
    """Return zeros of dtype `target` that a kernel has filled."""
    *lead, height, width, channels = images.shape
    out = window.output_size((height, width))
    result = np.zeros((*lead, *out, channels), target)
    if result.size:
        flat, plan = np.ascontiguousarray(images).reshape(-1), plan_of(images.shape, out, window)
        kernel(images.dtype, flat, *buffers, result.reshape(-1), plan)
    return result


def max_pool(images: np.ndarray, window: Window) -> np.ndarray:
    """Return the largest element under each window, channel by channel; NaN if there is one."""
    dtype = ordered_dtype("max_pool", images)
    loop = loop_dtype(dtype)
    return cast(_pool(_max, cast(images, loop), window, loop), dtype)


def max_pool_indices(images: np.ndarray, window: Window) -> np.ndarray:
    """Return the indices of `max_pool` (int64): row * width + column, the first of equals."""
    dtype = loop_dtype(ordered_dtype("max_pool_indices", images))
    best = np.empty(images.shape[-1], dtype)
    return _pool(_argmax, cast(images, dtype), window, INT64, best)


def mean_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype itself; float64 for integers and bool."""
    dtype = native("mean_pool", dtype)
    return FLOAT64 if is_exact(dtype) else dtype


def mean_pool(images: np.ndarray, window: Window) -> np.ndarray:
    """Return the mean of the elements under each window, channel by channel; see `mean_dtype`."""
    dtype = mean_dtype(images.dtype)
    loop = loop_dtype(dtype)
    return cast(_pool(_mean, cast(images, loop), window, loop), dtype)


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
    result = np.zeros(shape, loop_dtype(dtype))
    if upstream.size:
        flat = np.ascontiguousarray(cast(upstream, result.dtype)).reshape(-1)
        _mean_adjoint(result.dtype, result.reshape(-1), flat, plan_of(shape, out, window))
    return cast(result, dtype)
