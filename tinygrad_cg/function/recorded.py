"""The short way into a program that one tape records: tensors as the last time, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..convert import is_differentiable
from ..levels import Frame, Late, Node, state
from ..recording import hang_parts
from ..tensor import Tensor
from .compiled import wrapped
from .gradient import Gradient


class Recorded:
    """Calls of one program with tensors, of which one tape alone watches those in `wanted`.

    What it cannot serve, it leaves to `Traced`, which does the same in general.
    """

    def __init__(self, gradient: Gradient, pack: Any):
        parts = gradient.parts
        self.gradient = gradient
        self.pack = pack
        self.forward, self.backward = parts.forward_run, parts.backward_run
        self.count, self.kept = parts.count, parts.kept
        self.avals = [aval for aval, _ in gradient.traced.avals]
        flags = gradient.wanted
        self.checks = [(*aval, flag) for aval, flag in zip(self.avals, flags, strict=True)]
        self.places = [
            place for place, flag in zip(gradient.places, parts.connected, strict=True) if flag
        ]
        self.upstream = [i for i, flag in enumerate(gradient.differentiable) if flag]

    @staticmethod
    def serves(gradient: Gradient) -> bool:
        """Whether the program is one of tensors alone, on both ways."""
        program, parts = gradient.program, gradient.parts
        tensors = all(weak is None for _, weak in gradient.traced.avals)
        others = (program.captures, program.reads, program.assigned, program.draws)
        late = (parts.captures, parts.reads, parts.late_reads, parts.late_assigned)
        return (
            tensors and not any(others) and not any(late) and parts.draws == parts.late_draws == 0
        )

    def enter(self, frame: Frame, args: tuple) -> Any:
        """The result; None where the call is not of this form."""
        alone = frame.alone
        if alone is None or frame.level is not None or len(alone) != 1:
            return None
        if len(args) != len(self.checks):
            return None
        arrays, nodes = [], []
        for arg, (shape, dtype, flag) in zip(args, self.checks, strict=True):
            if type(arg) is not Tensor:
                return None
            data, record = arg._data, arg._rec
            if flag:
                if record is None or record.group is not alone or record.next is not None:
                    return None
            elif record is not None:
                return None
            if data.shape != shape or data.dtype is not dtype:
                return None
            arrays.append(data)
            nodes.append(record)
        results = self.forward(arrays)
        saved = (self, args, results[self.kept :])
        outputs = list(map(wrapped, results[: self.count]))
        if self.count == 1:
            (out,) = outputs
            data = out._data
            if is_differentiable(data.dtype):
                out._rec = Node(alone, tuple(nodes), _rule, saved, data.shape, data.dtype)
        else:
            hang_parts(alone, tuple(nodes), _rule, saved, outputs)
        return outputs[0] if self.pack is None else self.pack(outputs)

    def pull(self, node: Node, args: tuple, saved: list, dys: Sequence) -> Sequence:
        """The gradient of each argument."""
        if state.frame is not None:
            return self.gradient.pull((args, len(args), saved, [], {}), dys)
        results = self.backward([*saved, *[dys[i]._data for i in self.upstream]])
        late = Late(node.group)  # as any operation on what a tape has recorded
        gradients: list[Any] = [None] * len(args)
        for place, array in zip(self.places, results, strict=True):
            gradients[place] = gradient = wrapped(array)
            gradient._rec = late
        return gradients


def _rule(node: Node, dy: Any) -> Sequence:
    recorded, args, saved = node.saved
    return recorded.pull(node, args, saved, dy if type(dy) is list else [dy])
