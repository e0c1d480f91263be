"""Reductions on the device: a function of operands, combined over axes in a fixed order.

Elements are combined in chunks whose sizes depend on shapes alone, so the same operands give the
same bits at each run. Where the operands' memory runs along a reduced axis, a block of threads
shares a chunk: each thread combines every so many elements, and then their results are combined as
`groups` says. Where it runs along a kept axis, one thread goes through a chunk of each of its
columns. Several chunks make partial results, which are reduced in the same way.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.adapter import cuda  # noqa: F401 (the simulator looks for it here)
from tinygrad_cg_kernels.cuda.elementwise import converter, define
from tinygrad_cg_kernels.cuda.groups import tree
from tinygrad_cg_kernels.cuda.layouts import reduced, split
from tinygrad_cg_kernels.runtime.compile import jitable

THREADS = adapter.threads()  # in a block; a power of two
PER_THREAD = 4 if adapter.simulated() else 16  # elements of a chunk for each thread of a block
COLUMN = 4 if adapter.simulated() else 512  # elements of a column in a chunk

_BLOCKS = """
def kernel(chunk, chunks, units, length, start, kept, inner, {parameters}, out):
    thread = cuda.threadIdx.x
    for unit in range(cuda.blockIdx.x, units, cuda.gridDim.x):
        {begin}
        rest = unit // chunks
        for back in range(len(kept)):
            d = len(kept) - 1 - back
            k = rest % kept[d]
            rest = rest // kept[d]
            {along_kept}
        first = unit % chunks * chunk
        last = min(first + chunk, length)
        total = start
        for j in range(first + thread, last, THREADS):
            {row}
            total = combine(total, load({values}))
        total = tree(total, thread, THREADS)
        if thread == 0:
            out[unit] = total
"""
_COLUMNS = """
def kernel(chunk, chunks, units, length, start, kept, inner, {parameters}, out):
    columns = units // chunks
    for unit in range(cuda.grid(1), units, cuda.gridsize(1)):
        {begin}
        rest = unit % columns
        for back in range(len(kept)):
            d = len(kept) - 1 - back
            k = rest % kept[d]
            rest = rest // kept[d]
            {along_kept}
        first = unit // columns * chunk
        last = min(first + chunk, length)
        total = start
        for j in range(first, last):
            {row}
            total = combine(total, load({values}))
        out[unit] = total
"""
_POSITIONS = """
            {begin}
            rest = j
            for back in range(len(inner)):
                d = len(inner) - 1 - back
                k = rest % inner[d]
                rest = rest // inner[d]
                {along_inner}"""


def _source(template: str, operands: int) -> str:
    each = range(operands)
    row = _POSITIONS.format(
        begin="; ".join(f"q{k} = p{k}" for k in each),
        along_inner="; ".join(f"q{k} += k * t{k}[d]" for k in each),
    ).strip()
    return template.format(
        parameters=", ".join(f"x{k}, s{k}, t{k}, o{k}" for k in each),
        begin="; ".join(f"p{k} = o{k}" for k in each),
        along_kept="; ".join(f"p{k} += k * s{k}[d]" for k in each),
        row=row,
        values=", ".join(f"c{k}(x{k}[q{k}])" for k in each),
    )


class Fold:
    """A reduction over axes: `load` of the operands' elements, put together by `combine`.

    Both are scalar functions of kernels; `combine` is associative, but for rounding.
    """

    def __init__(self, name: str, load: Callable, combine: Callable) -> None:
        self.name, self._load, self._combine = name, load, combine
        self._kernels: dict[tuple, Any] = {}
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
        """Return the reduction of operands that broadcast, as an array of dtype `state`.

        Operands are converted to the dtypes `loop`. `start` does not change what it is combined
        with; it is the result over no elements.
        """
        parts = [adapter.memory(array) for array in arrays]
        steps = tuple([part[1] for part in parts])
        found = split(tuple([array.shape for array in arrays]), steps, tuple(axes))
        shape = reduced(found.shape, axes, keepdims)
        library = adapter.array_module()
        length, columns = prod(found.inner), prod(found.kept)
        if not length or not columns:
            return library.full(shape, start, dtype=state)
        by_columns = found.by_columns
        chunk = COLUMN if by_columns else THREADS * PER_THREAD
        chunks = -(-length // chunk)
        out = library.empty((chunks, columns) if by_columns else (columns, chunks), dtype=state)
        target = adapter.memory(out)[0]
        units = columns * chunks
        numbers = [chunk, chunks, units, length, state.type(start), found.kept, found.inner]
        operands = []
        for (memory, _, first), outer, inner in zip(
            parts, found.kept_steps, found.inner_steps, strict=True
        ):
            operands += [memory, outer, inner, first]
        dtypes = tuple([array.dtype for array in arrays])
        kernel = self._kernel(by_columns, dtypes, tuple(loop), state)
        blocks = adapter.blocks_for(units if by_columns else units * THREADS)
        adapter.launch(kernel, blocks, [*numbers, *operands, target])
        if chunks > 1:
            if self._rest is None:
                self._rest = Fold(self.name, _same, self._combine)
            out = self._rest((out,), (0 if by_columns else 1,), (state,), state, start)
        return out.reshape(shape)

    def _kernel(
        self, by_columns: bool, dtypes: tuple[np.dtype, ...], loop: tuple, state: np.dtype
    ) -> Any:
        key = by_columns, dtypes, loop, state
        kernel = self._kernels.get(key)
        if kernel is None:
            pairs = enumerate(zip(dtypes, loop, strict=True))
            scope = {
                "load": adapter.scalar_function(self._load),
                "combine": adapter.scalar_function(self._combine),
                **{f"c{k}": converter(*pair) for k, pair in pairs},
            }
            if not by_columns:
                scope["tree"] = tree(self._combine, state)
            source = _source(_COLUMNS if by_columns else _BLOCKS, len(dtypes))
            kernel = self._kernels[key] = define(source, scope, globals())
        return kernel


@jitable
def _same(x: Any) -> Any:
    return x
