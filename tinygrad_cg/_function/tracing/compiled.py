"""Compiled programs: a graph, what its inputs are filled with, and where its results go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from ..._reverse.variable import Variable
from ..graph.simplify import simplify
from ..graph.values import FuncGraph, Value
from .trace import FunctionTrace

new = object.__new__

Build = Callable[[FuncGraph], Callable[[Sequence[np.ndarray]], list[np.ndarray]]]
"""The function that makes a program of a graph: `interpreter`, or `program.build`, which fuses."""


class Outputs:
    """The outputs of a graph, and which of them need computing at all.

    `graph` has each of those once. An output that is an input, a constant, or the same as
    another, is the same array: tensors do not change.
    """

    def __init__(self, inputs: Sequence[Value], outputs: Sequence[Value], build: Build):
        self._build = build
        positions = {value: i for i, value in enumerate(inputs)}
        computed: dict[Value, int] = {}
        self.steps: list[tuple[int, Any]] = []
        for value in outputs:
            if value in positions:
                self.steps.append((0, positions[value]))
            elif value.array is not None:
                self.steps.append((1, value.array))
            else:
                self.steps.append((2, computed.setdefault(value, len(computed))))
        self.graph = FuncGraph(inputs, list(computed))
        order = [item for kind, item in self.steps if kind == 2]
        self.in_order = order == list(range(len(computed))) and len(order) == len(self.steps)
        self._run: Callable[[Sequence[np.ndarray]], list[np.ndarray]] | None = None

    @property
    def run(self) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
        """Return the function from inputs' arrays to those of outputs, compiled when wanted."""
        run = self._run
        if run is None:
            self.program = self._build(self.graph)
            call: Any = getattr(self.program, "call", self.program)  # without one in between
            run = self._run = call if self.in_order else self._arrange(call)
        return run

    def _arrange(self, program: Callable) -> Callable:
        steps, nothing = self.steps, not self.graph.outputs

        def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
            found: Any = (arrays, None, [] if nothing else program(arrays))
            return [item if kind == 1 else found[kind][item] for kind, item in steps]

        return run

    @property
    def sources(self) -> list[str]:
        """Return the source texts of the kernels."""
        return list(getattr(self.run and self.program, "sources", []))


class Program:
    """The result of a trace: a graph whose inputs are arguments, captured tensors and Variables.

    `outputs` computes the traced outputs, then what the Variables in `assigned` become, and
    after these the last random numbers, so that they are drawn.
    """

    def __init__(
        self, trace: FunctionTrace, outputs: Sequence[Value], assigned: Sequence, build: Build
    ):
        captured, literals = trace.captured()
        self.captures: list[Tensor] = [tensor for tensor, _ in captured]
        self.reads: list[Variable] = [variable for variable, _ in trace.reads.values()]
        self.assigned: list[Variable] = [variable for variable, _ in assigned]
        self.count = len(outputs)
        self.draws = len(trace.draws)
        inputs = [*trace.arguments, *[value for _, value in captured]]
        inputs += [value for _, value in trace.reads.values()]
        kept = [*outputs, *[value for _, value in assigned], *trace.draws[-1:]]
        self.graph = simplify(FuncGraph(inputs, kept), literals)
        self.avals = [value.aval for value in self.graph.outputs[: self.count]]
        self.outputs = Outputs(self.graph.inputs, self.graph.outputs, build)

    def inputs(self, leaves: Sequence) -> list:
        """Return the leaves of a call, then captured tensors, then the values of the Variables.

        Whoever listens hears that these are read: tapes start watching here.
        """
        return [*leaves, *self.captures, *[variable._read() for variable in self.reads]]

    def run(self, inputs: Sequence) -> list[Tensor]:
        """Return the outputs as tensors without records, and assign Variables."""
        results = self.outputs.run(arrays_of(inputs))
        self.assign(results)
        return list(map(wrap_array, results[: self.count]))

    def assign(self, results: Sequence[np.ndarray]) -> None:
        if self.assigned:
            for variable, array in zip(self.assigned, results[self.count :], strict=False):
                variable._assign(array)


def arrays_of(inputs: Sequence) -> list[np.ndarray]:
    """Return the arrays of tensors; numbers become arrays of float64."""
    return [one._data if isinstance(one, Tensor) else np.asarray(one, np.float64) for one in inputs]


def wrap_array(array: np.ndarray) -> Tensor:
    out = new(Tensor)
    out._data = array
    out._rec = None
    return out
