"""The short way into a program that tapes record: calls of the latest form, and no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.levels import state
from ..._core.record import Expired, Node, attach, attach_all
from .compiled import wrapped
from .entry import Code
from .gradient import Gradient
from .signature import Call


class Recorded:
    """Calls of one program, of whose inputs all tapes watch those in `wanted` and no others.

    Under one tape the residuals are kept, and the sweep is a program as well. Under several the
    sweep will be recorded, by all but the innermost: it is a call of the pullback, which is a
    function like any other. What it cannot serve, it leaves to `Traced`, which does the same in
    general.
    """

    def __init__(self, gradient: Gradient, single: bool):
        self.gradient = gradient
        self.program = gradient.program
        self.upstream = [i for i, flag in enumerate(gradient.differentiable) if flag]
        self.single = single
        if single:
            self.parts = gradient.parts
            connected = zip(gradient.places, self.parts.connected, strict=True)
            self.places = [place for place, flag in connected if flag]

    @staticmethod
    def serves(gradient: Gradient, single: bool) -> bool:
        """Whether nothing is assigned or drawn, nor read when the gradient is asked for."""
        program = gradient.program
        if program.assigned or program.draws:
            return False
        if not single:
            return True
        parts = gradient.parts
        known = {id(variable) for variable in program.reads}
        return (
            parts.draws == parts.late_draws == 0
            and not (parts.late_reads or parts.late_assigned)
            and all(id(variable) in known for variable in parts.reads)
        )

    def entry(self, call: Call, pack: Callable | None) -> Callable[[Any, tuple], Any]:
        """Generate ``enter(frame, args)``: the result, or None for a call of another form."""
        return _Code(self, call, pack).function()

    def pull(self, node: Node, saved: tuple, dys: Sequence) -> Sequence:
        """The gradient of each input of the program."""
        _, leaves, residuals, reads = saved
        if residuals is None or state.frame is not None:
            program = self.program
            snapshot = {
                id(variable): tensor._data
                for variable, tensor in zip(program.reads, reads, strict=True)
            }
            inputs = [*leaves, *program.captures, *reads]
            return self.gradient.pull((inputs, len(leaves), residuals, [], snapshot), dys)
        results = self.parts.backward_run([*residuals, *[dys[i]._data for i in self.upstream]])
        late = Expired(_tapes(node))  # as any operation on what tapes have recorded
        gradients: list[Any] = [None] * len(node.inputs)
        for place, array in zip(self.places, results, strict=True):
            gradients[place] = gradient = wrapped(array)
            gradient._rec = late
        return gradients


def _tapes(node: Node) -> frozenset:
    """The tapes that know of an operand."""
    group = node.group
    for operand in node.inputs:
        if operand is not None and operand.group is not group:
            group = group | operand.group
    return group


def _rule(node: Node, dy: Any) -> Sequence:
    saved = node.saved
    return saved[0].pull(node, saved, dy if type(dy) is list else [dy])


class _Code(Code):
    """The source of an entry for calls that tapes record."""

    def __init__(self, recorded: Recorded, call: Call, pack: Any):
        super().__init__(call, recorded.program, pack)
        self.recorded = recorded
        self.wanted = recorded.gradient.wanted
        self.nodes: list[str] = []
        self.names |= {"attach": attach, "attach_all": attach_all, "rule": _rule, "self": recorded}

    def _number(self, i: int) -> None:
        super()._number(i)
        self.nodes.append("None")

    def record(self, tensor: str) -> None:
        """All tapes watch it, or none does."""
        if not self.wanted[len(self.nodes)]:
            super().record(tensor)
            self.nodes.append("None")
            return
        name = f"n{len(self.nodes)}"
        self.nodes.append(name)
        self.checks.append(f"{name} = {tensor}._rec")
        self._unless(f"{name} is not None and {name}.next is None")
        self._unless(f"{name}.group is group or frame.active({name}.group) is group")

    def function(self) -> Callable:
        program, recorded = self.program, self.recorded
        self.checks.append("group = frame.alone")
        self._unless("group and frame.level is None and not frame.natural")
        self.inputs()
        for i, variable in enumerate(program.reads):
            self.names[f"variable{i}"] = variable
            self.checks.append(f"v{i} = variable{i}._read()")
            self.record(f"v{i}")
            self.arrays.append(f"v{i}._data")
        self.names["whole"] = program.outputs
        lines = self._single() if recorded.single else ["if len(group) == 1: return None"]
        whole = [f"r = whole.run(({_tuple(self.arrays)}))", "kept = None"]
        if recorded.single:
            whole = ["else:", *[f" {line}" for line in whole]]
        return self.compiled("frame, args", [*self.checks, *lines, *whole, *self._recorded()])

    def _single(self) -> list[str]:
        """Under one tape: with residuals."""
        parts, arrays = self.recorded.gradient.parts, list(self.arrays)
        del arrays[len(self.leaves) :]
        for i, tensor in enumerate(parts.captures):
            self.names[f"kept{i}"] = tensor._data
            arrays.append(f"kept{i}")
        places = {id(variable): i for i, variable in enumerate(self.program.reads)}
        arrays += [f"v{places[id(variable)]}._data" for variable in parts.reads]
        self.names["forward"] = parts.forward_run
        return [
            "if len(group) == 1:",
            f" r = forward(({_tuple(arrays)}))",
            f" kept = r[{parts.kept}:]",
        ]

    def _recorded(self) -> list[str]:
        reads = _tuple([f"v{i}" for i in range(len(self.program.reads))])
        lines = self.tensors()
        lines.append(f"saved = (self, ({_tuple(self.leaves)}), kept, ({reads}))")
        nodes = f"({_tuple(self.nodes)})"
        if self.program.count > 1:
            outputs = ", ".join(f"t{i}" for i in range(self.program.count))
            lines.append(f"attach_all(group, {nodes}, rule, saved, [{outputs}])")
        elif self.recorded.upstream:
            lines.append(f"attach(t0, group, {nodes}, rule, saved)")
        return [*lines, self.result()]


def _tuple(names: Sequence[str]) -> str:
    return "".join(f"{name}, " for name in names)
