"""Gather and scatter on the device.

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
from tinygrad_cg_kernels.cuda.elementwise import contiguous, converters, launch, planned, prepare
from tinygrad_cg_kernels.cuda.folds import fold_of_parts
from tinygrad_cg_kernels.cuda.launches import Layouts, Place, Prepared, Shape, layout_of, place_of
from tinygrad_cg_kernels.cuda.layouts import merge, walk
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
)

CHUNK = 4 if adapter.simulated() else 1024  # values of an index that one thread combines
COMPARED = 128 if adapter.simulated() else 2**26
"""Indices are not sorted if their number times that of results is at most this."""

LOADED = 8  # indices that a thread loads at a time

_UNITS = """
def kernel({parameters}):
    for unit in range(cuda.grid(1), units, cuda.gridsize(1)):
        column = place(index(unit) % index(after))
        rest = index(index(unit) // index(after))
        j = place(rest % index(count))
        line = place(rest // index(count))
        {body}
"""
_SORTED = _UNITS.format(
    parameters="order, places, begins, values, parts, out, units, count, after, size",
    body="""at = places[j]
        starts = begins[j] == j
        target = (line * size + at) * after + column
        of_line = line * (count // CHUNK + 1)
        {body}""",
)
_CHUNKS = _SORTED.format(
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
_PARTS = _SORTED.format(
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


Middle = tuple[int, int, int]  # the sizes of three axes: before positions, theirs, after them


def _combine_at(combine: Callable, out: Any, positions: Any, values: Any, middle: Middle) -> None:
    """Combine values, in order, into positions. Sorting brings those of a position together."""
    if not values.size:
        return
    library, positions = adapter.array_module(), positions.reshape(-1)
    values = contiguous(values, out.dtype)
    order = library.argsort(positions, kind="stable")
    places = positions[order]
    before, size, after = middle
    units, chunks = before * order.size * after, order.size // CHUNK + 1
    parts = library.empty(before * chunks * after, dtype=out.dtype)
    operands = order, places, library.searchsorted(places, places), values, parts, out
    names = {"combine": adapter.scalar_function(combine), "CHUNK": CHUNK}
    for source in (_CHUNKS, _PARTS)[:chunks]:  # a single chunk has no parts
        launch(source, units, operands, [units, order.size, after, size], **names)


def flat_positions(indices: Any, sizes: tuple[int, ...], check: Any = None) -> Any:
    """Return the row-major positions of coordinates; `check` raises the error of wrong ones."""
    check = check or partial(scatter.flat_positions, sizes=sizes)
    return bounds.located(indices, indices.shape[:-1], sizes, False, check)


_LOOKUPS = {
    name: _UNITS.format(
        parameters="x, indices, flag, out, units, count, between, length, after, sizes, s, first",
        body=f"""row = position(indices[{at}], length, 1)
        if row < 0:
            flag[0] = 1
            row = 0
        p = place(first)
        {walk("(line * length + row) * after + column", "sizes", [("p", "s")], 2)}
        out[unit] = x[index(p)]""",
    )
    for name, at in [
        ("gather", "index(line) // index(between) * index(count) + index(j)"),
        ("take_along_axis", "unit"),
    ]
}
"""Each thread checks the index that it looks up, as in `bounds`."""


def _run(
    shape: Shape, dtype: np.dtype, check: Callable, launch: Prepared
) -> Callable[[Any, Any], Any]:
    """Return what launches a kernel on an array, indices, a flag for wrong ones, and its result."""

    def run(x: Any, indices: Any) -> Any:
        at, out = contiguous(indices), adapter.array_module().empty(shape, dtype=dtype)
        bounds.check_later(at, check, lambda flag: launch((x, at, flag, out)))
        return out

    return run


@planned
def _plan_lookup(
    name: str, layouts: Layouts, axis: int, batch_dims: int | None
) -> Callable[[Any, Any], Any]:
    """Return what looks up indices along an axis, in arrays of such layouts.

    Indices are the same for all lines of a batch. Without `batch_dims`, each line has its own.
    """
    (dtype, source, _), (kind, at, _) = layouts
    if batch_dims is None:
        axis, shape = order.check_shapes(name, source, at, axis), at
    else:
        axis = of_host.check_axis(name, axis, len(source))
        of_host.check_batch(name, source, at, axis, batch_dims)
        shape = source[:axis] + at[batch_dims:] + source[axis + 1 :]
    length, units, empty = source[axis], prod(shape), adapter.array_module().empty
    if not (units and length and is_integer(kind)):
        return lambda x, at: (bounds.positions(name, at, length), empty(shape, dtype=dtype))[1]
    place = place_of(*layouts[0])
    layout = merge([place])
    between = prod(source[batch_dims or 0 : axis])
    count = at[axis] if batch_dims is None else prod(at[batch_dims:])
    places = [place, Place(kind, prod(at)), Place(INT64, 1), Place(dtype, units)]
    numbers = [units, count, between, length, prod(source[axis + 1 :])]
    arguments = [*places, *numbers, layout.sizes, layout.steps[0], place.first]
    launch = prepare(_LOOKUPS[name], units, arguments, position=bounds.position)
    return _run(shape, dtype, partial(of_host.check_positions, name, size=length), launch)


def gather(x: Any, indices: Any, axis: int = 0, batch_dims: int = 0) -> Any:
    """Return the slices of `x` at `indices` along `axis`, as the CPU's function."""
    return _plan_lookup("gather", layout_of((x, indices)), axis, batch_dims)(x, indices)


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    """Return the elements of `x` at `indices` along `axis`, line by line."""
    return _plan_lookup("take_along_axis", layout_of((x, indices)), axis, None)(x, indices)


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


@planned
def _plan_scatter(
    shape: Shape, dtype: np.dtype, layouts: Layouts, axis: int, batch_dims: int
) -> Callable[[Any, Any], Any]:
    """Return what adds values at indices, of such layouts."""
    (source, values, _), (kind, at, _) = layouts
    axis = of_host.check_scatter(shape, at, values, axis, batch_dims)
    size, count, length = prod(shape), prod(at[batch_dims:]), shape[axis]
    loop = loop_dtype(native("scatter_add", dtype))
    if not (prod(values) and length and is_integer(kind)) or size * count > COMPARED:

        def scatter_sorted(values: Any, indices: Any) -> Any:
            positions, middle = _positions("scatter_add", shape, indices, values, axis, batch_dims)
            return _scatter_flat(shape, dtype, middle, positions, values)

        return scatter_sorted
    chunks, after = -(-count // CHUNK), prod(shape[axis + 1 :])
    units, stored = chunks * size, dtype if chunks == 1 else loop
    places = [Place(source, prod(values)), Place(kind, prod(at))]
    places += [Place(INT64, 1), Place(stored, units)]
    numbers = [units, count, prod(shape[batch_dims:axis]), length, after, prod(shape[:axis])]
    names = {"start": loop.type(0), "combine": adapter.scalar_function(_plus), "CHUNK": CHUNK}
    names |= {"position": bounds.position, **converters([source], [loop])}
    launch = prepare(_seek_source(), units, [*places, *numbers], **names)
    check = partial(of_host.check_positions, "scatter_add", size=length)
    run = _run((chunks, *shape), stored, check, launch)

    def scatter(values: Any, indices: Any) -> Any:
        out = run(values, indices)
        if chunks > 1:
            out = fold_of_parts(_plus)((out,), (0,), loop, 0).astype(dtype, copy=False)
        return out.reshape(shape)

    return scatter


def _positions(name: str, *arguments: Any) -> tuple[Any, Middle]:
    """Return the results of `scatter_positions`, on the device."""
    library = adapter.array_module()
    return of_host.scatter_positions(*arguments, name, bounds.positions, library)


def scatter_add(
    shape: Shape, dtype: np.dtype, indices: Any, values: Any, axis: int = 0, batch_dims: int = 0
) -> Any:
    """Return zeros(shape) with `values` added at `indices` along `axis`, in order."""
    operands = contiguous(values), contiguous(indices)
    return _plan_scatter(shape, dtype, layout_of(operands), axis, batch_dims)(*operands)


def _scatter_flat(
    shape: Shape, dtype: np.dtype, middle: Middle, positions: Any, values: Any
) -> Any:
    """Return zeros(shape), seen as (before, middle, after), with values added at positions."""
    out = adapter.array_module().zeros(shape, dtype=loop_dtype(native("scatter_add", dtype)))
    _combine_at(_plus, out, positions, values, middle)
    return out.astype(dtype, copy=False)


def index_add(shape: Shape, dtype: np.dtype, key: tuple[Any, ...], values: Any) -> Any:
    """Return zeros(shape) with `values` added at `key`, whose arrays may be of the host."""
    library = adapter.array_module()
    key = tuple([library.asarray(p) if isinstance(p, np.ndarray) else p for p in key])
    return of_host.index_add(shape, dtype, key, values, library, _positions_at, _scatter_flat)


def _positions_at(shape: Shape, key: tuple[Any, ...]) -> Any:
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
    shape = *indices.shape[:batch_dims], size, *values.shape[indices.ndim :]
    positions, middle = _positions("scatter", shape, indices, values, batch_dims, batch_dims)
    out = adapter.array_module().full(shape, start, dtype=values.dtype)
    _combine_at(combine, out, positions, values, middle)
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


def add_along_axis(shape: Shape, dtype: np.dtype, indices: Any, values: Any, axis: int) -> Any:
    """Return zeros(shape) with `values` added at `indices` along `axis`, in order."""
    axis = order.check_shapes("add_along_axis", shape, indices.shape, axis)
    of_host.check_values("add_along_axis", values.shape, indices.shape)
    positions = bounds.positions("add_along_axis", indices, shape[axis])
    library = adapter.array_module()
    before, after = prod(shape[:axis]), prod(shape[axis + 1 :])
    lines = library.arange(before, dtype=INT64).reshape(before, 1, 1) * shape[axis]
    columns = library.arange(after, dtype=INT64)
    places = (lines + positions.reshape(before, indices.shape[axis], after)) * after + columns
    return _scatter_flat(shape, dtype, (1, prod(shape), 1), places, values)


def one_hot(indices: Any, depth: int, axis: int, dtype: np.dtype) -> Any:
    """Return zeros with ones at `indices` along a new axis. Indices out of range have no one."""
    if not is_integer(indices.dtype):
        raise TypeError(f"one_hot: indices must be integers, got {indices.dtype}")
    library = adapter.array_module()
    places = library.arange(depth, dtype=INT64).reshape(-1, *(1,) * (indices.ndim - axis))
    return (library.expand_dims(indices, axis) == places).astype(dtype)
