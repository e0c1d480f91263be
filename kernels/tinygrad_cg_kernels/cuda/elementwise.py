"""Elementwise kernels on the device, made from the scalar functions of the CPU's kernels.

A kernel is a loop over the result's elements, which all threads of the grid share. Operands are
vectors of memory. In a flat kernel, each is a row of all elements or one value. Otherwise,
positions follow from the result's index, and from sizes and steps, which are arguments. Transposed
operands are read by tiles. Loads convert elements to the computation's dtype, without a copy.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.adapter import cuda  # noqa: F401 (the simulator looks for it here)
from tinygrad_cg_kernels.cuda.launches import Layouts, Place, Prepared, layout_of, place_of
from tinygrad_cg_kernels.cuda.layouts import DeviceLayout, integers, merge, walk
from tinygrad_cg_kernels.loops.engine import Elementwise, Pointwise
from tinygrad_cg_kernels.reduce.axes import contiguous_strides
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.texts import compiled, digest, title_of

THREADS = adapter.THREADS  # in a block; a power of two
TILE = THREADS // 2 if adapter.simulated() else 32
"""A tile has this many rows and columns, or twice as many if that fits into `SHARED` bytes."""
SHARED = 2**15

_SOURCE = """
def kernel(count, {parameters}):
    i = {each} * THREADS * cuda.blockIdx.x + cuda.threadIdx.x
    while i < count:
        {body}
        i += {each} * cuda.gridsize(1)
"""
"""A thread's elements are a block apart, so that a block reads and writes neighbours."""
_TILES = """
def kernel(count, sizes, rows, columns, to, u, {parameters}):
    lane = np.uint64(cuda.threadIdx.x % tile)
    line = np.uint64(cuda.threadIdx.x // tile)
    {shared}
    i = cuda.blockIdx.x
    while i < count:
        row = place(index(index(i) // index(sizes[-1])) % index(sizes[-2])) * tile
        column = place(index(i) % index(sizes[-1])) * tile
        {begin}; q = place(0)
        {walk}
        bottom = rows - 1 - row; right = columns - 1 - column
        under = bottom - np.int64(line); beside = right - np.int64(line)
        {loads}
        cuda.syncthreads()
        {results}
        cuda.syncthreads()
        i += cuda.gridDim.x
"""
"""Neighbours in memory of some operands are a row apart in the result. A block reads a tile of them
along their rows, and writes a tile of the result along its rows. `sizes` are those of the outer
dimensions, and the numbers of tiles. All loads of a thread come before it stores a number."""


def _parameters(inputs: Sequence[int], of_operand: str, outputs: int) -> str:
    operands = [of_operand.format(k=k) for k in inputs]
    return ", ".join([*operands, *[f"r{k}" for k in range(outputs)]])


def _element(outputs: int, loads: Sequence[str], n: str = "") -> tuple[str, str]:
    """Return the statements that compute an element of each output, and those that store it."""
    values = ", ".join(f"v{k}_{n}" for k in range(outputs))
    arguments = ", ".join(f"c{k}({load})" for k, load in enumerate(loads))
    stores = "; ".join(f"r{k}[e{n}] = v{k}_{n}" for k in range(outputs))
    return f"{values} = f({arguments})", stores


def _source(layout: DeviceLayout, outputs: int, each: int) -> str:
    """Return the text of a kernel whose threads compute `each` elements, and then store them."""
    inputs, flat = range(len(layout.steps)), layout.flat
    body, stores = [], []
    for n in range(each):
        body.append(f"e{n} = index(min(i + {n} * THREADS, count - 1))" if n else "e0 = index(i)")
        if flat is None:
            body.append("; ".join(f"p{k} = place(o{k})" for k in inputs))
            body.append(walk(f"e{n}", "sizes", [(f"p{k}", f"s{k}") for k in inputs], 2))
        for k in inputs:
            at = f"index(p{k})" if flat is None else f"e{n}" if flat[k] else "0"
            body.append(f"a{k}_{n} = x{k}[{at}]")
        compute, store = _element(outputs, [f"a{k}_{n}" for k in inputs], str(n))
        stores += [compute, f"if i + {n} * THREADS < count: {store}" if n else store]
    parameters = _parameters(inputs, "x{k}" if flat else "x{k}, s{k}, o{k}", outputs)
    return _SOURCE.format(
        parameters=parameters if flat else f"sizes, {parameters}",
        each=each,
        body="\n        ".join(body + stores),
    )


def _tiled_source(reads: Sequence[str], outputs: int, tile: int) -> str:
    """Return the text of a kernel that reads each operand by "tiles", by "rows", or as one "value".

    Threads advance positions from line to line, and read their first line where the tile ends.
    """
    inputs, apart = range(len(reads)), THREADS // tile
    loads, results = [], ["q = q + np.int64(line) * to + np.int64(lane)"]
    moving = {"tiles": ("lane", "line", "beside", 1), "rows": ("line", "lane", "under", 0)}
    for k in inputs:
        if reads[k] == "value":
            loads.append(f"a{k} = x{k}[index(p{k})]")
            continue
        down, across, *_ = moving[reads[k]]
        down, across = f"min(np.int64({down}), bottom)", f"min(np.int64({across}), right)"
        position = f"{down} * d{k}[0] + {across} * d{k}[1]"
        loads.append(f"h{k} = p{k} + {position}; y{k} = h{k}")
    for first in range(0, tile, apart):
        n = first // apart
        for k in inputs:
            if reads[k] != "value":
                *_, end, d = moving[reads[k]]
                at = f"np.uint64(y{k} if {first} <= {end} else h{k})"
                loads.append(f"a{k}_{n} = x{k}[{at}]; y{k} += {apart} * d{k}[{d}]")
        values = {
            "tiles": f"t{{k}}[lane, line + np.uint64({first})]",
            "rows": f"a{{k}}_{n}",
            "value": "a{k}",
        }
        compute, store = _element(outputs, [values[reads[k]].format(k=k) for k in inputs], str(n))
        results += [f"e{n} = np.uint64(q); q += {apart} * to", compute]
        results.append(f"if {first} <= under and np.int64(lane) <= right: {store}")
    tiles = [k for k in inputs if reads[k] == "tiles"]
    for n in range(tile // apart):
        loads += [f"t{k}[line + np.uint64({n * apart}), lane] = a{k}_{n}" for k in tiles]
    return _TILES.format(
        parameters=_parameters(inputs, "x{k}, s{k}, d{k}, o{k}", outputs),
        shared="\n    ".join(
            f"t{k} = cuda.shared.array(({tile}, {tile + 1}), kind{k})" for k in tiles
        ),
        begin="; ".join(f"p{k} = place(o{k})" for k in inputs),
        walk=walk("i", "sizes", [*[(f"p{k}", f"s{k}") for k in inputs], ("q", "u")], 2),
        loads="\n        ".join(loads),
        results="\n        ".join(results),
    )


@jitable
def same(x: Any) -> Any:
    return x


@jitable
def truth(x: Any) -> Any:
    return x != 0


def converters(dtypes: Sequence[np.dtype], loop: Sequence[np.dtype]) -> dict[str, Callable]:
    """Return, by the names in texts of kernels, what converts operands to the dtypes `loop`."""
    names = {}
    for k, (source, target) in enumerate(zip(dtypes, loop, strict=True)):
        function = same if source == target else truth if target.kind == "b" else None
        names[f"c{k}"] = target.type if function is None else adapter.device_function(function)
    return names


def defined(source: str, name: str, names: dict[str, Any]) -> Callable:
    """Return the function that a text defines, which closes over the values of `names`.

    Each has a file: the simulator identifies shared arrays by file and line.
    """
    text = f"def make({', '.join(names)}):" + source.replace("\n", "\n    ")
    code, scope = compiled(f"{text}\n    return {name}\n", title_of("device code")), {}
    exec(code, globals(), scope)
    function = scope["make"](**names)
    function.__qualname__ = f"{name}_{digest(text)}"
    return function


@lru_cache(maxsize=2048, typed=True)
def define(source: str, **names: Any) -> Any:
    """Return the kernel that a text defines."""
    return adapter.device_kernel(defined(source, "kernel", names))


def prepare(source: str, threads: int, arguments: Sequence[Any], **names: Any) -> Prepared:
    """Return the launch of a kernel by at least `threads` threads, or as many as a grid has."""
    kernel = define(source, **names, **integers(arguments))
    return Prepared(kernel, adapter.blocks_for(threads), arguments)


def launch(
    source: str, threads: int, arrays: Sequence[Any], numbers: Sequence[Any], **names: Any
) -> None:
    """Launch a kernel on arrays in C order, and numbers, or tuples."""
    places = [Place(array.dtype, array.size) for array in arrays]
    prepare(source, threads, [*places, *numbers], **names)(arrays)


planned = lru_cache(maxsize=512)
"""Decorates a function that says what to do for layouts of operands, which it then keeps."""


class Plan:
    """What a function does for operands of some dtypes, shapes and strides."""

    def __init__(self, shape: tuple[int, ...], dtypes: Sequence[np.dtype], launch: Any) -> None:
        self.shape, self.dtypes, self._launch = shape, dtypes, launch

    def __call__(self, arrays: Sequence[Any]) -> Any:
        """Return the only result, a new array."""
        out = adapter.array_module().empty(self.shape, self.dtypes[0])
        if self._launch is not None:
            self._launch((*arrays, out))
        return out

    def fill(self, arrays: Sequence[Any], outs: Sequence[Any] = ()) -> Sequence[Any]:
        """Fill `outs`, or return new arrays."""
        if not outs:
            make, shape = adapter.array_module().empty, self.shape
            outs = [make(shape, dtype) for dtype in self.dtypes]
        if self._launch is not None:
            self._launch((*arrays, *outs))
        return outs


class Map:
    """A scalar function made into kernels, with any number of operands and outputs.

    `kernel` is the CPU's kernel, for the simulator (see `adapter.scalar_function`).
    """

    def __init__(self, name: str, function: Callable, kernel: Elementwise | None = None) -> None:
        self.name, self._function, self._kernel = name, function, kernel
        self.plan = planned(self._plan)

    def __call__(self, arrays: Sequence[Any], loop: np.dtype, result: np.dtype) -> Any:
        """Return a new array of dtype `result`. Operands are cast to the dtype `loop`."""
        return self.plan(layout_of(arrays), (loop,) * len(arrays), (result,))(arrays)

    def _plan(
        self, layouts: Layouts, loop: tuple[np.dtype, ...], results: tuple[np.dtype, ...]
    ) -> Plan:
        places = [place_of(*layout) for layout in layouts]
        try:
            layout = merge(places)
        except ValueError:
            shapes = " and ".join(str(place.shape) for place in places)
            raise ValueError(f"{self.name}: shapes {shapes} do not broadcast") from None
        if not layout.count:
            return Plan(layout.shape, results, None)
        dtypes = [place.dtype for place in places]
        names: dict[str, Any] = converters(dtypes, loop)
        tiles = _tiles(layout, dtypes)
        if tiles is None:
            each = count_loaded([*dtypes, *results])
            source = _source(layout, len(results), each)
            arguments = [layout.count] if layout.flat else [layout.count, layout.sizes]
            own: list[tuple] = [(row,) for row in layout.steps]
            threads = -(-layout.count // each)
        else:
            reads, names["tile"], arguments, own = tiles
            source = _tiled_source(reads, len(results), names["tile"])
            names |= {f"kind{k}": dtype.type for k, dtype in enumerate(dtypes)}
            threads = arguments[0] * THREADS
        for place, steps in zip(places, own, strict=True):
            arguments += [place] if layout.flat else [place, *steps, place.first]
        arguments += [Place(dtype, layout.count) for dtype in results]
        names["f"] = adapter.scalar_function(self._function, self._kernel)
        return Plan(layout.shape, results, prepare(source, threads, arguments, **names))


def count_loaded(dtypes: Sequence[np.dtype]) -> int:
    """Return how many elements of arrays of these dtypes a thread loads at a time."""
    return {1: 8, 2: 8, 4: 4, 8: 2}.get(max([dtype.itemsize for dtype in dtypes]), 1)


def _tiles(
    layout: DeviceLayout, dtypes: Sequence[np.dtype]
) -> tuple[Sequence[str], int, list[Any], list[tuple]] | None:
    """Return how a kernel reads each operand; None if there are none to read by tiles.

    These are operands whose neighbours in memory are along one dimension, not the last. The result
    also has the size of a tile, numbers for the kernel, and the steps of operands.
    """
    last = len(layout.sizes) - 1
    for axis in range(last):
        turned = [  # of numbers that leave room in shared memory
            abs(row[axis]) == 1 and abs(row[last]) > 1 and dtype.itemsize <= 8
            for row, dtype in zip(layout.steps, dtypes, strict=True)
        ]
        if any(turned) and min(layout.sizes[axis], layout.sizes[last]) >= TILE:
            break
    else:
        return None
    own = contiguous_strides(layout.sizes, 1)
    taken = sum([dtype.itemsize for dtype, own in zip(dtypes, turned, strict=True) if own])
    is_small = min(layout.sizes[axis], layout.sizes[last]) < 2 * TILE
    tile = TILE if is_small or 4 * TILE**2 * taken > SHARED else 2 * TILE
    order = [*[d for d in range(last) if d != axis], axis, last]
    sizes, own, *rows = [[row[d] for d in order] for row in (layout.sizes, own, *layout.steps)]
    counts = (*sizes[:-2], *[-(-size // tile) for size in sizes[-2:]])
    own, *steps = [
        ((*row[:-2], tile * row[-2], tile * row[-1]), tuple(row[-2:])) for row in (own, *rows)
    ]
    reads = ["tiles" if own else "rows" for own in turned]
    reads = [how if any(row) else "value" for how, (_, row) in zip(reads, steps, strict=True)]
    return reads, tile, [prod(counts), counts, *sizes[-2:], own[1][0], own[0]], steps


class DeviceElementwise:
    """A CPU kernel for device arrays, with the same arguments, dtypes, shapes and errors."""

    def __init__(self, kernel: Elementwise, function: Callable | None = None) -> None:
        self._kernel = kernel
        self.map = Map(kernel.name, function or kernel.function, kernel)
        self._plan = planned(self._make_plan)

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Apply the function to arrays, which are broadcast."""
        plan, check = self._plan(layout_of(arrays))
        if check is not None:
            check(self._kernel.name, *arrays)
        return plan(arrays) if out is None else self._fill(plan, arrays, out)

    def _make_plan(self, layouts: Layouts) -> tuple[Plan, Callable | None]:
        """Return the plan, and what checks operands first, if anything does."""
        kernel = self._kernel
        if len(layouts) != kernel.inputs:
            raise TypeError(f"{kernel.name} takes {kernel.inputs} arrays, got {len(layouts)}")
        signature = kernel._signature(tuple([dtype for dtype, *_ in layouts]))
        kernel.check_loop(signature.loop)
        plan = self.map.plan(layouts, signature.loop, (signature.result,))
        return plan, kernel._check if signature.checked else None

    def _fill(self, plan: Plan, arrays: Sequence[Any], out: Any) -> Any:
        self._kernel.check_out(out, plan.shape, *plan.dtypes)
        overlap = adapter.array_module().may_share_memory
        alone = all(array is out or not overlap(array, out) for array in arrays)
        if out.dtype == plan.dtypes[0] and out.flags.c_contiguous and alone:
            plan.fill(arrays, (out,))
        else:
            out[...] = plan(arrays)
        return out


class DevicePointwise:
    """A user's scalar function, which may return a tuple, for device arrays."""

    def __init__(self, kernel: Pointwise) -> None:
        function = None if kernel.for_device is None else kernel.for_device()
        self._kernel, self._single = kernel, DeviceElementwise(kernel.single, function)

    def __call__(self, *arrays: Any) -> Any:
        """Return an array, or a list of them where the function returns a tuple."""
        dtypes = tuple([array.dtype for array in arrays])
        results = self._kernel.result_dtypes(*dtypes)
        if results is None:
            return self._single(*arrays)
        loop = self._kernel.single._signature(dtypes).loop
        return self._single.map.plan(layout_of(arrays), loop, tuple(results)).fill(arrays)


_copy = Map("copy", same)


def contiguous(x: Any, dtype: Any = None) -> Any:
    """Return a device array in C order: `x` itself, or a copy, which transposes by tiles."""
    if type(x) is np.ndarray:
        return adapter.array_module().asarray(x, order="C")
    dtype = dtype or x.dtype
    return x if x.flags.c_contiguous and x.dtype == dtype else _copy((x,), dtype, dtype)
