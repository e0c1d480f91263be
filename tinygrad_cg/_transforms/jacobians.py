"""Jacobians: all rows of one sweep as a batch."""

from __future__ import annotations

from math import prod
from typing import Any

from .._core.levels import Token
from .._core.tensor import Tensor
from .._ops.creation import eye
from .._ops.indexing import getitem
from .._ops.shape import repeat, reshape, stack, transpose
from .._reverse.sweep import differentiate
from .batching import Batch, BatchTensor


def basis(shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return the unit vectors of a space of tensors, along a first axis."""
    size = prod(shape)
    return reshape(eye(size, dtype=dtype), (size, *shape))


def rows(token: Token, target: Tensor, sources: list, batched: bool = True) -> list:
    """Return the Jacobian of `target` by each source, of shape ``target.shape + source.shape``.

    By one sweep, whose rules see one upstream gradient for each element of the target, or, if
    not `batched`, by a sweep for each. None where the target does not depend on a source.
    """
    shape = tuple(target._data.shape)
    found = _sweeps(token, target, basis(shape, target._data.dtype), sources, batched)
    return [None if one is None else reshape(one, (*shape, *one._data.shape[1:])) for one in found]


def example_rows(token: Token, target: Tensor, source: Any, batched: bool = True) -> Tensor | None:
    """Return Jacobians of each slice of `target` along its first axis by that slice of `source`."""
    count, *rest = target._data.shape
    units = basis(tuple(rest), target._data.dtype)
    size = units._data.shape[0]
    upstream = repeat(reshape(units, (size, 1, *rest)), (size, count, *rest))
    (found,) = _sweeps(token, target, upstream, [source], batched)
    if found is None:
        return None
    inner = found._data.shape[2:]
    swapped = transpose(found, (1, 0, *range(2, len(inner) + 2)))
    return reshape(swapped, (count, *rest, *inner))


def _sweeps(token: Token, target: Tensor, upstream: Tensor, sources: list, batched: bool) -> list:
    """Return the gradients for each slice of `upstream` along its first axis, stacked."""
    count = upstream._data.shape[0]
    if count and not batched:
        found = [
            differentiate(token, [target], [getitem(upstream, i)], sources)[0] for i in range(count)
        ]
        columns = zip(*found, strict=True)
        return [None if column[0] is None else stack(list(column)) for column in columns]
    level = Batch(count)
    with level:
        results, _ = differentiate(token, [target], [BatchTensor(upstream, level)], sources)
    return [None if one is None else level.physical(one) for one in results]
