"""Scans along an axis on the device: cumulative sums and products, linear recurrences.

A line is cut into chunks whose length depends on shapes only. If there are several, threads first
compute the effect of each chunk on its start value. A scan of these gives the start value of each
chunk. In a contiguous row, a group of neighbouring threads scans a chunk, tile by tile: each thread
combines some neighbouring elements, shuffles scan the effects of a warp's threads, and each thread
adds those of the warps before it, in order. Otherwise, a thread scans a chunk of its own column.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.elementwise import THREADS, contiguous, launch
from tinygrad_cg_kernels.cuda.folds import power_of_two
from tinygrad_cg_kernels.cuda.groups import WARP, shuffles
from tinygrad_cg_kernels.reduce.scan import Scan, pull, recurrence
from tinygrad_cg_kernels.runtime.promotion import FLOAT32, FLOAT64, loop_dtype

CHUNK = 4 if adapter.simulated() else 256  # elements of a column
TILES = 1 if adapter.simulated() else 4  # of a chunk of a row, at least
GROUPS = 2 if adapter.simulated() else 512  # so many chunks of rows keep a GPU busy

_COLUMNS = """
def kernel(x, y, starts, out, length, after, chunk, chunks, units, backwards, exclusive):
    for unit in range(cuda.grid(1), units, cuda.gridsize(1)):
        column = unit % after
        rest = unit // after
        line = rest // chunks
        first = rest % chunks * chunk
        last = min(first + chunk, length)
        state = starts[unit]
        for k in range(first, last):
            i = length - 1 - k if backwards else k
            p = (line * length + i) * after + column
            before = state
            state = kind(advance(state, x[p], y[p]))
            {each}
        {end}
"""
_ROWS = """
def kernel(x, y, starts, out, length, chunk, chunks, units):
    k = cuda.threadIdx.x
    lane = k % GROUP
    warp = lane // LOW
    begin = (k - lane) // LOW
    striped = (k - lane) * EACH + lane
    blocked = k * EACH + (k * EACH >> ROW)
    {shared}
    base = cuda.blockIdx.x * (THREADS // GROUP)
    while base < units:
        unit = base + k // GROUP
        is_unit = unit < units
        unit = index(min(unit, units - 1))
        start = place(unit % index(chunks)) * chunk
        last = min(start + chunk, length) if is_unit else 0
        at = place(unit // index(chunks)) * length + {at}
        state = starts[unit]
        for tile in range(start, start + chunk, EACH * GROUP):
            j = tile + lane
            p = at {sign} j
            {load}
            cuda.syncthreads()
            {combine}
            step = 1
            while step < LOW:
                {earlier}
                if k % LOW >= step:
                    {scan}
                step = step * 2
            if lane + 1 == (warp + 1) * LOW:
                {keep}
            cuda.syncthreads()
            mine = state
            for w in range(GROUP // LOW):
                if w == warp:
                    mine = state
                state = kind(advance(state, {factor}s[begin + w], effects[begin + w]))
            {finish}
        {end}
        base += cuda.gridDim.x * (THREADS // GROUP)
"""
"""A thread loads elements at a distance of `GROUP`, and scans neighbours, by shared memory."""
_COLUMNS_ALL = _COLUMNS.format(each="out[p] = before if exclusive else state", end="pass")
_COLUMNS_LAST = _COLUMNS.format(each="pass", end="out[unit] = state")
_WITH_FACTORS = recurrence, pull
"""Elements add to a factor times the state. In other scans, the effect is a single number."""


def _rows_source(
    with_factors: bool, each: int, group: int, row: int, backwards: bool, exclusive: bool | None
) -> str:
    """Return the text of a kernel that scans rows; a thread has `each` elements of a tile.

    Without `exclusive`, the results are the last states of chunks.
    """
    operands, numbers = (["x", "y"], ["factor", "effect"]) if with_factors else (["x"], ["effect"])
    factor, y, sign = numbers[0], operands[-1], "-" if backwards else "+"
    added = {"effect": (y, y + "{}"), "factor": ("x", "no_y")}  # the first, and to a sum
    earlier = "; ".join(f"{name}_before = first({name}, max(k - {{0}}, 0))" for name in numbers)
    load, stage, combine, store = [], [], [], []
    finish = [earlier.format("1")]
    finish.append(f"if lane % LOW: mine = kind(advance(mine, {factor}_before, effect_before))")
    for n in range(each):
        far = n * group
        slot = f"striped + {far} + (striped + {far} >> ROW)"
        if far % 2**row == 0:
            slot = f"striped + (striped >> ROW) + {far + (far >> row)}"
        inside = f"j + {far} < last"
        for name in operands:
            load.append(f"{name}{n} = {name}[np.uint64(p {sign} {far})] if {inside} else no_{name}")
            stage.append(f"s{name}[np.uint64({slot})] = {name}{n}")
            combine.append(f"{name}{n} = s{name}[np.uint64(blocked + {n})]")
        for name in reversed(numbers):
            own, other = added[name]
            value = f"advance({name}, x{n}, {other.format(n)})" if n else f"{own}0"
            combine.append(f"{name} = kind({value})")
        result = [f"mine = kind(advance(mine, x{n}, {y}{n}))"]
        result.insert(not exclusive, f"sx[np.uint64(blocked + {n})] = mine")
        finish += result
        store.append(f"if {inside}: out[np.uint64(p {sign} {far})] = sx[np.uint64({slot})]")
    scan = [f"effect = kind(advance(effect_before, {factor}, effect))"]
    scan += ["factor = kind(advance(factor_before, factor, no_y))"] * with_factors
    shared = [f"s{name} = cuda.shared.array(STAGED, item)" for name in operands]
    shared += [f"{name}s = cuda.shared.array(THREADS, kind)" for name in numbers]
    finish += ["cuda.syncthreads()", *store]
    only_last = exclusive is None
    return _ROWS.format(
        shared="\n    ".join(shared),
        at="length - 1" if backwards else "0",
        sign=sign,
        load="\n            ".join(load + stage),
        combine="\n            ".join(combine),
        earlier=earlier.format("step"),
        scan="; ".join(scan),
        keep="; ".join(f"{name}s[begin + warp] = {name}" for name in numbers),
        factor=factor,
        finish="pass" if only_last else "\n            ".join(finish),
        end="if lane == 0 and is_unit: out[unit] = state" if only_last else "pass",
    )


def _chunk_of_row(before: int, length: int, dtype: np.dtype) -> int:
    """Return the length of chunks of `before` contiguous rows: all of a row if they are many."""
    each, group = _shares(length, dtype)
    tile = each * group
    return min(length, tile * max(TILES, -(-before * length // (GROUPS * tile))))


def _shares(length: int, dtype: np.dtype) -> tuple[int, int]:
    """Return how many elements of a tile a thread has, and how many threads share a row."""
    each = 2 if adapter.simulated() else max(2, min(8, 32 // dtype.itemsize))
    return each, min(power_of_two(-(-length // each)), THREADS)


class DeviceScan:
    """A CPU scan for device arrays, with the same arguments, dtypes and shapes."""

    def __init__(self, kernel: Scan) -> None:
        self._kernel = kernel

    def __call__(
        self, x: Any, axis: int, reverse: bool = False, exclusive: bool = False, y: Any = None
    ) -> Any:
        """Return the scan of `x` (with `y`) along `axis`: an array of the same shape."""
        result = self._kernel.result_dtype(x.dtype)
        loop, library = loop_dtype(result), adapter.array_module()
        if not x.size:
            return library.empty(x.shape, dtype=result)
        shape = prod(x.shape[:axis]), x.shape[axis], prod(x.shape[axis + 1 :])
        state = FLOAT64 if self._kernel.wide and loop == FLOAT32 else loop
        a = contiguous(x, loop)
        b = a if y is None else contiguous(y, loop)
        out = self._scan(a.reshape(shape), b.reshape(shape), state, loop, reverse, exclusive)
        return out.reshape(x.shape).astype(result, copy=False)

    def _scan(
        self, x: Any, y: Any, state: np.dtype, result: np.dtype, reverse: bool, exclusive: bool
    ) -> Any:
        """Return the scan of contiguous operands along the second of their three axes."""
        library, kernel = adapter.array_module(), self._kernel
        before, length, after = x.shape
        chunk = CHUNK if after > 1 else _chunk_of_row(before, length, x.dtype)
        shape = before, -(-length // chunk), after
        starts = library.full(shape, kernel.first, dtype=state)
        if length > chunk:
            ends = library.empty(shape, dtype=state)
            self._run(chunk, (x, y, starts, ends), reverse)
            factors = ends
            if kernel in _WITH_FACTORS:  # the effect of a chunk is ends + factors * start
                factors = library.empty(shape, dtype=state)
                ones = library.ones(shape, dtype=state)
                self._run(chunk, (x, library.zeros_like(x), ones, factors), reverse)
            starts = self._scan(factors, ends, state, state, False, True)
        out = library.empty(x.shape, dtype=result)
        self._run(chunk, (x, y, starts, out), reverse, exclusive)
        return out

    def _run(
        self, chunk: int, arrays: Sequence[Any], reverse: bool, exclusive: bool | None = None
    ) -> None:
        """Scan chunks. Without `exclusive`, results are those of the last elements of chunks."""
        (x, _, starts, _), kernel = arrays, self._kernel
        (_, length, after), (_, chunks, _), units = x.shape, starts.shape, starts.size
        names = {"advance": adapter.scalar_function(kernel.advance), "kind": starts.dtype.type}
        if after > 1:
            source, threads = _COLUMNS_LAST if exclusive is None else _COLUMNS_ALL, units
            numbers = [length, after, chunk, chunks, units, int(reverse), int(bool(exclusive))]
        else:
            (each, group), is_pair = _shares(length, x.dtype), kernel in _WITH_FACTORS
            row = (128 // x.dtype.itemsize).bit_length() - 1  # 2**row elements are 128 bytes
            source = _rows_source(is_pair, each, group, row, reverse, exclusive)
            names |= {"first": shuffles(starts.dtype)[1], "item": x.dtype.type, "WARP": WARP}
            names |= {"EACH": each, "GROUP": group, "LOW": min(group, WARP), "ROW": row}
            names |= {"STAGED": THREADS * each + (THREADS * each >> row)}
            names |= {"no_x": x.dtype.type(is_pair or kernel.first), "no_y": x.dtype.type(0)}
            threads, numbers = units * group, [length, chunk, chunks, units]
        launch(source, threads, arrays, numbers, **names)
