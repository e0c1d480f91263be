"""softmax, log_softmax and their gradients on the device.

If the axis is contiguous, a group of threads computes a row in one launch: each thread processes
elements at regular distances, and the results of threads are combined as in `groups`. A few long
rows, and columns, take one launch for each number of the row, and one for the result. The order of
additions depends on shapes only, so each run gives the same bits.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.adapter import cuda  # noqa: F401 (the simulator looks for it here)
from tinygrad_cg_kernels.cuda.elementwise import Map, converter, define, same
from tinygrad_cg_kernels.cuda.folds import THREADS, Fold, group_for
from tinygrad_cg_kernels.cuda.groups import tree
from tinygrad_cg_kernels.cuda.layouts import integers, split, walk
from tinygrad_cg_kernels.cuda.reductions import exp_of_finite, exp_sum, largest
from tinygrad_cg_kernels.reduce import softmax as ksoftmax
from tinygrad_cg_kernels.reduce.combine import add, larger
from tinygrad_cg_kernels.reduce.exponentials import finite
from tinygrad_cg_kernels.reduce.softmax import Normalisation, NormalisationGradient
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.promotion import loop_dtype

LONG = 64 * THREADS  # longer rows take a single block long
ROWS = 2 if adapter.simulated() else 128  # this many rows keep a GPU busy, however long they are

_ROWS = """
def kernel(rows, length, kept, group, {parameters}, out, u, v, w):
    lane = place(index(cuda.threadIdx.x) % index(group))
    wide = THREADS // group
    base = cuda.blockIdx.x * wide
    while base < rows:
        row = base + cuda.threadIdx.x // group
        last = length if row < rows else 0
        {begin}; q = place(w)
        {walk}
{steps}
        for j in range(lane, last, group):
            out[index(q + j * v[0])] = of({values}, {numbers})
        base += cuda.gridDim.x * wide
"""
_STEP = """
        part = {start}
        for j in range(lane, last, group):
            part = {combine}(part, {load}({values}))
        {number} = {tree}(part, lane, group)"""


@jitable
def _softmax_of(x: Any, shift: Any, total: Any) -> Any:
    return elementary.exp(x - finite(shift)) * (1 / total)


@jitable
def _log_softmax_of(x: Any, shift: Any, total: Any) -> Any:
    return (x - finite(shift)) - elementary.log(total)


@jitable
def _of_first(dy: Any, y: Any) -> Any:
    return dy


_ELEMENTS: dict[Any, Callable] = {
    ksoftmax.softmax: _softmax_of,
    ksoftmax.log_softmax: _log_softmax_of,
}
_TERMS: dict[Any, Callable] = {
    ksoftmax.softmax_grad: elementary.multiply_upstream,
    ksoftmax.log_softmax_grad: _of_first,
}


class _Rows:
    """Kernels that compute a row from its elements and from some numbers of the whole row.

    `steps` has for each number its name, its start value, the function that loads elements, and the
    function that combines them. Functions get the numbers that were computed before.
    """

    def __init__(self, function: Callable, steps: Sequence[tuple[str, str, Callable, Callable]]):
        self._function, self._steps = function, steps
        self._kernels: dict[tuple, Any] = {}

    def __call__(
        self, arrays: Sequence[Any], axis: int, loop: np.dtype, result: np.dtype
    ) -> Any | None:
        """Return the result for arrays of one shape; None if a block per row would be slow."""
        out = adapter.array_module().empty(arrays[0].shape, dtype=result)
        parts = [adapter.memory(array) for array in (*arrays, out)]
        layout = split((out.shape,) * len(parts), tuple([part[1] for part in parts]), (axis,))
        rows, length = prod(layout.kept), prod(layout.inner)
        if layout.by_columns or (length > LONG and rows < ROWS):
            return None
        group = group_for(length)
        arguments = [rows, length, layout.kept, group]
        arguments += layout.operands(parts)
        types = integers([rows, *[memory.size for memory, *_ in parts]])
        kernel = self._kernel(tuple([array.dtype for array in arrays]), loop, types)
        kernel.launch(adapter.blocks_for(rows * group), arguments)
        return out

    def _kernel(self, dtypes: tuple[np.dtype, ...], loop: np.dtype, types: dict[str, Any]) -> Any:
        key = dtypes, loop, types["index"]
        kernel = self._kernels.get(key)
        if kernel is None:
            scope = {
                "lowest": loop.type(-np.inf),
                "zero": loop.type(0),
                "of": adapter.scalar_function(self._function),
                **{f"c{k}": converter(dtype, loop) for k, dtype in enumerate(dtypes)},
                **types,
            }
            for name, _, load, combine in self._steps:
                scope[f"load_{name}"] = adapter.scalar_function(load)
                scope[f"combine_{name}"] = adapter.scalar_function(combine)
                scope[f"tree_{name}"] = tree(combine, loop)
            source = self._source(len(dtypes))
            kernel = self._kernels[key] = define(source, scope, globals())
        return kernel

    def _source(self, operands: int) -> str:
        each = range(operands)
        values = ", ".join(f"c{k}(x{k}[index(p{k} + j * t{k}[0])])" for k in each)
        names = [name for name, *_ in self._steps]
        steps = [
            _STEP.format(
                start=start,
                combine=f"combine_{name}",
                tree=f"tree_{name}",
                load=f"load_{name}",
                values=", ".join([values, *names[:k]]),
                number=name,
            )
            for k, (name, start, *_) in enumerate(self._steps)
        ]
        return _ROWS.format(
            parameters=", ".join(f"x{k}, s{k}, t{k}, o{k}" for k in each),
            begin="; ".join(f"p{k} = place(o{k})" for k in each),
            walk=walk(
                "min(row, rows - 1)", "kept", [*[(f"p{k}", f"s{k}") for k in each], ("q", "u")], 2
            ),
            steps="".join(steps),
            values=values,
            numbers=", ".join(names),
        )


class DeviceNormalisation:
    """softmax or log_softmax along one axis."""

    def __init__(self, kernel: Normalisation) -> None:
        self._kernel, self._map = kernel, Map(kernel.name, _ELEMENTS[kernel])
        steps = [("shift", "lowest", same, larger), ("total", "zero", exp_of_finite, add)]
        self._rows = _Rows(_ELEMENTS[kernel], steps)

    def __call__(self, x: Any, axis: int) -> Any:
        """Return an array of the shape of `x`."""
        result = self._kernel.result_dtype(x.dtype)
        loop = loop_dtype(result)
        if not x.size:
            return adapter.array_module().empty(x.shape, dtype=result)
        rows = self._rows((x,), axis, loop, result)
        if rows is not None:
            return rows
        shift = largest((x,), (axis,), (loop,), loop, -np.inf, True)
        total = exp_sum((x, shift), (axis,), (loop, loop), loop, 0, True)
        return self._map((x, shift, total), (loop,) * 3, (result,))[0]


class DeviceNormalisationGradient:
    """The gradient of a normalisation, from the upstream one and the result."""

    def __init__(self, kernel: NormalisationGradient) -> None:
        self._kernel = kernel
        term, pull = _TERMS[kernel], kernel.kernels["columns"].function
        self._total = Fold(kernel.name, term, add)
        self._map = Map(kernel.name, pull)
        self._rows = _Rows(pull, [("total", "zero", term, add)])

    def __call__(self, dy: Any, y: Any, axis: int) -> Any:
        """Return the gradient, of the shape of `dy` and `y`."""
        result = self._kernel.result_dtype(y.dtype)
        loop = loop_dtype(result)
        if not y.size:
            return adapter.array_module().empty(y.shape, dtype=result)
        rows = self._rows((dy, y), axis, loop, result)
        if rows is not None:
            return rows
        total = self._total((dy, y), (axis,), (loop, loop), loop, 0, True)
        return self._map((dy, y, total), (loop,) * 3, (result,))[0]
