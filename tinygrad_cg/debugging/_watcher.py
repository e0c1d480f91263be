"""A level below all others, which sees all operations.

Tapes, accumulators and batches are above it and work as usual, so it sees the operations that they
run. The sweep tells it which rule runs, and forward mode which tangents are computed. Without a
watcher none of this costs anything.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .._core import devices, levels
from .._core.kinds import is_inexact
from .._core.levels import Level, next_serial, stack, state
from .._core.primitive import Primitive, apply, label_of
from .._core.record import Node, find, operation_of_rule, part
from .._core.tensor import Tensor
from .._reverse.observer import Observer, Sweep, order_of
from .._rules.calls import Call
from .._rules.rebinding import rebind_outputs
from ..errors import users_line

Line = tuple[str, int]


class Running(NamedTuple):
    name: str
    order: int
    recorded: Line | None  # the user's line of the operation that the rule belongs to
    tangents: int


class CallSite(NamedTuple):
    """The facts that are the same each time a line of the program runs.

    `kind` is "operation", "call" (of a custom gradient) or "rule" (of one); `way` is "forward",
    "backward" or "tangent"; `order` counts the derivatives taken; `rule` is the rule that it is
    part of, or ""; `inputs` and `outputs` are texts of dtypes and shapes; `line` is the user's
    line, `recorded` the line of the operation that the rule belongs to, and `asked` the line that
    asked for the gradient.
    """

    kind: str
    name: str
    way: str
    order: int
    rule: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    line: Line
    recorded: Line | None
    asked: Line | None


class Watcher(Level, Observer):
    """The level that sees operations, calls and rules.

    Subclasses define `sees`. The lines and orders of the last `remembered` operations are kept.
    """

    remembered = 100_000
    label = "debugging"  # the function that made it, for messages

    def __init__(self) -> None:
        # of each call its serial, order and line, and where the tangents around it ended
        self._calls: list[tuple[int, int, Line, float]] = []
        self._reached: dict[int, int] = {}  # by serial: which order, in the latest sweep
        self._sweep: Sweep | None = None
        self._running: list[Running] = []
        self._latest: Running | None = None

    def sees(self, site: Callable[[], CallSite], inputs: Sequence, outputs: Sequence, seconds: Any):
        """Note an operation, call or rule; `seconds` is None for a call."""
        raise TypeError(f"{type(self).__name__} does not define sees()")

    # Entering and leaving --------------------------------------------------------------------

    def __enter__(self) -> Any:
        active = stack(state.frame)
        if self in active:
            raise ValueError(f"{self.label} is already active: create another one")
        if any(level.is_abstract for level in active):
            raise ValueError(
                f"{self.label} cannot be entered while a function is traced, since tensors have no "
                "values yet. Enter it around the call: the function then runs operation by "
                "operation"
            )
        levels.insert(self, len(active))
        state.observers = (*state.observers, self)
        return self

    def __exit__(self, *exception: Any) -> None:
        if self not in stack(state.frame):
            raise ValueError(
                f"{self.label} is not active in this thread: leave it in the same thread and "
                "inside the same contexts"
            )
        levels.remove(self)
        state.observers = tuple([observer for observer in state.observers if observer is not self])

    # The level -------------------------------------------------------------------------------

    def process(self, primitive: Primitive, inputs: tuple, params: dict) -> Any:
        serial = next_serial()
        start = perf_counter()
        out = apply(primitive, inputs, params)
        seconds = perf_counter() - start
        outs = out if isinstance(out, list) else [out]
        _unmark(outs)
        self._seen("operation", primitive.label, inputs, outs, seconds, serial)
        return out

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        serial = next_serial()
        results = rebind_outputs(state.frame, call, inputs, outputs)
        _unmark(results)
        if type(call) is Call or call.jvp_of_input is None:
            self._seen("call", call.definition.name, inputs, results, None, serial)
        return results

    # The observer ----------------------------------------------------------------------------

    def run_rule(self, call: Callable[[Node, Any], Any], node: Node, dy: Any) -> Sequence:
        base_order, recorded = self._origin(node)
        # a sweep inside a rule is part of the rule
        order = self._running[0].order if self._running else self._reach(node, base_order)
        definition = getattr(node.saved, "definition", None)
        name = _rule_name(node) if definition is None else definition.name
        self._running.append(Running(name, order, recorded, state.tangents))
        serial, start = next_serial(), perf_counter()
        try:
            results = list(call(node, dy))
            if definition is not None and getattr(node.saved, "jvp", None) is None:
                seconds = perf_counter() - start
                gradients = [_physical(result) for result in results if isinstance(result, Tensor)]
                dys = list(map(_physical, dy if isinstance(dy, list) else [dy]))
                self._seen("rule", name, dys, gradients, seconds, serial)
        finally:
            self._latest = self._running.pop()
        return results

    def _reach(self, node: Node, base_order: int) -> int:
        """Return the order of a node's rule, and note it for the rules of its operands."""
        sweep: Any = state.sweep
        if sweep is not self._sweep:
            self._sweep = sweep
            self._reached.clear()
        order = max(base_order + (not sweep.transposes), self._reached.pop(node.serial, 0))
        for source in node.inputs:
            operand = find(source, sweep.token)
            if operand is not None and operand.rule is part:
                operand = operand.inputs[0]
            if operand is not None and operand.rule is not None:
                self._reached[operand.serial] = max(self._reached.get(operand.serial, 0), order)
        return order

    def end_tangents(self, began: int) -> None:
        """Mark what was seen since `began`: later nodes were not recorded for it."""
        ended = next_serial()
        for i in range(bisect_right(self._calls, (began, inf)), len(self._calls)):
            serial, order, line, end = self._calls[i]
            self._calls[i] = serial, order, line, min(end, ended)

    def _origin(self, node: Node) -> tuple[int, Line | None]:
        """Return the order, and the user's line, of the operation that recorded a node."""
        for i in range(bisect_right(self._calls, (node.serial, inf)) - 1, -1, -1):
            _, order, line, end = self._calls[i]
            if end > node.serial:
                return order, line
        return order_of(node) or 0, None

    def _seen(self, kind: str, name: str, ins: Sequence, outs: Sequence, took: Any, serial: int):
        inputs = [tensor for tensor in ins if tensor is not None]
        line = users_line()[:2]
        sweep = state.sweep
        asked = None if sweep is None else sweep.asked
        running = self._running[-1] if self._running else None
        way, order = "forward", state.tangents
        if self._running:
            outermost = self._running[0]
            way, order = "backward", order + outermost.order - outermost.tangents
        elif asked is not None and self._latest is not None:  # between rules
            way, order = "backward", self._latest.order
        if state.tangents or (sweep is not None and sweep.transposes):
            way = "tangent"
        if kind != "rule":  # nodes are of what the rule computes
            self._calls.append((serial, order, line, inf))
            if len(self._calls) > 2 * self.remembered:
                del self._calls[: self.remembered]

        def site() -> CallSite:
            rule, recorded = (running.name, running.recorded) if running else ("", None)
            ins, results = tuple(map(_type, inputs)), tuple(map(_type, outs))
            return CallSite(kind, name, way, order, rule, ins, results, line, recorded, asked)

        self.sees(site, inputs, outs, took)


def _unmark(tensors: Sequence[Tensor]) -> None:
    """Drop records if no level is left; levels above make their own."""
    if state.frame is None:
        for tensor in tensors:
            tensor._rec = None


def _physical(tensor: Any) -> Tensor:
    """Return the tensor of all examples of a batch."""
    while hasattr(tensor, "physical"):
        tensor = tensor.physical
    return tensor


def _rule_name(node: Node) -> str:
    """Return the name of the operation that a node's rule belongs to."""
    name = operation_of_rule(node.rule) or getattr(node.saved, "name", None)
    return (
        label_of(name) if isinstance(name, str) else getattr(node.rule, "__name__", "?").strip("_")
    )


def _type(tensor: Any) -> str:
    return _text(tensor._data.dtype, tuple(tensor._data.shape))


@lru_cache(4096)
def _text(dtype: np.dtype, shape: tuple[int, ...]) -> str:
    return f"{dtype}({', '.join(map(str, shape))})"


def values(tensor: Any) -> Any | None:
    """Return the values of a floating tensor, on its device; None for other tensors."""
    data = tensor._data
    is_array = isinstance(data, (np.ndarray, *devices.array_types))
    return data if is_array and is_inexact(data.dtype) else None
