"""The functions of numbers that programs are made of, their types, and their derivatives.

Arithmetic has its derivatives here; those of all other functions are the gradient functions of the
library's operations, written down as operations on numbers.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary

from .._core.primitive import OPS, Primitive
from .._core.tensor import Aval, Tensor
from .._function.codegen.fused_rules import ScalarTrace
from . import program as ir

_BINARY: dict[str, tuple[str, Callable, type]] = {
    "less": ("<", operator.lt, ast.Lt),
    "less_equal": ("<=", operator.le, ast.LtE),
    "greater": (">", operator.gt, ast.Gt),
    "greater_equal": (">=", operator.ge, ast.GtE),
    "equal": ("==", operator.eq, ast.Eq),
    "not_equal": ("!=", operator.ne, ast.NotEq),
    "add": ("+", operator.add, ast.Add),
    "subtract": ("-", operator.sub, ast.Sub),
    "multiply": ("*", operator.mul, ast.Mult),
    "divide": ("/", operator.truediv, ast.Div),
    "floor_divide": ("//", operator.floordiv, ast.FloorDiv),
    "mod": ("%", operator.mod, ast.Mod),
    "left_shift": ("<<", operator.lshift, ast.LShift),
    "right_shift": (">>", operator.rshift, ast.RShift),
    "bit_and": ("&", operator.and_, ast.BitAnd),
    "bit_or": ("|", operator.or_, ast.BitOr),
    "bit_xor": ("^", operator.xor, ast.BitXor),
}
OPERATORS = {kind: name for name, (_, _, kind) in _BINARY.items()} | {ast.Pow: "power"}
"""Names of Python's operators, by the nodes of its syntax."""
_OPERATIONS: dict[str, tuple[str, Callable]] = {
    **{name: (f"{{0}} {symbol} {{1}}", f) for name, (symbol, f, _) in _BINARY.items()},
    "negative": ("-{0}", operator.neg),
    "minimum": ("min({0}, {1})", min),
    "maximum": ("max({0}, {1})", max),
    "absolute": ("abs({0})", abs),
    "not": ("not {0}", operator.not_),
    "and": ("{0} and {1}", lambda x, y: x and y),
    "or": ("{0} or {1}", lambda x, y: x or y),
    "select": ("{1} if {0} else {2}", lambda test, x, y: x if test else y),
    "accumulate": ("reassociating_add({0}, {1})", operator.add),
    "quotient": ("reciprocal_divide({0}, {1})", operator.truediv),
    "as_f64": ("np.float64({0})", float),
    "as_f32": ("np.float32({0})", float),
    "as_i64": ("int({0})", int),
    "as_b1": ("{0} != 0", bool),
}
TEXTS = {name: text for name, (text, _) in _OPERATIONS.items()}
"""Names of functions that the kernels' language has itself; `minimum`, `maximum` and `absolute` are
those of integers, and `accumulate` is a sum of floats in any order, as in a backward sweep."""
_COMPARISONS = "less", "less_equal", "greater", "greater_equal", "equal", "not_equal"
_NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1}
"""Integers with which an operation on integers returns the other operand."""
_POSITIVE = {"multiply", "floor_divide", "mod", "right_shift", "left_shift", "bit_and", "bit_or"}
"""Functions of integers that are at least 0 for operands that are."""
_BOOLEAN = {*_COMPARISONS, "not", "and", "or", "as_b1"}
_SYMBOLS: dict[Any, str] = {
    getattr(elementary, name): name
    for name in ("add", "subtract", "multiply", "divide", "negative", *_COMPARISONS)
}
"""Functions of the kernels that the language has an operator for."""
_OF_TRUTHS: dict[Any, str] = {elementary.where: "select"}
_OF_TRUTHS |= {getattr(elementary, f"logical_{name}"): name for name in ("and", "or", "not")}
_PLAIN = {elementary.multiply_upstream, elementary.multiply_tangent}
"""Products that give 0 for 0 times infinity; where one factor is 1 they are the other one."""
_arity = cache(lambda function: len(inspect.signature(function).parameters))
Definitions = dict[ir.Number, ir.Op]


class OpBuilder:
    """Adds operations to a block, with the types that Numba gives their results."""

    def __init__(self, block: ir.Block | None = None, definitions: Definitions | None = None):
        self.block: ir.Block = [] if block is None else block
        self.definitions = definitions

    def op(self, name: str, *args: ir.Number | float, hint: str = "t") -> ir.Number:
        """Add an operation of the language's own; known integers and truths are computed now."""
        values = [arg if isinstance(arg, ir.Number) else ir.constant(arg) for arg in args]
        if name.startswith("as_"):
            kind = name.removeprefix("as_")
        elif name == "select":
            test, *choices = values
            choices, kind = self.joined(choices)
            values = [test, *choices]
        elif name in ("and", "or", "not"):
            kind = "b1"
        else:
            values, kind = self.joined(values, name in ("divide", "quotient"))
            if name in _BOOLEAN:
                kind = "b1"
            elif kind == "b1":  # of truths, arithmetic makes integers
                values, kind = [self.cast(value, "i64") for value in values], "i64"
        constants = [value.number for value in values if value.number is not None]
        exact = not any(value.is_float for value in values)
        if exact and len(constants) == len(values):
            return ir.constant(fold(name, constants))
        if name == "select" and values[0].number is not None:
            return values[1] if values[0].number else values[2]
        if kind == "i64" and name in _NEUTRAL:
            for x, other in ((values[1], values[0]), values)[: 1 if name == "subtract" else 2]:
                if x.number == _NEUTRAL[name]:
                    return other
        return self._add(name, values, kind, hint, low_of(name, values) if kind == "i64" else None)

    def apply(self, function: Callable, *args: ir.Number | float, hint: str = "t") -> ir.Number:
        """Add a function of floats of the kernels'; TypeError for another number of arguments."""
        if len(args) != _arity(function):
            inspect.signature(function).bind(*args)
        values = [arg if isinstance(arg, ir.Number) else ir.constant(arg) for arg in args]
        values, kind = self.joined(values, True)
        if function in _SYMBOLS:
            return self.op(_SYMBOLS[function], *values, hint=hint)
        return self._add(function, values, kind, hint)

    def _add(
        self, function: Any, values: ir.Numbers, kind: str, hint: str, low: int | None = None
    ) -> ir.Number:
        out = ir.Number(kind, hint, low)
        op = ir.Op(out, function, tuple(values))
        self.block.append(op)
        if self.definitions is not None:
            self.definitions[out] = op
        return out

    def joined(self, values: ir.Numbers, is_float: bool = False) -> tuple[list[ir.Number], str]:
        """Return operands of their joint type, and that type."""
        kind = join([value.type for value in values])
        if is_float and kind not in ir.FLOATS:
            kind = "f64"
        return [self.cast(value, kind) for value in values], kind

    def cast(self, value: ir.Number, kind: str) -> ir.Number:
        if value.type == kind:
            return value
        if value.number is not None:
            return ir.fixed(kind, value.number)
        low = 0 if (value.type, kind) == ("b1", "i64") else None
        return self._add(f"as_{kind}", [value], kind, value.hint, low)

    def load(self, array: ir.Array, index: ir.Index, hint: str | None = None) -> ir.Number:
        low = 0 if array.element.startswith("u") else None
        out = ir.Number(array.type, array.hint if hint is None else hint, low)
        self.block.append(ir.LoadElement(out, array, index))
        return out

    def store(self, array: ir.Array, index: ir.Index, value: ir.Number, adds: bool = False) -> None:
        self.block.append(ir.Store(array, index, value, adds))

    def rounds(self, start: ir.Number, stop: ir.Number, step: int) -> ir.Number:
        """Return how many numbers a range has; 0 or less if it is empty."""
        span = self.op("subtract", *((stop, start) if step > 0 else (start, stop)))
        if abs(step) > 1:
            span = self.op("floor_divide", self.op("add", span, abs(step) - 1), abs(step))
        return span

    def multiply(self, x: ir.Number, y: ir.Number) -> ir.Number:
        """Multiply; by the numbers 1 and -1 without a product."""
        for factor, other in ((x, y), (y, x)):
            if other.is_float and factor.number in (1, -1):
                return other if factor.number == 1 else self.op("negative", other)
        return self.op("multiply", x, y)


def join(kinds: Sequence[str]) -> str:
    """Return the type of an operation on numbers of types: f32 and an integer give f64."""
    present = set(kinds)
    if "f64" in present or ("f32" in present and present - {"f32"}):
        return "f64"
    if present == {"b1"}:
        return "b1"
    return "f32" if "f32" in present else "i64"


def low_of(name: str, values: Sequence[ir.Number]) -> int | None:
    """Return a lower bound of an operation on integers, from those of its operands."""
    lows = [x.low for x in (values[1:] if name in ("select", "mod") else values)]
    known = [low for low in lows if low is not None]
    match name:
        case "absolute":
            return 0
        case "maximum":
            return max(known, default=None)
        case _ if len(known) < len(lows):
            return None
        case "add":
            return sum(known)
        case "subtract" if values[1].number is not None:
            return known[0] - known[1]
        case "minimum" | "select":
            return min(known)
    return 0 if name in _POSITIVE and min(known) >= 0 else None


def scaled(b: OpBuilder, op: ir.Op, position: int, factor: ir.Number, fetch: Callable) -> Any:
    """Return a factor times an operation's derivative, or None; `fetch` gives what that needs."""
    args = op.args
    match op.function:
        case "add" | "accumulate" | "as_f32" | "as_f64":
            return factor
        case "subtract":
            return factor if position == 0 else b.op("negative", factor)
        case "multiply":
            return b.multiply(factor, fetch(args[1 - position]))
        case "negative":
            return b.op("negative", factor)
        case "divide" | "quotient":
            part = b.op("quotient", factor, fetch(args[1]))
            return part if position == 0 else b.op("negative", b.multiply(part, fetch(op.out)))
        case "mod" if position == 0:
            return factor
        case "mod":
            quotient = b.op("divide", fetch(args[0]), fetch(args[1]))
            return b.op("negative", b.multiply(factor, b.apply(elementary.floor, quotient)))
        case "select" if position > 0:
            pair = (factor, ir.zero(factor)) if position == 1 else (ir.zero(factor), factor)
            return b.op("select", fetch(args[0]), *pair)
        case str():
            return None
    kind = args[0].type
    names, trace, result = derivative(op.function, position, kind)
    if result is None:
        return None
    values = []
    for name in names:
        if name == "dy":
            values.append(ir.fixed(kind, 1.0))
        else:
            values.append(fetch(op.out if name == "out" else args[int(name)]))
    for kernel, inputs in trace.steps:
        values.append(_step(b, kernel.function, [_value(values, x) for x in inputs]))
    return b.multiply(factor, _value(values, result))


def _value(values: Sequence[ir.Number], operand: int | np.ndarray) -> ir.Number:
    if isinstance(operand, int):
        return values[operand]
    kinds = {"f": f"f{8 * operand.itemsize}", "b": "b1"}
    return ir.fixed(kinds.get(operand.dtype.kind, "i64"), operand.item())


def _step(b: OpBuilder, function: Callable, operands: list[ir.Number]) -> ir.Number:
    if function in _PLAIN:
        for factor, other in (operands, operands[::-1]):
            if factor.number == 1:
                return other
    if function is elementary.divide_unbounded and operands[0].number is not None:
        x, y = operands
        return b.op("add", b.op("quotient", x, y), b.op("subtract", y, y))
    if function is elementary.square:
        return b.multiply(operands[0], operands[0])
    if function is elementary.multiply:
        return b.multiply(*operands)
    if function in _OF_TRUTHS:
        return b.op(_OF_TRUTHS[function], *operands)
    return b.apply(function, *operands)


@cache
def derivative(function: Callable, position: int, kind: str) -> tuple[list[str], ScalarTrace, Any]:
    """Return the names of inputs, the steps and the result, None for zero, of a derivative.

    It is the gradient function of the operation, for an upstream gradient of 1.
    """
    record = _records()[function]
    rule = None if record.vjp is None else record.vjp[position]
    if rule is None:
        return [], ScalarTrace(0, Aval((), ir.DTYPES[kind])), None
    places = {name: str(k) for k, name in enumerate(record.inputs)}
    names = [places.get(name, name) for name in inspect.signature(rule).parameters]
    trace = ScalarTrace(len(names), Aval((), ir.DTYPES[kind]))
    one = Tensor(np.ones((), ir.DTYPES[kind]))
    inputs = [one if name == "dy" else x for name, x in zip(names, trace.tensors, strict=True)]
    return names, trace, trace.number(trace.run(rule, inputs))


@cache
def _records() -> dict[Any, Primitive]:
    """Return the library's operations by the functions of the kernels'."""
    import_module("tinygrad_cg._ops.distribution_functions")  # registers gamma
    elementwise = (record for record in OPS.values() if record.kind == "elementwise")
    return {
        getattr(record.kernel, "function", None): record
        for record in elementwise
        if len(record.inputs) == getattr(record.kernel, "inputs", None)  # not x**2 for x**y
    }


def fold(function: Any, values: Sequence[Any]) -> Any:
    """Return the value of an operation on integers and truths that are known."""
    evaluate = _OPERATIONS[function][1] if isinstance(function, str) else function
    return evaluate(*values)
