"""Gather, and its transposes: scatter-add along an axis and at an index tuple."""

from collections.abc import Callable
from math import prod

import numpy as np

from tinygrad_cg_kernels import compile as build
from tinygrad_cg_kernels.dtypes import INT64, computing, native


def _positions(name: str, indices: np.ndarray, size: int) -> np.ndarray:
    """Indices as int64 from 0 to size - 1; IndexError for any outside -size .. size - 1."""
    if indices.dtype.kind not in "iu":
        raise IndexError(f"{name}: indices must be integers, got {indices.dtype}")
    if indices.size:
        low, high = int(indices.min()), int(indices.max())
        if low < -size or high >= size:
            worst = high if high >= size else low
            raise IndexError(f"{name}: index {worst} is out of bounds for size {size}")
        indices = indices.astype(INT64, copy=False)
        if low < 0:
            indices = np.where(indices < 0, indices + size, indices)
    return np.ascontiguousarray(indices, dtype=INT64).reshape(indices.shape)


def _axis(name: str, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"{name}: axis {axis} is out of range for rank {rank}")
    return axis % rank


def gather(x: np.ndarray, indices: np.ndarray, axis: int = 0) -> np.ndarray:
    """The slices of `x` at `indices` along `axis`, in whose place come the indices' axes.

    Negative indices count from the end; one out of bounds is an IndexError.
    """
    axis = _axis("gather", axis, x.ndim)
    native("gather", x.dtype)
    positions = _positions("gather", indices, x.shape[axis])
    shape = x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
    out = np.empty(shape, x.dtype.newbyteorder("="))
    if out.size:
        np.take(x, positions, axis=axis, out=out, mode="clip")
    return out


def _scatter(indices, values, out):
    # Serial and in order, so that repeated indices always add up to the same bits.
    for a in range(np.uintp(values.shape[0])):
        for k in range(np.uintp(indices.size)):
            target = np.uintp(indices[k])
            for b in range(np.uintp(values.shape[2])):
                out[a, target, b] += values[a, k, b]


class _Scatter:
    """The compiled scatter kernel, one entry for each dtype."""

    def __init__(self) -> None:
        self.name = "scatter_add"
        self.dispatcher = build.kernel(_scatter, self.name, nogil=True)
        self._entries: dict[np.dtype, Callable] = {}

    def __call__(self, indices: np.ndarray, values: np.ndarray, out: np.ndarray) -> None:
        enter = self._entries.get(out.dtype)
        if enter is None:
            array = build.array_type(out.dtype, 3)
            enter = build.entry(self.dispatcher, build.array_type(INT64, 1), array, array)
            self._entries[out.dtype] = enter
        enter(indices, values, out)


_run = _Scatter()


def _added(shape, dtype, middle, positions, values) -> np.ndarray:
    """zeros(shape), seen as (before, middle, after), with values added at flat positions."""
    before, size, after = middle
    loop = computing(native("scatter_add", dtype))
    out = np.zeros(shape, loop)
    if values.size:
        values = np.ascontiguousarray(values, dtype=loop).reshape(before, positions.size, after)
        _run(positions.reshape(-1), values, out.reshape(before, size, after))
    return out.astype(dtype, copy=False)


def scatter_add(
    shape: tuple[int, ...],
    dtype: np.dtype,
    indices: np.ndarray,
    values: np.ndarray,
    axis: int = 0,
) -> np.ndarray:
    """zeros(shape) with `values` added at `indices` along `axis`: the transpose of `gather`.

    Repeated indices add up, in order.
    """
    axis = _axis("scatter_add", axis, len(shape))
    expected = shape[:axis] + indices.shape + shape[axis + 1 :]
    if values.shape != expected:
        raise ValueError(f"scatter_add: values have shape {values.shape}, not {expected}")
    positions = _positions("scatter_add", indices, shape[axis])
    middle = (prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]))
    return _added(shape, dtype, middle, positions, values)


def index_add(
    shape: tuple[int, ...],
    dtype: np.dtype,
    index: tuple[np.ndarray, ...],
    values: np.ndarray,
) -> np.ndarray:
    """zeros(shape) with `values` added at `index`: the transpose of `x[index]`.

    `index` are integer arrays that broadcast together, for the leading dimensions.
    """
    rank = len(index)
    if not 1 <= rank <= len(shape):
        raise IndexError(f"index_add: {rank} indices for shape {shape}")
    arrays = np.broadcast_arrays(*index)
    expected = arrays[0].shape + shape[rank:]
    if values.shape != expected:
        raise ValueError(f"index_add: values have shape {values.shape}, not {expected}")
    flat = np.zeros(arrays[0].shape, INT64)
    for array, size in zip(arrays, shape, strict=False):
        flat = flat * size + _positions("index_add", array, size)
    middle = (1, prod(shape[:rank]), prod(shape[rank:]))
    return _added(shape, dtype, middle, flat, values)
