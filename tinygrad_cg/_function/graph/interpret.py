"""Running a graph operation by operation: the reference for compiled code, and the way on a GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core import devices
from ..._core.primitive import run_on_gpu, runner
from .values import FuncGraph, OutputItem, Value


def interpreter(graph: FuncGraph) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """Return a function from the graph's input arrays to fresh output arrays."""
    return _by_operations(graph, _compute)


def on_gpu(graph: FuncGraph) -> Callable[[Sequence[Any]], list[Any]]:
    """Return the same function for a GPU, with the constants there.

    Operations on arrays that are all in the CPU's memory run there.
    """
    arrays = {value: value.array for value in graph.values() if value.array is not None}
    moved = {value: move_constant(array) for value, array in arrays.items()}

    def compute(value: Value, operands: list) -> object:
        if value in moved:
            return moved[value]
        if isinstance(value, OutputItem):
            return operands[0][value.index]
        assert value.primitive is not None
        if any(type(array) is np.ndarray and array.ndim for array in operands):
            pairs = list(zip(value.inputs, operands, strict=True))
            if all(type(array) is np.ndarray or operand in moved for operand, array in pairs):
                here = [arrays.get(operand, array) for operand, array in pairs]
                return runner(value.primitive, value.params)(*here)
        return run_on_gpu(value.primitive, value.params)(*operands)

    return _by_operations(graph, compute)


def move_constant(array: np.ndarray) -> Any:
    """Return a constant of a program on the GPU."""
    return devices.move(array, devices.GPU) if array.ndim else devices.number(array)


on_gpu.device = devices.GPU
interpreter.stepwise = True


def device_of(build: Any) -> str:
    """Return the device of the programs that a build function makes."""
    return getattr(build, "device", devices.CPU)


def is_stepwise(build: Any) -> bool:
    """Return whether these programs run loops, or everything, operation by operation."""
    return getattr(build, "stepwise", False) or device_of(build) == devices.GPU


def _by_operations(graph: FuncGraph, compute: Callable[[Value, list], object]) -> Callable:
    values = [value for value in graph.values() if value not in graph.inputs]
    uses = Counter(operand for value in values for operand in value.inputs)
    uses.update(graph.outputs)

    def run(arrays: Sequence[Any]) -> list[Any]:
        computed: dict[Value, object] = dict(zip(graph.inputs, arrays, strict=True))
        left = Counter(uses)
        for value in values:
            computed[value] = compute(value, [computed[operand] for operand in value.inputs])
            for operand in value.inputs:
                left[operand] -= 1
                if not left[operand]:
                    del computed[operand]
        taken: set[int] = set()
        return [_own(computed[output], output, taken) for output in graph.outputs]

    return run


def _compute(value: Value, operands: list) -> object:
    if value.array is not None:
        return value.array
    if isinstance(value, OutputItem):
        return operands[0][value.index]
    assert value.primitive is not None
    return runner(value.primitive, value.params)(*operands)


def _own(array: Any, value: Value, taken: set[int]) -> Any:
    """Return an array that nothing else refers to: inputs, constants and views are copied."""
    fresh = value.primitive is not None and not value.primitive.aliases
    if fresh and id(array) not in taken:
        taken.add(id(array))
        return array
    return array.copy()
