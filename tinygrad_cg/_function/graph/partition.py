"""Cutting the graph of a program and its gradient in two, and what passes from one to the other."""

from __future__ import annotations

from collections.abc import Sequence

from .simplify import simplify
from .values import FuncGraph, Value, in_order, reach

# Computed again on the way back, rather than kept: it costs less than memory does.
_CHEAP = frozenset(
    ("broadcast_to", "cast", "expand_dims", "getitem", "reshape", "squeeze", "transpose")
)


def is_cheap(value: Value) -> bool:
    """Return whether a value takes less time to compute again than to keep and to read."""
    primitive = value.primitive
    return primitive is not None and (primitive.kind == "elementwise" or primitive.name in _CHEAP)


def cut(
    inputs: Sequence[Value],
    kept: Sequence[Value],
    backward_inputs: Sequence[Value],
    ends: Sequence[Value],
) -> tuple[list[Value], FuncGraph]:
    """Return the residuals, and a graph from these and `backward_inputs` to `ends`.

    A residual depends on `inputs` alone, and on none of them behind an `optimization_barrier`. It
    is an input, one of the values in `kept`, which are there anyway, or dear to compute: the rest
    of what the ends need is computed again.
    """
    late_inputs, forward = set(backward_inputs), set(in_order(kept))
    primal = set(inputs)  # what depends on these alone
    for value in in_order([*kept, *ends]):
        if value not in late_inputs and all(operand in primal for operand in value.inputs):
            primitive = value.primitive
            again = primitive is None or not (
                primitive.kind in ("impure", "user") or primitive.name == "optimization_barrier"
            )
            if value in forward or again:  # what must not be repeated is `kept`
                primal.add(value)
    there = {*inputs, *kept}
    residuals: dict[Value, Value] = {}
    for value in reach(ends, lambda value: () if value in residuals else value.inputs):
        if value in primal and value.array is None and (value in there or not is_cheap(value)):
            residuals[value] = Value(value.aval)
    graph = FuncGraph([*residuals.values(), *backward_inputs], ends)
    return list(residuals), simplify(graph, residuals)
