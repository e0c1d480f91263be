"""Gather, scatter, sorting and products on the device, with the functions of the array library.

Functions that add at repeated indices sort them first, and then add in order. So each run gives the
same bits, which are those of the CPU.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.adapter import cuda  # noqa: F401 (the simulator looks for it here)
from tinygrad_cg_kernels.cuda.elementwise import define
from tinygrad_cg_kernels.move import scatter
from tinygrad_cg_kernels.move.gather import (
    check_axis,
    check_batch,
    check_positions,
    check_values,
    count_indexed,
    scatter_positions,
    take_in_batches,
)
from tinygrad_cg_kernels.move.order import check_shapes
from tinygrad_cg_kernels.reduce.combine import larger, smaller
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.promotion import (
    INT64,
    is_bool,
    is_complex,
    is_integer,
    loop_dtype,
    native,
    no_kernel,
    promote,
)

_SEGMENTS = """
def kernel(units, count, after, size, order, places, values, out):
    for unit in range(cuda.grid(1), units, cuda.gridsize(1)):
        column = unit % after
        rest = unit // after
        j = rest % count
        line = rest // count
        place = places[j]
        if j == 0 or places[j - 1] != place:
            target = (line * size + place) * after + column
            total = out[target]
            while j < count and places[j] == place:
                total = combine(total, values[(line * count + order[j]) * after + column])
                j += 1
            out[target] = total
"""


@jitable
def _plus(x: Any, y: Any) -> Any:
    return x + y


_kernels: dict[Callable, Any] = {}


def _combine_at(
    combine: Callable, out: Any, positions: Any, values: Any, middle: tuple[int, int, int]
) -> None:
    """Combine values, in order, into positions along the middle of three axes.

    Sorting brings the values of each position together. One thread combines them.
    """
    if not values.size:
        return
    kernel = _kernels.get(combine)
    if kernel is None:
        names = {"combine": adapter.scalar_function(combine)}
        kernel = _kernels[combine] = define(_SEGMENTS, names, globals())
    order = adapter.array_module().argsort(positions, kind="stable")
    before, size, after = middle
    count = positions.size
    units = before * count * after
    memory = [adapter.memory(array)[0] for array in (order, positions[order], values, out)]
    kernel.launch(adapter.blocks_for(units), [units, count, after, size, *memory])


def _positions(name: str, indices: Any, size: int) -> Any:
    """Return positions as on the CPU. The extreme indices are read back to check them."""
    return check_positions(name, indices, size, adapter.array_module())


def flat_positions(indices: Any, sizes: tuple[int, ...]) -> Any:
    """Return the row-major positions of coordinates, as the CPU's function."""
    total: Any = adapter.array_module().zeros(indices.shape[:-1], dtype=INT64)
    outside = total != 0
    for axis, size in enumerate(sizes):
        places = indices[..., axis].astype(INT64)
        outside = outside | (places < 0) | (places >= size)
        total += places * prod(sizes[axis + 1 :])
    if indices.size and bool(outside.any()):
        scatter.flat_positions(indices.get(), sizes)  # raises the error
    return total


def gather(x: Any, indices: Any, axis: int = 0, batch_dims: int = 0) -> Any:
    """Return the slices of `x` at `indices` along `axis`, as the CPU's function."""
    axis = check_axis("gather", axis, x.ndim)
    check_batch("gather", x.shape, indices, axis, batch_dims)
    positions = _positions("gather", indices, x.shape[axis])
    shape = x.shape[:axis] + indices.shape[batch_dims:] + x.shape[axis + 1 :]
    library = adapter.array_module()
    if not prod(shape):
        return library.empty(shape, dtype=x.dtype)
    if not batch_dims:
        return library.take(x, positions.reshape(-1), axis=axis).reshape(shape)
    return take_in_batches(x, positions, axis, batch_dims, library).reshape(shape)


def scatter_add(
    shape: tuple[int, ...],
    dtype: np.dtype,
    indices: Any,
    values: Any,
    axis: int = 0,
    batch_dims: int = 0,
) -> Any:
    """Return zeros(shape) with `values` added at `indices` along `axis`, in order."""
    library = adapter.array_module()
    positions, middle = scatter_positions(shape, indices, values, axis, batch_dims, library)
    return _scatter_flat("scatter_add", shape, dtype, middle, positions, values)


def _scatter_flat(
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    middle: tuple[int, int, int],
    positions: Any,
    values: Any,
) -> Any:
    """Return zeros(shape), seen as (before, middle, after), with values added at positions."""
    library, loop = adapter.array_module(), loop_dtype(native(name, dtype))
    out = library.zeros(shape, dtype=loop)
    values = library.ascontiguousarray(values.astype(loop, copy=False))
    _combine_at(_plus, out, positions.reshape(-1), values, middle)
    return out.astype(dtype, copy=False)


def index_add(shape: tuple[int, ...], dtype: np.dtype, key: tuple[Any, ...], values: Any) -> Any:
    """Return zeros(shape) with `values` added at `key`: the transpose of ``x[key]``.

    Arrays in `key` may be of the host.
    """
    library = adapter.array_module()
    key = tuple([library.asarray(p) if isinstance(p, np.ndarray) else p for p in key])
    rank = count_indexed(key, len(shape))
    if rank > len(shape):
        raise IndexError(f"index_add: {rank} indices for shape {shape}")
    if not any(isinstance(part, library.ndarray) for part in key):
        out = library.zeros(shape, dtype=dtype)
        out[key] = values
        return out
    _check_key(shape, key)
    places = library.arange(prod(shape[:rank]), dtype=INT64).reshape(shape[:rank])
    positions = places[key]
    check_values("index_add", values, positions.shape + shape[rank:])
    middle = (1, prod(shape[:rank]), prod(shape[rank:]))
    return _scatter_flat("index_add", shape, dtype, middle, positions, values)


def _check_key(shape: tuple[int, ...], key: tuple[Any, ...]) -> None:
    """Raise IndexError if an index is out of range. CuPy would wrap it."""
    ndarray = adapter.array_module().ndarray
    after = sum(_axes_of(part) for part in key)
    axis = 0
    for part in key:
        if part is Ellipsis:
            axis += len(shape) - after
            continue
        if isinstance(part, ndarray) and not is_bool(part.dtype) and part.size:
            low, high, size = int(part.min()), int(part.max()), shape[axis]
            if low < -size or high >= size:
                raise IndexError(
                    f"index {high if high >= size else low} is out of bounds for axis {axis} "
                    f"with size {size}"
                )
        axis += _axes_of(part)


def _axes_of(part: Any) -> int:
    """Return how many axes a part of a key indexes."""
    if part is None or part is Ellipsis:
        return 0
    is_mask = hasattr(part, "dtype") and is_bool(part.dtype)
    return part.ndim if is_mask else 1


def _rows_of(indices: Any, size: int, batch_dims: int) -> tuple[int, Any]:
    """Return the number of batches, and the indices as rows of all batches."""
    count = prod(indices.shape[:batch_dims])
    rows = _positions("scatter", indices, size).reshape(count, -1)
    batches = adapter.array_module().arange(count, dtype=INT64).reshape(count, 1)
    return count, rows + batches * size


def last_sources(indices: Any, size: int, batch_dims: int = 0) -> Any:
    """Return for each of `size` rows the last position in `indices` that names it, or -1."""
    library = adapter.array_module()
    count, rows = _rows_of(indices, size, batch_dims)
    out = library.full((count, size), -1, dtype=INT64)
    positions = library.broadcast_to(library.arange(rows.shape[1], dtype=INT64), rows.shape)
    values = library.ascontiguousarray(positions)
    _combine_at(larger, out, rows.reshape(-1), values, (1, count * size, 1))
    return out.reshape(*indices.shape[:batch_dims], size)


def segment_extremum(x: Any, indices: Any, size: int, largest: bool, batch_dims: int = 0) -> Any:
    """Return `size` rows: the largest (or smallest) of the rows of `x` sent there."""
    if is_complex(x.dtype):
        raise TypeError(no_kernel("segment_extremum", x.dtype))
    library = adapter.array_module()
    batch, tail = x.shape[:batch_dims], x.shape[indices.ndim :]
    count, rows = _rows_of(indices, size, batch_dims)
    loop = loop_dtype(x.dtype)
    start = scatter.limits(x.dtype)[0 if largest else 1]
    out = library.full((count * size, *tail), start, dtype=loop)
    values = library.ascontiguousarray(x.astype(loop, copy=False))
    middle = (1, count * size, prod(tail))
    _combine_at(larger if largest else smaller, out, rows.reshape(-1), values, middle)
    return out.astype(x.dtype, copy=False).reshape(*batch, size, *tail)


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    """Return the elements of `x` at `indices` along `axis`, line by line."""
    axis = check_shapes("take_along_axis", x.shape, indices, axis)
    positions = _positions("take_along_axis", indices, x.shape[axis])
    library = adapter.array_module()
    if not indices.size:
        return library.empty(indices.shape, dtype=x.dtype)
    return library.ascontiguousarray(library.take_along_axis(x, positions, axis=axis))


def add_along_axis(
    shape: tuple[int, ...], dtype: np.dtype, indices: Any, values: Any, axis: int
) -> Any:
    """Return zeros(shape) with `values` added at `indices` along `axis`, in order."""
    axis = check_shapes("add_along_axis", shape, indices, axis)
    if values.shape != indices.shape:
        shapes = f"{values.shape}, indices {indices.shape}"
        raise ValueError(f"add_along_axis: values have shape {shapes}")
    positions = _positions("add_along_axis", indices, shape[axis])
    library = adapter.array_module()
    before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
    lines = library.arange(before, dtype=INT64).reshape(before, 1, 1) * shape[axis]
    columns = library.arange(after, dtype=INT64)
    places = (lines + positions.reshape(before, indices.shape[axis], after)) * after + columns
    middle = (1, prod(shape), 1)
    return _scatter_flat("add_along_axis", shape, dtype, middle, places, values)


def sort(x: Any, axis: int, descending: bool = False) -> Any:
    """Return `x` sorted along an axis. NaN comes last."""
    library = adapter.array_module()
    ascending = library.sort(x.astype(native("sort", x.dtype)), axis=axis)
    return library.ascontiguousarray(library.flip(ascending, axis)) if descending else ascending


def argsort(x: Any, axis: int, descending: bool = False, stable: bool = True) -> Any:
    """Return the indices (int64) that sort `x` along an axis. Equal elements keep their order."""
    library = adapter.array_module()
    lines = library.flip(x, axis) if descending else x
    order = library.argsort(lines, axis=axis, kind="stable").astype(INT64, copy=False)
    if descending:
        order = x.shape[axis] - 1 - library.flip(order, axis)
    return library.ascontiguousarray(order)


def one_hot(indices: Any, depth: int, axis: int, dtype: np.dtype) -> Any:
    """Return zeros with ones at `indices` along a new axis. Indices out of range have no one."""
    if not is_integer(indices.dtype):
        raise TypeError(f"one_hot: indices must be integers, got {indices.dtype}")
    library = adapter.array_module()
    places = library.arange(depth, dtype=INT64).reshape(-1, *(1,) * (indices.ndim - axis))
    return (library.expand_dims(indices, axis) == places).astype(dtype)


def matmul(x: Any, y: Any) -> Any:
    """Return the matrix product as `np.matmul`; float16 is multiplied in float32."""
    if not x.ndim or not y.ndim:
        raise ValueError(f"matmul: shapes {x.shape} and {y.shape}: operands need a dimension")
    dtype = promote(native("matmul", x.dtype), native("matmul", y.dtype))
    loop = loop_dtype(dtype)
    library = adapter.array_module()
    try:
        product = library.matmul(x.astype(loop, copy=False), y.astype(loop, copy=False))
    except ValueError:
        shapes = f"{x.shape} and {y.shape}"
        raise ValueError(f"matmul: shapes {shapes} do not fit together") from None
    return library.ascontiguousarray(product.astype(dtype, copy=False)).reshape(product.shape)
