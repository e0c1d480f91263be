"""Running a graph operation by operation: what compiled code is compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from ..._core.primitive import runner
from .values import FuncGraph, OutputItem, Value


def interpreter(graph: FuncGraph) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """Return a function from the arrays of the graph's inputs to fresh arrays of its outputs."""
    values = [value for value in graph.values() if value not in graph.inputs]
    uses = Counter(operand for value in values for operand in value.inputs)
    uses.update(graph.outputs)

    def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        known: dict[Value, object] = dict(zip(graph.inputs, arrays, strict=True))
        left = Counter(uses)
        for value in values:
            known[value] = _compute(value, [known[operand] for operand in value.inputs])
            for operand in value.inputs:
                left[operand] -= 1
                if not left[operand]:
                    del known[operand]
        taken: set[int] = set()
        return [_own(known[output], output, taken) for output in graph.outputs]

    return run


def _compute(value: Value, operands: list) -> object:
    if value.array is not None:
        return value.array
    if isinstance(value, OutputItem):
        return operands[0][value.index]
    assert value.primitive is not None
    return runner(value.primitive, value.params)(*operands)


def _own(array: object, value: Value, taken: set[int]) -> np.ndarray:
    """Return an array that nothing else refers to: a copy of an input, a constant or a view."""
    assert isinstance(array, np.ndarray)
    fresh = value.primitive is not None and not value.primitive.aliases
    if fresh and id(array) not in taken:
        taken.add(id(array))
        return array
    return array.copy()
