"""Moves of elements that are done beforehand, because the positions are constants.

Sparse derivatives are programs with one seed for each colour: marks, where the colours of a vector
equal a number. A part of the marks, or their elements in another order, are the marks of a part of
the colours, so that no loop moves elements.
"""

from __future__ import annotations

from math import prod

import numpy as np

from .values import Value, constant, operation, reshaped, rows_at

MOVES = ("gather", "getitem", "reshape", "transpose")
_JOINS = ("concatenate", "stack")
ALL = slice(None)


def marks(value: Value) -> Value | None:
    """Return a move of ``colors == numbers`` as such a comparison, if the colours are constants.

    The numbers are one for all, or one for each element of the first axis, which stays in place.
    """
    x = value.inputs[0]
    mark = x.inputs[0] if x.name == "cast" else x
    if mark.name != "equal":
        return None
    colors, numbers = sorted(mark.inputs, key=lambda operand: operand.array is None)
    if colors.array is None or colors.array.size == 1:
        return None
    first = 1 if numbers.shape[:1] == x.shape[:1] and len(numbers.shape) == len(x.shape) else 0
    count = x.shape[0] if first else 1
    whole = (1,) * first + x.shape[first:]
    fits = prod(colors.shape) == prod(whole) and prod(numbers.shape) == count
    result = _run(value, colors.array.reshape(whole), first) if fits else None
    if result is None:
        return None
    shape = (count, *(1,) * (len(value.shape) - 1)) if first else ()
    numbers = reshaped(numbers, shape)
    again = operation("equal", [constant(result), numbers], {})
    return again if mark is x else operation("cast", [again], x.params)


def _run(value: Value, array: np.ndarray, first: int) -> np.ndarray | None:
    """Return the move of an array; None if it moves the first axis, which counts the numbers."""
    params, shape = value.params, tuple(value.shape)
    indices = [operand.array for operand in value.inputs[1:]]
    if first:
        part = (params.get("key") or (None,))[0]
        stays = {
            "gather": params.get("axis") and not params.get("batch_dims"),
            "getitem": type(part) is slice and part == ALL,
            "reshape": shape[:1] == value.inputs[0].shape[:1],
            "transpose": "perm" in params and params["perm"][0] == 0,
        }
        if not stays[value.name]:
            return None
        shape = (1, *shape[1:])
        params = {"shape": shape} if value.name == "reshape" else params
    if any(numbers is None for numbers in indices):
        return None
    try:
        result = np.asarray(value.primitive.run(array, *indices, **params))
    except IndexError:  # the operation raises it when it runs
        return None
    return np.ascontiguousarray(result) if result.shape == shape else None


def gather_of_joined(value: Value) -> Value | None:
    """Return a gather from arrays joined along any axis as one from these arrays in a row."""
    x, indices = value.inputs
    is_joined = x.name in ("reshape", *_JOINS)
    if indices.array is None or not is_joined or len(x.shape) != 1 or value.params["batch_dims"]:
        return None
    sources: dict[Value, int] = {}

    def positions(part: Value) -> np.ndarray:
        if part.name == "reshape":
            return positions(part.inputs[0]).reshape(part.shape)
        if part.name in _JOINS and all(operand.dtype == x.dtype for operand in part.inputs):
            return part.primitive.run(*map(positions, part.inputs), **part.params)
        start = sources.setdefault(part, sum(prod(source.shape) for source in sources))
        return np.arange(start, start + prod(part.shape)).reshape(part.shape)

    places = positions(x)
    if len(sources) < 2 or np.array_equal(places, np.arange(places.size)):
        return None
    parts = [reshaped(part, (prod(part.shape),)) for part in sources]
    table = operation("concatenate", parts, {"axis": 0})
    try:
        moved = places[indices.array]
    except IndexError:  # the operation raises it when it runs
        return None
    return rows_at(table, moved.astype(indices.dtype))


def with_shared_indices(value: Value) -> Value | None:
    """Return a gather or its transpose as one by indices that are the same for all of a batch."""
    x, indices = value.inputs
    shape, array = tuple(indices.shape), indices.array
    if value.params["batch_dims"] != 1 or not shape[0]:
        return None
    if array is not None:
        own = constant(array[0]) if (array == array[:1]).all() else None
    else:
        own = indices.inputs[0] if indices.name == "broadcast_to" else None
        if own is not None and tuple(own.shape) == (1, *shape[1:]):
            own = reshaped(own, shape[1:])
    if own is None or tuple(own.shape) != shape[1:]:
        return None
    return operation(value.primitive, [x, own], value.params | {"batch_dims": 0})


def inverse(value: Value) -> Value | None:
    """Return the transpose of a gather by a permutation: a gather by the inverse permutation."""
    dy, indices = value.inputs
    axis, array = value.params["axis"], indices.array
    size = value.shape[axis]
    if array is None or value.params["batch_dims"] or array.size != size:
        return None
    order = array.reshape(-1)
    places = np.argsort(order)
    if not np.array_equal(order[places], np.arange(size)):
        return None
    shape = (*value.shape[:axis], size, *value.shape[axis + 1 :])
    return rows_at(reshaped(dy, shape), places, axis)
