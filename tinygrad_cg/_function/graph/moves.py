"""Moves of elements that are done beforehand, because the positions are constants.

Sparse derivatives are programs with one seed for each colour: marks, where the colours of a vector
equal a number. A part of the marks, or their elements in another order, are the marks of a part of
the colours, so that no loop moves elements.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ..._core.primitive import OPS
from .values import Value, constant, operation

MOVES = ("gather", "getitem", "reshape", "transpose")
_JOINS = ("concatenate", "stack")


def marks(value: Value) -> Value | None:
    """Return a move of ``colors == numbers`` as such a comparison, if the colours are constants.

    The numbers are one for all, or one for each element of the first axis, which stays in place.
    """
    x = value.inputs[0]
    mark = x.inputs[0] if x.primitive is OPS["cast"] else x
    if mark.primitive is not OPS["equal"]:
        return None
    colors, numbers = sorted(mark.inputs, key=lambda operand: operand.array is None)
    if colors.array is None or colors.array.size == 1:
        return None
    rank = len(value.shape)
    first = 1 if numbers.shape[:1] == x.shape[:1] and len(numbers.shape) == len(x.shape) else 0
    count = x.shape[0] if first else 1
    whole = (1,) * first + x.shape[first:]
    moved = prod(colors.shape) == prod(whole) and prod(numbers.shape) == count
    result = _run(value, colors.array.reshape(whole), first) if moved else None
    if result is None:
        return None
    numbers = operation(
        OPS["reshape"], [numbers], {"shape": (count, *(1,) * (rank - 1)) if first else ()}
    )
    again = operation(OPS["equal"], [constant(result), numbers], {})
    return again if mark is x else operation(OPS["cast"], [again], x.params)


def _run(value: Value, array: np.ndarray, first: int) -> np.ndarray | None:
    """Return the move of an array; None if it moves the first axis, which counts the numbers."""
    params, others = value.params, value.inputs[1:]
    name, target = value.primitive.name, tuple(value.shape)
    if first:
        target = (1, *target[1:])
        if name == "reshape":
            params = {"shape": target}
            if value.shape[:1] != value.inputs[0].shape[:1]:
                return None
        elif name == "transpose":
            if params["perm"][0] != 0:
                return None
        elif name == "getitem":
            if not (type(params["key"][0]) is slice and params["key"][0] == slice(None)):
                return None
        elif params["axis"] == 0:
            return None
    arrays = []
    for other in others:
        if first and params["batch_dims"] and other.primitive is OPS["broadcast_to"]:
            other, shape = other.inputs[0], other.shape
            if other.array is None or (len(other.shape) == len(shape) and other.shape[0] > 1):
                return None
            arrays.append(np.broadcast_to(other.array, (1, *shape[1:])))
        elif other.array is None or (first and params["batch_dims"]):
            return None
        else:
            arrays.append(other.array)
    try:
        result = np.asarray(value.primitive.run(array, *arrays, **params))
    except IndexError:  # the operation raises it when it runs
        return None
    return np.ascontiguousarray(result) if result.shape == target else None


def gather_of_joined(value: Value) -> Value | None:
    """Return a gather from arrays that are joined along any axis as one from their elements.

    The arrays are joined one after the other, for which nothing is copied.
    """
    x, indices = value.inputs
    if indices.array is None or len(x.shape) != 1 or value.params["batch_dims"]:
        return None
    sources: dict[Value, int] = {}
    is_apart = False

    def positions(part: Value) -> np.ndarray:
        nonlocal is_apart
        name = None if part.primitive is None else part.primitive.name
        if name == "reshape":
            return positions(part.inputs[0]).reshape(part.shape)
        if name in _JOINS and all(operand.dtype == x.dtype for operand in part.inputs):
            is_apart = is_apart or prod(part.shape[: part.params["axis"]]) > 1
            return part.primitive.run(*map(positions, part.inputs), **part.params)
        start = sources.setdefault(part, sum(prod(source.shape) for source in sources))
        return np.arange(start, start + prod(part.shape)).reshape(part.shape)

    places = positions(x).reshape(-1)
    if not is_apart or len(sources) < 2:
        return None
    parts = [operation(OPS["reshape"], [part], {"shape": (prod(part.shape),)}) for part in sources]
    table = operation(OPS["concatenate"], parts, {"axis": 0})
    try:
        moved = places[indices.array]
    except IndexError:  # the operation raises it when it runs
        return None
    return operation(OPS["gather"], [table, constant(moved.astype(indices.dtype))], value.params)
