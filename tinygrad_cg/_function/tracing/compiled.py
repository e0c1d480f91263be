"""Compiled programs: the trace of a function for one signature, its inputs and its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tinygrad_cg_kernels.loops import small
from tinygrad_cg_kernels.runtime.locks import no_collection

from ... import nest
from ..._core import device_runs, devices
from ..._core.conversion import FLOAT32, FLOAT64, convert, is_tensor, is_weak
from ..._core.devices import CPU, GPU
from ..._core.tensor import Aval, Tensor
from ..._reverse.variable import Variable, unrecorded_assignments
from ..graph.interpret import device_of, interpreter, is_stepwise, on_gpu
from ..graph.loop_optimization import optimize
from ..graph.values import FuncGraph, Value
from .number import TraceNumber
from .outputs import Outputs
from .outside_calls import OutsideCalls
from .signature import FunctionCall
from .trace import Build, FunctionTrace, aval_of, sites

new = object.__new__
MAX_OPERATIONS = 1000
"""A program with more operations is not compiled: each takes some 4 ms of a processor."""


_MIN_ROUNDS = 8  # enough for a loop where the program is too long to compile otherwise


def rolled(graph: FuncGraph, constants: Mapping[Value, Value], build: Build) -> FuncGraph:
    """Return the graph with its repetitions as loops, if it is long and will be compiled."""
    if is_stepwise(build) or not _is_long(graph):
        return graph
    from .rolling import roll  # which most programs do without

    result = roll(graph, constants, build)
    if _is_long(result) and _is_long(optimize(result, constants)):
        return roll(graph, constants, build, _MIN_ROUNDS)
    return result


def _is_long(graph: FuncGraph) -> bool:
    return sum(bool(value.name) for value in graph.values()) > MAX_OPERATIONS


class Program:
    """The result of a trace: a graph of arguments, captured tensors and Variables.

    `outputs` computes the traced outputs, then the new values of the Variables in `assigned`, then
    the last random numbers (so that all are drawn) and the mark of the last side effect. The
    program runs on the `device` of its inputs, and so does everything that it creates.
    """

    def __init__(
        self,
        trace: FunctionTrace,
        captured: tuple,
        outputs: Sequence[Value],
        assigned: Sequence,
        build: Build,
    ):
        captured, literals = captured
        self.device = device_of(build)
        self.captures: list[Tensor] = [tensor for tensor, _ in captured]
        self.reads: list[Variable] = [variable for variable, _ in trace.reads.values()]
        self.assigned: list[Variable] = [variable for variable, _ in assigned]
        self.count = len(outputs)
        self.draws = len(trace.draws)
        inputs = [*trace.arguments, *[value for _, value in captured]]
        inputs += [value for _, value in trace.reads.values()]
        kept = [*outputs, *[value for _, value in assigned], *trace.draws[-1:], *trace.effects[-1:]]
        self.graph = optimize(rolled(FuncGraph(inputs, kept), literals, build), literals)
        self.avals = [value.aval for value in self.graph.outputs[: self.count]]
        self.outputs = Outputs(self.graph, build)

    def inputs(self, leaves: Sequence) -> list:
        """Return leaves, captured tensors and Variables. Listeners are told that the Variables are
        read.
        """
        inputs = [*leaves, *self.captures, *[variable._read() for variable in self.reads]]
        if self.device == CPU:
            return inputs
        # scalars that a tape watches on the CPU are moved to the GPU
        return [device_runs.move_scalar(item) if is_tensor(item) else item for item in inputs]

    def run(self, inputs: Sequence) -> list[Tensor]:
        """Return the outputs as tensors without records; assign the Variables."""
        results = self.outputs.run(arrays_of(inputs))
        self.assign(results)
        return list(map(wrap_array, results[: self.count]))

    def assign(self, results: Sequence[np.ndarray]) -> None:
        if self.assigned:
            for variable, array in zip(self.assigned, results[self.count :], strict=False):
                variable._assign(array)


def arrays_of(inputs: Sequence) -> list[np.ndarray]:
    """Return the arrays of tensors; a number becomes an array of float64."""
    return [
        item._data if isinstance(item, Tensor) else np.asarray(item, np.float64) for item in inputs
    ]


def wrap_array(array: np.ndarray) -> Tensor:
    out = new(Tensor)
    out._data = array
    out._rec = None
    return out


class OutputMark:
    """Marks the place of an output in the structure of a result."""


class Traced:
    """A Python function and one signature: how to trace it, and the resulting program.

    `structure` is the structure of the result, with a mark for each output. ``derive(python)``
    returns a compiled function for its gradient.
    """

    def __init__(
        self, python: Callable, name: str, derive: Callable, call: FunctionCall, build: Build
    ):
        self.python, self.name, self.derive = python, name, derive
        self._build = build
        self.device, self.has_tensors = call.device, call.has_tensors
        self.call_made_of = call.without_leaves()
        self.key = call.key
        self.avals = [_leaf_aval(leaf) for leaf in call.leaves]
        self.sizes = call.sizes()
        self.calls = OutsideCalls()
        self.program: Program
        self.structure: Any = None

    @property
    def build(self) -> Build:
        """Return the function that compiles graphs for the device."""
        if self.device == CPU:
            return self._build
        if self._build is interpreter:
            return on_gpu
        from ..codegen.device_target import build  # which imports the kernels for GPUs

        return build

    def arguments(self, trace: FunctionTrace) -> list:
        """Return the leaves of the call for a trace; leaves that are sizes are constants."""
        pairs = [(trace.argument(aval), weak) for aval, weak in self.avals]
        leaves: list[Any] = [
            argument if weak is None else TraceNumber(argument.value, trace, weak)
            for argument, weak in pairs
        ]
        for k, array in self.sizes.items():
            leaves[k] = Tensor(array)
        return leaves

    def run(self, leaves: Sequence) -> tuple[list[Tensor], Any]:
        """Call the Python function; return its outputs as a flat list of tensors, and their
        structure.
        """
        args, kwargs = self.call_made_of.fill_leaves(leaves)
        result = self.python(*args, **kwargs)
        flat = nest.flatten(result)
        marks = [OutputMark if _is_output(self.name, leaf) else leaf for leaf in flat]
        pairs = zip(flat, marks, strict=True)
        outputs = [convert(leaf) for leaf, mark in pairs if mark is OutputMark]
        return outputs, nest.pack_sequence_as(result, marks)

    def site_of(self, operation: str) -> str:
        """Trace once more, and return where an operation is called first; "" if not known."""
        found: dict[str, str] = {}
        asked = sites.set(found)
        try:
            trace = FunctionTrace(self.name, False, self.calls, self.build)
            with suppress(Exception), trace.active(), unrecorded_assignments():
                self.run(self.arguments(trace))
        finally:
            sites.reset(asked)
        return found.get(operation, "")

    @no_collection()  # it would take half the time of a long trace
    def trace(self, may_create: bool, leaves: Sequence) -> bool:
        """Make the program. Return whether it can be used, which it cannot if it created Variables.

        `leaves` are those of the call, if they have values.
        """
        small.expect_calls()  # most scripts also run operations outside of the program
        result = self._trace(may_create, leaves)
        if result is None:  # a captured tensor is on another device
            result = self._trace(False, leaves)
        return bool(result)

    def _trace(self, may_create: bool, leaves: Sequence) -> bool | None:
        trace = FunctionTrace(self.name, may_create, self.calls, self.build)
        trace.argument_values, self.calls.refused = arrays_of(leaves), None
        with trace.active(), unrecorded_assignments():
            tensors, self.structure = self.run(self.arguments(trace))
            outputs = list(map(trace.value, tensors))
            assigned = trace.assignments()
            del tensors  # a tensor that nothing refers to becomes a constant
        if self.calls.refused is not None:
            raise self.calls.refused
        if trace.created:
            return False
        captured = trace.captured()
        inputs = [
            *[tensor for tensor, _ in captured[0]],
            *[variable for variable, _ in trace.reads.values()],
        ]
        device = _device_of(self.has_tensors, self.device, inputs)
        if device != self.device:
            self.device = device
            return None
        self.program = Program(trace, captured, outputs, assigned, self.build)
        return True


def _device_of(has_tensors: bool, device: str, inputs: Sequence) -> str:
    """Return the device of a program: that of its tensors, or of `tf.device` if there are none."""
    if any(devices.device_of(tensor._data) == GPU for tensor in inputs):
        return GPU
    return CPU if inputs and not has_tensors else device


def _leaf_aval(leaf: Any) -> tuple[Aval, np.dtype | None]:
    """Return the aval of an argument; for a float also the dtype that a tensor of it has."""
    if isinstance(leaf, Tensor):
        return aval_of(leaf), None
    return Aval((), FLOAT64), leaf.dtype if isinstance(leaf, np.floating) else FLOAT32


def _is_output(name: str, leaf: Any) -> bool:
    if is_tensor(leaf) or is_weak(leaf) or isinstance(leaf, np.ndarray):
        return True
    if leaf is None or isinstance(leaf, (str, bytes)):
        return False
    raise TypeError(
        f"{name}: compiled functions must return tensors, numbers or None, nested or not; got "
        f"{type(leaf).__name__}"
    )
