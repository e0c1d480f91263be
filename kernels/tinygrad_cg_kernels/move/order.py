"""Sorting, and lookups along an axis with other indices for each line."""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.move.gather import check_axis, check_bounds, check_positions, check_values
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime.entries import ByDtype, array_type, numbers, words
from tinygrad_cg_kernels.runtime.errstate import cast
from tinygrad_cg_kernels.runtime.promotion import (
    FLOAT32,
    INT64,
    is_complex,
    is_floating,
    is_integer,
    loop_dtype,
    native,
)


def sort(x: Any, axis: int, descending: bool = False, library: Any = np) -> Any:
    """Return `x` sorted along an axis. NaN comes last; complex numbers are compared by parts.

    NumPy sorts with vector instructions, which is faster than a compiled loop. Arrays may be those
    of another `library`, here and in `argsort`.
    """
    array = x.astype(native("sort", x.dtype), order="C")
    array.sort(axis=axis)
    return library.ascontiguousarray(library.flip(array, axis)) if descending else array


def argsort(
    x: Any, axis: int, descending: bool = False, stable: bool = True, library: Any = np
) -> Any:
    """Return the indices (int64) that sort `x` along an axis; see `sort`.

    If `stable`, equal elements keep their order, in descending order, too.
    """
    lines = x.swapaxes(axis, -1).astype(native("argsort", x.dtype), copy=False)
    if descending:
        lines = lines[..., ::-1]
    if stable and library is np:
        order = _stable_order(lines)
    else:
        order = library.argsort(lines, axis=-1, kind="stable" if stable else None)
    if descending:
        order = lines.shape[-1] - 1 - order[..., ::-1]
    return library.ascontiguousarray(order.swapaxes(axis, -1))


def _stable_order(x: np.ndarray) -> np.ndarray:
    """Return the stable order along the last axis.

    NumPy's stable sorts are merge sorts, 2 to 17 times slower than its vectorised sort. So elements
    of up to 32 bits are packed into one integer with their indices, and sorted. For wider ones, the
    fast order is stable if no two elements are equal.
    """
    if is_complex(x.dtype):
        return np.argsort(x, -1, kind="stable")
    if x.itemsize < 8 and x.shape[-1] < 2**32:
        keys = (_sortable_bits(x) << 32) | np.arange(x.shape[-1])
        keys.sort(-1)
        return keys & 0xFFFFFFFF
    order = np.argsort(x, -1)
    ordered = x[order] if x.ndim == 1 else np.take_along_axis(x, order, -1)
    first, second = ordered[..., :-1], ordered[..., 1:]
    if np.any((first == second) | ((first != first) & (second != second))):
        return np.argsort(x, -1, kind="stable")
    return order


def _sortable_bits(x: np.ndarray) -> np.ndarray:
    """Return signed integers of 32 bits, as int64, in the order of `x`; NaN is the largest."""
    if not is_floating(x.dtype):
        return x.astype(INT64) - (2**31 if x.dtype == np.uint32 else 0)
    x = cast(x, FLOAT32) + FLOAT32.type(0)  # this makes -0.0 equal to 0.0
    bits = x.view(np.int32)
    bits = np.where(bits < 0, bits ^ np.int32(2**31 - 1), bits)
    return np.where(x == x, bits, np.int32(2**31 - 1)).astype(INT64)


@build.jitable
def _inside(index, size):
    """Return a valid index from 0 to size - 1. One in -size .. size - 1 keeps its meaning."""
    index = index + size if index < 0 else index
    return np.uintp(min(max(index, 0), size - 1))


def _along_axis(added: bool) -> Callable:
    """Return a kernel that looks up values in `x` at indices, or adds values there.

    It is serial and runs in order, so that repeated indices always give the same bits.
    """

    def kernel(x, indices, values, seen, sizes):
        before, size, count, after = sizes
        length, low, high = np.int64(size), 0, 0
        for a in range(np.uintp(before)):
            line, start = a * count, a * size
            base = start * after
            if after == 1:
                for k in range(np.uintp(count)):
                    index = indices[line + k]
                    low, high = min(low, index), max(high, index)
                    element = start + _inside(index, length)
                    if added:
                        x[element] += values[line + k]
                    else:
                        values[line + k] = x[element]
            else:
                for k in range(np.uintp(count)):
                    at = (line + k) * after
                    for b in range(np.uintp(after)):
                        index = indices[at + b]
                        low, high = min(low, index), max(high, index)
                        element = base + b + _inside(index, length) * after
                        if added:
                            x[element] += values[at + b]
                        else:
                            values[at + b] = x[element]
        seen[0], seen[1] = low, high

    return kernel


def _types(dtype: np.dtype) -> tuple:
    flat, indices = array_type(dtype), array_type(INT64)
    return flat, indices, flat, indices, numbers(4)


_take = ByDtype(_along_axis(False), "take_along_axis", _types)
_put = ByDtype(_along_axis(True), "add_along_axis", _types)


def _non_negative_indices(name: str, indices: np.ndarray, size: int) -> np.ndarray:
    """Return indices for the kernels. Unsigned indices of 64 bits are checked here."""
    if indices.dtype == np.uint64 or not size:
        return check_positions(name, indices, size)
    if not is_integer(indices.dtype):
        raise IndexError(f"{name}: indices must be integers, got {indices.dtype}")
    return np.ascontiguousarray(indices, dtype=INT64)


def check_shapes(name: str, shape: tuple[int, ...], indices: tuple[int, ...], axis: int) -> int:
    """Return the axis as a non-negative number; ValueError unless all other axes agree."""
    axis = check_axis(name, axis, len(shape))
    if (*shape[:axis], *shape[axis + 1 :]) != (*indices[:axis], *indices[axis + 1 :]):
        raise ValueError(f"{name}: shapes {shape} and {indices} must agree except for axis {axis}")
    return axis


def _run(kernel: ByDtype, x: np.ndarray, at: np.ndarray, values: np.ndarray, axis: int) -> None:
    """Run a kernel on contiguous arrays seen as (before, axis, after)."""
    before, after = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    flat = [array.reshape(-1) for array in (x, at, values)]
    sizes = before, x.shape[axis], at.shape[axis], after
    kernel(x.dtype, *flat, seen := np.zeros(2, INT64), sizes)
    check_bounds(kernel.name, *seen.tolist(), x.shape[axis])


def take_along_axis(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """Return the elements of `x` at `indices` along `axis`, line by line.

    All other axes are the same. Negative indices count from the end. An index out of range raises
    IndexError.
    """
    dtype = native("take_along_axis", x.dtype)
    axis = check_shapes("take_along_axis", x.shape, indices.shape, axis)
    positions = _non_negative_indices("take_along_axis", indices, x.shape[axis])
    out = np.empty(indices.shape, dtype)
    if out.size:
        kind = words(dtype)[0] if dtype.itemsize <= 8 else dtype
        source = np.ascontiguousarray(x, dtype=dtype)
        _run(_take, source.view(kind), positions, out.view(kind), axis)
    return out


def add_along_axis(
    shape: tuple[int, ...], dtype: np.dtype, indices: np.ndarray, values: np.ndarray, axis: int
) -> np.ndarray:
    """Return zeros(shape) with `values` added at `indices`: the transpose of `take_along_axis`.

    Repeated indices add up, in order.
    """
    axis = check_shapes("add_along_axis", shape, indices.shape, axis)
    check_values("add_along_axis", values.shape, indices.shape)
    positions = _non_negative_indices("add_along_axis", indices, shape[axis])
    loop = loop_dtype(native("add_along_axis", dtype))
    out = np.zeros(shape, loop)
    if values.size:
        _run(_put, out, positions, np.ascontiguousarray(values, dtype=loop), axis)
    return out.astype(dtype, copy=False)


def one_hot(indices: np.ndarray, depth: int, axis: int, dtype: np.dtype) -> np.ndarray:
    """Return zeros with ones at `indices` along a new axis. Indices out of range have no one."""
    if not is_integer(indices.dtype):
        raise TypeError(f"one_hot: indices must be integers, got {indices.dtype}")
    after = prod(indices.shape[axis:])
    out = np.zeros((*indices.shape[:axis], depth, *indices.shape[axis:]), dtype)
    flat = indices.reshape(-1, after) if after else indices.reshape(0, 0)
    inside = (flat >= 0) & (flat < depth)
    lines, columns = np.nonzero(inside)
    positions = (lines * depth + flat[inside].astype(INT64)) * after + columns
    out.reshape(-1)[positions] = 1
    return out
