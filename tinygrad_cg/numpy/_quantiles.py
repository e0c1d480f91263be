"""Quantiles of elements over axes, with NaN and without, by all of NumPy's methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import devices
from .._core.conversion import any_tensor, is_tensor
from .._core.kinds import is_floating
from .._core.tensor import Aval, Tensor
from .._ops.comparison import (
    equal,
    greater,
    greater_equal,
    isfinite,
    isnan,
    less,
    logical_and,
    logical_not,
    logical_or,
)
from .._ops.cumulative import cumsum
from .._ops.elementwise import (
    add,
    ceil,
    divide,
    floor,
    maximum,
    minimum,
    multiply,
    remainder,
    round_half_even,
    subtract,
    where,
)
from .._ops.indexing import gather
from .._ops.namespaces.adapt import arg_extremum
from .._ops.reductions import argmax, argmin, reduce_all, reduce_any, reduce_sum
from .._ops.shape import broadcast_to, cast, expand_dims, reshape, stop_gradient
from .._ops.sorting import argsort, sort, take_along_axis
from .._ops.validation import normalize_axes
from ..errors import InvalidArgumentError
from ._manipulation import moveaxis
from ._readers import _array, _real

_PLOTTING = {  # alpha and beta of Hyndman and Fan
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}


def _averaged_inverted_cdf(n: Any, q: Tensor) -> Tensor:
    position = subtract(multiply(q, n), 1)
    above = ceil(position)
    return where(equal(position, above), add(above, 0.5), above)


def _closest_observation(n: Any, q: Tensor) -> Tensor:
    position = subtract(multiply(q, n), 1.5)
    below = floor(position)
    is_odd = logical_and(equal(position, below), equal(remainder(below, 2), 1))
    return where(is_odd, below, add(below, 1))


def _ends(n: Any, q: Tensor) -> tuple[Tensor, Tensor]:
    position = multiply(q, subtract(n, 1))
    return floor(position), ceil(position)


_STEPS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "inverted_cdf": lambda n, q: ceil(subtract(multiply(q, n), 1)),
    "averaged_inverted_cdf": _averaged_inverted_cdf,
    "closest_observation": _closest_observation,
    "linear": lambda n, q: multiply(q, subtract(n, 1)),
    "lower": lambda n, q: _ends(n, q)[0],
    "higher": lambda n, q: _ends(n, q)[1],
    "midpoint": lambda n, q: multiply(add(*_ends(n, q)), 0.5),
    "nearest": lambda n, q: round_half_even(multiply(q, subtract(n, 1))),
}


def _find(method: str, n: Any, q: Tensor) -> Tensor:
    """Return where the quantiles lie among `n` sorted elements, from 0 to n - 1."""
    if method in _PLOTTING:
        alpha, beta = _PLOTTING[method]
        shift = add(multiply(q, 1 - alpha - beta), alpha)
        position = subtract(add(multiply(q, n), shift), 1)
    else:
        position = _STEPS[method](n, q)
    return maximum(minimum(position, subtract(n, 1)), 0)


def _read_shares(name: str, q: Any, method: str) -> Tensor:
    if method not in _PLOTTING and method not in _STEPS:
        names = ", ".join(sorted([*_PLOTTING, *_STEPS]))
        raise ValueError(f"{name}: method must be one of {names}; got {method!r}")
    shares = cast(_array(q), np.float64)
    limits = np.asarray(stop_gradient(shares) if _is_recorded(q) else q)
    if not ((limits >= 0) & (limits <= 1)).all():
        raise ValueError(f"{name}: q must be between 0 and 1 (percentile: between 0 and 100)")
    return shares


def _is_recorded(q: Any) -> bool:
    """Return whether `q` is a tensor or contains one."""
    return is_tensor(q) or (isinstance(q, (list, tuple)) and any_tensor(q))


def _percent(q: Any) -> Any:
    """Return ``q / 100``, as an array unless a gradient may flow to it."""
    return divide(_array(q), 100) if _is_recorded(q) else np.asarray(q) / 100


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: Any = None,
) -> Tensor:
    """Return the `q`-th quantiles of the elements over axes, with linear interpolation by default.

    `q`, of any shape, is between 0 and 1; its axes come first in the result. NaN where an element
    is. It has gradients with respect to `a` and `q`; elements that tie are distinguished by their
    positions. `method` is any of NumPy's, after R. Hyndman and Y. Fan, "Sample quantiles in
    statistical packages" (1996); those that jump have no gradient with respect to `q`. `weights`
    have the shape of `a`, or of `axis`; as in NumPy, they need the method "inverted_cdf", and they
    have no gradient. Raises ValueError for a `q` outside, and for another method, and
    InvalidArgumentError for weights that are negative, or all 0 (NaN where they have no values:
    inside `function` and `vmap`).
    """
    x, shares = _real(a), _read_shares("quantile", q, method)
    axes = normalize_axes("quantile", axis, x.ndim)
    if weights is not None:
        rows = _rows(x, axes)
        row_weights = _rows(_like(weights, x, axes), axes)
        index, wrong = _indices_by_weight(rows, row_weights, shares, method)
        values = reshape(take_along_axis(rows, index, -1), (*rows.shape[:-1], *shares.shape))
        spoiled = logical_or(reduce_any(isnan(rows), -1), wrong)
        spoiled = reshape(spoiled, (*spoiled.shape, *[1] * shares.ndim))
        return _in_front(where(spoiled, np.nan, values), x, shares.ndim, axes, keepdims)
    rows = sort(_rows(x, axes))
    count = rows.shape[-1]
    values = _interpolate(
        _find(method, float(count), shares),
        float(count - 1),
        lambda index: gather(rows, index, axis=-1),
    )
    largest = gather(rows, count - 1, axis=-1)
    spoiled = reshape(isnan(largest), (*largest.shape, *[1] * shares.ndim))
    return _in_front(where(spoiled, np.nan, values), x, shares.ndim, axes, keepdims)


def _like(weights: Any, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return weights in the shape of `x`; they may be given along one axis."""
    shared = stop_gradient(cast(_array(weights), np.float64))
    shape = [size if i in axes else 1 for i, size in enumerate(x.shape)]
    if shared.shape != x.shape and (len(axes) != 1 or tuple(shared.shape) != (x.shape[axes[0]],)):
        raise InvalidArgumentError(
            f"quantile: weights of shape {tuple(shared.shape)} fit neither the shape "
            f"{tuple(x.shape)} nor one axis of it"
        )
    return shared if shared.shape == x.shape else broadcast_to(reshape(shared, shape), x.shape)


def _indices_by_weight(
    rows: Tensor, weights: Tensor, shares: Tensor, method: str
) -> tuple[Tensor, Tensor]:
    """Return where in its row the first element stands at which the weights add up to a share.

    And which rows have weights that are negative, or all 0: an error where there are values.
    """
    if method != "inverted_cdf":
        raise ValueError(
            f'quantile: weights need the method "inverted_cdf", as in NumPy; got {method!r}'
        )
    wrong = reduce_any(logical_not(greater_equal(weights, 0)), -1)
    wrong = logical_or(wrong, logical_not(greater(reduce_sum(weights, -1), 0)))
    if not isinstance(wrong._data, Aval) and np.asarray(wrong).any():
        raise InvalidArgumentError("quantile: weights must not be negative or all 0")
    order = argsort(stop_gradient(rows), -1)
    upto = cumsum(take_along_axis(weights, order, -1), -1)
    last = upto.shape[-1] - 1
    upto = expand_dims(divide(upto, gather(upto, [last], axis=-1)), -2)
    wanted = reshape(stop_gradient(shares), (-1, 1))
    # at share 0, an element without weight is not the least
    before = logical_or(less(upto, wanted), logical_and(equal(wanted, 0), equal(upto, 0)))
    position = minimum(reduce_sum(cast(before, np.int64), -1), last)
    return take_along_axis(order, position, -1), wrong


@devices.on_device_of_operands
def nanquantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Tensor:
    """Return the `q`-th quantiles of the elements over axes, ignoring NaN; see `quantile`.

    NaN if all elements are NaN.
    """
    x, shares = _real(a), _read_shares("nanquantile", q, method)
    axes = normalize_axes("nanquantile", axis, x.ndim)
    rows = sort(_rows(x, axes))
    count = reduce_sum(cast(logical_not(isnan(rows)), np.float64), -1, True)
    flat = reshape(shares, (-1,))
    result = _interpolate(
        _find(method, count, flat),
        subtract(count, 1),
        lambda index: take_along_axis(rows, index, -1),
    )
    result = reshape(result, (*rows.shape[:-1], *shares.shape))
    return _in_front(result, x, shares.ndim, axes, keepdims)


def _in_front(
    result: Tensor, x: Tensor, rank: int, axes: tuple[int, ...], keepdims: bool
) -> Tensor:
    """Return the result in the dtype of `x`, with the axes of the quantiles first."""
    result = moveaxis(cast(result, x.dtype), list(range(-rank, 0)), list(range(rank)))
    if not keepdims:
        return result
    kept = [1 if i in axes else size for i, size in enumerate(x.shape)]
    return reshape(result, (*result.shape[:rank], *kept))


def _rows(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return `x` with the reduced axes merged into the last axis."""
    rest = [size for i, size in enumerate(x.shape) if i not in axes]
    count = int(np.prod([x.shape[i] for i in axes], dtype=np.int64))
    if not count:
        raise InvalidArgumentError("quantile: needs at least one element")
    last = list(range(x.ndim - len(axes), x.ndim))
    return reshape(moveaxis(x, axes, last), (*rest, count))


def _interpolate(positions: Tensor, last: Any, pick: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the values at fractional `positions` in sorted rows."""
    below = floor(positions)
    above = maximum(minimum(add(below, 1), last), 0)
    low, high = (pick(cast(index, np.int64)) for index in (below, above))
    share = subtract(positions, below)
    gap = subtract(high, low)
    near = isfinite(gap)
    inside = add(low, multiply(share, where(near, gap, 0)))
    both = add(multiply(subtract(1, share), low), multiply(share, high))
    return where(near, inside, where(equal(share, 0), low, both))


def nanargmax(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return positions (int64) of the largest elements along `axis`, ignoring NaN.

    By default in the flattened tensor; the first if several tie. Raises ValueError if all are NaN.
    """
    return _nan_position("nanargmax", argmax, -np.inf, a, axis, keepdims)


def nanargmin(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return positions (int64) of the smallest elements along `axis`, ignoring NaN.

    By default in the flattened tensor; the first if several tie. Raises ValueError if all are NaN.
    """
    return _nan_position("nanargmin", argmin, np.inf, a, axis, keepdims)


def _nan_position(
    name: str, find: Callable, end: float, a: Any, axis: Any, keepdims: bool
) -> Tensor:
    x = _array(a)
    if is_floating(x.dtype):
        missing = isnan(x)
        if np.any(np.asarray(reduce_all(missing, axis))):
            raise ValueError(f"{name}: All-NaN slice encountered")
        # Of an infinity and of NaN in its place the first would be found: so NaN takes the place
        # of an element that is found elsewhere.
        x = where(missing, end, x)
        if bool(np.any(np.asarray(equal(x, end)) & ~np.asarray(missing))):
            x = _after_all(x, missing, end)
    return arg_extremum(find, x, axis, keepdims)


def _after_all(x: Tensor, missing: Tensor, end: float) -> Tensor:
    """Return numbers in the same order, where missing ones come after infinity."""
    values = np.asarray(stop_gradient(x))
    order = np.unique(values, return_inverse=True)[1].reshape(x.shape).astype(np.float64)
    lowest = -1.0 if end < 0 else float(order.max(initial=0)) + 1
    return where(missing, lowest, Tensor(order))
