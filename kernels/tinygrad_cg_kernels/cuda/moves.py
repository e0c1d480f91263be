"""Gather, scatter, sorting and products on the device, with the functions of the array library.

If indices or results are few, each thread looks for the values of its result. Other functions that
add at repeated indices sort them first, and then add in order. So each run gives the
same bits, which are those of the CPU. Values of an index that occurs more than `CHUNK` times are
added in chunks of that many, and then the chunks' sums, in order.
"""

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter, bounds
from tinygrad_cg_kernels.cuda.elementwise import (
    contiguous,
    converters,
    define,
    layout_of,
    plan_of,
    same,
)
from tinygrad_cg_kernels.cuda.folds import Fold
from tinygrad_cg_kernels.cuda.launches import Place, Prepared, aligned, place_of
from tinygrad_cg_kernels.cuda.layouts import integers, merge, walk
from tinygrad_cg_kernels.move import gather as of_host
from tinygrad_cg_kernels.move import order, scatter
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
COMPARED = 128 if adapter.simulated() else 2**26
"""Indices are not sorted if their number times that of results is at most this."""

LOADED = 8  # indices that a thread loads at a time

_SOURCE = """
def kernel(order, places, begins, values, parts, out, units, count, after, size):
    for unit in range(cuda.grid(1), units, cuda.gridsize(1)):
        column = place(index(unit) % index(after))
        rest = index(index(unit) // index(after))
        j = place(rest % index(count))
        line = place(rest // index(count))
        at = places[j]
        starts = begins[j] == j
        target = (line * size + at) * after + column
        of_line = line * (count // CHUNK + 1)
        {body}
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
    names = {"combine": adapter.scalar_function(combine), "CHUNK": CHUNK}
    names |= integers([units, out.size])
    for source in (_CHUNKS, _PARTS)[:chunks]:  # a single chunk has no parts
        kernel, numbers = define(source, **names), [units, order.size, after, size]
        kernel.launch(adapter.blocks_for(units), operands, numbers)


def flat_positions(indices: Any, sizes: tuple[int, ...], check: Any = None) -> Any:
    """Return the row-major positions of coordinates, as the CPU's function.

    `check` raises the error for a copy of wrong indices on the host, by default as the CPU does.
    """
    check = check or partial(scatter.flat_positions, sizes=sizes)
    return bounds.located(indices, indices.shape[:-1], sizes, False, check)


_LOOKUP = """
def kernel(x, indices, flag, out, units, count, between, length, after, sizes, steps, first):
    for unit in range(cuda.grid(1), units, cuda.gridsize(1)):
        column = place(index(unit) % index(after))
        rest = index(index(unit) // index(after))
        j = place(rest % index(count))
        line = place(rest // index(count))
        row = position(indices[{at}], length, 1)
        if row < 0:
            flag[0] = 1
            row = 0
        p = place(first)
        {walk}
        out[unit] = x[index(p)]
"""
_LOOKUPS = {
    name: _LOOKUP.format(
        at=at, walk=walk("(line * length + row) * after + column", "sizes", [("p", "steps")], 2)
    )
    for name, at in [
        ("gather", "index(line) // index(between) * index(count) + index(j)"),
        ("take_along_axis", "unit"),
    ]
}
"""Each thread checks the index that it looks up, as in `bounds`."""

_plans: dict[tuple, Callable[[Any, Any], Any]] = {}


def _look_up(name: str, x: Any, indices: Any, axis: int, batch_dims: int | None) -> Any:
    x, indices = aligned((x, indices))
    key = name, axis, batch_dims, *layout_of((x, indices))
    plan = plan_of(_plans, key, _plan_lookup, name, x, indices, axis, batch_dims)
    return plan(x, indices)


def _plan_lookup(
    name: str, x: Any, indices: Any, axis: int, batch_dims: int | None
) -> Callable[[Any, Any], Any]:
    """Return what looks up indices along an axis, in arrays of such dtypes, shapes and strides.

    Indices are the same for all lines of a batch. Without `batch_dims`, each line has its own.
    """
    if batch_dims is None:
        axis, shape = order.check_shapes(name, x.shape, indices, axis), indices.shape
    else:
        axis = of_host.check_axis(name, axis, x.ndim)
        of_host.check_batch(name, x.shape, indices, axis, batch_dims)
        shape = x.shape[:axis] + indices.shape[batch_dims:] + x.shape[axis + 1 :]
    length, units, empty = x.shape[axis], prod(shape), adapter.array_module().empty
    check = bounds.check_of(name, indices, length)
    if not units:
        return lambda x, at: (bounds.positions(name, at, length), empty(shape, dtype=x.dtype))[1]
    place, after = place_of(x), prod(x.shape[axis + 1 :])
    layout = merge((x.shape,), (place.steps,))
    types = integers([units, x.size, place.size])
    kernel = define(_LOOKUPS[name], position=bounds.position, **types)
    between = prod(x.shape[batch_dims or 0 : axis])
    count = indices.shape[axis] if batch_dims is None else prod(indices.shape[batch_dims:])
    places = [place, Place(indices.dtype, indices.size), Place(INT64, 1), Place(x.dtype, units)]
    numbers = [units, count, between, length, after, layout.sizes, layout.steps[0], place.first]
    launch = Prepared(kernel, adapter.blocks_for(units), [*places, *numbers])

    def look_up(x: Any, indices: Any) -> Any:
        at, out = contiguous(indices), empty(shape, dtype=x.dtype)
        bounds.check_later(at, check, lambda flag: launch((x, at, flag, out)))
        return out

    return look_up


def gather(x: Any, indices: Any, axis: int = 0, batch_dims: int = 0) -> Any:
    """Return the slices of `x` at `indices` along `axis`, as the CPU's function."""
    return _look_up("gather", x, indices, axis, batch_dims)


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    """Return the elements of `x` at `indices` along `axis`, line by line."""
    return _look_up("take_along_axis", x, indices, axis, None)


_SEEK = """
def kernel(values, indices, flag, out, units, count, between, length, after, lines):
    for unit in range(cuda.grid(1), units, cuda.gridsize(1)):
        column = place(index(unit) % index(after))
        rest = index(index(unit) // index(after))
        row = place(rest % index(length))
        rest = index(rest // index(length))
        line = place(rest % index(lines))
        first = place(rest // index(lines)) * CHUNK
        last = min(first + CHUNK, count)
        begin = place(index(line) // index(between)) * count
        for j in range(first + row, last, length):
            if position(indices[begin + j], length, 1) < 0:
                flag[0] = 1
        total = start
        for j in range(first, last, {many}):
            {load}
            {add}
        out[unit] = total
"""
"""Each thread adds the values, of a chunk of them, whose index is that of its result."""


def _seek_source() -> str:
    load, add = [], []
    for n in range(LOADED):
        at, value = f"begin + j + {n}", f"(line * count + j + {n}) * after + column"
        load.append(f"i{n} = np.int64(indices[np.uint64({at})]) if j + {n} < last else length")
        add.append(f"if i{n} == row or i{n} == row - length:")
        add.append(f"    total = combine(total, c0(values[np.uint64({value})]))")
    between = "\n            "
    return _SEEK.format(many=LOADED, load=between.join(load), add=between.join(add))


def _plan_scatter(
    shape: tuple[int, ...], dtype: np.dtype, indices: Any, values: Any, axis: int, batch_dims: int
) -> Callable[[Any, Any], Any]:
    """Return what adds such values at such indices."""
    axis = of_host.check_scatter(shape, indices, values, axis, batch_dims)
    size, count = prod(shape), prod(indices.shape[batch_dims:])
    loop = loop_dtype(native("scatter_add", dtype))
    if not values.size or size * count > COMPARED:
        return partial(_scatter_sorted, shape, dtype, axis, batch_dims)
    chunks, length, after = -(-count // CHUNK), shape[axis], prod(shape[axis + 1 :])
    check = bounds.check_of("scatter_add", indices, length)
    units, stored = chunks * size, dtype if chunks == 1 else loop
    names = {"start": loop.type(0), "combine": adapter.scalar_function(_plus), "CHUNK": CHUNK}
    names |= {"position": bounds.position, **converters([values.dtype], [loop])}
    kernel = define(_seek_source(), **names, **integers([units, values.size, indices.size]))
    places = [Place(values.dtype, values.size), Place(indices.dtype, indices.size)]
    places += [Place(INT64, 1), Place(stored, units)]
    numbers = [units, count, prod(shape[batch_dims:axis]), length, after, prod(shape[:axis])]
    launch = Prepared(kernel, adapter.blocks_for(units), [*places, *numbers])

    def scatter(values: Any, indices: Any) -> Any:
        out = adapter.array_module().empty((chunks, *shape), dtype=stored)
        bounds.check_later(indices, check, lambda flag: launch((values, indices, flag, out)))
        if chunks > 1:
            out = _sum_of_parts((out,), (0,), (loop,), loop, 0).astype(dtype, copy=False)
        return out.reshape(shape)

    return scatter


_sum_of_parts = Fold(same, _plus)


def _scatter_sorted(
    shape: tuple[int, ...], dtype: np.dtype, axis: int, batch_dims: int, values: Any, indices: Any
) -> Any:
    positions, middle = of_host.scatter_positions(
        shape, indices, values, axis, batch_dims, bounds.positions, adapter.array_module()
    )
    return _scatter_flat(shape, dtype, middle, positions, values)


def scatter_add(
    shape: tuple[int, ...],
    dtype: np.dtype,
    indices: Any,
    values: Any,
    axis: int = 0,
    batch_dims: int = 0,
) -> Any:
    """Return zeros(shape) with `values` added at `indices` along `axis`, in order."""
    values, indices = contiguous(values), contiguous(indices)
    key = shape, dtype, axis, batch_dims, *layout_of((values, indices))
    plan = plan_of(_plans, key, _plan_scatter, shape, dtype, indices, values, axis, batch_dims)
    return plan(values, indices)


def _scatter_flat(
    shape: tuple[int, ...],
    dtype: np.dtype,
    middle: tuple[int, int, int],
    positions: Any,
    values: Any,
) -> Any:
    """Return zeros(shape), seen as (before, middle, after), with values added at positions."""
    library, loop = adapter.array_module(), loop_dtype(native("scatter_add", dtype))
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
    return of_host.index_add(shape, dtype, key, values, library, _positions_at, _scatter_flat)


def _positions_at(shape: tuple[int, ...], key: tuple[Any, ...]) -> Any:
    """Return the flat positions of the elements at a key. Indices out of range are found."""
    library, parts = adapter.array_module(), list(key)
    after, axis = sum(of_host.axes_of(part) for part in key), 0
    for k, part in enumerate(key):
        axis += len(shape) - after if part is Ellipsis else 0
        if isinstance(part, library.ndarray) and not is_bool(part.dtype):  # CuPy would wrap it
            line = np.broadcast_to(False, (*(1,) * axis, shape[axis]))
            check = partial(np.take, line, axis=axis)  # raises NumPy's error
            parts[k] = bounds.located(part, part.shape, (shape[axis],), True, check)
        axis += of_host.axes_of(part)
    return library.arange(prod(shape), dtype=INT64).reshape(shape)[tuple(parts)]


def _combined(
    combine: Callable, start: Any, values: Any, indices: Any, size: int, batch_dims: int
) -> Any:
    """Return `size` rows for each batch: `start`, combined with the values sent there."""
    library, batch = adapter.array_module(), indices.shape[:batch_dims]
    count, tail = prod(batch), values.shape[indices.ndim :]
    rows = bounds.positions("scatter", indices, size).reshape(count, -1)
    rows = rows + library.arange(count, dtype=INT64).reshape(count, 1) * size
    out = library.full((*batch, size, *tail), start, dtype=values.dtype)
    _combine_at(combine, out, rows.reshape(-1), values, (1, count * size, prod(tail)))
    return out


def last_sources(indices: Any, size: int, batch_dims: int = 0) -> Any:
    """Return for each of `size` rows the last position in `indices` that names it, or -1."""
    library, shape = adapter.array_module(), indices.shape
    positions = library.arange(prod(shape[batch_dims:]), dtype=INT64).reshape(shape[batch_dims:])
    values = contiguous(library.broadcast_to(positions, shape))
    return _combined(larger, -1, values, indices, size, batch_dims)


def segment_extremum(x: Any, indices: Any, size: int, largest: bool, batch_dims: int = 0) -> Any:
    """Return `size` rows: the largest (or smallest) of the rows of `x` sent there."""
    if is_complex(x.dtype):
        raise TypeError(no_kernel("segment_extremum", x.dtype))
    start = scatter.limits(x.dtype)[0 if largest else 1]
    values = contiguous(x, loop_dtype(x.dtype))
    out = _combined(larger if largest else smaller, start, values, indices, size, batch_dims)
    return out.astype(x.dtype, copy=False)


def add_along_axis(
    shape: tuple[int, ...], dtype: np.dtype, indices: Any, values: Any, axis: int
) -> Any:
    """Return zeros(shape) with `values` added at `indices` along `axis`, in order."""
    axis = order.check_shapes("add_along_axis", shape, indices, axis)
    of_host.check_values("add_along_axis", values, indices.shape)
    positions = bounds.positions("add_along_axis", indices, shape[axis])
    library = adapter.array_module()
    before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
    lines = library.arange(before, dtype=INT64).reshape(before, 1, 1) * shape[axis]
    columns = library.arange(after, dtype=INT64)
    places = (lines + positions.reshape(before, indices.shape[axis], after)) * after + columns
    middle = (1, prod(shape), 1)
    return _scatter_flat(shape, dtype, middle, places, values)


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
