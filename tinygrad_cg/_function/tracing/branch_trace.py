"""The trace of one branch of a choice. It finds the branch's operands."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.conversion import convert
from ..._core.devices import to_host
from ..._core.record import Node
from ..._core.tensor import Aval, Tensor, leaked_from_trace
from ..._ops.sampling import draw as draw_numbers
from ..._reverse.graph_mode import Graph as DefaultGraph
from ..._reverse.variable import Variable, VariableSlice
from ..._transforms.batching import BatchTensor
from ..graph.values import Value
from .outside_calls import OutsideCalls
from .trace import Build, FunctionTrace, TraceTensor, aval_of, literal, record_lost, thread_state


class BranchTrace(FunctionTrace):
    """The trace of one branch. Tensors from outside, whatever their level, become its operands.

    It can be entered again, to sweep what was recorded in it.
    """

    def __init__(self, name: str, calls: OutsideCalls, build: Build):
        super().__init__(name, False, calls, build)
        self.graph: DefaultGraph = DefaultGraph()
        self.captures: dict[int, tuple[Any, Value, Any]] = {}  # tensor, value, what is watched
        self.literals: dict[Value, Value] = {}  # values that nothing outside refers to
        self.has_drawn = False

    @property
    def tables(self) -> list[dict]:
        return [*super().tables, self.captures]

    def _run_outside(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a function in the state of the code that called the branch."""
        with thread_state(self.around):
            return function(*args)

    def draw(self, method: str, arguments: tuple) -> Any:
        """Return random numbers. They are drawn before a branch is chosen, for every branch."""
        self.has_drawn = True
        return self._run_outside(self.around["draws"] or draw_numbers, method, arguments)

    def value(self, tensor: Any) -> Value:
        """Return the graph value of a tensor; a tensor from outside becomes an operand."""
        if isinstance(tensor, VariableSlice):
            tensor = tensor.part
        if isinstance(tensor, TraceTensor):
            if tensor.level is self:
                return tensor.value
            if tensor.level.is_over:
                raise leaked_from_trace(tensor)
        elif type(tensor) is not BatchTensor:
            tensor = convert(tensor)
        return self._capture(tensor, tensor)

    def _capture(self, tensor: Any, watched: Any) -> Value:
        capture = self.captures.get(id(watched))
        if capture is None:
            value = self.argument(aval_of(tensor)).value
            capture = self.captures[id(watched)] = tensor, value, watched
        return capture[1]

    def outer(self) -> list[tuple[Tensor, Value]]:
        return [(tensor, value) for tensor, value, _ in self.captures.values()]

    def _input_of(self, variable: Variable) -> Value:
        """Return the operand of a Variable, which has its value where the branch is called."""
        if id(variable) in self.captures:
            return self.captures[id(variable)][1]
        return self._capture(self._run_outside(variable._read), variable)

    def record_kept(self, variable: Variable) -> None:
        """Refuse to keep a record that exists only if this branch is chosen."""
        raise ValueError(record_lost(f"a branch of `{self.name}`", variable))

    def variable_created(self, variable: Variable) -> None:
        """Refuse to create a Variable: only the chosen branch would create it."""
        raise ValueError(
            f"`{self.name}` creates a tf.Variable ({variable.name!r}) in a branch whose condition "
            "is a tensor: create Variables outside the branches"
        )

    def captured_tensors(self) -> list[tuple[Any, Value, Any]]:
        """Return the captured tensors that are operands, without the literals."""
        return [capture for capture in self.captures.values() if capture[1] not in self.literals]

    def find_literals(self, targets: Sequence[Tensor]) -> None:
        """Find the captured tensors that only the trace refers to: no tape can ask for their
        gradients.

        The trace and its records release these tensors for a moment. Tensors that are then deleted
        are literals, and are created again.
        """
        ours = {
            key: _Released(tensor)
            for key, (tensor, value, watched) in self.captures.items()
            if type(tensor) is Tensor and watched is tensor and value not in self.literals
            if not isinstance(tensor._data, Aval)
        }
        nodes = _nodes_behind(targets)
        for node in nodes:
            node.saved = _replace(node.saved, lambda item: ours.get(id(item), item))
        self.captures = {
            key: (ours[key], value, ours[key]) if key in ours else (tensor, value, watched)
            for key, (tensor, value, watched) in self.captures.items()
        }
        for released in ours.values():
            released.take_back()
        for node in nodes:
            node.saved = _replace(node.saved, _tensor_of)
        captures = {}
        for tensor, value, watched in self.captures.values():
            if type(tensor) is _Released and tensor.was_gone:
                self.literals[value] = literal(to_host(tensor.data))
            captures[id(_tensor_of(watched))] = _tensor_of(tensor), value, _tensor_of(watched)
        self.captures = captures


class _Released:
    """A stand-in for a tensor, used while nothing may refer to that tensor."""

    def __init__(self, tensor: Tensor):
        self.reference = weakref.ref(tensor)
        self.data, self.record = tensor._data, tensor._rec
        self.tensor: Any = None
        self.was_gone = False

    def take_back(self) -> None:
        """Refer to the tensor again, or to a new one if it was deleted."""
        self.tensor = self.reference()
        if self.tensor is None:
            self.was_gone, self.tensor = True, Tensor(self.data)
            self.tensor._rec = self.record


def _tensor_of(released: Any) -> Any:
    return released.tensor if type(released) is _Released else released


def _replace(saved: Any, change: Callable[[Any], Any]) -> Any:
    """Return the residuals of a node with `change` applied to each."""
    return tuple(map(change, saved)) if type(saved) is tuple else change(saved)


def _nodes_behind(targets: Sequence[Tensor]) -> list[Node]:
    """Return all nodes that can be reached from the records of `targets`."""
    pending, seen = [target._rec for target in targets], {}
    while pending:
        record = pending.pop()
        while record is not None and record not in seen:
            seen[record] = None
            if type(record) is Node:
                pending.extend(record.inputs)
            record = record.next
    return [record for record in seen if type(record) is Node]
