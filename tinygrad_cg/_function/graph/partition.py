"""Cutting the graph of a program and its gradient in two, and what passes from one to the other."""

from __future__ import annotations

from collections.abc import Sequence

from .simplify import simplify
from .values import FuncGraph, Value, in_order

# Computed again on the way back, rather than kept: it costs less than memory does.
_CHEAP = frozenset(
    ("broadcast_to", "cast", "expand_dims", "getitem", "reshape", "squeeze", "transpose")
)


def cut(
    inputs: Sequence[Value],
    kept: Sequence[Value],
    backward_inputs: Sequence[Value],
    ends: Sequence[Value],
) -> tuple[list[Value], FuncGraph]:
    """Return the residuals, and a graph from these and `backward_inputs` to `ends`.

    A residual depends on `inputs` alone. It is an input, one of the values in `kept`, which are
    there anyway, or dear to compute: the rest of what the ends need is computed again.
    """
    primal = _primal(inputs, kept, backward_inputs, ends)
    there = {*inputs, *kept}
    residuals: dict[Value, Value] = {}
    pending, seen = list(ends), set(ends)
    while pending:
        value = pending.pop()
        if value in primal and not value.is_constant and (value in there or not _is_cheap(value)):
            residuals[value] = Value(value.aval)
            continue
        for operand in value.inputs:
            if operand not in seen:
                seen.add(operand)
                pending.append(operand)
    graph = FuncGraph([*residuals.values(), *backward_inputs], ends)
    return list(residuals), simplify(graph, residuals)


def _primal(
    inputs: Sequence[Value],
    kept: Sequence[Value],
    backward_inputs: Sequence[Value],
    ends: Sequence[Value],
) -> set[Value]:
    """Return the values that depend on `inputs` alone; what must not be repeated is `kept`."""
    known, in_backward = set(inputs), set(backward_inputs)
    forward = set(in_order(kept))
    for value in in_order([*kept, *ends]):
        if value in known or value in in_backward:
            continue
        impure = value.primitive is not None and value.primitive.kind in ("impure", "user")
        if (value in forward or not impure) and all(one in known for one in value.inputs):
            known.add(value)
    return known


def _is_cheap(value: Value) -> bool:
    if value.primitive is None:
        return False
    return value.primitive.kind == "elementwise" or value.primitive.name in _CHEAP
