"""Gather, scatter, sorting and products on the device, with the functions of the array library.

Functions that add at repeated indices sort them first, and then add in order. So each run gives the
same bits, which are those of the CPU. Values of an index that occurs more than `CHUNK` times are
added in chunks of that many, and then the chunks' sums, in order.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter, bounds
from tinygrad_cg_kernels.cuda.adapter import cuda  # noqa: F401 (the simulator looks for it here)
from tinygrad_cg_kernels.cuda.elementwise import contiguous, define
from tinygrad_cg_kernels.cuda.layouts import integers
from tinygrad_cg_kernels.move import scatter
from tinygrad_cg_kernels.move.gather import (
    check_axis,
    check_batch,
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

CHUNK = 4 if adapter.simulated() else 1024  # values of an index that one thread combines

_SOURCE = """
def kernel(units, count, after, size, order, places, begins, values, parts, out):
    unit = cuda.grid(1)
    while unit < units:
        column = place(index(unit) % index(after))
        rest = index(index(unit) // index(after))
        j = place(rest % index(count))
        line = place(rest // index(count))
        at = places[j]
        starts = begins[j] == j
        target = (line * size + at) * after + column
        of_line = line * (count // CHUNK + 1)
        {body}
        unit += cuda.gridsize(1)
"""
_CHUNKS = _SOURCE.format(
    body="""if (j - begins[j]) % CHUNK == 0:
            total = values[(line * count + order[j]) * after + column]
            if starts:
                total = combine(out[target], total)
            for k in range(j + 1, min(j + CHUNK, count)):
                if places[k] != at:
                    break
                total = combine(total, values[(line * count + order[k]) * after + column])
            if starts:
                out[target] = total
            else:
                parts[(of_line + j // CHUNK) * after + column] = total"""
)
"""The threads of an index's first value, and of each `CHUNK`-th value after it, combine a chunk."""
_PARTS = _SOURCE.format(
    body="""if starts and j + CHUNK < count and places[j + CHUNK] == at:
            total = out[target]
            for k in range(j + CHUNK, count, CHUNK):
                if places[k] != at:
                    break
                total = combine(total, parts[(of_line + k // CHUNK) * after + column])
            out[target] = total"""
)
"""The thread of an index's first value combines the results of the chunks after the first."""


@jitable
def _plus(x: Any, y: Any) -> Any:
    return x + y


_kernels: dict[tuple, Any] = {}


def _combine_at(
    combine: Callable, out: Any, positions: Any, values: Any, middle: tuple[int, int, int]
) -> None:
    """Combine values, in order, into positions along the middle of three axes.

    Sorting brings the values of each position together.
    """
    if not values.size:
        return
    library = adapter.array_module()
    order = library.argsort(positions, kind="stable")
    places = positions[order]
    before, size, after = middle
    units, chunks = before * order.size * after, order.size // CHUNK + 1
    parts = library.empty(before * chunks * after, dtype=out.dtype)
    operands = order, places, library.searchsorted(places, places), values, parts, out
    memory = [adapter.memory(array)[0] for array in operands]
    types = integers([units, out.size])
    for source in (_CHUNKS, _PARTS)[:chunks]:  # a single chunk has no parts
        key = source, combine, types["index"]
        kernel = _kernels.get(key)
        if kernel is None:
            names = {"combine": adapter.scalar_function(combine), **types}
            kernel = _kernels[key] = define(source, names, globals())
        numbers = [units, order.size, after, size]
        kernel.launch(adapter.blocks_for(units), [*numbers, *memory])


def flat_positions(indices: Any, sizes: tuple[int, ...], check: Any = None) -> Any:
    """Return the row-major positions of coordinates, as the CPU's function.

    `check` raises the error for a copy of wrong indices on the host, by default as the CPU does.
    """
    check = check or partial(scatter.flat_positions, sizes=sizes)
    return bounds.located(indices, indices.shape[:-1], sizes, False, check)


def gather(x: Any, indices: Any, axis: int = 0, batch_dims: int = 0) -> Any:
    """Return the slices of `x` at `indices` along `axis`, as the CPU's function."""
    axis = check_axis("gather", axis, x.ndim)
    check_batch("gather", x.shape, indices, axis, batch_dims)
    positions = bounds.positions("gather", indices, x.shape[axis])
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
    positions, middle = scatter_positions(
        shape, indices, values, axis, batch_dims, bounds.positions, library
    )
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
    values = contiguous(values, loop)
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
    key = tuple(_checked(shape, key))
    places = library.arange(prod(shape[:rank]), dtype=INT64).reshape(shape[:rank])
    positions = places[key]
    check_values("index_add", values, positions.shape + shape[rank:])
    middle = (1, prod(shape[:rank]), prod(shape[rank:]))
    return _scatter_flat("index_add", shape, dtype, middle, positions, values)


def _checked(shape: tuple[int, ...], key: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the parts of a key, with indices in range, from 0 on. CuPy would wrap others."""
    ndarray = adapter.array_module().ndarray
    after, axis = sum(_axes_of(part) for part in key), 0
    for part in key:
        axis += len(shape) - after if part is Ellipsis else 0
        if isinstance(part, ndarray) and not is_bool(part.dtype):
            line = np.broadcast_to(False, (*(1,) * axis, shape[axis]))
            check = partial(np.take, line, axis=axis)  # raises NumPy's error
            yield bounds.located(part, part.shape, (shape[axis],), True, check)
        else:
            yield part
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
    rows = bounds.positions("scatter", indices, size).reshape(count, -1)
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
    values = contiguous(x, loop)
    middle = (1, count * size, prod(tail))
    _combine_at(larger if largest else smaller, out, rows.reshape(-1), values, middle)
    return out.astype(x.dtype, copy=False).reshape(*batch, size, *tail)


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    """Return the elements of `x` at `indices` along `axis`, line by line."""
    axis = check_shapes("take_along_axis", x.shape, indices, axis)
    positions = bounds.positions("take_along_axis", indices, x.shape[axis])
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
    positions = bounds.positions("add_along_axis", indices, shape[axis])
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
