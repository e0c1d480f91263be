"""Running a graph operation by operation: the reference for compiled code, and the way on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from ..._core import devices
from ..._core.primitive import run_on_gpu, runner
from .values import FuncGraph, OutputItem, Value

Operation = tuple[Sequence[Callable[..., Any]], Callable[..., Any]]
"""A sequence whose first function is tried on an operation's operands, and the function that is
called if the result is None. They are the small kernel that served last and the complete operation,
or the same function twice, which never returns None."""


def interpreter(graph: FuncGraph) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
    """Return a function from the graph's input arrays to fresh output arrays."""
    return _by_operations(graph, _constants(graph), _operation)


def on_gpu(graph: FuncGraph) -> Callable[[Sequence[Any]], list[Any]]:
    """Return the same function for a GPU, with the constants there.

    Operations on arrays that are all in the CPU's memory run there.
    """
    arrays = _constants(graph)
    moved = {value: move_constant(array) for value, array in arrays.items()}

    def operation(value: Value) -> Operation:
        _, here = _operation(value)
        if value.primitive is None:
            return (here,), here
        there = run_on_gpu(value.primitive, value.params)

        def run(*operands: Any) -> Any:
            if any(type(array) is np.ndarray and array.ndim for array in operands):
                pairs = list(zip(value.inputs, operands, strict=True))
                if all(type(array) is np.ndarray or operand in moved for operand, array in pairs):
                    return here(*[arrays.get(operand, array) for operand, array in pairs])
            return there(*operands)

        return (run,), run

    return _by_operations(graph, moved, operation)


def _constants(graph: FuncGraph) -> dict[Value, np.ndarray]:
    return {value: value.array for value in graph.values() if value.array is not None}


def _operation(value: Value) -> Operation:
    """Return how a value is computed from the arrays of its operands."""
    if isinstance(value, OutputItem):
        item = itemgetter(value.index)
        return (item,), item
    run = runner(value.primitive, value.params)
    small = None if value.params else getattr(value.primitive.run, "small_kernel", None)
    return small or (run,), run


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


def _by_operations(
    graph: FuncGraph, constants: Mapping[Value, Any], operation: Callable[[Value], Operation]
) -> Callable[[Sequence[Any]], list[Any]]:
    values = [value for value in graph.values() if value not in constants]
    values = list(dict.fromkeys([*graph.inputs, *constants, *values]))
    first = len(graph.inputs)
    places = {value: place for place, value in enumerate(values)}
    kept = set(graph.outputs)
    last = {operand: value for value in values for operand in value.inputs}
    steps = []
    for value in values[first + len(constants) :]:
        operands = dict.fromkeys(value.inputs)
        dead = [x for x in operands if last[x] is value and x not in kept]
        take = _items([places[x] for x in value.inputs])
        steps.append((*operation(value), take, [places[x] for x in dead]))
    rest = [*constants.values(), *[None] * len(steps)]
    outputs = [(places[value], value) for value in graph.outputs]

    def run(arrays: Sequence[Any]) -> list[Any]:
        computed = [*arrays, *rest]
        place = len(computed) - len(steps)
        for first, function, take, dead in steps:
            result = first[0](*take(computed))
            computed[place] = function(*take(computed)) if result is None else result
            place += 1
            for k in dead:
                computed[k] = None
        taken: set[int] = set()
        return [_own(computed[place], output, taken) for place, output in outputs]

    return run


def _items(places: list[int]) -> Callable[[list], Sequence]:
    """Return the function that takes the items of these places out of a list."""
    if len(places) > 1:
        return itemgetter(*places)
    return itemgetter(slice(places[0], places[0] + 1) if places else slice(0))


def _own(array: Any, value: Value, taken: set[int]) -> Any:
    """Return an array that nothing else refers to: inputs, constants and views are copied."""
    fresh = value.primitive is not None and not value.primitive.aliases
    if fresh and id(array) not in taken:
        taken.add(id(array))
        return array
    return array.copy()
