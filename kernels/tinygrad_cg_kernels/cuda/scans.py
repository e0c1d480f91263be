"""Scans along an axis on the device: cumulative sums and products, linear recurrences.

A line is cut into chunks of a fixed length, one for each thread. If there are several, threads
first compute the effect of each chunk on its start value. A scan of these gives the start value of
each chunk.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.elementwise import contiguous, define
from tinygrad_cg_kernels.reduce.scan import Scan, pull, recurrence
from tinygrad_cg_kernels.runtime.promotion import FLOAT32, FLOAT64, loop_dtype

CHUNK = 4 if adapter.simulated() else 256

_SOURCE = """
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
_ALL = _SOURCE.format(each="out[p] = before if exclusive else state", end="pass")
_LAST = _SOURCE.format(each="pass", end="out[unit] = state")


class DeviceScan:
    """A CPU scan for device arrays, with the same arguments, dtypes and shapes."""

    def __init__(self, kernel: Scan) -> None:
        self._kernel = kernel

    def __call__(
        self,
        x: Any,
        axis: int,
        reverse: bool = False,
        exclusive: bool = False,
        y: Any = None,
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
        chunks = -(-length // CHUNK)
        shape = before, chunks, after
        starts = library.full(shape, kernel.first, dtype=state)
        if chunks > 1:
            ends = library.empty(shape, dtype=state)
            self._run(_LAST, (x, y, starts, ends), reverse)
            factors = ends
            if kernel in (recurrence, pull):  # the effect of a chunk is ends + factors * start
                factors = library.empty(shape, dtype=state)
                ones = library.ones(shape, dtype=state)
                self._run(_LAST, (x, library.zeros_like(x), ones, factors), reverse)
            starts = self._scan(factors, ends, state, state, False, True)
        out = library.empty(x.shape, dtype=result)
        self._run(_ALL, (x, y, starts, out), reverse, exclusive)
        return out

    def _run(
        self, source: str, arrays: Sequence[Any], reverse: bool, exclusive: bool = False
    ) -> None:
        x, _, starts, _ = arrays
        advance = adapter.scalar_function(self._kernel.advance)
        kernel = define(source, advance=advance, kind=starts.dtype.type)
        _, length, after = x.shape
        chunks, units = starts.shape[1], starts.size
        numbers = [length, after, CHUNK, chunks, units, int(reverse), int(exclusive)]
        kernel.launch(adapter.blocks_for(units), arrays, numbers)
