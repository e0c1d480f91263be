"""Gradient functions of elementwise operations as one kernel each, for sweeps without a record.

If no level is active, a gradient function that consists of elementwise operations runs as one
kernel. The kernel is generated from a trace of the function when the operation's rule is compiled.
A function with any other operation stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.loops.small import refuse
from tinygrad_cg_kernels.runtime import generated

from ..._core.kinds import is_complex, is_floating
from ..._core.levels import Level, add_level, state
from ..._core.primitive import unrecorded_function
from ..._core.record import mark_expired, set_rule_compiler
from ..._core.tensor import Aval, Tensor
from .expressions import call, number_text, scalar, scalar_functions
from .statements import Name, Statement

MAX_OPERANDS = 3
"""Gradient functions of more operands are not fused: small kernels take at most three."""


class _NotElementwise(Exception):
    """A gradient function has an operation that is not elementwise."""


class ScalarTrace(Level):
    """Records the elementwise operations of a gradient function, on tensors without values.

    Tensors are numbered: first the operands, then the results of `steps`.
    """

    def __init__(self, count: int, aval: Aval):
        self.count = count  # of the operands
        self.tensors = [Tensor(aval) for _ in range(count)]
        self.steps: list[tuple[Any, tuple[int | np.ndarray, ...]]] = []

    def run(self, rule: Callable, inputs: Sequence[Tensor]) -> Any:
        """Return the result of a gradient function, while recording its operations."""
        around, state.frame = state.frame, add_level(None, self)
        try:
            return rule(*inputs)
        finally:
            state.frame = around

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Tensor:
        if params or not isinstance(primitive.kernel, Elementwise):
            raise _NotElementwise
        self.steps.append((primitive.kernel, tuple(map(self.number, inputs))))
        self.tensors.append(Tensor(primitive.abstract(*[tensor._data for tensor in inputs])))
        return self.tensors[-1]

    def number(self, tensor: Tensor) -> int | np.ndarray:
        """Return the number of a tensor, or the value if it is a constant."""
        for number, recorded in enumerate(self.tensors):
            if recorded is tensor:
                return number
        data = tensor._data
        if type(data) is not np.ndarray or data.ndim or is_complex(data.dtype):
            raise _NotElementwise
        return data


def _trace(rule: Callable, count: int, aval: Aval) -> ScalarTrace | None:
    """Return the trace of a gradient function; None if its result is not the last step's, or dy."""
    trace = ScalarTrace(count, aval)
    try:
        result = trace.run(rule, trace.tensors)
    except _NotElementwise:
        return None
    return trace if result is trace.tensors[-1 if trace.steps else 0] else None


def _source(rule: Callable, names: tuple[str, ...], dtype: np.dtype) -> str | None:
    """Return the source of `rule` as a function of scalars; None if it is not elementwise."""
    trace = _trace(rule, len(names), Aval((), dtype))
    if trace is None or len(trace.steps) < 2:
        return None
    functions = {"rule": _code(trace, names, {})}
    for kernel, operands in trace.steps:
        if kernel.function in kmath.GUARDED:
            test, fast = kmath.GUARDED[kernel.function]
            (operand,) = operands if len(operands) == 1 else (None,)
            if len(functions) > 1 or type(operand) is not int or operand >= len(names):
                return None
            functions["test"] = [Statement(Name("t0"), call(test, [names[operand]]))]
            functions["fast"] = _code(trace, names, {kernel.function: fast})
    return scalar_functions(names, functions)


def _code(
    trace: ScalarTrace, names: tuple[str, ...], versions: dict[Callable, Callable]
) -> list[Statement]:
    """Return the steps of a trace as statements, with functions replaced by their `versions`."""
    texts: list[str] = list(names)
    code: list[Statement] = []
    for (kernel, operands), result in zip(trace.steps, trace.tensors[len(names) :], strict=True):
        first = operands[0]
        of = trace.tensors[first]._data if isinstance(first, int) else first
        arguments = [
            texts[operand] if isinstance(operand, int) else number_text(operand[()], operand.dtype)
            for operand in operands
        ]
        name = Name(f"t{len(code)}")
        function: Callable = kernel.function
        value = scalar(versions.get(function, function), arguments, of.dtype, result._data.dtype)
        code.append(Statement(name, value))
        texts.append(name)
    return code


class FusedRule:
    """A gradient function. Its `function` runs as one kernel if the operands allow it."""

    def __init__(self, name: str, rule: Callable, names: tuple[str, ...]):
        self.name, self.rule, self.names = name, rule, names
        self.kernels: dict[np.dtype, Elementwise | None] = {}
        self.latest: list[Callable] = [refuse]  # the kernel that served last
        self.function: Any = unrecorded_function(len(names), self.latest, self._general)
        self.function.fused = self

    def _general(self, *operands: Tensor) -> Tensor:
        """Return the result, by the kernel for the operands' dtype or by the operations."""
        arrays = [operand._data for operand in operands]
        dtype = arrays[0].dtype
        alike = all(type(array) is np.ndarray and array.dtype is dtype for array in arrays)
        if state.frame is not None or not alike:
            return self.rule(*operands)
        kernel = self.kernels[dtype] if dtype in self.kernels else self._kernel(dtype)
        if kernel is None:
            return self.rule(*operands)
        out = Tensor(kernel(*arrays))
        mark_expired(operands, out)
        self.latest[0] = kernel.small_kernel[0]
        return out

    def _kernel(self, dtype: np.dtype) -> Elementwise | None:
        exact = is_floating(dtype) and dtype.itemsize >= 4
        source = _source(self.rule, self.names, dtype) if exact else None
        kernel = None
        if source is not None:
            module = generated.load(source)
            guard = (module.test, module.fast) if hasattr(module, "test") else None
            title = f"{self.name}_rule"
            kernel = Elementwise(title, module.rule, len(self.names), "same", guard)
        self.kernels[dtype] = kernel
        return kernel


@cache
def fuse(name: str, rule: Callable, names: tuple[str, ...]) -> Callable:
    """Return a function that runs `rule` as one kernel; the rule itself if it does not fuse."""
    fits = len(names) <= MAX_OPERANDS and "dy" in names
    if not fits or _source(rule, names, np.dtype(np.float64)) is None:
        return rule
    return FusedRule(name, rule, names).function


# Large arrays --------------------------------------------------------------------------------


class _Step(NamedTuple):
    """An operation of a gradient function. Operands are numbers of arrays, or constants."""

    run: Callable[..., np.ndarray]
    operands: tuple[int | np.ndarray, ...]
    overwrites: bool  # whether it may overwrite its first operand


def _steps(trace: ScalarTrace) -> list[_Step]:
    """Return the steps of a trace. They may overwrite dy and results, but no other operand."""
    dtype, steps = trace.tensors[0]._data.dtype, []
    for position, (run, operands) in enumerate(trace.steps):
        first, *later = operands
        for _, others in trace.steps[position + 1 :]:
            later += others
        needed = {operand for operand in later if type(operand) is int}
        free = type(first) is int and not 0 < first < trace.count and first not in needed
        alike = free and trace.tensors[first]._data.dtype == dtype
        overwrites = alike and trace.tensors[trace.count + position]._data.dtype == dtype
        steps.append(_Step(run, operands, overwrites))
    return steps


class InPlaceRule:
    """A gradient function on large arrays, which overwrites an upstream gradient that it owns.

    Writing to new memory has to read it first, so a new array for the result takes 1.5 times as
    long.
    """

    def __init__(self, rule: Callable, plain: Callable, names: tuple[str, ...]):
        self.rule, self.plain, self.names = rule, plain, names
        self.programs: dict[np.dtype, list[_Step] | None] = {}  # without steps the result is dy

    def __call__(self, mine: list[np.ndarray], *operands: Tensor) -> Tensor:
        """Return the gradient, in the array of the upstream gradient if `mine` contains it.

        Afterwards `mine` contains the array of the result. It is empty if the gradient function
        itself ran, which may have passed the array on.
        """
        owned = bool(mine) and mine[0].flags.c_contiguous
        mine.clear()
        arrays: list[Any] = [operand._data for operand in operands]
        dtype, shape = arrays[0].dtype, arrays[0].shape
        if state.frame is not None or not all(
            type(array) is np.ndarray and array.dtype is dtype for array in arrays
        ):
            return self.plain(*operands)
        if dtype not in self.programs:
            self.programs[dtype] = self._program(dtype)
        steps = self.programs[dtype]
        if steps is None:
            return self.plain(*operands)
        if not all(array.shape == shape for array in arrays):
            result = self.plain(*operands)
            if all(array is not result._data for array in arrays):
                mine.append(result._data)
            return result
        for run, numbers, overwrites in steps:
            arguments = [arrays[number] if type(number) is int else number for number in numbers]
            if overwrites and (owned or numbers[0] != 0):
                arrays.append(run(*arguments, out=arguments[0]))
            else:
                arrays.append(run(*arguments))
        result = arrays[-1] if steps else arrays[0]
        if steps or owned:
            mine.append(result)
        out = operands[0] if result is arrays[0] else Tensor(result)
        mark_expired(operands, out)
        return out

    def _program(self, dtype: np.dtype) -> list[_Step] | None:
        """Return the steps for a dtype; None if they are not elementwise."""
        if not is_floating(dtype) or dtype.itemsize < 4:
            return None
        fused = getattr(self.plain, "fused", None)
        kernel = fused and (fused.kernels.get(dtype) or fused._kernel(dtype))
        if kernel is not None:
            return [_Step(kernel, tuple(range(len(self.names))), True)]
        trace = _trace(self.rule, len(self.names), Aval((2,), dtype))
        return None if trace is None else _steps(trace)


def run_in_place(rule: Callable, plain: Callable, names: tuple[str, ...]) -> InPlaceRule | None:
    """Return the gradient function for large arrays; None if its first operand is not dy.

    `plain` is the function for other arrays.
    """
    return InPlaceRule(rule, plain, names) if names[0] == "dy" else None


set_rule_compiler(fuse, run_in_place)
