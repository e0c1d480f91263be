"""Calls of a function with one signature: the program, its gradients for tapes, and entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import nest
from ..._core.conversion import is_tensor
from ..._core.devices import CPU, home
from ..._core.levels import state
from ..._core.record import find, find_operands, forget_dead, mark_expired
from ..._core.tensor import Tensor
from ..._reverse.variable import assigning, records_assignments
from ..._rules.rebinding import rebind_outputs
from .compiled import OutputMark, Traced
from .entry import EntryWriter, takes
from .gradient import Gradient
from .signature import FunctionCall


class Specialization(Traced):
    """A function for one signature: its program, and the gradients of the program."""

    def __init__(self, *parts: Any):
        super().__init__(*parts)
        self._enter: Callable[[tuple], Any] | None = None
        self._gradients: dict[tuple, Gradient] = {}
        self.latest: tuple[Gradient, bool] | None = None  # of the latest recorded call
        self._recorded_entries: dict[tuple[Gradient, bool], Callable[[Any, tuple], Any] | None] = {}

    def enter(self, call: FunctionCall) -> Callable[[tuple], Any] | None:
        """Return the entry for calls of this form, if the program has outputs."""
        if self._enter is None and self.program.count and takes(call):
            self._enter = EntryWriter(call, self).unrecorded()
        return self._enter

    def enter_recorded(self, call: FunctionCall) -> Callable[[Any, tuple], Any] | None:
        """Return the entry for calls that tapes record in the same way as the latest call."""
        if self.latest is None or not takes(call) or self._moves_some(call):
            return None
        if self.latest not in self._recorded_entries:
            (gradient, single), entry = self.latest, None
            if gradient.has_entries(single):
                entry = EntryWriter(call, self, gradient).recorded(single)
            self._recorded_entries[gradient, single] = entry
        return self._recorded_entries[self.latest]

    def _moves_some(self, call: FunctionCall) -> bool:
        """Return whether scalars on the CPU are moved to the GPU, as recorded operations."""
        if self.program.device == CPU:
            return False
        inputs = (*call.leaves, *self.program.captures, *self.program.reads)
        return any(is_tensor(item) and home(item) == CPU for item in inputs)

    def call(self, call: FunctionCall) -> Any:
        """Run the program, for all tapes of this thread.

        If assignments are recorded, the Python function runs instead, so that its assignments are,
        too.
        """
        if not self.program.assigned:
            return self._call(call)
        if records_assignments():
            return self.python(*call.args, **call.kwargs)
        with assigning:
            return self._call(call)

    def _call(self, call: FunctionCall) -> Any:
        program, frame = self.program, state.frame
        for item in (*call.leaves, *program.captures, *program.reads):
            if is_tensor(item) and item._rec is not None:
                forget_dead(item)  # entries are for tensors without records
        if program.draws and state.draws is not None:  # earlier random numbers are replayed
            return self.python(*call.args, **call.kwargs)
        inputs = program.inputs(call.leaves)
        tensors = [item for item in inputs if isinstance(item, Tensor)]
        if frame is not None:
            group, nodes, mask = find_operands(frame, tensors)
            if mask and program.count:
                if not _alike(group, tensors):  # each tape gets its own rules
                    return self.python(*call.args, **call.kwargs)
                outputs = self._record_call(frame, inputs, nodes, len(call.leaves), group)
                return self.pack_outputs(outputs)
        outputs = program.run(inputs)
        if any(tensor._rec is not None for tensor in tensors):
            mark_expired(tensors, outputs)
        return self.pack_outputs(outputs)

    def _record_call(self, frame: Any, inputs: list, nodes: tuple, count: int, group: Any) -> list:
        remaining = iter(nodes)
        wanted = tuple(
            [isinstance(item, Tensor) and next(remaining) is not None for item in inputs]
        )
        gradient = self._gradients.get(wanted)
        if gradient is None:
            gradient = self._gradients.setdefault(wanted, Gradient(self, wanted))
        outputs, transformed = gradient.run(inputs, count, len(group) > 1)
        self.latest = gradient, len(group) == 1
        of_tensors = [item if isinstance(item, Tensor) else None for item in inputs]
        return rebind_outputs(frame, transformed, of_tensors, outputs)

    def pack_outputs(self, outputs: Sequence[Tensor]) -> Any:
        """Return the outputs in the structure of the function's result."""
        if self.structure is OutputMark:
            return outputs[0]
        remaining, flat = iter(outputs), nest.flatten(self.structure)
        leaves = [next(remaining) if leaf is OutputMark else leaf for leaf in flat]
        return nest.pack_sequence_as(self.structure, leaves)


def _alike(group: Any, tensors: Sequence[Tensor]) -> bool:
    """Return whether all tapes of `group` watch the same tensors."""
    for tensor in tensors:
        record = tensor._rec
        if record is None or record.group is group:
            continue
        watched = [find(record, token) is not None for token in group]
        if any(watched) != all(watched):
            return False
    return True
