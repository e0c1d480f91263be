"""The shortest way into a compiled program: calls of the form that it was made for."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ..._core.conversion import FLOAT64
from ..._core.levels import state
from ..._core.tensor import Tensor
from ..._reverse.variable import Variable, assigning
from .compiled import Program
from .signature import Call

_STATIC = (int, bool, str, type(None))
_SAME = (Variable, FunctionType, np.dtype, type)


def takes(call: Call) -> bool:
    """Whether entries know arguments like these."""
    return not call.kwargs and all(
        type(arg) in _STATIC
        or isinstance(arg, _SAME)
        or (type(arg) in (Tensor, float) and i not in call.statics.numbers)
        for i, arg in enumerate(call.args)
    )


def entry(call: Call, program: Program, pack: Callable | None) -> Callable:
    """Generate ``enter(args)``: the result, or None for a call of another form than `call`.

    Its arguments are positional: tensors, floats, Variables, Python's simplest other values.
    Nothing may record or listen, tensors and Variables have no records. `pack` makes the result of
    the list of outputs; without it the only output is the result. For one tensor and one output:
    ``(x0,) = args``, then checks of its type, record, shape and dtype, then
    ``r = run((d0,))`` and the tensor of ``r[0]``: in one piece, since helper calls would cost more
    than all of it.
    """
    code = Code(call, program, pack)
    code.names["run"] = program.outputs.run
    return code.function()


class Code:
    """The source of one entry, and the names in it."""

    def __init__(self, call: Call, program: Program, pack: Callable | None):
        self.program = program
        self.pack = pack
        self.names: dict[str, Any] = {"Tensor": Tensor, "new": object.__new__, "state": state}
        self.names |= {"pack": pack, "assigning": assigning}
        self.names |= {"array": np.array, "float64": FLOAT64}
        self.call = call
        self.checks: list[str] = []  # the lines before the program runs
        self.leaves: list[str] = []
        self.arrays: list[str] = []

    def inputs(self) -> None:
        """Take and check the arguments, and what is captured."""
        for i, arg in enumerate(self.call.args):
            if type(arg) in _STATIC:
                self.names |= {f"static{i}": arg, f"kind{i}": type(arg)}
                self._unless(f"type(x{i}) is kind{i} and x{i} == static{i}")
            elif type(arg) is Tensor:
                self._tensor(i, arg)
            elif type(arg) is float:
                self._number(i)
            else:
                self.names[f"same{i}"] = arg
                self._unless(f"x{i} is same{i}")
        for i, tensor in enumerate(self.program.captures):
            self.names |= {f"c{i}": tensor, f"cd{i}": tensor._data}
            self.record(f"c{i}")
            self.arrays.append(f"cd{i}")

    def _unless(self, condition: str) -> None:
        self.checks.append(f"if not ({condition}): return None")

    def _tensor(self, i: int, arg: Tensor) -> None:
        data = arg._data
        self.names |= {f"shape{i}": tuple(data.shape), f"dtype{i}": data.dtype}
        self._unless(f"type(x{i}) is Tensor")
        self.record(f"x{i}")
        self.checks.append(f"d{i} = x{i}._data")
        self._unless(f"d{i}.shape == shape{i} and d{i}.dtype is dtype{i}")
        self.leaves.append(f"x{i}")
        self.arrays.append(f"d{i}")

    def _number(self, i: int) -> None:
        self._unless(f"type(x{i}) is float")
        self.leaves.append(f"x{i}")
        self.arrays.append(f"array(x{i}, float64)")

    def record(self, tensor: str) -> None:
        """Check the record of a tensor."""
        self._unless(f"{tensor}._rec is None")

    def function(self) -> Callable:
        program = self.program
        self.inputs()
        self._variables()
        call = f"r = run(({''.join(f'{one}, ' for one in self.arrays)}))"
        if program.assigned:
            self.checks.append("with assigning:")
            lines = [f"    {line}" for line in (*self._reads(), call, *self._assignments())]
        else:
            lines = [*self._reads(), call]
        return self.compiled("args", [*self.checks, *lines, *self.tensors(), self.result()])

    def compiled(self, parameters: str, lines: list[str]) -> Callable:
        count = len(self.call.args)
        taken = [f"if len(args) != {count}: return None"]
        if count:
            taken.append(f"{''.join(f'x{i}, ' for i in range(count))} = args")
        text = "\n ".join([f"def enter({parameters}):", *taken, *lines])
        exec(compile(text, "<tinygrad_cg: entry>", "exec"), self.names)
        return self.names["enter"]

    def _variables(self) -> None:
        program = self.program
        if program.draws:
            self._unless("state.draws is None")
        if program.reads or program.assigned:
            self._unless("not state.listeners and not state.overrides")
        for i, variable in enumerate(program.reads):
            self.names[f"v{i}"] = variable
            self.record(f"v{i}")
            self.arrays.append(f"vd{i}")

    def _reads(self) -> list[str]:
        return [f"vd{i} = v{i}._data" for i in range(len(self.program.reads))]

    def _assignments(self) -> list[str]:
        program, lines = self.program, []
        for i, variable in enumerate(program.assigned):
            self.names[f"a{i}"] = variable
            lines.append(f"a{i}._data = r[{program.count + i}]")
        return lines

    def tensors(self) -> list[str]:
        """The outputs as tensors without records."""
        lines = []
        for i in range(self.program.count):
            lines += [f"t{i} = new(Tensor)", f"t{i}._data = r[{i}]", f"t{i}._rec = None"]
        return lines

    def result(self) -> str:
        outputs = ", ".join(f"t{i}" for i in range(self.program.count))
        if self.pack is None:
            return "return t0"
        return f"return ({outputs},)" if self.pack is tuple else f"return pack([{outputs}])"
