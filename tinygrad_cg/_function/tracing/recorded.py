"""The short way into a program that tapes record: calls of the latest form, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.levels import state
from ..._core.record import Node, new_mark
from .compiled import wrap_array
from .gradient import Gradient


class Recorded:
    """Calls of one program, of whose inputs all tapes watch those in `wanted` and no others.

    Under one tape the residuals are kept, and the sweep is a program as well. Under more the sweep
    will be recorded, by all but the innermost: it is a call of the pullback, which is a function
    like any other. Calls that it cannot serve go to `Traced`, which does the same in general.
    """

    def __init__(self, gradient: Gradient, single: bool):
        self.gradient = gradient
        self.program = gradient.program
        self.upstream = [i for i, flag in enumerate(gradient.differentiable) if flag]
        self.single = single
        if single:
            self.parts = gradient.parts
            connected = zip(gradient.positions, self.parts.connected, strict=True)
            self.positions = [position for position, flag in connected if flag]

    @staticmethod
    def serves(gradient: Gradient, single: bool) -> bool:
        """Return whether nothing is assigned or drawn, nor read when the gradient is asked for."""
        program = gradient.program
        if program.assigned or program.draws:
            return False
        if not single:
            return True
        parts = gradient.parts
        known = {id(variable) for variable in program.reads}
        if parts.draws or parts.backward_draws or parts.backward_reads or parts.backward_assigned:
            return False
        return all(id(variable) in known for variable in parts.reads)

    def pull(self, node: Node, saved: tuple, dys: Sequence) -> Sequence:
        """Return the gradient of each input of the program."""
        _, leaves, residuals, reads = saved
        if residuals is None or state.frame is not None:
            program = self.program
            pairs = zip(program.reads, reads, strict=True)
            snapshot = {id(variable): tensor._data for variable, tensor in pairs}
            inputs = [*leaves, *program.captures, *reads]
            return self.gradient.pull((inputs, len(leaves), residuals, [], snapshot), dys)
        results = self.parts.backward_outputs.run(
            [*residuals, *[dys[i]._data for i in self.upstream]]
        )
        mark = new_mark((_tapes(node),))  # as any operation on what tapes have recorded
        gradients: list[Any] = [None] * len(node.inputs)
        for position, array in zip(self.positions, results, strict=True):
            gradients[position] = gradient = wrap_array(array)
            gradient._rec = mark
        return gradients


def _tapes(node: Node) -> frozenset:
    """Return the tapes that know of an operand."""
    group = node.group
    for operand in node.inputs:
        if operand is not None and operand.group is not group:
            group = group | operand.group
    return group
