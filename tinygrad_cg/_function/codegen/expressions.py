"""A node's value as text that Numba compiles, with the dtypes of the operations run one by one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath
from tinygrad_cg_kernels.elementary import comparison

from ..fusion.nodes import Node

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


def module_of(function: Any) -> str:
    return function.__module__.rpartition(".")[2]


def type_name(dtype: np.dtype) -> str:
    return f"np.{'bool_' if dtype.kind == 'b' else dtype.name}"


def called(function: Any, arguments: list[str]) -> str:
    return f"{module_of(function)}.{function.__name__}({', '.join(arguments)})"


def typed(text: str, dtype: np.dtype) -> str:
    """An expression's value in a dtype, which wider integers and literals do not keep."""
    return text if dtype == np.float64 else f"{type_name(dtype)}({text})"


def number_text(value: Any, dtype: np.dtype) -> str:
    if dtype.kind == "b":
        return repr(bool(value))
    if dtype.kind in "iu":
        return f"{type_name(dtype)}({int(value)})"
    value = float(value)
    text = repr(value) if np.isfinite(value) else f"np.{abs(value)}" if value == value else "np.nan"
    if np.isinf(value) and value < 0:
        text = f"-{text}"
    return typed(text, dtype)


def expression(node: Node, arguments: list[str]) -> str:
    """A node's value in terms of its operands'."""
    if node.detail == "copy":
        return arguments[0]
    if node.detail == "cast":
        if node.dtype.kind == "b":
            return f"{arguments[0]} != 0"
        return f"{type_name(node.dtype)}({arguments[0]})"
    operand = node.operands[0].dtype if node.operands else node.dtype
    return applied(node.detail, arguments, operand, node.dtype)


def applied(function: Any, arguments: list[str], operand: np.dtype, result: np.dtype) -> str:
    """A scalar function's value, by the dtypes of its first operand and of the result."""
    if function in SYMBOLS and operand.kind == "f":
        return SYMBOLS[function].format(*arguments)
    return typed(called(function, arguments), result)


def label(node: Node) -> str:
    detail = node.detail
    if node.kind == "host" and isinstance(detail, tuple):
        return detail[0]
    return detail if isinstance(detail, str) else getattr(detail, "__name__", node.kind)


# Folding -------------------------------------------------------------------------------------

_OPERATORS = {"sum": "+", "prod": "*", "any": "|", "all": "&"}
_REASSOCIATING = {"sum": "reassociating_add", "prod": "reassociating_multiply"}


def identity(node: Node) -> str:
    """What a reduction starts from."""
    name, dtype = node.detail, node.dtype
    if name in ("max", "min"):
        low = name == "max"
        if dtype.kind == "f":
            return number_text(-np.inf if low else np.inf, dtype)
        if dtype.kind == "b":
            return repr(not low)
        limits = np.iinfo(dtype)
        return number_text(limits.min if low else limits.max, dtype)
    return number_text(name in ("prod", "all"), dtype)


def joined(node: Node, total: str, value: str) -> str:
    """A total with one more value, in exactly this order."""
    name = node.detail
    if name in ("max", "min"):
        return f"arithmetic.{name}imum({total}, {value})"
    return typed(f"{total} {_OPERATORS[name]} {value}", node.dtype)


def folded(node: Node, total: str, value: str) -> str:
    """A total with one more value, in any order."""
    if node.dtype.kind == "f" and node.detail in _REASSOCIATING:
        return f"{_REASSOCIATING[node.detail]}({total}, {value})"
    return joined(node, total, value)
