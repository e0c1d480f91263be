"""Reads ``x[i]`` of many numbers i, and the gradients of these, as gathers by a constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.primitive import OPS
from .values import FuncGraph, Value, constant, frozen, operation, with_operands


def as_gathers(graph: FuncGraph, least: int) -> FuncGraph:
    """Return a graph with gathers for reads of one part of an array, of at least so many parts.

    So are the gradients of these. All operations are made again, in their order.
    """
    numbers: dict[Any, set[int]] = {}
    for value in graph.values():
        read = _read(value)
        if read is not None:
            numbers.setdefault(read[0], set()).add(read[1])
    many = {family for family, some in numbers.items() if len(some) >= least}
    if not many:
        return graph
    built: dict[Value, Value] = {}
    for value in sorted(graph.values(), key=lambda one: one.serial):
        operands = [built[one] for one in value.inputs]
        read = _read(value)
        if read is not None and read[0] in many:
            built[value] = _gathered(value, operands[0], read[1])
        else:
            is_operation = value.inputs or value.primitive is not None
            built[value] = with_operands(value, operands) if is_operation else value
    return FuncGraph(graph.inputs, [built[one] for one in graph.outputs])


def _read(value: Value) -> tuple[Any, int] | None:
    """Return what reads of parts, or their gradients, share that differ in one number alone.

    Then that number, which counts from 0.
    """
    if value.primitive is not OPS["getitem"] and value.primitive is not OPS["getitem_adjoint"]:
        return None
    key, axis = value.params["key"], _axis(value.params["key"])
    if axis is None:
        return None
    is_read = value.primitive is OPS["getitem"]
    x = value.inputs[0] if is_read else value
    of = x if is_read else frozen(value.aval)
    return (of, is_read, frozen(key[:axis]), frozen(key[axis + 1 :])), key[axis] % x.shape[axis]


def _axis(key: tuple) -> int | None:
    """Return the axis along which a key has a number, if it has all of those before."""
    for axis, one in enumerate(key):
        if type(one) is int:
            return axis
        if type(one) is not slice or one != slice(None):
            return None
    return None


def _gathered(value: Value, operand: Value, number: int) -> Value:
    """Return the read of a part, or its gradient, by a gather."""
    key, index = value.params["key"], constant(np.array(number))
    axis = _axis(key)
    assert axis is not None
    rest = (*key[:axis], *key[axis + 1 :]) if key[axis + 1 :] else ()
    params: dict[str, Any] = {"axis": axis, "batch_dims": 0}
    if value.primitive is OPS["getitem"]:
        part = operation(OPS["gather"], [operand, index], params)
        return operation(OPS["getitem"], [part], {"key": rest}) if rest else part
    shape = value.params["shape"]
    if rest:
        whole = (*shape[:axis], *shape[axis + 1 :])
        operand = operation(OPS["getitem_adjoint"], [operand], {"shape": whole, "key": rest})
    return operation(OPS["gather_adjoint"], [operand, index], params | {"shape": shape})
