"""The gradient functions of operations as one kernel each, for sweeps that nobody records.

Where no level is active, a gradient function made of several elementwise operations runs as one
kernel. It is generated from the function, traced once for each dtype, never written beside it; a
function that has anything else in it stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.loops.small import refuse
from tinygrad_cg_kernels.runtime import generated

from .levels import Level, add_level, state
from .recording import late_record
from .tensor import Aval, Tensor

MOST_OPERANDS = 3


_GUARDED = {*kmath.GUARDED, *kmath.GUARDED_PAIRS}
"""Functions that are quick by a look at blocks of elements: in one expression they are slow."""


class _NotElementwise(Exception):
    """A gradient function is more than elementwise operations."""


class _Trace(Level):
    """Writes down the scalar expression of what is done with tensors that have no values."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.modules: set[str] = set()
        self.names: dict[int, str] = {}
        self.tensors: list[Tensor] = []  # keeps those alive whose names are known

    def named(self, name: str, aval: Aval) -> Tensor:
        tensor = Tensor(aval)
        self.tensors.append(tensor)
        self.names[id(tensor)] = name
        return tensor

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Tensor:
        from ..function.expressions import applied

        function = getattr(primitive.kernel, "function", None)
        if primitive.kind != "elementwise" or params or function in _GUARDED:
            raise _NotElementwise
        aval = primitive.abstract(*[Aval(one._data.shape, one._data.dtype) for one in inputs])
        texts = [self.text(one) for one in inputs]
        text = applied(function, texts, inputs[0]._data.dtype, aval.dtype)
        self.modules.add(function.__module__)
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return self.named(name, aval)

    def text(self, tensor: Any) -> str:
        from ..function.expressions import number_text

        known = self.names.get(id(tensor))
        if known is not None:
            return known
        data = tensor._data
        if type(data) is not np.ndarray or data.ndim or data.dtype.kind == "c":
            raise _NotElementwise
        return number_text(data[()], data.dtype)


def _source(rule: Callable, names: tuple[str, ...], dtype: np.dtype) -> str | None:
    """The text of `rule` as a function of scalars; None if one kernel is not to be had by it."""
    trace = _Trace()
    operands = [trace.named(name, Aval((), dtype)) for name in names]
    state.frame = add_level(None, trace)
    try:
        result = rule(*operands)
    except _NotElementwise:
        return None
    finally:
        state.frame = None
    if len(trace.lines) < 2 or type(result) is not Tensor or id(result) not in trace.names:
        return None
    lines = [*trace.lines, f"return {trace.text(result)}"]
    head = f"import numpy as np\n\n{generated.import_lines(trace.modules)}\n"
    head += "from tinygrad_cg_kernels.runtime.compile import jitable\n"
    head += "from tinygrad_cg_kernels.runtime.intrinsics import inlined\n\n\n@jitable\n"
    return "\n    ".join([f"{head}def rule({', '.join(names)}):", "inlined()", *lines]) + "\n"


class FusedRule:
    """A gradient function of an operation, called like it, which runs as one kernel if it can."""

    def __init__(self, name: str, rule: Callable, names: tuple[str, ...]):
        self.name, self.rule, self.names = name, rule, names
        self.direct: list[Callable] = [refuse]
        self.kernels: dict[np.dtype, Elementwise | None] = {}

    def __call__(self, *operands: Tensor) -> Tensor:
        if state.frame is None:
            out = self.direct[0](*operands)
            if type(out) is not Tensor:
                out = self._long_way(operands)
            if out is not None:
                for operand in operands:
                    if operand._rec is not None:
                        out._rec = late_record(operand._rec)
                        break
                return out
        return self.rule(*operands)

    def _long_way(self, operands: tuple[Tensor, ...]) -> Tensor | None:
        """The result by the kernel for the operands' dtype; None if there is none."""
        dtype = operands[0]._data.dtype
        for operand in operands:
            data = operand._data
            if type(data) is not np.ndarray or data.dtype is not dtype:
                return None
        kernel = self.kernels[dtype] if dtype in self.kernels else self._kernel(dtype)
        if kernel is None:
            return None
        out = Tensor(kernel(*[operand._data for operand in operands]))
        self.direct[0] = kernel.direct[0]
        return out

    def _kernel(self, dtype: np.dtype) -> Elementwise | None:
        exact = dtype.kind == "f" and dtype.itemsize >= 4
        source = _source(self.rule, self.names, dtype) if exact else None
        kernel = None
        if source is not None:
            function = generated.load(source).rule
            kernel = Elementwise(f"{self.name}_rule", function, len(self.names), "same")
        self.kernels[dtype] = kernel
        return kernel


@cache
def fused(name: str, rule: Callable, names: tuple[str, ...]) -> Callable:
    """`rule`, or what runs it as one kernel, if its operands let that be tried."""
    if len(names) > MOST_OPERANDS or "dy" not in names:
        return rule
    return FusedRule(name, rule, names)
