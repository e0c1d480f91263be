"""The fastest way into a compiled program: functions generated for one form of call.

An entry checks whether a call has the form that it was made for, and runs the program. For any
other call it returns None. It is a single function because calls of helpers would take longer than
the rest of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.texts import define

from ... import nest
from ..._core.conversion import FLOAT64
from ..._core.levels import state
from ..._core.record import Node, attach, attach_all
from ..._core.tensor import Tensor
from ..._core.transformed import Transformed
from ..._reverse.variable import Variable, assigning, records_assignments
from .compiled import OutputMark, Traced
from .gradient import Gradient
from .signature import FunctionCall

_STATIC = (int, bool, str, type(None))
_SAME = (Variable, FunctionType, Transformed, np.dtype, type)


def takes(call: FunctionCall) -> bool:
    """Return whether an entry can be generated for arguments like these."""
    return not call.kwargs and all(
        type(arg) in _STATIC
        or isinstance(arg, _SAME)
        or (type(arg) in (Tensor, float) and i not in call.statics.numbers)
        for i, arg in enumerate(call.args)
    )


def _rule(node: Node, dy: Any) -> Sequence:
    saved = node.saved
    return saved[0].entry_vjp(node, saved, dy if type(dy) is list else [dy])


class EntryWriter:
    """The source of one entry, and the names in it.

    Arguments are positional: tensors, floats, Variables and simple Python values. The outputs are
    returned in the structure of the function's result. For one tensor and one output the text is
    ``(x0,) = args``, then checks of the type, record, shape and dtype, then ``r = run((d0,))`` and
    the tensor of ``r[0]``.
    """

    def __init__(self, call: FunctionCall, traced: Traced, gradient: Gradient | None = None):
        self.call, self.program, self.gradient = call, traced.program, gradient
        self.structure = traced.structure
        self.names: dict[str, Any] = {"Tensor": Tensor, "new": object.__new__, "state": state}
        self.names |= {"assigning": assigning, "array": np.array, "float64": FLOAT64}
        self.names |= {"attach": attach, "attach_all": attach_all, "rule": _rule, "self": gradient}
        self.checks: list[str] = []  # lines that come before the program runs
        self.leaves: list[str] = []
        self.arrays: list[str] = []
        self.nodes: list[str] = []  # of the program's inputs, for the tapes

    def unrecorded(self) -> Callable:
        """Return ``enter(args)`` for calls without tapes or listeners, on unrecorded tensors."""
        program, names = self.program, self.names
        names["run"] = program.outputs.run
        self._inputs()
        if program.draws:
            self._unless("state.draws is None")
        if not (self.call.has_tensors or program.captures or program.reads):
            names["device"] = state.device
            self._unless("state.device == device")
        if program.reads or program.assigned:
            self._unless("not state.listeners and not state.overrides")
        if program.assigned:
            names["is_recording"] = records_assignments
            self._unless("not is_recording()")
        lines = []
        for i, variable in enumerate(program.reads):
            names[f"v{i}"] = variable
            self._record(f"v{i}")
            self.arrays.append(f"vd{i}")
            lines.append(f"vd{i} = v{i}._data")
        lines.append(f"r = run(({_tuple(self.arrays)}))")
        for i, variable in enumerate(program.assigned):
            names[f"a{i}"] = variable
            lines.append(f"a{i}._data = r[{program.count + i}]")
        if program.assigned:
            lines = ["with assigning:", *[f"    {line}" for line in lines]]
        return self._compile("args", [*lines, *self._tensors()])

    def recorded(self, single: bool) -> Callable:
        """Return ``enter(frame, args)`` for calls that tapes record in the same way as `call`.

        Under one tape (`single`) the entry keeps residuals, and the sweep is a program as well.
        Under several tapes the outer ones record the sweep, so it calls the pullback.
        """
        program, gradient = self.program, self.gradient
        assert gradient is not None
        self.checks.append("group = frame.alone")
        self._unless("group and frame.level is None and not frame.natural")
        self._inputs()
        for i, variable in enumerate(program.reads):
            self.names[f"variable{i}"] = variable
            self.checks.append(f"v{i} = variable{i}._read()")
            self._record(f"v{i}")
            self.arrays.append(f"v{i}._data")
        self.names["outputs"] = program.outputs
        run = [f"r = outputs.run(({_tuple(self.arrays)}))", "kept = None"]
        if single:
            lines = [*self._with_residuals(gradient), "else:", *[f" {line}" for line in run]]
        else:
            lines = ["if len(group) == 1: return None", *run]
        reads = _tuple([f"v{i}" for i in range(len(program.reads))])
        lines += self._tensors()
        lines.append(f"saved = (self, ({_tuple(self.leaves)}), kept, ({reads}))")
        nodes = f"({_tuple(self.nodes)})"
        if program.count > 1:
            outputs = _tuple([f"t{i}" for i in range(program.count)])
            lines.append(f"attach_all(group, {nodes}, rule, saved, [{outputs}])")
        elif gradient.upstream:
            lines.append(f"attach(t0, group, {nodes}, rule, saved)")
        return self._compile("frame, args", lines)

    def _with_residuals(self, gradient: Gradient) -> list[str]:
        parts, arrays = gradient.parts, self.arrays[: len(self.leaves)]
        for i, tensor in enumerate(parts.captures):
            self.names[f"kept{i}"] = tensor._data
            arrays.append(f"kept{i}")
        positions = {id(variable): i for i, variable in enumerate(self.program.reads)}
        arrays += [f"v{positions[id(variable)]}._data" for variable in parts.reads]
        self.names["forward"] = parts.forward_outputs.run
        run = f" r = forward(({_tuple(arrays)}))"
        return ["if len(group) == 1:", run, f" kept = r[{parts.kept}:]"]

    def _inputs(self) -> None:
        """Write the lines that unpack and check the arguments and the captured tensors."""
        sizes = self.call.sizes()
        for i, arg in enumerate(self.call.args):
            if type(arg) in _STATIC:
                self.names |= {f"static{i}": arg, f"kind{i}": type(arg)}
                self._unless(f"type(x{i}) is kind{i} and x{i} == static{i}")
            elif type(arg) is Tensor:
                self.names |= {f"shape{i}": tuple(arg._data.shape), f"dtype{i}": arg._data.dtype}
                self.names[f"array{i}"] = type(arg._data)
                self._unless(f"type(x{i}) is Tensor")
                self._record(f"x{i}")
                self.checks.append(f"d{i} = x{i}._data")
                same = f"d{i}.shape == shape{i} and d{i}.dtype is dtype{i}"
                self._unless(f"type(d{i}) is array{i} and {same}")
                size = sizes.get(len(self.leaves))
                if size is not None:
                    self.names[f"size{i}"] = size.tobytes()
                    self._unless(f"d{i}.tobytes() == size{i}")
                self.leaves.append(f"x{i}")
                self.arrays.append(f"d{i}")
            elif type(arg) is float:
                self._unless(f"type(x{i}) is float")
                self.leaves.append(f"x{i}")
                self.arrays.append(f"array(x{i}, float64)")
                self.nodes.append("None")
            else:
                self.names[f"same{i}"] = arg
                self._unless(f"x{i} is same{i}")
        for i, tensor in enumerate(self.program.captures):
            self.names |= {f"c{i}": tensor, f"cd{i}": tensor._data}
            self._record(f"c{i}")
            self.arrays.append(f"cd{i}")

    def _unless(self, condition: str) -> None:
        self.checks.append(f"if not ({condition}): return None")

    def _record(self, tensor: str) -> None:
        """Check that all tapes watch a tensor, or none does, as in the call it was made for."""
        if self.gradient is None or not self.gradient.wanted[len(self.nodes)]:
            self._unless(f"{tensor}._rec is None")
            self.nodes.append("None")
            return
        name = f"n{len(self.nodes)}"
        self.nodes.append(name)
        self.checks.append(f"{name} = {tensor}._rec")
        self._unless(f"{name} is not None and {name}.next is None")
        self._unless(f"{name}.group is group or frame.active({name}.group) is group")

    def _compile(self, parameters: str, lines: list[str]) -> Callable:
        count = len(self.call.args)
        taken = [f"if len(args) != {count}: return None"]
        if count:
            taken.append(f"{_tuple([f'x{i}' for i in range(count)])} = args")
        tensors = map("t{}".format, range(self.program.count))
        lines.append(f"return {self._result(self.structure, tensors)}")
        text = "\n ".join([f"def enter({parameters}):", *taken, *self.checks, *lines])
        return define(text, "entry of a program", self.names, "enter")

    def _tensors(self) -> list[str]:
        """Return the lines that wrap the outputs in tensors without records."""
        lines = []
        for i in range(self.program.count):
            lines += [f"t{i} = new(Tensor)", f"t{i}._data = r[{i}]", f"t{i}._rec = None"]
        return lines

    def _result(self, structure: Any, tensors: Iterator[str]) -> str:
        """Return the text of a structure with these tensors as its outputs."""
        if structure is OutputMark:
            return next(tensors)
        if type(structure) in (tuple, list):
            items = _tuple([self._result(item, tensors) for item in structure])
            return f"({items})" if type(structure) is tuple else f"[{items}]"
        name = f"part{len(self.names)}"
        self.names[name] = structure
        if not nest.is_nested(structure):
            return name
        self.names["pack"] = nest.pack_sequence_as
        leaves = [self._result(leaf, tensors) for leaf in nest.flatten(structure)]
        return f"pack({name}, [{', '.join(leaves)}])"


def _tuple(names: Sequence[str]) -> str:
    return "".join(f"{name}, " for name in names)
