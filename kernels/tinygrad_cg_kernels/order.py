"""Sorting, and looking up along an axis at places that differ from line to line."""

from math import prod

import numpy as np

from tinygrad_cg_kernels import compile as build
from tinygrad_cg_kernels.dtypes import INT64, computing, native
from tinygrad_cg_kernels.entries import ByDtype, words
from tinygrad_cg_kernels.move import checked_axis, checked_positions


def sort(x: np.ndarray, axis: int, descending: bool = False) -> np.ndarray:
    """`x` sorted along an axis: NaN is larger than all else, complex numbers go by their parts.

    NumPy sorts with vector instructions, faster than a compiled loop of ours would.
    """
    array = x.astype(native("sort", x.dtype), order="C")
    array.sort(axis=axis)
    return np.ascontiguousarray(np.flip(array, axis)) if descending else array


def argsort(x: np.ndarray, axis: int, descending: bool = False, stable: bool = True) -> np.ndarray:
    """The places (int64) of the elements of `x` in their order along an axis; see `sort`.

    If `stable`, equal elements stay in the order in which they stand, in a descending order too.
    """
    native("argsort", x.dtype)
    kind = "stable" if stable else None
    if not descending:
        return np.argsort(x, axis, kind=kind)
    backwards = np.argsort(np.flip(x, axis), axis, kind=kind)
    return np.ascontiguousarray(x.shape[axis] - 1 - np.flip(backwards, axis))


def _look_up(x, indices, out):
    for a in range(np.uintp(indices.shape[0])):
        for k in range(np.uintp(indices.shape[1])):
            for b in range(np.uintp(indices.shape[2])):
                out[a, k, b] = x[a, np.uintp(indices[a, k, b]), b]


def _add_up(indices, values, out):
    # Serial and in order, so that repeated indices always add up to the same bits.
    for a in range(np.uintp(indices.shape[0])):
        for k in range(np.uintp(indices.shape[1])):
            for b in range(np.uintp(indices.shape[2])):
                out[a, np.uintp(indices[a, k, b]), b] += values[a, k, b]


def _cube(dtype: np.dtype):
    return build.array_type(dtype, 3)


_take = ByDtype(
    _look_up, "take_along_axis", lambda dtype: (_cube(dtype), _cube(INT64), _cube(dtype))
)
_put = ByDtype(_add_up, "add_along_axis", lambda dtype: (_cube(INT64), _cube(dtype), _cube(dtype)))


def _lines(name: str, shape: tuple[int, ...], indices: np.ndarray, axis: int) -> tuple[int, int]:
    """How many elements stand before and after an axis; ValueError unless all others agree."""
    axis = checked_axis(name, axis, len(shape))
    before, after = shape[:axis], shape[axis + 1 :]
    if (before, after) != (indices.shape[:axis], indices.shape[axis + 1 :]):
        raise ValueError(
            f"{name}: shapes {shape} and {indices.shape} must agree but for axis {axis}"
        )
    return prod(before), prod(after)


def take_along_axis(x: np.ndarray, indices: np.ndarray, axis: int) -> np.ndarray:
    """The elements of `x` at `indices` along `axis`, line by line; other axes are the same.

    Negative indices count from the end; one out of bounds is an IndexError.
    """
    dtype = native("take_along_axis", x.dtype)
    before, after = _lines("take_along_axis", x.shape, indices, axis)
    positions = checked_positions("take_along_axis", indices, x.shape[axis])
    out = np.empty(indices.shape, dtype)
    if out.size:
        kind = words(dtype)[0] if dtype.itemsize <= 8 else dtype
        source = np.ascontiguousarray(x, dtype=dtype).view(kind)
        cube = (before, indices.shape[axis], after)
        _take(
            kind,
            source.reshape(before, x.shape[axis], after),
            positions.reshape(cube),
            out.view(kind).reshape(cube),
        )
    return out


def add_along_axis(
    shape: tuple[int, ...], dtype: np.dtype, indices: np.ndarray, values: np.ndarray, axis: int
) -> np.ndarray:
    """zeros(shape) with `values` added at `indices`: the transpose of `take_along_axis`.

    Repeated indices add up, in order.
    """
    before, after = _lines("add_along_axis", shape, indices, axis)
    if values.shape != indices.shape:
        raise ValueError(
            f"add_along_axis: values have shape {values.shape}, indices {indices.shape}"
        )
    positions = checked_positions("add_along_axis", indices, shape[axis])
    loop = computing(native("add_along_axis", dtype))
    out = np.zeros(shape, loop)
    if values.size:
        cube = (before, indices.shape[axis], after)
        values = np.ascontiguousarray(values, dtype=loop).reshape(cube)
        _put(loop, positions.reshape(cube), values, out.reshape(before, shape[axis], after))
    return out.astype(dtype, copy=False)


def one_hot(indices: np.ndarray, depth: int, axis: int, dtype: np.dtype) -> np.ndarray:
    """Ones at `indices` along a new axis of size `depth`, and zeros; only zeros for an index
    outside 0 .. depth - 1.
    """
    if indices.dtype.kind not in "iu":
        raise TypeError(f"one_hot: indices must be integers, got {indices.dtype}")
    after = prod(indices.shape[axis:])
    out = np.zeros((*indices.shape[:axis], depth, *indices.shape[axis:]), dtype)
    flat = indices.reshape(-1, after) if after else indices.reshape(0, 0)
    inside = (flat >= 0) & (flat < depth)
    lines, columns = np.nonzero(inside)
    places = (lines * depth + flat[inside].astype(INT64)) * after + columns
    out.reshape(-1)[places] = 1
    return out
