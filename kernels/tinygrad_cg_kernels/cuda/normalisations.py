"""softmax, log_softmax and their gradients on the device.

If the axis is contiguous, a group of threads computes a row in one launch: each thread processes
elements at regular distances, and the results of threads are combined as in `groups`. A few long
rows, and columns, take one launch for each number of the row, and one for the result. The order of
additions depends on shapes only, so each run gives the same bits.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.cuda import adapter, elementwise
from tinygrad_cg_kernels.cuda.elementwise import THREADS, Map, Plan, converters, same
from tinygrad_cg_kernels.cuda.folds import Fold, group_for, power_of_two
from tinygrad_cg_kernels.cuda.groups import tree
from tinygrad_cg_kernels.cuda.launches import Layouts, layout_of, place_of
from tinygrad_cg_kernels.cuda.layouts import split, walk
from tinygrad_cg_kernels.cuda.reductions import exp_of_finite
from tinygrad_cg_kernels.reduce import softmax as ksoftmax
from tinygrad_cg_kernels.reduce.axes import contiguous_strides
from tinygrad_cg_kernels.reduce.combine import add, larger
from tinygrad_cg_kernels.reduce.exponentials import finite
from tinygrad_cg_kernels.reduce.softmax import Normalisation
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.promotion import loop_dtype

LONG = 64 * THREADS  # longer rows take a single block long
ROWS = 2 if adapter.simulated() else 128  # this many rows keep a GPU busy, however long they are
HELD = 2 if adapter.simulated() else 8
"""A thread keeps the elements of its row if there are so few, and else loads so many at a time."""

_ROWS = """
def kernel(rows, length, kept, {parameters}, out, u, v, w):
    lane = place(index(cuda.threadIdx.x) % index(group))
    wide = THREADS // group
    base = cuda.blockIdx.x * wide
    while base < rows:
        row = base + cuda.threadIdx.x // group
        last = length if row < rows else 0
        {begin}; q = place(w)
        {walk}
        j = lane
        {body}
        base += cuda.gridDim.x * wide
"""


@jitable
def _softmax_of(x: Any, shift: Any, total: Any) -> Any:
    return elementary.exp(x - finite(shift)) * (1 / total)


@jitable
def _log_softmax_of(x: Any, shift: Any, total: Any) -> Any:
    return (x - finite(shift)) - elementary.log(total)


@jitable
def _of_first(dy: Any, y: Any) -> Any:
    return dy


_OF_ROW = (-np.inf, same, larger), (0, exp_of_finite, add)
_FUNCTIONS: dict[Any, tuple[Sequence[tuple[float, Callable, Callable]], Callable]] = {
    ksoftmax.softmax: (_OF_ROW, _softmax_of),
    ksoftmax.log_softmax: (_OF_ROW, _log_softmax_of),
    ksoftmax.softmax_grad: ([(0, elementary.multiply_upstream, add)], ksoftmax.softmax_pull),
    ksoftmax.log_softmax_grad: ([(0, _of_first, add)], ksoftmax.log_softmax_pull),
}
"""By kernel, the numbers that are computed of a row: for each the start value, the function that
loads elements, and the one that combines them. Functions get the numbers computed before. The last
function computes the results."""


class DeviceNormalisation:
    """softmax or log_softmax along one axis, or the gradient, for arrays of one shape.

    Operands of the gradient are the upstream one and the result.
    """

    def __init__(self, kernel: Normalisation) -> None:
        self._kernel = kernel
        self._steps, self._function = _FUNCTIONS[kernel]
        self._folds = [Fold(load, combine) for _, load, combine in self._steps]
        self._map = Map(kernel.name, self._function)
        self._plan = elementwise.planned(self._make_plan)

    def __call__(self, *operands: Any) -> Any:
        """Return an array of the operands' shape. The last operand is the axis."""
        *arrays, axis = operands
        return self._plan(layout_of(arrays), axis)(arrays)

    def _by_folds(self, result: np.dtype, axis: int, arrays: Sequence[Any]) -> Any:
        loop, numbers = loop_dtype(result), list(arrays)
        for fold, (start, *_) in zip(self._folds, self._steps, strict=True):
            numbers.append(fold(numbers, (axis,), loop, start))
        return self._map(numbers, loop, result)

    def _make_plan(self, layouts: Layouts, axis: int) -> Callable[[Sequence[Any]], Any]:
        """Return what to do for arrays such as these: no block per row where that is slow."""
        dtypes, (shape, *_), _ = zip(*layouts, strict=True)
        result = self._kernel.result_dtype(dtypes[-1])
        if not prod(shape):
            return Plan(shape, (result,), None)
        out = result, shape, contiguous_strides(shape, result.itemsize)
        places = [place_of(*layout) for layout in (*layouts, out)]
        layout = split(places, (axis,))
        rows, length = prod(layout.kept), prod(layout.inner)
        if layout.by_columns or (length > LONG and rows < ROWS):
            return partial(self._by_folds, result, axis)
        loop = loop_dtype(result)
        group = group_for(length, HELD)
        names = {
            "group": group,
            "of": adapter.scalar_function(self._function),
            **converters(dtypes, (loop,) * len(dtypes)),
        }
        for k, (start, load, combine) in enumerate(self._steps):
            names |= {f"start{k}": loop.type(start), f"tree{k}": tree(combine, loop)}
            names[f"load{k}"] = adapter.scalar_function(load)
            names[f"combine{k}"] = adapter.scalar_function(combine)
        source = _source(len(dtypes), len(self._steps), -(-length // group))
        arguments = [rows, length, layout.kept, *layout.operands]
        launch = elementwise.prepare(source, rows * group, arguments, **names)
        return Plan(shape, (result,), launch)


def _source(operands: int, numbers: int, elements: int) -> str:
    """Return the text of a kernel that computes `numbers` of a row, and then the results."""
    each, count = range(operands), min(power_of_two(elements), HELD)
    position = "p{k} + min(j + {n} * group, length - 1) * t{k}[0]"
    loads = [
        f"a{k}_{n} = c{k}(x{k}[index({position.format(k=k, n=n)})])"
        for n in range(count)
        for k in each
    ]

    def over_row(value: str, statement: str, numbers: int) -> list[str]:
        values = [*[f"a{k}_{{n}}" for k in each], *[f"n{k}" for k in range(numbers)]]
        lines = [f"e{{n}} = {value}({', '.join(values)})".format(n=n) for n in range(count)]
        lines += [f"if j + {n} * group < last: {statement.format(n=n)}" for n in range(count)]
        if elements <= HELD:
            return lines
        head = f"for j in range(lane, last, {count} * group):"
        return [head, *[f"    {line}" for line in (*loads, *lines)]]

    body = loads if elements <= HELD else []
    for k in range(numbers):
        body = [*body, f"part = start{k}"]
        body += over_row(f"load{k}", f"part = combine{k}(part, e{{n}})", k)
        body.append(f"n{k} = tree{k}(part, lane, group)")
    body += over_row("of", "out[index(q + (j + {n} * group) * v[0])] = e{n}", numbers)
    return _ROWS.format(
        parameters=", ".join(f"x{k}, s{k}, t{k}, o{k}" for k in each),
        begin="; ".join(f"p{k} = place(o{k})" for k in each),
        walk=walk(
            "min(row, rows - 1)", "kept", [*[(f"p{k}", f"s{k}") for k in each], ("q", "u")], 2
        ),
        body="\n        ".join(body),
    )
