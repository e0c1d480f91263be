"""Programs of graphs, as functions from the input arrays to the output arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.locks import no_collection

from ..._core.devices import CPU
from ..graph.interpret import device_of, move_constant
from ..graph.values import FuncGraph, Value
from .trace import Build


class Outputs:
    """The outputs of a graph, and which of them must be computed.

    `graph` has each computed output once. An output that is an input, a constant or the same as
    another output is the same array: tensors do not change. `whole` has all outputs.
    """

    def __init__(self, graph: FuncGraph, build: Build):
        self._build, self.whole = build, graph
        positions = {value: i for i, value in enumerate(graph.inputs)}
        computed: dict[Value, int] = {}
        self.steps: list[tuple[int, Any]] = []
        for value in graph.outputs:
            if value in positions:
                self.steps.append((0, positions[value]))
            elif value.array is not None:
                array = value.array
                self.steps.append((1, array if device_of(build) == CPU else move_constant(array)))
            else:
                self.steps.append((2, computed.setdefault(value, len(computed))))
        self.graph = FuncGraph(graph.inputs, list(computed))
        order = [item for kind, item in self.steps if kind == 2]
        self.in_order = order == list(range(len(computed))) and len(order) == len(self.steps)
        self._run: Callable[[Sequence[np.ndarray]], list[np.ndarray]] | None = None

    @property
    def run(self) -> Callable[[Sequence[np.ndarray]], list[np.ndarray]]:
        """Return the function from input arrays to output arrays, compiled at first use."""
        run = self._run
        if run is None:
            with no_collection():  # it would find nothing, and walk all objects of the process
                self.program = self._build(self.graph)
            call: Any = getattr(self.program, "call", self.program)  # without one in between
            run = self._run = call if self.in_order else self._arrange(call)
        return run

    def _arrange(self, program: Callable) -> Callable:
        steps, nothing = self.steps, not self.graph.outputs

        def run(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
            by_kind: Any = (arrays, None, [] if nothing else program(arrays))
            return [item if kind == 1 else by_kind[kind][item] for kind, item in steps]

        return run

    @property
    def sources(self) -> list[str]:
        """Return the source texts of the kernels and the loops."""
        texts = list(getattr(self.run and self.program, "sources", []))
        loops = [value.params["loop"] for value in self.graph.values() if "loop" in value.params]
        return texts + [text for loop in loops for text in loop.sources]
