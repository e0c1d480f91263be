"""Cutting the graph of a program and its gradient into forward, residuals and backward."""

from __future__ import annotations

from collections.abc import Sequence

from .simplify import simplify
from .values import FuncGraph, Value, in_order, reach

# Computed again in the backward pass: that costs less than storing them.
_CHEAP = frozenset(
    ("broadcast_to", "cast", "expand_dims", "getitem", "reshape", "squeeze", "transpose")
)


def is_cheap(value: Value) -> bool:
    """Return whether a value is cheaper to compute again than to store and load."""
    primitive = value.primitive
    return primitive is not None and (primitive.kind == "elementwise" or primitive.name in _CHEAP)


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
            primitive = value.primitive
            again = primitive is None or not (
                primitive.kind in ("impure", "user") or primitive.name == "optimization_barrier"
            )
            if value in forward or again:  # values that must not be repeated are in `kept`
                primal.add(value)
    there = {*inputs, *kept}
    residuals: dict[Value, Value] = {}
    for value in reach(ends, lambda value: () if value in residuals else value.inputs):
        if value in primal and value.array is None and (value in there or not is_cheap(value)):
            residuals[value] = Value(value.aval)
    graph = FuncGraph([*residuals.values(), *backward_inputs], ends)
    return list(residuals), simplify(graph, residuals)
