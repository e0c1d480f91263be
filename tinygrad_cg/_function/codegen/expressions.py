"""Values of nodes as expressions, with the dtypes of the operations run one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.elementary import comparison
from tinygrad_cg_kernels.runtime import generated

from ..fusion.nodes import CAST, COPY, ApplyNode, ReduceNode
from .statements import Code, Expression, modules, render

SYMBOLS: dict[Any, str] = {
    kmath.add: "{} + {}",
    kmath.subtract: "{} - {}",
    kmath.multiply: "{} * {}",
    kmath.divide: "{} / {}",
    kmath.negative: "-{}",
    kmath.square: "{0} * {0}",
    comparison.equal: "{} == {}",
    comparison.not_equal: "{} != {}",
    comparison.less: "{} < {}",
    comparison.less_equal: "{} <= {}",
    comparison.greater: "{} > {}",
    comparison.greater_equal: "{} >= {}",
}
"""What Python writes as the function does it, for floats: it takes no compiling of its own."""


def type_name(dtype: np.dtype) -> str:
    """Return a dtype as generated code writes it."""
    return f"np.{'bool_' if dtype.kind == 'b' else dtype.name}"


def call(function: Callable, operands: Sequence[Any]) -> Expression:
    """Return a call of a kernels' function."""
    module = function.__module__
    name = f"{module.rpartition('.')[2]}.{function.__name__}"
    arguments = ", ".join(["{}"] * len(operands))
    return Expression(f"{name}({arguments})", *operands, modules=(module,))


def typed(expression: Any, dtype: np.dtype) -> Any:
    """Return a value in a dtype, which wider integers and literals do not keep."""
    return (
        expression if dtype == np.float64 else Expression(f"{type_name(dtype)}({{}})", expression)
    )


def number_text(value: Any, dtype: np.dtype) -> str:
    """Return a number of a dtype as generated code writes it."""
    if dtype.kind == "b":
        return repr(bool(value))
    if dtype.kind in "iu":
        return f"{type_name(dtype)}({int(value)})"
    value = float(value)
    text = repr(value) if np.isfinite(value) else f"np.{abs(value)}" if value == value else "np.nan"
    if np.isinf(value) and value < 0:
        text = f"-{text}"
    return str(typed(text, dtype))


def applied(node: ApplyNode, operands: Sequence[Any]) -> Any:
    """Return the value of a scalar function of operands."""
    if node.function == COPY:
        return Expression("{}", operands[0])
    if node.function == CAST:
        if node.dtype.kind == "b":
            return Expression("{} != 0", operands[0])
        return Expression(f"{type_name(node.dtype)}({{}})", operands[0])
    return scalar(node.function, operands, node.operands[0].dtype, node.dtype)


def scalar(function: Callable, operands: Sequence[Any], operand: np.dtype, result: np.dtype) -> Any:
    """Return a scalar function's value, by the dtypes of its first operand and of the result."""
    if function in SYMBOLS and operand.kind == "f":
        return Expression(SYMBOLS[function], *operands)
    return typed(call(function, operands), result)


def scalar_function(names: Sequence[str], code: Code, result: str) -> str:
    """Return the source of a module with ``rule(*names)``, a scalar function for kernels."""
    head = f"import numpy as np\n\n{generated.import_lines(modules(code))}\n"
    head += "from tinygrad_cg_kernels.runtime.compile import inlined, jitable\n\n\n@jitable"
    lines = [head, f"def rule({', '.join(names)}):", "    inlined()", *render(code)]
    return "\n".join([*lines, f"    return {result}", ""])


# Reductions ----------------------------------------------------------------------------------

_OPERATORS = {"sum": "+", "prod": "*", "any": "|", "all": "&"}
_REASSOCIATING = {"sum": "reassociating_add", "prod": "reassociating_multiply"}
_EXTREMA = {"max": kmath.maximum, "min": kmath.minimum}


def identity(node: ReduceNode) -> str:
    """Return the number that a reduction starts from."""
    name, dtype = node.name, node.dtype
    if name in _EXTREMA:
        low = name == "max"
        if dtype.kind == "f":
            return number_text(-np.inf if low else np.inf, dtype)
        if dtype.kind == "b":
            return repr(not low)
        limits = np.iinfo(dtype)
        return number_text(limits.min if low else limits.max, dtype)
    return number_text(name in ("prod", "all"), dtype)


def combine(node: ReduceNode, total: Any, value: Any) -> Any:
    """Return a total with one more value, in exactly this order."""
    if node.name in _EXTREMA:
        return call(_EXTREMA[node.name], (total, value))
    return typed(Expression(f"{{}} {_OPERATORS[node.name]} {{}}", total, value), node.dtype)


def combine_any_order(node: ReduceNode, total: Any, value: Any) -> Any:
    """Return a total with one more value, in any order, so that LLVM vectorises the loop."""
    if node.dtype.kind == "f" and node.name in _REASSOCIATING:
        return Expression(f"{_REASSOCIATING[node.name]}({{}}, {{}})", total, value)
    return combine(node, total, value)
