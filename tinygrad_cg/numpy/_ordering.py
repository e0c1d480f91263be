"""NumPy's functions of sorted numbers, and of the different ones among them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._core.tensor import Tensor
from .._ops.comparison import equal, isfinite, isnan
from .._ops.define import normalize_axes
from .._ops.elementwise import add, multiply, subtract, where
from .._ops.indexing import getitem
from .._ops.shape import cast, reshape, split_at
from .._ops.sorting import sort
from ..errors import InvalidArgumentError
from ._manipulation import moveaxis
from ._readers import _array, _real


class UniqueAllResult(NamedTuple):
    """The different elements, where each stands first, which each element is, how many."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """The different elements, and how many there are of each."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """The different elements, and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor


# Quantiles -----------------------------------------------------------------------------------


def quantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the `q`-th quantiles of the elements over axes, straight lines between neighbours.

    `q`, of any shape, is between 0 and 1; its axes come first in the result. NaN where an
    element is. It has gradients by `a` and by `q`; elements that tie are distinguished by their
    places. Raises ValueError for a `q` outside, and for other methods than "linear".
    """
    if method != "linear":
        raise ValueError(f"quantile: method must be 'linear' on tensors, got {method!r}")
    x, shares = _real(a), cast(_array(q), np.float64)
    limits = np.asarray(shares)
    if not ((limits >= 0) & (limits <= 1)).all():
        raise ValueError("quantile: q must be between 0 and 1 (percentile: between 0 and 100)")
    axes = normalize_axes("quantile", axis, x.ndim)
    rows = _rows(x, axes)
    found = cast(_interpolate(sort(rows), multiply(shares, rows.shape[-1] - 1)), x.dtype)
    found = moveaxis(found, list(range(-shares.ndim, 0)), list(range(shares.ndim)))
    if not keepdims:
        return found
    kept = [1 if i in axes else size for i, size in enumerate(x.shape)]
    return reshape(found, (*shares.shape, *kept))


def _rows(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return `x` with the reduced axes as one, the last."""
    rest = [size for i, size in enumerate(x.shape) if i not in axes]
    count = int(np.prod([x.shape[i] for i in axes], dtype=np.int64))
    if not count:
        raise InvalidArgumentError("quantile: of no elements there is none")
    last = list(range(x.ndim - len(axes), x.ndim))
    return reshape(moveaxis(x, axes, last), (*rest, count))


def _interpolate(rows: Tensor, positions: Tensor) -> Tensor:
    """Return the numbers at `positions`, which may lie between two, of sorted rows."""
    last = rows.shape[-1] - 1
    index = np.floor(np.asarray(positions)).astype(np.int64)
    low = getitem(rows, (Ellipsis, index))
    high = getitem(rows, (Ellipsis, np.minimum(index + 1, last)))
    share = subtract(positions, index.astype(positions.dtype))
    gap = subtract(high, low)
    near = isfinite(gap)
    inside = add(low, multiply(share, where(near, gap, 0)))
    both = add(multiply(subtract(1, share), low), multiply(share, high))
    found = where(near, inside, where(equal(share, 0), low, both))
    largest = getitem(rows, (Ellipsis, -1))
    spoiled = reshape(isnan(largest), (*largest.shape, *[1] * positions.ndim))
    return where(spoiled, np.nan, found)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Tensor]:
    """Return the parts of `ary` along its second axis, or its only one; see `split`."""
    x = _array(ary)
    if not x.ndim:
        raise InvalidArgumentError("hsplit: needs at least 1 dimension")
    return split_at(x, indices_or_sections, min(x.ndim - 1, 1))


def _split(name: str, ary: Any, parts: Any, axis: int, rank: int) -> list[Tensor]:
    x = _array(ary)
    if x.ndim < rank:
        raise InvalidArgumentError(f"{name}: needs at least {rank} dimensions")
    return split_at(x, parts, axis)
