"""Watching a pass: a level below all others, which sees what is really computed.

Tapes, accumulators and batches are above it and work as always, so it meets the operations that
are left of them, and the sweep tells it which rule runs. What an operation is part of, and where
the user wrote it, stands in Python's own stack. Nothing of this is there while nobody watches.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .._core import levels
from .._core.levels import Level, Node, Token, find, next_serial, stack, state
from .._core.primitive import Primitive, _process, apply
from .._core.recording import part
from .._core.tensor import Tensor
from .._function.tracing.trace import Trace as FunctionTrace
from .._reverse.sweep import sweep, track
from .._rules.calls import Call, settle
from .._transforms.forward import ForwardAccumulator, push_forward
from .._transforms.transposition import Transposition, transposed
from ..errors import is_ours

Line = tuple[str, int]

_SWEEP = sweep.__code__
_PUSH = push_forward.__code__
_TRANSPOSED, _CUSTOM = transposed.__code__, ForwardAccumulator.custom_call.__code__
_TRANSPOSING = Transposition.__call__.__code__
_ENTRIES = (_process.__code__, settle.__code__)  # where a level is handed what it is to do


class Place(NamedTuple):
    """Where the program is."""

    line: Line  # the innermost line of the user's
    asked: Line | None  # that which asked for the innermost sweep
    adding: bool  # whether the sweep itself computes, between rules
    tangents: int  # how many accumulators' tangents are being computed, one inside the other
    transposing: bool
    tokens: frozenset[Any] | None  # of the tapes that can see a tangent; None for all else


def place() -> Place:
    """Where the program is, by its stack."""
    line = asked = None
    adding = transposing = False
    sweeps = tangents = 0
    frame, entered = sys._getframe(1), None
    while frame is not None:
        code = frame.f_code
        if code in _ENTRIES:
            entered = entered if tangents else frame
        elif not is_ours(code.co_filename):
            here = code.co_filename, frame.f_lineno
            line = line or here
            if sweeps and asked is None:
                asked = here
        elif code is _SWEEP:
            sweeps += 1
            adding = adding or line is None
        elif code is _PUSH:
            tangents += 1
        elif code is _TRANSPOSED:
            back = frame.f_back
            tangents += back is not None and back.f_code is _CUSTOM
        elif code is _TRANSPOSING:
            transposing = True
        frame = frame.f_back
    tokens = None
    if tangents and entered is not None:
        tokens = frozenset(stack(entered.f_locals["frame"]))
    return Place(line or ("<unknown>", 0), asked, adding, tangents, transposing, tokens)


class Running(NamedTuple):
    """A rule that runs."""

    name: str
    order: int
    recorded: Line | None  # where the user wrote the operation that it is the rule of
    tangents: int


class Site(NamedTuple):
    """What is the same each time a line of the program runs again.

    `kind` is "operation", "call" (of a custom gradient) or "rule" (of one); `way` "forward",
    "backward" or "tangent"; `order` counts the derivatives taken; `rule` is the rule it is part
    of, or "" outside of rules; `inputs` and `outputs` are texts of dtypes and shapes; `line` is
    the user's, `recorded` that of the operation which the rule belongs to, `asked` that which
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


class Watcher(Level):
    """The level of one watch. A subclass says what it does with what it `sees`.

    Of what was seen longer ago than `remembered` operations, lines and orders are forgotten.
    """

    remembered = 100_000

    def __init__(self) -> None:
        self._serials: list[int] = []  # of what was seen; with its order, line and tapes
        self._orders: list[tuple[int, Line, frozenset | None]] = []
        self._reached: dict[int, tuple[int, int]] = {}  # by serial: in which sweep, which order
        self._sweep = 0
        self._running: list[Running] = []
        self._latest: Running | None = None

    def sees(self, site: Callable[[], Site], inputs: Sequence, outputs: Sequence, seconds: Any):
        """Something was computed. `seconds` is None for what is made of other operations."""
        raise TypeError(f"{type(self).__name__} does not define sees()")

    # Entering and leaving --------------------------------------------------------------------

    def __enter__(self) -> Any:
        found = stack(state.frame)
        if self in found:
            raise ValueError(f"{self._name()} is active already: make another one")
        if any(isinstance(level, FunctionTrace) for level in found):
            raise ValueError(
                f"{self._name()} inside a function that is being traced: there are no values "
                "yet. Enter it around the call, where the function then runs operation by operation"
            )
        track()
        levels.insert(self, len(found))
        state.run_rule = _run_rule
        return self

    def __exit__(self, *exception: Any) -> None:
        if self not in stack(state.frame):
            raise ValueError(
                f"{self._name()} is not active in this thread: leave it in the thread, and inside "
                "the contexts, where it was entered"
            )
        levels.remove(self)
        if not any(isinstance(level, Watcher) for level in stack(state.frame)):
            state.run_rule = None

    def _name(self) -> str:
        return f"debugging.{type(self).__name__}"

    # The level -------------------------------------------------------------------------------

    def process(self, primitive: Primitive, inputs: tuple, params: dict) -> Any:
        """Carry out an operation."""
        serial = next_serial()
        start = perf_counter()
        out = apply(primitive, inputs, params)
        seconds = perf_counter() - start
        outs = out if isinstance(out, list) else [out]
        _unmark(outs)
        self._seen("operation", primitive.name, inputs, outs, seconds, serial)
        return out

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        """The outputs of a custom gradient anew."""
        serial = next_serial()
        results = settle(state.frame, call, inputs, outputs)
        _unmark(results)
        if type(call) is Call or call.along is None:
            self._seen("call", call.definition.name, inputs, results, None, serial)
        return results

    def run(self, call: Callable[[Node, Any], Any], node: Node, dy: Any) -> Sequence:
        """Run the rule of a node in a sweep."""
        where = place()
        known, recorded = self._of(node)
        token = max(node.group, key=attrgetter("sweep"))
        if token.sweep != self._sweep and not self._running:
            self._sweep = token.sweep
            self._reached.clear()
        sweep, order = self._reached.pop(node.serial, (0, 0))
        order = max(known + (not where.transposing), order * (sweep == token.sweep))
        self._reach(node, token, order)
        if self._running:
            order = self._running[0].order
        definition = getattr(node.saved, "definition", None)
        name = _rule_name(node) if definition is None else definition.name
        self._running.append(Running(name, order, recorded, where.tangents))
        serial, start = next_serial(), perf_counter()
        try:
            found = list(call(node, dy))
            if definition is not None and getattr(node.saved, "along", None) is None:
                seconds = perf_counter() - start
                gradients = [_whole(one) for one in found if isinstance(one, Tensor)]
                dys = list(map(_whole, dy if isinstance(dy, list) else [dy]))
                self._seen("rule", name, dys, gradients, seconds, serial)
        finally:
            self._latest = self._running.pop()
        return found

    def _reach(self, node: Node, token: Token, order: int) -> None:
        """The rules of a node's operands will be of the order of its own, at least."""
        for one in node.inputs:
            operand = find(one, token)
            if operand is not None and operand.rule is part:
                operand = operand.inputs[0]
            if operand is not None and operand.rule is not None:
                sweep, known = self._reached.get(operand.serial, (0, 0))
                known = max(known, order) if sweep == token.sweep else order
                self._reached[operand.serial] = token.sweep, known

    def _of(self, node: Node) -> tuple[int, Line | None]:
        """The order and the user's line of what a node was recorded for."""
        for i in range(bisect_right(self._serials, node.serial) - 1, -1, -1):
            order, line, tokens = self._orders[i]
            if tokens is None or not tokens.isdisjoint(node.group):
                return order, line
        return 0, None

    def _seen(self, kind: str, name: str, ins: Sequence, outs: Sequence, took: Any, serial: int):
        inputs = [one for one in ins if one is not None]
        where = place()
        running = self._running[-1] if self._running else None
        way, order = "forward", where.tangents
        if self._running:
            outermost = self._running[0]
            way, order = "backward", outermost.order + where.tangents - outermost.tangents
        elif where.adding and self._latest is not None:
            way, order, running = "backward", self._latest.order, None
        if where.tangents or where.transposing:
            way = "tangent"
        if kind != "rule":  # nodes are of what the rule computes
            self._serials.append(serial)
            self._orders.append((order, where.line, where.tokens))
            if len(self._serials) > 2 * self.remembered:
                del self._serials[: self.remembered], self._orders[: self.remembered]

        def site() -> Site:
            return Site(
                kind,
                name,
                way,
                order,
                running.name if running else "",
                tuple(map(_type, inputs)),
                tuple(map(_type, outs)),
                where.line,
                running.recorded if running else None,
                where.asked,
            )

        self.sees(site, inputs, outs, took)


def _run_rule(node: Node, dy: Any) -> Any:
    """Run the rule of a node for all watchers of this thread."""
    call: Any = node.rule
    for level in stack(state.frame):
        if isinstance(level, Watcher):
            call = partial(level.run, call)
    return call(node, dy)


def _unmark(tensors: Sequence[Tensor]) -> None:
    """Below all tapes there is nobody to record: the levels above see to that."""
    if state.frame is None:
        for tensor in tensors:
            tensor._rec = None


def _whole(tensor: Any) -> Tensor:
    """All examples of a batch together."""
    while hasattr(tensor, "physical"):
        tensor = tensor.physical
    return tensor


def _rule_name(node: Node) -> str:
    """The name of the operation that a node's rule belongs to."""
    code = getattr(node.rule, "__code__", None)
    file = "" if code is None else code.co_filename
    if file.startswith("<rule of "):
        return file.removeprefix("<rule of ").removesuffix(">")
    name = getattr(node.saved, "name", None)
    return name if isinstance(name, str) else getattr(node.rule, "__name__", "?").strip("_")


def _type(tensor: Any) -> str:
    data = tensor._data
    return _text(data.dtype, tuple(data.shape))


@lru_cache(4096)
def _text(dtype: np.dtype, shape: tuple[int, ...]) -> str:
    return f"{dtype}({', '.join(map(str, shape))})"


def values(tensor: Any) -> np.ndarray | None:
    """The values of a tensor of floats, None for any other."""
    data = tensor._data
    return data if isinstance(data, np.ndarray) and data.dtype.kind in "fc" else None
