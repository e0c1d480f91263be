"""One signature of a function: its program, its gradients, and calls of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import nest
from ..._core.conversion import FLOAT32, FLOAT64, convert, is_tensor, is_weak
from ..._core.levels import state
from ..._core.record import find, find_operands, forget_dead, mark_expired
from ..._core.tensor import Aval, Tensor
from ..._reverse.variable import assigning
from ..._rules.calls import settle
from .compiled import Build, Program
from .entry import entry, takes
from .gradient import Gradient
from .number import TraceNumber
from .recorded import Recorded
from .signature import Call
from .trace import Trace


class Traced:
    """What a function does for one signature: its program, and the gradients of that."""

    def __init__(
        self, python: Callable[..., Any], name: str, derive: Callable, call: Call, build: Build
    ):
        self.build = build
        self.python = python
        self.name = name
        self.derive = derive  # makes a compiled function that belongs to this one: its gradient
        self.call_made_of = call.without_leaves()
        self.key = call.key
        self.avals = [_leaf_aval(leaf) for leaf in call.leaves]
        self.program: Program
        self.structure: Any = None
        self._enter: Callable[[tuple], Any] | None = None
        self._gradients: dict[tuple, Gradient] = {}
        self.latest: tuple[Gradient, bool] | None = None  # of the latest call that was recorded
        self._recorded_entries: dict[tuple[Gradient, bool], Callable[[Any, tuple], Any] | None] = {}

    # Tracing ---------------------------------------------------------------------------------

    def arguments(self, trace: Trace) -> list:
        """The leaves of the call as a trace has them."""
        made = []
        for aval, weak in self.avals:
            tensor = trace.argument(aval)
            made.append(tensor if weak is None else TraceNumber(tensor.value, trace, weak))
        return made

    def run(self, leaves: Sequence) -> list[Tensor]:
        """Call the Python function with other leaves: its outputs as tensors, flat."""
        args, kwargs = self.call_made_of.filled(leaves)
        result = self.python(*args, **kwargs)
        return [convert(leaf) for leaf in nest.flatten(result) if _is_output(self.name, leaf)]

    def trace(self, may_create: bool) -> bool:
        """Make the program; whether it can be used: it made no Variables."""
        trace = Trace(self.name, may_create)
        with trace.active():
            args, kwargs = self.call_made_of.filled(self.arguments(trace))
            result = self.python(*args, **kwargs)
            flat = [_Place if _is_output(self.name, one) else one for one in nest.flatten(result)]
            self.structure = nest.pack_sequence_as(result, flat)
            outputs = [
                trace.value(convert(leaf))
                for leaf, place in zip(nest.flatten(result), flat, strict=True)
                if place is _Place
            ]
            assigned = trace.assignments()
            del args, kwargs, result
        if trace.created:
            return False
        self.program = Program(trace, outputs, assigned, self.build)
        return True

    # Calling ---------------------------------------------------------------------------------

    def enter(self, call: Call) -> Callable[[tuple], Any] | None:
        """The shortest way, for calls of this form, if the program returns something."""
        if self._enter is None and self.program.count and takes(call):
            pack = None if self.structure is _Place else self._pack()
            self._enter = entry(call, self.program, pack)
        return self._enter

    def enter_recorded(self, call: Call) -> Callable[[Any, tuple], Any] | None:
        """The short way for calls that tapes record as they did the latest."""
        key = self.latest
        if key is None or not takes(call):
            return None
        if key not in self._recorded_entries:
            pack = None if self.structure is _Place else self._pack()
            made = Recorded(*key).entry(call, pack) if Recorded.serves(*key) else None
            self._recorded_entries[key] = made
        return self._recorded_entries[key]

    def call(self, call: Call) -> Any:
        """Run the program, for all tapes of this thread."""
        program = self.program
        if program.assigned:
            with assigning:
                return self._call(call)
        return self._call(call)

    def _call(self, call: Call) -> Any:
        program, frame = self.program, state.frame
        for one in (*call.leaves, *program.captures, *program.reads):
            if is_tensor(one) and one._rec is not None:
                forget_dead(one)  # the short ways are for tensors without records
        if program.draws and state.draws is not None:  # numbers that are drawn again
            return self.python(*call.args, **call.kwargs)
        inputs = program.inputs(call.leaves)
        tensors = [one for one in inputs if isinstance(one, Tensor)]
        if frame is not None:
            group, nodes, mask = find_operands(frame, tensors)
            if mask and program.count:
                if not _alike(group, tensors):  # to each tape its own rules
                    return self.python(*call.args, **call.kwargs)
                return self.packed(self._recorded(frame, inputs, nodes, len(call.leaves), group))
        outputs = program.run(inputs)
        if any(tensor._rec is not None for tensor in tensors):
            mark_expired(tensors, outputs)
        return self.packed(outputs)

    def _recorded(self, frame: Any, inputs: list, nodes: tuple, count: int, group: Any) -> list:
        remaining = iter(nodes)
        wanted = tuple([isinstance(one, Tensor) and next(remaining) is not None for one in inputs])
        gradient = self._gradients.get(wanted)
        if gradient is None:
            gradient = self._gradients.setdefault(wanted, Gradient(self, wanted))
        outputs, lifted = gradient.run(inputs, count, len(group) > 1)
        self.latest = gradient, len(group) == 1
        of_tensors = [one if isinstance(one, Tensor) else None for one in inputs]
        return settle(frame, lifted, of_tensors, outputs)

    def packed(self, outputs: Sequence[Tensor]) -> Any:
        """The outputs in the structure of the function's result."""
        structure = self.structure
        if structure is _Place:
            return outputs[0]
        remaining = iter(outputs)
        flat = [next(remaining) if one is _Place else one for one in nest.flatten(structure)]
        return nest.pack_sequence_as(structure, flat)

    def _pack(self) -> Callable[[list], Any]:
        """`packed`, or something simpler for the simplest structures."""
        kind = type(self.structure)
        if kind in (tuple, list) and all(one is _Place for one in self.structure):
            return kind
        return self.packed


class _Place:
    """Stands where an output is, in the structure of a result."""


def _leaf_aval(leaf: Any) -> tuple[Aval, np.dtype | None]:
    """The shape and dtype of an argument; for a float also the dtype of a tensor made of it."""
    if isinstance(leaf, Tensor):
        return Aval(tuple(leaf._data.shape), leaf._data.dtype), None
    return Aval((), FLOAT64), leaf.dtype if isinstance(leaf, np.floating) else FLOAT32


def _is_output(name: str, leaf: Any) -> bool:
    if is_tensor(leaf) or is_weak(leaf) or isinstance(leaf, np.ndarray):
        return True
    if leaf is None or isinstance(leaf, (str, bytes)):
        return False
    raise TypeError(
        f"{name}: functions must return tensors, numbers or None, nested as you like, to be "
        f"compiled; got {type(leaf).__name__}"
    )


def _alike(group: Any, tensors: Sequence[Tensor]) -> bool:
    """Whether all tapes of `group` watch the same ones of these tensors."""
    for tensor in tensors:
        record = tensor._rec
        if record is None or record.group is group:
            continue
        found = [find(record, token) is not None for token in group]
        if any(found) != all(found):
            return False
    return True
