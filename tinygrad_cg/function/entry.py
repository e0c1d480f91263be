"""The shortest way into a compiled program: calls of the form that it was made for."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ..convert import FLOAT64
from ..levels import state
from ..tensor import Tensor
from ..variable import Variable, assigning
from .compiled import Program
from .signature import Call

_STATIC = (int, bool, str, type(None))


def entry(call: Call, program: Program, pack: Callable | None) -> Callable | None:
    """Generate ``enter(args)``: the result, or None for a call of another form than `call`.

    Its arguments are positional: tensors, floats, Variables, Python's simplest other values.
    Nothing may record or listen, tensors and Variables have no records. `pack` makes the result of
    the list of outputs; without it the only output is the result. For one tensor and one output:
    ``(x0,) = args``, then checks of its type, record, shape and dtype, then
    ``r = run((d0,))`` and the tensor of ``r[0]``: in one piece, since helper calls would cost more
    than all of it. None for arguments that need more than that.
    """
    code = _Code(program, pack)
    for i, arg in enumerate(call.args):
        if type(arg) in _STATIC:
            code.static(i, arg)
        elif type(arg) is Tensor and i not in call.statics.numbers:
            code.tensor(i, arg)
        elif type(arg) is float and i not in call.statics.numbers:
            code.number(i)
        elif isinstance(arg, (Variable, FunctionType, np.dtype, type)):
            code.same(i, arg)
        else:
            return None
    return code.function(len(call.args))


class _Code:
    """The source of one entry, and the names in it."""

    def __init__(self, program: Program, pack: Callable | None):
        self.program = program
        self.pack = pack
        self.names: dict[str, Any] = {"Tensor": Tensor, "new": object.__new__, "state": state}
        self.names |= {"run": program.outputs.run, "pack": pack, "assigning": assigning}
        self.names |= {"array": np.array, "float64": FLOAT64}
        self.checks: list[str] = []
        self.data: list[str] = []
        self.arrays: list[str] = []

    def tensor(self, i: int, arg: Tensor) -> None:
        data = arg._data
        self.names |= {f"shape{i}": tuple(data.shape), f"dtype{i}": data.dtype}
        self.checks.append(f"type(x{i}) is not Tensor or x{i}._rec is not None")
        self.data += [
            f"d{i} = x{i}._data",
            f"if d{i}.shape != shape{i} or d{i}.dtype is not dtype{i}: return None",
        ]
        self.arrays.append(f"d{i}")

    def number(self, i: int) -> None:
        self.checks.append(f"type(x{i}) is not float")
        self.arrays.append(f"array(x{i}, float64)")

    def static(self, i: int, arg: Any) -> None:
        self.names |= {f"static{i}": arg, f"kind{i}": type(arg)}
        self.checks.append(f"type(x{i}) is not kind{i} or x{i} != static{i}")

    def same(self, i: int, arg: Any) -> None:
        self.names[f"same{i}"] = arg
        self.checks.append(f"x{i} is not same{i}")

    def function(self, count: int) -> Callable:
        program = self.program
        lines = [f"if len(args) != {count}: return None"]
        if count:
            lines.append(f"{''.join(f'x{i}, ' for i in range(count))} = args")
        lines += [f"if {check}: return None" for check in self.checks]
        lines += self.data + self._captured()
        call = f"r = run(({''.join(f'{one}, ' for one in self.arrays)}))"
        if program.assigned:
            lines.append("with assigning:")
            lines += [f"    {line}" for line in (*self._reads(), call, *self._assignments())]
        else:
            lines += [*self._reads(), call]
        text = "\n ".join(["def enter(args):", *lines, *self._result()])
        exec(compile(text, "<tinygrad_cg: entry>", "exec"), self.names)
        return self.names["enter"]

    def _captured(self) -> list[str]:
        program, lines = self.program, []
        for i, tensor in enumerate(program.captures):
            self.names |= {f"c{i}": tensor, f"cd{i}": tensor._data}
            lines.append(f"if c{i}._rec is not None: return None")
            self.arrays.append(f"cd{i}")
        if program.draws:
            lines.append("if state.draws is not None: return None")
        if program.reads or program.assigned:
            lines.append("if state.listeners or state.overrides: return None")
        for i, variable in enumerate(program.reads):
            self.names[f"v{i}"] = variable
            lines.append(f"if v{i}._rec is not None: return None")
            self.arrays.append(f"vd{i}")
        return lines

    def _reads(self) -> list[str]:
        return [f"vd{i} = v{i}._data" for i in range(len(self.program.reads))]

    def _assignments(self) -> list[str]:
        program, lines = self.program, []
        for i, variable in enumerate(program.assigned):
            self.names[f"a{i}"] = variable
            lines.append(f"a{i}._data = r[{program.count + i}]")
        return lines

    def _result(self) -> list[str]:
        lines = []
        for i in range(self.program.count):
            lines += [f"t{i} = new(Tensor)", f"t{i}._data = r[{i}]", f"t{i}._rec = None"]
        outputs = "".join(f"t{i}, " for i in range(self.program.count))
        if self.pack is None:
            return [*lines, "return t0"]
        if self.pack is tuple:
            return [*lines, f"return ({outputs})"]
        return [*lines, f"return pack([{outputs}])"]
