"""Bodies of loops that Python runs: parts of loop variables are changed in place."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ..._core import devices
from ..._core.primitive import Primitive
from .loop_drafts import Body, replaced
from .loop_passes import is_row
from .values import FuncGraph, Value, in_order, operation


def _exchange(x: np.ndarray, value: np.ndarray, index: np.ndarray) -> np.ndarray:
    position = int(index)
    if not 0 <= position < len(x):
        raise IndexError(f"set_row: index {position} is outside of {len(x)} rows")
    before = devices.library_of(x).array(x[position])
    x[position] = value
    return before


EXCHANGE = Primitive(
    "exchange_row", _exchange, ("x", "value", "index"), lambda x, value, index: value
)
"""Not an operation for tensors: it changes a loop variable that nobody else reads.

It gives what the row was before.
"""


def _add_in_place(x: np.ndarray, part: np.ndarray, *index: np.ndarray, key: Any) -> np.ndarray:
    x[key if key is not None else int(index[0])] += part
    return devices.library_of(part).array(part)


ADD_IN_PLACE = Primitive(
    "add_in_place", _add_in_place, ("x", "part", "index"), lambda x, part, *index, key: part
)
"""The same of a sum to which a part is added."""


def in_place(body: Body) -> FuncGraph:
    """Return the body with parts of loop variables changed in place.

    A changed loop variable is a result as it was passed in. Further outputs, after all others, make
    the changes. The loop must own its loop variables in the first round.
    """
    graph = body.graph
    for k in range(body.carries):
        carried, end = graph.inputs[body.constants + k], graph.outputs[k]
        uses = Counter(operand for other in graph.values() for operand in other.inputs)
        uses.update(graph.outputs)
        if uses[end] == 1:
            change = _exchanged(graph, carried, end, uses) or _added(carried, end, uses)
            if change is not None:
                changed, reads = change
                substitutions = {end: carried, **dict.fromkeys(reads, changed)}
                outputs = replaced([*graph.outputs, changed], substitutions)
                graph = FuncGraph(graph.inputs, outputs)
    return graph


def _exchanged(
    graph: FuncGraph, carried: Value, end: Value, uses: Counter[Value]
) -> tuple[Value, list[Value]] | None:
    """Return the exchange of a row, and the reads of its previous value, which the exchange
    returns.
    """
    if end.name != "set_row" or end.params["batch_dims"]:
        return None
    index = end.inputs[2]
    reads = [
        value for value in graph.values() if is_row(value) and [*value.inputs] == [carried, index]
    ]
    if end.inputs[0] is not carried or uses[carried] != 1 + len(reads):
        return None
    if {carried, *reads} & set(in_order(end.inputs[1:])):
        return None
    return operation(EXCHANGE, end.inputs, {}), reads


def _added(carried: Value, end: Value, uses: Counter[Value]) -> tuple[Value, list[Value]] | None:
    """Return the in-place addition of a part to a loop variable, if `end` is one."""
    if end.name != "add" or uses[carried] != 1 or carried not in end.inputs:
        return None
    term = end.inputs[end.inputs[0] is carried]
    if uses[term] != 1 or term.aval != carried.aval or end.aval != carried.aval:
        return None
    if term.name == "gather_adjoint":
        params = term.params
        if term.inputs[1].shape or params["axis"] or params["batch_dims"]:
            return None
        key = None
    elif term.name == "getitem_adjoint":
        key = term.params["key"]
        if any(isinstance(item, np.ndarray) for item in key):
            return None
    else:
        return None
    return operation(ADD_IN_PLACE, [carried, *term.inputs], {"key": key}), []
