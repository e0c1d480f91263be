"""Gather, and its transposes: scatter-add along an axis, and at a key."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.entries import ByDtype, array_type, numbers
from tinygrad_cg_kernels.runtime.memory import empty
from tinygrad_cg_kernels.runtime.promotion import INT64, is_bool, is_integer, loop_dtype, native


def check_bounds(name: str, low: int, high: int, size: int) -> None:
    """Raise IndexError unless the extreme indices are in -size .. size - 1."""
    if low < -size or high >= size:
        worst = high if high >= size else low
        raise IndexError(f"{name}: index {worst} is out of bounds for size {size}")


def check_positions(name: str, indices: np.ndarray, size: int) -> np.ndarray:
    """Return indices as int64 from 0 to size - 1; IndexError if one is out of range."""
    is_plain = indices.dtype is INT64 and indices.size and indices.flags.c_contiguous
    if is_plain and indices.view(np.uint64).max() < size:  # negative ones are large
        return indices
    if not is_integer(indices.dtype):
        raise IndexError(f"{name}: indices must be integers, got {indices.dtype}")
    if indices.size:
        low, high = int(indices.min()), int(indices.max())
        check_bounds(name, low, high, size)
        indices = indices.astype(INT64, copy=False)
        if low < 0:
            indices = np.where(indices < 0, indices + size, indices)
    return np.ascontiguousarray(indices, dtype=INT64).reshape(indices.shape)


def check_axis(name: str, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"{name}: axis {axis} is out of range for rank {rank}")
    return axis % rank


def check_batch(
    name: str, shape: tuple[int, ...], indices: tuple[int, ...], axis: int, count: int
) -> None:
    """Raise ValueError unless there are `count` batch axes, all before the axis of the lookup."""
    if not 0 <= count <= min(axis, len(indices)) or shape[:count] != indices[:count]:
        raise ValueError(
            f"{name}: shapes {shape} and {indices} do not share {count} axes before {axis}"
        )


def check_values(name: str, values: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if values != shape:
        raise ValueError(f"{name}: values have shape {values}, not {shape}")


def check_scatter(
    shape: tuple[int, ...],
    indices: tuple[int, ...],
    values: tuple[int, ...],
    axis: int,
    count: int,
) -> int:
    """Return the axis of `scatter_add` from 0; an error for shapes that do not fit together."""
    axis = check_axis("scatter_add", axis, len(shape))
    check_batch("scatter_add", shape, indices, axis, count)
    check_values("scatter_add", values, shape[:axis] + indices[count:] + shape[axis + 1 :])
    return axis


def _rows_in_batches(
    shape: tuple[int, ...], positions: Any, axis: int, count: int, library: Any
) -> Any:
    """Return the positions along the axes up to `axis` as one: batch, axes between, positions."""
    batch, between = prod(shape[:count]), prod(shape[count:axis])
    starts = library.arange(batch * between, dtype=INT64).reshape(batch, between, 1) * shape[axis]
    return starts + positions.reshape(batch, 1, prod(positions.shape[count:]))


def scatter_positions(
    shape: tuple[int, ...],
    indices,
    values,
    axis: int,
    count: int,
    name: str = "scatter_add",
    check=check_positions,
    library=np,
) -> tuple[Any, tuple[int, int, int]]:
    """Return the positions of `scatter_add` along the middle of three axes, and the axes' sizes."""
    axis = check_scatter(shape, indices.shape, values.shape, axis, count)
    before, size, after = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    positions = check(name, indices, size)
    if not count:
        return positions, (before, size, after)
    return _rows_in_batches(shape, positions, axis, count, library), (1, before * size, after)


def gather(x: np.ndarray, indices: np.ndarray, axis: int = 0, batch_dims: int = 0) -> np.ndarray:
    """Return the slices of `x` at `indices` along `axis`, which the indices' axes replace.

    The first `batch_dims` axes of `x` and `indices` are batch axes. Negative indices count from the
    end. An index out of range raises IndexError.
    """
    axis = check_axis("gather", axis, x.ndim)
    dtype = native("gather", x.dtype)
    check_batch("gather", x.shape, indices.shape, axis, batch_dims)
    positions = check_positions("gather", indices, x.shape[axis])
    shape = x.shape[:axis] + indices.shape[batch_dims:] + x.shape[axis + 1 :]
    if batch_dims:
        rows = _rows_in_batches(x.shape, positions, axis, batch_dims, np)
        merged = x.reshape(prod(x.shape[: axis + 1]), prod(x.shape[axis + 1 :]))
        return np.take(merged, rows, axis=0).reshape(shape).astype(dtype, copy=False)
    out = empty(shape, dtype)
    if out.size:
        np.take(x, positions, axis=axis, out=out, mode="clip")
    return out


def _scatter(indices, values, out, sizes):
    # This is serial and runs in order, so that repeated indices always give the same bits.
    before, size, after = sizes
    count = np.uintp(indices.size)
    for a in range(np.uintp(before)):
        for k in range(count):
            target, source = (a * size + np.uintp(indices[k])) * after, (a * count + k) * after
            for b in range(np.uintp(after)):
                out[target + b] += values[source + b]


_INDICES = array_type(INT64)
_run = ByDtype(
    _scatter,
    "scatter_add",
    lambda dtype: (_INDICES, *[array_type(dtype)] * 2, numbers(3)),
)


def _scatter_flat(shape, dtype, middle, positions, values) -> np.ndarray:
    """Return zeros(shape), seen as (before, middle, after), with values added at flat positions."""
    loop = loop_dtype(native("scatter_add", dtype))
    out = np.zeros(shape, loop)
    if values.size:
        values = np.ascontiguousarray(values, dtype=loop).reshape(-1)
        _run(loop, positions.reshape(-1), values, out.reshape(-1), middle)
    return out.astype(dtype, copy=False)


def scatter_add(
    shape: tuple[int, ...],
    dtype: np.dtype,
    indices: np.ndarray,
    values: np.ndarray,
    axis: int = 0,
    batch_dims: int = 0,
) -> np.ndarray:
    """Return zeros(shape) with `values` added at `indices` along `axis`: the transpose of `gather`.

    Repeated indices add up, in order.
    """
    positions, middle = scatter_positions(shape, indices, values, axis, batch_dims)
    return _scatter_flat(shape, dtype, middle, positions, values)


def index_add(
    shape: tuple[int, ...],
    dtype: np.dtype,
    key: tuple[Any, ...],
    values: Any,
    library: Any = np,
    positions_at: Callable | None = None,
    scatter: Callable = _scatter_flat,
) -> Any:
    """Return zeros(shape) with `values` added at `key`: the transpose of ``x[key]``.

    `key` is a key as in NumPy. Values for a position that occurs several times are added in order.
    Another library of arrays has its functions that find positions, and that scatter.
    """
    is_basic = not any(isinstance(part, library.ndarray) for part in key)
    is_short = is_basic and len(key) <= len(shape)
    rank = len(key) if is_short else count_indexed(key, len(shape))
    if rank > len(shape):
        raise IndexError(f"index_add: {rank} indices for shape {shape}")
    if is_basic:
        out = library.zeros(shape, dtype)
        out[key] = values
        return out
    positions = (positions_at or _flat_positions)(shape[:rank], key)
    check_values("index_add", values.shape, positions.shape + shape[rank:])
    middle = (1, prod(shape[:rank]), prod(shape[rank:]))
    return scatter(shape, dtype, middle, positions, values)


def count_indexed(key: tuple[Any, ...], ndim: int) -> int:
    """Return the number of leading axes that a key indexes. The other axes are complete."""
    return ndim if any(part is Ellipsis for part in key) else sum(map(axes_of, key))


def axes_of(part: Any) -> int:
    """Return how many axes a part of a key indexes."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if hasattr(part, "dtype") and is_bool(part.dtype) else 1


def _flat_positions(shape: tuple[int, ...], key: tuple[Any, ...]) -> np.ndarray:
    """Return the flat row-major positions of the elements at `key` in an array of `shape`."""
    total = np.broadcast_to(np.zeros((), INT64), shape)[key]
    for axis, size in enumerate(shape):
        after = shape[axis + 1 :]
        coordinates = np.arange(size).reshape(size, *(1,) * len(after))
        total = total + np.broadcast_to(coordinates, shape)[key] * prod(after)
    return total
