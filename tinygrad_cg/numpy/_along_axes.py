"""NumPy's functions that reduce a tensor along axes, or compare neighbours along one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import devices
from .._core.conversion import IndexedSlices, convert, promote
from .._core.kinds import is_bool, is_exact, is_integer
from .._core.tensor import Aval, Tensor, operations
from .._ops import searching
from .._ops.comparison import equal, greater_equal, isnan, less, logical_not, not_equal
from .._ops.complex import conj, real
from .._ops.creation import constant, linspace, ones_like
from .._ops.elementwise import add, clip, divide, maximum, minimum, multiply, sqrt, subtract, where
from .._ops.elementwise import where as _choose
from .._ops.indexing import gather, getitem
from .._ops.linear_algebra import matmul
from .._ops.namespaces.namespace import spelled
from .._ops.reductions import reduce_max, reduce_mean, reduce_min, reduce_sum, root_of_variance
from .._ops.segments import unsorted_segments
from .._ops.shape import (
    broadcast_to,
    cast,
    concatenate,
    expand_dims,
    in_float32,
    reshape,
    squeeze,
    stack,
    stop_gradient,
    transpose,
)
from .._ops.validation import as_count, normalize_axes, normalize_axis
from ..errors import InvalidArgumentError
from ._manipulation import _part, diagonal, moveaxis
from ._readers import _array, _as, _no_out, _real, _searchsorted, _widen
from ._totals import _degrees, _mask


def ptp(a: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Return the difference of the largest and smallest element over axes; ties share gradients."""
    x = _array(a)
    return subtract(reduce_max(x, axis, keepdims), reduce_min(x, axis, keepdims))


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    """Return the mean of elements over axes, weighted if `weights` are given.

    The weights have the shape of `a`, or that of its reduced axes, in the order of `axis`. With
    `returned` a pair: the mean, and the sums of the weights.
    """
    x = _real(a)
    if weights is None:
        mean = reduce_mean(x, axis, keepdims)
        total = constant(np.full(mean.shape, x.size / max(mean.size, 1), x.dtype))
        return (mean, total) if returned else mean
    shares = _weights(x, axis, _array(weights))
    if is_exact(shares.dtype):  # integers would overflow
        shares = cast(shares, promote(x.dtype, shares.dtype))
    total = reduce_sum(shares, axis, keepdims)
    mean = divide(reduce_sum(multiply(x, shares), axis, keepdims), total)
    return (mean, broadcast_to(total, tuple(mean.shape))) if returned else mean


def _weights(x: Tensor, axis: Any, weights: Tensor) -> Tensor:
    """Return `weights` with the axes of `x` that they belong to."""
    if weights.shape == x.shape:
        return weights
    axes = [
        normalize_axis("average", i, x.ndim) for i in np.atleast_1d([] if axis is None else axis)
    ]
    if tuple(weights.shape) != tuple(x.shape[i] for i in axes):
        raise InvalidArgumentError(
            f"average: weights of shape {tuple(weights.shape)} fit neither the shape "
            f"{tuple(x.shape)} nor its axes {axis}"
        )
    order = np.argsort(axes)
    weights = moveaxis(weights, order.tolist(), list(range(len(axes))))
    sizes = [size if i in axes else 1 for i, size in enumerate(x.shape)]
    return broadcast_to(reshape(weights, sizes), tuple(x.shape))


# Without NaN ---------------------------------------------------------------------------------


def _without_nan(a: Any, dtype: Any, filler: int) -> Tensor:
    """Return `x` in a dtype wide enough for its sum, with `filler` in place of NaN."""
    x = _as(_widen(a), dtype)
    return where(isnan(x), filler, x)


def nanmean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Tensor:
    """Return the mean of elements over axes, ignoring NaN; NaN if all elements are NaN.

    `where` selects the elements.
    """
    x = _no_out("nanmean", out, _counted("nanmean", _as(_real(a), dtype), where))
    if x.dtype == np.float16:  # float16 may hold neither the sum nor the count
        return cast(nanmean(x, axis, np.float32, keepdims=keepdims), x.dtype)
    total = reduce_sum(_without_nan(x, None, 0), axis, keepdims)
    return divide(total, _count(x, axis, keepdims))


def _count(x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    """Return the number of elements that are not NaN, in the real dtype of `x`."""
    return reduce_sum(cast(logical_not(isnan(x)), real(x).dtype), axis, keepdims)


def _spread(name: str, finish: Callable[[Tensor], Tensor], doc: str):
    def spread(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Any = None,
        mean: Any = None,
        correction: Any = None,
    ) -> Tensor:
        x = _no_out(name, out, _counted(name, _as(_real(a), dtype), where))
        less = _degrees(name, ddof, correction)
        return in_float32(lambda x: finish(_variance(x, axis, less, keepdims, mean)))(x)

    spread.__doc__ = doc
    return spelled(spread, name)


def _variance(x: Tensor, axis: Any, less: Any, keepdims: bool, mean: Any) -> Tensor:
    center = nanmean(x, axis, keepdims=True) if mean is None else _array(mean)
    centered = _choose(isnan(x), 0, subtract(x, center))
    total = reduce_sum(real(multiply(centered, conj(centered))), axis, keepdims)
    left = subtract(_count(x, axis, keepdims), less)
    return divide(total, _choose(left > 0, left, np.nan))


nanvar = _spread(
    "nanvar",
    lambda variance: variance,
    """Return the variance over axes, ignoring NaN; the divisor is the number of elements minus
    `ddof`.

    `where` selects the elements; `mean` is their mean, with the reduced axes, if it is known;
    `correction` is another name of `ddof`.
    """,
)
nanstd = _spread(
    "nanstd",
    root_of_variance,
    "Return the standard deviation of elements over axes: the square root of `nanvar`.",
)


def _counted(name: str, x: Tensor, chosen: Any) -> Tensor:
    """Return `x` with NaN where `where` is false; NaN is left out."""
    mask = _mask(name, chosen, x)
    return x if mask is None else _choose(mask, x, np.nan)


# Neighbours ----------------------------------------------------------------------------------


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Return the `n`-th differences of neighbours along `axis`, with `prepend` and `append` added
    first.

    Raises ValueError for a negative `n`, InvalidArgumentError for a scalar `a`.
    """
    x = _array(a)
    n = as_count("diff", "n", n)
    dim = normalize_axis("diff", axis, x.ndim)
    if not n:
        return x
    if prepend is not None or append is not None:
        x = concatenate([_edge(prepend, x, dim), x, _edge(append, x, dim)], dim)
    difference = not_equal if is_bool(x.dtype) else subtract
    for _ in range(n):
        x = difference(_part(x, dim, 1, None), _part(x, dim, None, -1))
    return x


def _edge(values: Any, x: Tensor, axis: int) -> Tensor:
    """Return the part to join to `x`: nothing, a number for each row, or rows."""
    if values is None:
        return _part(x, axis, 0, 0)
    edge = _array(values)
    if edge.ndim:
        return edge
    return broadcast_to(edge, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Return the integral of samples `y` at `x`, or in steps `dx`, by the trapezoidal rule."""
    y = _real(y)
    dim = normalize_axis("trapezoid", axis, y.ndim)
    if x is None:
        steps = dx
    else:
        points = _array(x)
        steps = diff(points, axis=0 if points.ndim == 1 else dim)
        if points.ndim == 1:
            steps = reshape(steps, (-1, *[1] * (y.ndim - dim - 1)))
    pairs = add(_part(y, dim, 1, None), _part(y, dim, None, -1))
    return reduce_sum(divide(multiply(pairs, steps), 2), dim)


@devices.on_device_of_operands
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return central differences of samples `f` along each axis, or `axis`; for several a tuple.

    `varargs` are the spacing: one number, or for each axis a number or the coordinates of the
    samples. At the ends the differences are one-sided, of first or second order (`edge_order`).
    Modelled on ``np.gradient``: A. Quarteroni et al., Numerical Mathematics, 10.10.
    """
    x = _real(f)
    axes = normalize_axes("gradient", axis, x.ndim)
    if len(axes) > 1 and axis is not None:  # in their own order
        axes = tuple([normalize_axis("gradient", i, x.ndim) for i in axis])
    spacings = varargs * len(axes) if len(varargs) == 1 and not _array(varargs[0]).ndim else varargs
    if varargs and len(spacings) != len(axes):
        raise TypeError(f"gradient: {len(varargs)} spacings for {len(axes)} axes")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order}")
    results = [
        _slope(x, dim, spacing, edge_order)
        for dim, spacing in zip(axes, spacings or [1.0] * len(axes), strict=True)
    ]
    return results[0] if len(results) == 1 else tuple(results)


def _slope(x: Tensor, axis: int, spacing: Any, edge_order: int) -> Tensor:
    """Return the derivative along one axis, from parabolas through three neighbours."""
    size = x.shape[axis]
    if size < edge_order + 1:
        raise InvalidArgumentError(
            f"gradient: axis {axis} has {size} samples, but {edge_order + 1} are needed"
        )
    x = moveaxis(x, axis, -1)
    coordinates = _array(spacing)
    if coordinates.ndim:
        steps = diff(cast(coordinates, x.dtype))
    else:
        steps = broadcast_to(cast(coordinates, x.dtype), (size - 1,))
    secants = divide(diff(x), steps)  # between neighbours
    left, right = _part(steps, 0, None, -1), _part(steps, 0, 1, None)
    share = divide(left, add(left, right))
    before, after = _part(secants, x.ndim - 1, None, -1), _part(secants, x.ndim - 1, 1, None)
    inside = add(multiply(before, subtract(1, share)), multiply(after, share))
    first, last = (_part(secants, x.ndim - 1, *ends) for ends in ((0, 1), (-1, None)))
    if edge_order == 2:
        # twice the secant less the slope at its other end: exact for parabolas
        first = subtract(multiply(first, 2), _part(inside, x.ndim - 1, 0, 1))
        last = subtract(multiply(last, 2), _part(inside, x.ndim - 1, -1, None))
    return moveaxis(concatenate([first, inside, last], -1), -1, axis)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Tensor:
    """Interpolate linearly between the points (`xp`, `fp`), at `x`; of the shape of `x`.

    `xp` must increase; beyond its ends the result is `left` and `right`, by default the first and
    last `fp`. It has gradients with respect to `x`, `xp` and `fp`; at a point `xp`, the gradient of
    the line to its right. Raises ValueError for a `period`, which is not supported.
    """
    if period is not None:
        raise ValueError("interp: period is not supported on tensors: wrap x and xp first")
    points, knots, values = map(_real, (x, xp, fp))
    if knots.ndim != 1 or knots.shape != values.shape or not knots.shape[0]:
        raise InvalidArgumentError("interp: xp and fp must be 1-D, of the same size, and not empty")
    position = subtract(_searchsorted(knots, points, "right", None), 1)
    last = knots.shape[0] - 1
    index = clip(position, 0, max(last - 1, 0))
    after_index = minimum(add(index, 1), last)
    low, high = gather(knots, index), gather(knots, after_index)
    start, end = gather(values, index), gather(values, after_index)
    width = where(equal(high, low), 1, subtract(high, low))
    inside = add(start, multiply(divide(subtract(points, low), width), subtract(end, start)))
    before, after, limit = getitem(values, 0), getitem(values, -1), getitem(knots, -1)
    inside = where(less(position, 0), before if left is None else left, inside)
    outside = where(equal(points, limit), after, after if right is None else right)
    return where(greater_equal(points, limit), outside, inside)


# One slice at a time -------------------------------------------------------------------------


def apply_along_axis(func1d: Callable, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Apply `func1d` to each 1-D slice of `arr` along `axis`; its results replace that axis."""
    x = _array(arr)
    dim = normalize_axis("apply_along_axis", axis, x.ndim)
    rows = moveaxis(x, dim, -1)
    outer = tuple(rows.shape[:-1])
    results = [convert(func1d(getitem(rows, key), *args, **kwargs)) for key in np.ndindex(outer)]
    if not results:
        raise InvalidArgumentError("apply_along_axis: arr has no slices for func1d")
    shape = tuple(results[0].shape)
    result = reshape(stack(results), (*outer, *shape))
    count = len(shape)
    return moveaxis(result, list(range(-count, 0)), list(range(dim, dim + count)))


def apply_over_axes(func: Callable, a: Any, axes: Any) -> Tensor:
    """Apply ``func(a, axis)`` for each axis in turn; the result has the same rank or one less."""
    x = _array(a)
    for axis in np.atleast_1d(axes).tolist():
        dim = normalize_axis("apply_over_axes", axis, x.ndim)
        reduced = convert(func(x, dim))
        x = expand_dims(reduced, dim) if reduced.ndim < x.ndim else reduced
    return x


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Any = None,
    fweights: Any = None,
    aweights: Any = None,
) -> Tensor:
    """Return the covariance matrix of variables in the rows of `m` (and `y`), observed in columns.

    The divisor is the number of observations minus `ddof`, which is 1 by default, and 0 with
    `bias`. `fweights` are integers, the number of occurrences of each observation; `aweights` its
    weight. Both are vectors and not negative; the gradient flows to `aweights`. Modelled on
    ``numpy.cov``. Raises TypeError for `fweights` that are not integers, and InvalidArgumentError
    for weights that do not fit.
    """
    x = _read_observations(m, rowvar)
    if y is not None:
        is_row = rowvar or _array(y).shape[:1] == (1,)  # as NumPy does
        x = concatenate([x, _read_observations(y, is_row)])
    taken = (0 if bias else 1) if ddof is None else ddof
    if fweights is None and aweights is None:
        centered = subtract(x, reduce_mean(x, 1, keepdims=True))
        product = matmul(centered, centered, adjoint_y=True)
        return squeeze(divide(product, float(max(x.shape[1] - taken, 0))))
    counts, shares = _observed("fweights", fweights, x), _observed("aweights", aweights, x)
    if counts is not None and not is_integer(counts.dtype):
        raise TypeError(f"cov: fweights must be integers, got {counts.dtype.name}")
    weights = counts if shares is None else shares if counts is None else multiply(counts, shares)
    weights = cast(weights, real(x).dtype)
    total = reduce_sum(weights)
    mean = divide(reduce_sum(multiply(x, weights), 1, keepdims=True), total)
    centered = subtract(x, mean)
    product = matmul(multiply(centered, weights), centered, adjoint_y=True)
    lost = cast(taken, weights.dtype)
    if shares is not None and taken:
        lost = divide(multiply(lost, reduce_sum(multiply(weights, shares))), total)
    return squeeze(divide(product, cast(maximum(subtract(total, lost), 0), x.dtype)))


def _observed(name: str, weights: Any, x: Tensor) -> Tensor | None:
    """Return weights for the observations, which are the columns of `x`."""
    if weights is None:
        return None
    observed = _array(weights)
    if tuple(observed.shape) != (x.shape[1],):
        raise InvalidArgumentError(
            f"cov: {name} must be a vector of {x.shape[1]} numbers, one for each observation, got "
            f"shape {tuple(observed.shape)}"
        )
    if (np.asarray(stop_gradient(observed)) < 0).any():
        raise InvalidArgumentError(f"cov: {name} must not be negative")
    return observed


def _read_observations(m: Any, rowvar: bool) -> Tensor:
    x = _real(m)
    if x.ndim > 2:
        raise InvalidArgumentError(f"cov: needs 1 or 2 dimensions, got {x.ndim}")
    if x.ndim < 2:
        return reshape(x, (1, -1))
    return x if rowvar else transpose(x)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Tensor:
    """Return the matrix of the correlations of variables; arguments as for `cov`."""
    products = cov(x, y, rowvar)
    if not products.ndim:
        return divide(products, products)
    size = sqrt(real(diagonal(products)))
    return divide(divide(products, expand_dims(size, 1)), size)


# Counting ------------------------------------------------------------------------------------


@devices.on_device_of_operands
def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Tensor:
    """Count how often each of 0, 1, 2, ... occurs in the integers `x`, or sum their `weights`."""
    ids = _array(x)
    if weights is None and searching.is_on_gpu(ids._data) and ids.ndim == 1 and ids.size:
        low, high = int(reduce_min(ids)), int(reduce_max(ids))
        if low >= 0 and minlength >= 0 and is_integer(ids.dtype):
            ones = broadcast_to(constant(np.int64(1)), ids.shape)
            return unsorted_segments("sum", ones, ids, max(high + 1, minlength))
    bins = np.asarray(ids)
    if weights is None:
        return constant(np.bincount(bins, minlength=minlength))
    shares = _real(weights)
    if shares.shape != bins.shape:
        raise InvalidArgumentError("bincount: x and weights must have the same shape")
    size = max(minlength, int(bins.max(initial=-1)) + 1)
    return IndexedSlices(shares, bins, (size,)).dense()


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Tensor:
    """Return the edges of `bins` bins, evenly spaced from the smallest element to the largest.

    `range` has the first and last edge; a sequence `bins` has all edges. Raises TypeError for the
    names of NumPy's estimators.
    """
    if isinstance(bins, str):
        raise TypeError("histogram: names of estimators for bins are not supported on tensors")
    edges = _array(bins)
    if edges.ndim:
        return edges
    x = _real(a)
    low, high = (reduce_min(x), reduce_max(x)) if range is None else map(_real, range)
    margin = where(equal(low, high), 0.5, 0.0)
    low, high = subtract(low, cast(margin, low.dtype)), add(high, cast(margin, high.dtype))
    return linspace(low, high, int(edges) + 1, np.result_type(low.dtype, high.dtype))


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Tensor, Tensor]:
    """Return the number of elements of `a` in each bin, and the edges of the bins.

    The counts have no gradient; the edges, the sums of `weights` and the `density` have gradients.
    Bins as for `histogram_bin_edges`. Raises ValueError for edges that do not increase; inside
    ``vmap`` and ``function``, where they may have no values, they are not checked.
    """
    edges = histogram_bin_edges(a, bins, range, weights)
    x = _array(a)
    edges = operations.to_device(edges, devices.GPU) if searching.is_on_gpu(x._data) else edges
    if not isinstance(edges._data, Aval) and np.any(np.diff(devices.to_host(edges._data)) < 0):
        raise ValueError("histogram: the edges of bins must increase")
    limits, numbers = stop_gradient(edges), reshape(stop_gradient(x), (-1,))
    count = limits.shape[0] - 1
    indices = subtract(_searchsorted(limits, numbers, "right", None), 1)
    indices = where(equal(numbers, getitem(limits, -1)), count - 1, indices)
    indices = where(less(indices, count), indices, -1)  # the negative ones are left out
    shares = ones_like(indices) if weights is None else reshape(_real(weights), (-1,))
    counts = unsorted_segments("sum", shares, indices, count)
    if density:
        counts = divide(counts, multiply(diff(edges), reduce_sum(counts)))
    return counts, edges
