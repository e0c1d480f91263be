"""Reductions on the device: a function of operands, combined over axes in a fixed order.

Elements are combined in chunks whose sizes depend on shapes only, so each run gives the same bits.
A group of threads shares a chunk: each thread combines elements at regular distances, several at a
time, and the results of threads are combined as in `groups`. If a reduced axis is the one with the
smallest step, a group has neighbouring threads, and short rows small groups, such as a part of a
warp. If a kept axis is, neighbours process neighbouring columns: a group is one thread, or more if
columns are few. If there are several chunks, their partial results are reduced in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.elementwise import THREADS, Plan, converters, planned, prepare, same
from tinygrad_cg_kernels.cuda.groups import WARP, exchange, tree
from tinygrad_cg_kernels.cuda.launches import Layouts, Place, layout_of, place_of
from tinygrad_cg_kernels.cuda.layouts import split, walk
from tinygrad_cg_kernels.reduce.axes import reduced_shape

PER_THREAD = 4 if adapter.simulated() else 32  # elements of a chunk of a row, per thread of a block
PARTS = 8 if adapter.simulated() else 8192  # longer rows have larger chunks, so that they are fewer
AT_ONCE = 4 if adapter.simulated() else 8  # elements that a thread loads before it combines them
MANY = 16 if adapter.simulated() else 2**17  # threads that keep a GPU busy
COLUMN = 4 if adapter.simulated() else 128  # elements of a chunk of a column, per thread

_SOURCE = """
def kernel(chunk, chunks, units, length, kept, inner, wide, {parameters}, out):
    thread = index(cuda.threadIdx.x)
    own_lane = place(thread % index(group))
    own = place(thread // index(group))
    {head}
    base = cuda.blockIdx.x * wide
    while base < units:
        at = index(min(base + k_unit, units - 1))
        {begin}
        {along_kept}
        j = {chunk_of_unit} * chunk + lane
        last = min(j - lane + chunk, length) if lane < group else 0
        total = start
        {first}
        while j + {before_last} * group < last:
            {several}
            total = combine(total, {all})
            j += {count} * group
        while j < last:
            {single}
            total = combine(total, v0)
            j += group
        total = tree({total}, own_lane, group)
        if own_lane == 0 and own < wide and base + own < units:
            out[base + own] = total
        base += cuda.gridDim.x * wide
"""
_ROWS = {
    "head": "lane = own_lane; k_unit = own",
    "chunk_of_unit": "place(at % index(chunks))",
    "total": "total",
}
"""A group of neighbouring threads for each chunk of a row."""
_COLUMNS = {
    "head": "lane = place(thread // index(wide)); k_unit = place(thread % index(wide))",
    "chunk_of_unit": "place(at // index(units // chunks))",
    "total": "of_thread(total, min(own_lane * wide + own, THREADS - 1))",
}
"""A group for each chunk of a column: threads at a distance of `wide`, the number of columns."""


def _source(by_columns: bool, is_line: bool, operands: int) -> str:
    """Return the text of a kernel. In a line, elements are at the same distance from each other."""
    each = range(operands)
    first = [f"q{k} = p{k} + j * t{k}[0]; g{k} = group * t{k}[0]" for k in each if is_line]
    result = "at % index(units // chunks)" if by_columns else "at // index(chunks)"

    def element(n: int) -> str:
        if is_line:
            values = ", ".join(f"c{k}(x{k}[np.uint64(q{k} + {n} * g{k})])" for k in each)
            return f"v{n} = load({values})"
        begin = "; ".join(f"q{k} = p{k}" for k in each)
        along = walk(f"j + {n} * group", "inner", [(f"q{k}", f"t{k}") for k in each], 3)
        values = ", ".join(f"c{k}(x{k}[index(q{k})])" for k in each)
        return "\n            ".join([begin, along, f"v{n} = load({values})"])

    def elements(count: int) -> str:
        moves = [f"q{k} += {count} * g{k}" for k in each if is_line]
        return "\n            ".join([*map(element, range(count)), *moves])

    return _SOURCE.format(
        parameters=", ".join(f"x{k}, s{k}, t{k}, o{k}" for k in each),
        begin="; ".join(f"p{k} = place(o{k})" for k in each),
        along_kept=walk(result, "kept", [(f"p{k}", f"s{k}") for k in each], 2),
        first="; ".join(first),
        several=elements(AT_ONCE),
        count=AT_ONCE,
        before_last=AT_ONCE - 1,
        all=combined([f"v{n}" for n in range(AT_ONCE)]),
        single=elements(1),
        **(_COLUMNS if by_columns else _ROWS),
    )


def combined(values: Sequence[str]) -> str:
    """Return the text that combines values in pairs, and then their results."""
    if len(values) == 1:
        return values[0]
    middle = len(values) // 2
    return f"combine({combined(values[:middle])}, {combined(values[middle:])})"


def power_of_two(size: int) -> int:
    """Return the least power of two that is not below a size of at least 1."""
    return 1 << (size - 1).bit_length()


def group_for(length: int, each: int) -> int:
    """Return how many threads share a row, at most a block, so that each has up to `each` elements.

    A row has at least a warp, or a thread for each element if there are fewer.
    """
    return min(power_of_two(length), max(WARP, power_of_two(-(-length // each))), THREADS)


class Fold:
    """A reduction over axes: `load` is applied to the operands' elements, `combine` to pairs.

    Both are scalar functions of kernels. `combine` is associative, except for rounding.
    """

    def __init__(self, load: Callable, combine: Callable) -> None:
        self._load, self._combine = load, combine
        self._plan = planned(self._make_plan)

    def __call__(
        self,
        arrays: Sequence[Any],
        axes: tuple[int, ...],
        loop: np.dtype,
        start: Any,
        keepdims: bool = True,
        state: np.dtype | None = None,
    ) -> Any:
        """Return the reduction of operands, which are broadcast, as an array of dtype `state`.

        Operands of other dtypes are converted to `loop`, the default of `state`. `start` is the
        identity of `combine`, and the result over no elements.
        """
        return self._plan(layout_of(arrays), axes, loop, start, keepdims, state or loop)(arrays)

    def _make_plan(
        self, layouts: Layouts, axes: Any, loop: Any, start: Any, keepdims: bool, state: np.dtype
    ) -> Callable[[Sequence[Any]], Any]:
        """Return what reduces arrays such as these. Partial results are reduced in the same way."""
        places, start = [place_of(*layout) for layout in layouts], state.type(start)
        layout = split(places, axes)
        shape = reduced_shape(layout.shape, axes, keepdims)
        length, columns = prod(layout.inner), prod(layout.kept)
        if not length or not columns:
            return lambda arrays: adapter.array_module().full(shape, start, dtype=state)
        is_large = columns * length >= 4 * AT_ONCE * MANY  # fewer threads save their combination
        group = group_for(length, 4 * AT_ONCE if is_large else 4)
        many = power_of_two(-(-length * columns // (PARTS * THREADS)))
        wide, chunk = THREADS // group, THREADS * max(PER_THREAD, many)
        if layout.by_columns:
            group = power_of_two(THREADS // columns + 1) // 2 or 1
            wide, chunk = columns if group > 1 else THREADS, COLUMN * group
        chunks = -(-length // chunk)
        units = columns * chunks
        dtypes = [place.dtype for place in places]
        names = {
            "group": group,
            "start": start,
            "load": adapter.scalar_function(self._load),
            "combine": adapter.scalar_function(self._combine),
            "tree": tree(self._combine, state),
            **converters(dtypes, [state if dtype == state else loop for dtype in dtypes]),
        }
        if layout.by_columns:
            names["of_thread"] = exchange(state)
        source = _source(layout.by_columns, len(layout.inner) == 1, len(places))
        numbers = [chunk, chunks, units, length, layout.kept, layout.inner, wide]
        arguments = [*numbers, *layout.operands, Place(state, units)]
        launch = prepare(source, -(-units // wide) * THREADS, arguments, **names)
        if chunks == 1:
            return Plan(shape, (state,), launch)
        parts = (chunks, columns) if layout.by_columns else (columns, chunks)
        plan, axis = Plan(parts, (state,), launch), int(not layout.by_columns)
        fold = fold_of_parts(self._combine)
        return lambda arrays: fold((plan(arrays),), (axis,), state, start).reshape(shape)


@cache
def fold_of_parts(combine: Callable) -> Fold:
    """Return the reduction of partial results."""
    return Fold(same, combine)
