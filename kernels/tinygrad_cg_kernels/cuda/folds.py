"""Reductions on the device: a function of operands, combined over axes in a fixed order.

Elements are combined in chunks whose sizes depend on shapes only, so each run gives the same bits.
If a reduced axis is the one with the smallest step, a block of threads shares a chunk: each thread
combines elements at regular distances, and the results of threads are combined as in `groups`. If a
kept axis is, one thread processes a chunk of a column. If there are several chunks, their partial
results are reduced in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.adapter import cuda  # noqa: F401 (the simulator looks for it here)
from tinygrad_cg_kernels.cuda.elementwise import (
    aligned,
    converter,
    define,
    keep,
    layout_of,
    same,
)
from tinygrad_cg_kernels.cuda.groups import tree
from tinygrad_cg_kernels.cuda.launches import DeviceKernel, Place, Prepared
from tinygrad_cg_kernels.cuda.layouts import split, walk
from tinygrad_cg_kernels.reduce.axes import reduced_shape

THREADS = adapter.threads()  # in a block; a power of two
PER_THREAD = 4 if adapter.simulated() else 16  # elements of a chunk, per thread of the block
COLUMN = 4 if adapter.simulated() else 512  # elements of a column in a chunk

_SOURCE = """
def kernel(chunk, chunks, units, length, kept, inner, {parameters}, out):
    {head}
    for unit in range({first_unit}, units, {units_apart}):
        {begin}
        {along_kept}
        first = {chunk_of_unit} * chunk
        last = min(first + chunk, length)
        total = start
        for j in range({elements}):
            {begin_inner}
            {along_inner}
            total = combine(total, load({values}))
        {end}
"""
_BLOCKS = {
    "head": "thread = cuda.threadIdx.x",
    "first_unit": "cuda.blockIdx.x",
    "units_apart": "cuda.gridDim.x",
    "chunk_of_unit": "unit % chunks",
    "elements": "first + thread, last, THREADS",
    "end": """total = tree(total, thread, THREADS)
        if thread == 0:
            out[unit] = total""",
}
"""A block of threads for each chunk of a row."""
_COLUMNS = {
    "head": "columns = units // chunks",
    "first_unit": "cuda.grid(1)",
    "units_apart": "cuda.gridsize(1)",
    "chunk_of_unit": "unit // columns",
    "elements": "first, last",
    "end": "out[unit] = total",
}
"""A thread for each chunk of a column."""


def _source(by_columns: bool, operands: int) -> str:
    each = range(operands)
    result = "unit % columns" if by_columns else "unit // chunks"
    return _SOURCE.format(
        parameters=", ".join(f"x{k}, s{k}, t{k}, o{k}" for k in each),
        begin="; ".join(f"p{k} = o{k}" for k in each),
        along_kept=walk(result, "kept", [(f"p{k}", f"s{k}") for k in each], 2),
        begin_inner="; ".join(f"q{k} = p{k}" for k in each),
        along_inner=walk("j", "inner", [(f"q{k}", f"t{k}") for k in each], 3),
        values=", ".join(f"c{k}(x{k}[q{k}])" for k in each),
        **(_COLUMNS if by_columns else _BLOCKS),
    )


class _FoldPlan(NamedTuple):
    """What a reduction does for operands of some dtypes, shapes and strides."""

    shape: tuple[int, ...]
    parts: tuple[int, ...]
    """The shape of the partial results."""
    launch: Prepared | None
    """None without elements."""
    rest: int | None
    """The axis over which partial results are reduced further."""


class Fold:
    """A reduction over axes: `load` is applied to the operands' elements, `combine` to pairs.

    Both are scalar functions of kernels. `combine` is associative, except for rounding.
    """

    def __init__(self, name: str, load: Callable, combine: Callable) -> None:
        self.name, self._load, self._combine = name, load, combine
        self._kernels: dict[tuple, Any] = {}
        self._plans: dict[tuple, _FoldPlan] = {}
        self._rest: Fold | None = None

    def __call__(
        self,
        arrays: Sequence[Any],
        axes: Sequence[int],
        loop: Sequence[np.dtype],
        state: np.dtype,
        start: Any,
        keepdims: bool = False,
    ) -> Any:
        """Return the reduction of operands, which are broadcast, as an array of dtype `state`.

        Operands are converted to the dtypes `loop`. `start` is the identity of `combine`, and the
        result over no elements.
        """
        arrays = aligned(arrays)
        key = layout_of(arrays), tuple(axes), tuple(loop), state, start, keepdims
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plan(arrays, axes, loop, state.type(start), keepdims)
            keep(self._plans, key, plan)
        library = adapter.array_module()
        if plan.launch is None:
            return library.full(plan.shape, start, dtype=state)
        out = library.empty(plan.parts, dtype=state)
        plan.launch((*arrays, out))
        if plan.rest is not None:
            if self._rest is None:
                self._rest = Fold(self.name, same, self._combine)
            out = self._rest((out,), (plan.rest,), (state,), state, start)
        return out.reshape(plan.shape)

    def _plan(
        self,
        arrays: Sequence[Any],
        axes: Sequence[int],
        loop: Sequence[np.dtype],
        start: Any,
        keepdims: bool,
    ) -> _FoldPlan:
        extents: Any = [adapter.extent(x.dtype.itemsize, x.shape, x.strides) for x in arrays]
        steps = tuple([steps for *_, steps, _ in extents])
        layout = split(tuple([array.shape for array in arrays]), steps, tuple(axes))
        shape = reduced_shape(layout.shape, axes, keepdims)
        length, columns = prod(layout.inner), prod(layout.kept)
        if not length or not columns:
            return _FoldPlan(shape, shape, None, None)
        by_columns = layout.by_columns
        chunk = COLUMN if by_columns else THREADS * PER_THREAD
        chunks = -(-length // chunk)
        units = columns * chunks
        dtypes = tuple([array.dtype for array in arrays])
        kernel = self._kernel(by_columns, dtypes, tuple(loop), start)
        places = [
            (Place(dtype, offset, count), own, first)
            for dtype, (offset, count, own, first) in zip(dtypes, extents, strict=True)
        ]
        numbers = [chunk, chunks, units, length, layout.kept, layout.inner]
        arguments = [*numbers, *layout.operands(places), Place(start.dtype, 0, units)]
        blocks = adapter.blocks_for(units if by_columns else units * THREADS)
        launch = Prepared(kernel, blocks, arguments)
        parts = (chunks, columns) if by_columns else (columns, chunks)
        rest = None if chunks == 1 else 0 if by_columns else 1
        return _FoldPlan(shape, parts, launch, rest)

    def _kernel(
        self, by_columns: bool, dtypes: tuple[np.dtype, ...], loop: tuple, start: Any
    ) -> DeviceKernel:
        key = by_columns, dtypes, loop, start.dtype, repr(start)
        kernel = self._kernels.get(key)
        if kernel is None:
            pairs = enumerate(zip(dtypes, loop, strict=True))
            scope = {
                "start": start,
                "load": adapter.scalar_function(self._load),
                "combine": adapter.scalar_function(self._combine),
                **{f"c{k}": converter(*pair) for k, pair in pairs},
            }
            if not by_columns:
                scope["tree"] = tree(self._combine, start.dtype)
            source = _source(by_columns, len(dtypes))
            kernel = self._kernels[key] = define(source, scope, globals())
        return kernel
