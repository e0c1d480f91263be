"""NumPy's functions that join tensors, bring them to one rank or shape, or cut and insert."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.tensor import Tensor
from .._ops.define import broadcast_shapes
from .._ops.shape import broadcast_to, cast, concatenate, reshape
from ..errors import InvalidArgumentError
from ._readers import _array, _as, _as_array, _rearrange

_HIGHER = {1: lambda n: (n,), 2: lambda n: (1, n), 3: lambda n: (1, n, 1)}


def _raise_rank(x: Any, rank: int) -> Tensor:
    """Return `x` with axes of size 1 where NumPy adds them, to have at least `rank` axes."""
    x = _array(x)
    if x.ndim >= rank:
        return x
    if x.ndim == 2:
        return reshape(x, (*x.shape, 1))
    return reshape(x, _HIGHER[rank](x.size))


def _all_raised(arrays: tuple, rank: int) -> Any:
    if len(arrays) == 1:
        return _raise_rank(arrays[0], rank)
    return tuple([_raise_rank(one, rank) for one in arrays])


def _join(arrays: Any, axis: int, rank: int, dtype: Any) -> Tensor:
    tensors = [_raise_rank(one, rank) for one in arrays]
    return _as(concatenate(tensors, axis), dtype)


def hstack(tup: Any, *, dtype: Any = None) -> Tensor:
    """Return the arrays side by side: joined along the second axis, 1-D ones along their only."""
    tensors = [_raise_rank(one, 1) for one in tup]
    flat = bool(tensors) and tensors[0].ndim == 1
    return _join(tensors, 0 if flat else 1, 1, dtype)


def column_stack(tup: Any) -> Tensor:
    """Return the arrays side by side, 1-D ones as columns."""
    tensors = [_array(one) for one in tup]
    columns = [reshape(one, (one.size, 1)) if one.ndim < 2 else one for one in tensors]
    return _join(columns, 1, 2, None)


def block(arrays: Any) -> Tensor:
    """Return nested lists of blocks put together: the innermost along the last axis, and so on."""
    depth = _depth(arrays)
    rank = max([depth, *[_array(one).ndim for one in _leaves(arrays)]])
    return _assemble(arrays, depth, rank)


def _depth(arrays: Any) -> int:
    return 1 + max(map(_depth, arrays), default=0) if isinstance(arrays, list) else 0


def _leaves(arrays: Any) -> list:
    if not isinstance(arrays, list):
        return [arrays]
    return [leaf for part in arrays for leaf in _leaves(part)]


def _assemble(arrays: Any, depth: int, rank: int) -> Tensor:
    if not isinstance(arrays, list):
        if depth:
            raise InvalidArgumentError("block: the lists must nest equally deep everywhere")
        x = _array(arrays)
        return reshape(x, (*[1] * (rank - x.ndim), *x.shape))
    if not arrays:
        raise InvalidArgumentError("block: lists must not be empty")
    return concatenate([_assemble(part, depth - 1, rank) for part in arrays], -depth)


# Shapes in common ----------------------------------------------------------------------------


def broadcast_arrays(*args: Any) -> tuple[Tensor, ...]:
    """Return the arguments, each broadcast to the shape of all of them."""
    tensors = [_array(one) for one in args]
    shape = broadcast_shapes("broadcast_arrays", *[tuple(one.shape) for one in tensors])
    return tuple([broadcast_to(one, shape) for one in tensors])


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return coordinates of a grid from those of its axes, of shape (len(x2), len(x1), ...).

    With ``indexing="ij"`` of shape (len(x1), len(x2), ...); `sparse` leaves them of size 1
    along all axes but their own. Raises InvalidArgumentError for another `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    count = len(xi)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[:2] = [1, 0]
    grids = []
    for dim, x in zip(order, xi, strict=True):
        sizes = [1] * count
        sizes[dim] = -1
        grids.append(reshape(_array(x), sizes))
    return tuple(grids) if sparse else broadcast_arrays(*grids)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tensor:
    """Return `arr` with `values` before the rows `obj` of `axis`, or of it flattened.

    `values` are cast to the dtype of `arr`, and broadcast to the rows, as ``np.insert`` does.
    """
    x, at = _array(arr), _as_array(obj)
    new = cast(_array(values), x.dtype)
    return _rearrange(lambda indices, others: np.insert(indices, at, others, axis), x, new)
