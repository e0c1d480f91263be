"""Scalar functions and numbers as expressions, with the dtypes of the operations run one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.runtime import generated

from ..._core.kinds import is_bool, is_floating, is_integer
from .statements import Code, Expression, modules, render

_BINARY = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "equal": "=="}
_BINARY |= {"not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">"}
_BINARY |= {"greater_equal": ">="}
SYMBOLS = {getattr(kmath, name): f"{{}} {symbol} {{}}" for name, symbol in _BINARY.items()}
SYMBOLS |= {kmath.negative: "-{}", kmath.square: "{0} * {0}"}
"""Functions of floats that Python's own operators compute: they need no compiled helper."""


def type_name(dtype: np.dtype) -> str:
    """Return a dtype as generated code writes it."""
    return f"np.{'bool_' if is_bool(dtype) else dtype.name}"


def call(function: Callable, operands: Sequence[Any]) -> Expression:
    """Return a call of a kernels' function."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    slots = ", ".join(["{}"] * len(operands))
    return Expression(f"{name}({slots})", *operands, modules=(function.__module__,))


def convert_expression(expression: Any, dtype: np.dtype) -> Any:
    """Return a value in a dtype, which wider integers and literals do not keep."""
    is_kept = dtype == np.float64
    return expression if is_kept else Expression(f"{type_name(dtype)}({{}})", expression)


def number_text(value: Any, dtype: np.dtype) -> str:
    """Return a number of a dtype as generated code writes it."""
    if is_bool(dtype):
        return repr(bool(value))
    if is_integer(dtype):
        return f"{type_name(dtype)}({int(value)})"
    text = repr(float(value))
    for name in ("nan", "inf"):
        text = text.replace(name, f"np.{name}")
    return str(convert_expression(text, dtype))


def scalar(function: Callable, operands: Sequence[Any], operand: np.dtype, result: np.dtype) -> Any:
    """Return a scalar function's value, by the dtypes of its first operand and of the result."""
    if function in SYMBOLS and is_floating(operand):
        return Expression(SYMBOLS[function], *operands)
    return convert_expression(call(function, operands), result)


def scalar_function(names: Sequence[str], code: Code, result: str) -> str:
    """Return the source of a module with ``rule(*names)``, a scalar function for kernels."""
    head = f"import numpy as np\n\n{generated.import_lines(modules(code))}\n"
    head += "from tinygrad_cg_kernels.runtime.compile import jitable\n"
    head += "from tinygrad_cg_kernels.runtime.intrinsics import inlined\n\n\n@jitable"
    lines = [head, f"def rule({', '.join(names)}):", "    inlined()", *render(code)]
    return "\n".join([*lines, f"    return {result}", ""])
