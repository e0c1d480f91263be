"""Indexing: basic and advanced, gather, and their adjoints, which scatter and add."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinygrad_cg_kernels import move as kmove

from .. import convert as conversion
from ..convert import convert, is_tensor
from ..errors import InvalidArgumentError
from ..primitive import apply
from ..tensor import Aval, Tensor
from .define import Case, as_int, move, normalize_axis

_getitem = move(
    "getitem",
    lambda x, key: x[(*key, ...)] if Ellipsis not in _plain(key) else x[key],
    lambda x, key: Aval(np.broadcast_to(np.zeros((), x.dtype), x.shape)[key].shape, x.dtype),
    (lambda dy, shape, key: apply(_getitem_adjoint, (dy,), {"shape": shape, "key": key}),),
    linear=True,
    aliases=True,
    reference=lambda x, key: x[key],
    samples=[
        Case(((4, 3),), {"key": (slice(1, 4, 2), 0)}),
        Case(((4, 3),), {"key": (None, Ellipsis, slice(None, None, -1))}),
        Case(((4, 3),), {"key": (np.array([0, 0, 2]),)}),
        Case(((4, 3),), {"key": (np.array([[0], [-1]]), np.array([1, 1]))}),
        Case(((3,),), {"key": (np.array([True, False, True]),)}),
    ],
)


def _plain(key: tuple) -> list:
    """The parts of a key that can be compared with `in`."""
    return [part for part in key if not isinstance(part, np.ndarray)]


def _scatter(dy: np.ndarray, shape: tuple[int, ...], key: tuple) -> np.ndarray:
    """Zeros of `shape` with `dy` added at `key`; a position that repeats adds up."""
    if not any(isinstance(part, np.ndarray) for part in key):
        out = np.zeros(shape, dy.dtype)
        out[key] = dy
        return out
    size = int(np.prod(shape, dtype=np.int64))
    positions = np.arange(size).reshape(shape)[key]
    flat = kmove.scatter_add((size,), dy.dtype, positions.reshape(-1), dy.reshape(-1), 0)
    return flat.reshape(shape)


_getitem_adjoint = move(
    "getitem_adjoint",
    _scatter,
    lambda x, shape, key: Aval(shape, x.dtype),
    (lambda dy, key: apply(_getitem, (dy,), {"key": key}),),
    linear=True,
    samples=[
        Case(((2,),), {"shape": (4, 3), "key": (slice(1, 4, 2), 0)}),
        Case(((3, 3),), {"shape": (4, 3), "key": (np.array([0, 0, 2]),)}),
    ],
)


def getitem(x: Any, key: Any) -> Tensor:
    """``x[key]`` with NumPy's rules: integers, slices, None, ..., integer and boolean arrays."""
    x = convert(x)
    parts = key if isinstance(key, tuple) else (key,)
    return apply(_getitem, (x,), {"key": tuple([_index_part(part) for part in parts])})


def _index_part(part: Any) -> Any:
    if part is None or part is Ellipsis or type(part) is int:
        return part
    if isinstance(part, slice):
        return slice(*[_bound(bound) for bound in (part.start, part.stop, part.step)])
    if isinstance(part, (bool, np.bool_)):
        return np.array(part)
    if is_tensor(part) or isinstance(part, (np.ndarray, np.generic, list, range)):
        array = np.array(part)
        if array.dtype.kind in "iu":
            return int(array) if not array.ndim else array
        if array.dtype.kind == "b":
            return array
        if not array.size:
            return array.astype(np.int64)
        found = f"an array of {array.dtype}"
    else:
        try:
            return operator.index(part)
        except TypeError:
            found = type(part).__name__
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None, and integer or boolean arrays "
        f"are valid indices, got {found}"
    )


def _bound(bound: Any) -> int | None:
    return None if bound is None else as_int("getitem", "a slice's bound", bound)


# Gather --------------------------------------------------------------------------------------

_gather = move(
    "gather",
    lambda x, indices, axis: kmove.gather(x, indices, axis),
    lambda x, indices, axis: Aval((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype),
    (
        lambda dy, indices, shape, axis: apply(
            _gather_adjoint, (dy, indices), {"shape": shape, "axis": axis}
        ),
        None,
    ),
    inputs=("x", "indices"),
    linear=True,
    kernel=kmove.gather,
    reference=lambda x, indices, axis: np.take(x, indices, axis),
    samples=[
        Case(((4, 3), ()), {"axis": 0}, {1: np.array([[0, 2], [2, 3]])}),
        Case(((2, 5), ()), {"axis": 1}, {1: np.array([4, 0, 4])}),
    ],
)
_gather_adjoint = move(
    "gather_adjoint",
    lambda x, indices, shape, axis: kmove.scatter_add(shape, x.dtype, indices, x, axis),
    lambda x, indices, shape, axis: Aval(shape, x.dtype),
    (lambda dy, indices, axis: apply(_gather, (dy, indices), {"axis": axis}), None),
    inputs=("x", "indices"),
    linear=True,
    kernel=kmove.scatter_add,
    samples=[Case(((3, 3), ()), {"shape": (4, 3), "axis": 0}, {1: np.array([0, 0, 2])})],
)


def gather(x: Any, indices: Any, axis: Any = 0, batch_dims: int = 0) -> Tensor:
    """Slices of `x` along `axis` at integer `indices`; negative indices count from the end.

    With `batch_dims` the first axes of `x` and `indices` are gone through together.
    """
    x, indices = convert(x), convert(indices)
    if indices.dtype.kind not in "iu":
        raise InvalidArgumentError(f"gather: indices must be integers, got {indices.dtype}")
    if batch_dims:
        return _gather_batched(x, indices, axis, as_int("gather", "batch_dims", batch_dims))
    place = normalize_axis("gather", axis, x._data.ndim)
    return apply(_gather, (x, indices), {"axis": place})


def _gather_batched(x: Tensor, indices: Tensor, axis: Any, batch_dims: int) -> Tensor:
    place = max(normalize_axis("gather", axis, x._data.ndim), batch_dims)
    batch = tuple(x.shape[:batch_dims])
    if tuple(indices.shape[:batch_dims]) != batch:
        raise InvalidArgumentError(
            f"gather: the first {batch_dims} axes of shapes {tuple(x.shape)} and "
            f"{tuple(indices.shape)} must agree"
        )
    grid = np.ogrid[tuple(slice(0, size) for size in batch)]
    extra = indices._data.ndim - batch_dims
    rows = tuple(one.reshape(one.shape + (1,) * extra) for one in grid)
    front = tuple(range(place))
    if place > batch_dims:
        perm = (
            *front[:batch_dims],
            place,
            *front[batch_dims:],
            *range(place + 1, x._data.ndim),
        )
        from .shape import transpose

        moved = getitem(transpose(x, perm), (*rows, indices))
        middle = range(batch_dims + extra, batch_dims + extra + place - batch_dims)
        rest = range(middle.stop, moved._data.ndim)
        order = (*front[:batch_dims], *middle, *range(batch_dims, batch_dims + extra), *rest)
        return transpose(moved, order)
    return getitem(x, (*rows, indices))


def _scatter_slices(values: Tensor, indices: Tensor, shape: tuple[int, ...]) -> Tensor:
    return apply(_gather_adjoint, (values, indices), {"shape": shape, "axis": 0})


conversion.operations.scatter_slices = _scatter_slices
