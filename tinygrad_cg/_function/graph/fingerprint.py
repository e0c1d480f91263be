"""Names for graphs and their parts that are equal for what is equal, in every process."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from .values import FuncGraph, OutputItem, Value


def frozen(value: Any) -> Any:
    """Return a hashable stand-in for a parameter: equal for equal ones, of whatever type."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, slice):
        return "slice", frozen(value.start), frozen(value.stop), frozen(value.step)
    if isinstance(value, (tuple, list)):
        return tuple([frozen(one) for one in value])
    if isinstance(value, dict):
        return tuple([(key, frozen(value[key])) for key in sorted(value)])
    if isinstance(value, (float, np.floating)):  # 0.0 and -0.0 are two, NaN is one
        return type(value).__name__, float(value).hex()
    if isinstance(value, (complex, np.complexfloating)):
        return type(value).__name__, repr(value)
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, frozenset([frozen(one) for one in value])
    try:
        hash(value)
    except TypeError:
        return "object", id(value)
    return type(value).__name__, value


def fingerprint(graph: FuncGraph) -> str:
    """Return a hash of what a graph computes: names, parameters, avals and single numbers.

    It is the same in all processes. Inputs and larger constants count by shape and dtype alone.
    """
    numbers = {value: i for i, value in enumerate(graph.inputs)}
    words = [_aval(value.aval) for value in graph.inputs]
    for value in graph.values():
        if value not in numbers:
            numbers[value] = len(numbers)
            words.append(_describe(value, numbers))
    words += [str(numbers[output]) for output in graph.outputs]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()


def _describe(value: Value, numbers: dict[Value, int]) -> str:
    operands = " ".join(str(numbers[operand]) for operand in value.inputs)
    if value.array is not None:
        text = value.array.tobytes().hex() if not value.array.ndim else "constant"
        return f"{text} {_aval(value.aval)}"
    if isinstance(value, OutputItem):
        return f"part {value.index} {operands}"
    assert value.primitive is not None
    return f"{value.primitive.name} {operands} {frozen(value.params)!r} {_aval(value.aval)}"


def _aval(aval: Any) -> str:
    avals = aval if isinstance(aval, list) else [aval]
    return " ".join(f"{one.dtype.str}{tuple(one.shape)}" for one in avals)
