"""Scalar functions and numbers as expressions, with the dtypes that the single operations have."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.runtime import generated

from ..._core.kinds import is_bool, is_floating, is_integer
from .statements import Expression, Statement, modules, render

_BINARY = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "equal": "=="}
_BINARY |= {"not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">"}
_BINARY |= {"greater_equal": ">="}
SYMBOLS = {getattr(kmath, name): f"{{}} {symbol} {{}}" for name, symbol in _BINARY.items()}
SYMBOLS |= {kmath.negative: "-{}", kmath.square: "{0} * {0}"}
"""Functions that operators compute for floats, without a call."""


def type_name(dtype: np.dtype) -> str:
    """Return the text of a dtype in generated code."""
    return f"np.{'bool_' if is_bool(dtype) else dtype.name}"


def call(function: Callable, operands: Sequence[Any]) -> Expression:
    """Return a call of a function from the kernels."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    slots = ", ".join(["{}"] * len(operands))
    return Expression(f"{name}({slots})", *operands, modules=(function.__module__,))


def convert_expression(expression: Any, dtype: np.dtype) -> Any:
    """Return an expression cast to a dtype: integers and literals would widen the result."""
    is_kept = dtype == np.float64
    return expression if is_kept else Expression(f"{type_name(dtype)}({{}})", expression)


def number_text(value: Any, dtype: np.dtype) -> str:
    """Return the text of a number of a dtype in generated code."""
    if is_bool(dtype):
        return repr(bool(value))
    if is_integer(dtype):
        return f"{type_name(dtype)}({int(value)})"
    text = repr(float(value))
    for name in ("nan", "inf"):
        text = text.replace(name, f"np.{name}")
    return str(convert_expression(text, dtype))


def scalar(function: Callable, operands: Sequence[Any], operand: np.dtype, result: np.dtype) -> Any:
    """Return a scalar function of operands, given the dtypes of the first one and the result."""
    if function in SYMBOLS and is_floating(operand):
        return Expression(SYMBOLS[function], *operands)
    return convert_expression(call(function, operands), result)


def scalar_functions(names: Sequence[str], functions: dict[str, list[Statement]]) -> str:
    """Return the source of a module with scalar functions of `names` for kernels.

    Each returns the last variable of its code.
    """
    called = generated.import_lines(modules(itertools.chain.from_iterable(functions.values())))
    lines = ["import numpy as np", "", called]
    lines += ["from tinygrad_cg_kernels.runtime.compile import jitable"]
    lines += ["from tinygrad_cg_kernels.runtime.intrinsics import inlined"]
    for name, code in functions.items():
        lines += ["", "", "@jitable", f"def {name}({', '.join(names)}):", "    inlined()"]
        lines += [*render(code), f"    return {code[-1].target}"]
    return "\n".join([*lines, ""])
