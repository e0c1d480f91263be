"""Cutting the graph of a program and its gradient into forward, residuals and backward."""

from __future__ import annotations

from collections.abc import Sequence

from .simplify import simplify
from .values import FuncGraph, Value, in_order, reach

# Computed again in the backward pass: that costs less than storing them.
_CHEAP = frozenset(
    ("broadcast_to", "cast", "expand_dims", "getitem", "reshape", "squeeze", "transpose")
)
MAX_STACK_BYTES = 2**28
"""The largest stack that is made before a loop, or kept for use after it."""
_MAX_CACHED_BYTES = 2**18
"""The largest stack of a value that is cheap to store, but not to compute again in each round."""

_QUICK_NAMES = """
    absolute add clip divide divide_unbounded divide_upstream equal greater greater_equal
    isfinite isinf isnan less less_equal logical_and logical_not logical_or logical_xor maximum
    minimum multiply multiply_tangent multiply_upstream negative not_equal relu sign square subtract
    unless_masked where
"""
QUICK = frozenset(_QUICK_NAMES.split())
"""Elementwise operations that take less time than a pass over memory."""


def is_cheap(value: Value) -> bool:
    """Return whether a value is cheaper to compute again than to store and load."""
    return value.kind == "elementwise" or value.name in _CHEAP


def most_stored(value: Value) -> int:
    """Return the most bytes that the rows of a value in all rounds may take if they are stored."""
    if not is_cheap(value):
        return MAX_STACK_BYTES
    return 0 if value.name in QUICK | _CHEAP else _MAX_CACHED_BYTES


def cut(
    inputs: Sequence[Value],
    kept: Sequence[Value],
    backward_inputs: Sequence[Value],
    ends: Sequence[Value],
) -> tuple[list[Value], FuncGraph]:
    """Return the residuals, and a graph from these and `backward_inputs` to `ends`.

    A residual depends on `inputs` alone, and not through an `optimization_barrier`. It is an input,
    a value in `kept`, which is stored anyway, or expensive to compute. The backward graph computes
    the rest again.
    """
    late_inputs, forward = set(backward_inputs), set(in_order(kept))
    primal = set(inputs)  # values that depend on these alone
    for value in in_order([*kept, *ends]):
        if value not in late_inputs and all(operand in primal for operand in value.inputs):
            once = value.is_code or value.name == "optimization_barrier"
            if value in forward or not once:  # values that must not be repeated are in `kept`
                primal.add(value)
    there = {*inputs, *kept}
    residuals: dict[Value, Value] = {}
    for value in reach(ends, lambda value: () if value in residuals else value.inputs):
        if value in primal and value.array is None and (value in there or not is_cheap(value)):
            residuals[value] = Value(value.aval)
    graph = FuncGraph([*residuals.values(), *backward_inputs], ends)
    return list(residuals), simplify(graph, residuals)
