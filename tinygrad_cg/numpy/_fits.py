"""NumPy's fits and roots of polynomials, and histograms of several dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core import devices
from .._core.conversion import IndexedSlices
from .._core.tensor import Aval, Tensor
from .._ops.creation import constant, zeros
from .._ops.decompositions import inv
from .._ops.eigenvectors import eigvals
from .._ops.elementwise import divide, multiply, sqrt, square, subtract
from .._ops.indexing import gather, getitem
from .._ops.least_squares import lstsq
from .._ops.linear_algebra import matmul
from .._ops.reductions import reduce_sum
from .._ops.shape import concatenate, expand_dims, reshape, stop_gradient, transpose
from ..errors import InvalidArgumentError
from ._manipulation import vander
from ._readers import _array, _deciding, _real


def polyfit(
    x: Any,
    y: Any,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: Any = None,
    cov: Any = False,
) -> Any:
    """Return the coefficients, highest power first, of the polynomial nearest to points.

    `x` and `y` have equally many elements; `y` may have columns, which are fitted separately. `w`
    are weights of the differences. It has gradients with respect to `x`, `y` and `w`. With `cov`,
    also return the covariance matrix ("unscaled": for weights that are 1 / sigma). Integers give
    float64. Raises ValueError for `full`, negative degrees, and sizes that do not fit. Modelled on
    ``numpy.polyfit``.
    """
    if full:
        raise ValueError("polyfit: full=True is not supported: use linalg.lstsq(vander(x), y)")
    points, values = _real(x), _real(y)
    if points.ndim != 1 or values.ndim not in (1, 2) or values.shape[0] != points.shape[0]:
        raise InvalidArgumentError(
            "polyfit: x must be a vector and y have as many rows, got shapes "
            f"{tuple(points.shape)} and {tuple(values.shape)}"
        )
    if deg < 0 or not points.shape[0]:
        raise InvalidArgumentError(f"polyfit: needs points and a degree of 0 or more, got {deg}")
    powers = vander(points, deg + 1)
    if w is not None:
        weights = _real(w)
        if weights.shape != points.shape:
            raise InvalidArgumentError(
                f"polyfit: w must have the shape of x, {tuple(points.shape)}, got "
                f"{tuple(weights.shape)}"
            )
        powers = multiply(powers, expand_dims(weights, 1))
        values = multiply(values, weights if values.ndim == 1 else expand_dims(weights, 1))
    scale = sqrt(reduce_sum(square(powers), 0))
    bound = points.shape[0] * np.finfo(points.dtype).eps if rcond is None else rcond
    coefficients = lstsq(divide(powers, scale), values, bound)
    coefficients = divide(coefficients, scale if values.ndim == 1 else expand_dims(scale, 1))
    if not cov:
        return coefficients
    inverse = inv(matmul(transpose(scaled := divide(powers, scale)), scaled))
    inverse = divide(inverse, multiply(expand_dims(scale, 1), scale))
    if cov != "unscaled":
        spare = points.shape[0] - deg - 1
        if spare <= 0:
            raise InvalidArgumentError(
                f"polyfit: cov needs more than deg + 1 = {deg + 1} points, got {points.shape[0]}"
            )
        rest = subtract(
            values,
            matmul(powers, expand_dims(coefficients, 1))[:, 0]
            if values.ndim == 1
            else matmul(powers, coefficients),
        )
        variance = divide(reduce_sum(square(rest), 0), spare)
        inverse = multiply(inverse if values.ndim == 1 else expand_dims(inverse, 2), variance)
    elif values.ndim == 2:
        inverse = expand_dims(inverse, 2)
    return coefficients, inverse


@devices.on_device_of_operands
def poly(seq_of_zeros: Any) -> Tensor:
    """Return the coefficients of the polynomial with the given zeros, the highest power, 1, first.

    For a square matrix, of its characteristic polynomial.
    """
    x = _real(seq_of_zeros)
    if x.ndim > 2 or (x.ndim == 2 and x.shape[0] != x.shape[1]):
        raise InvalidArgumentError(
            f"poly: needs a vector or a square matrix, got shape {tuple(x.shape)}"
        )
    is_real = x.ndim == 2 and x.dtype.kind == "f"
    x = eigvals(x) if x.ndim == 2 else reshape(x, (-1,))
    coefficients = constant(np.ones(1, x.dtype))
    for i in range(x.shape[0]):
        shifted = multiply(coefficients, getitem(x, i))
        zero = zeros(1, x.dtype)
        coefficients = subtract(concatenate([coefficients, zero]), concatenate([zero, shifted]))
    return coefficients.real if is_real else coefficients


@devices.on_device_of_operands
def roots(p: Any) -> Tensor:
    """Return the complex zeros of a polynomial of coefficients `p`, the highest power first.

    They are eigenvalues of the companion matrix, in any order; the gradients of multiple
    roots are not finite. Leading zeros are dropped; in `function` and `vmap` the first coefficient
    must not be 0. The result is always complex (NumPy returns real roots if all are real).
    """
    x = _real(p)
    if x.ndim != 1:
        raise InvalidArgumentError(f"roots: needs a vector, got shape {tuple(x.shape)}")
    ends = 0
    if not isinstance(x._data, Aval):
        used = np.flatnonzero(np.asarray(stop_gradient(x)))
        if not used.size:
            return constant(np.zeros(0, np.complex128))
        ends = x.shape[0] - 1 - int(used[-1])
        x = getitem(x, slice(int(used[0]), int(used[-1]) + 1))
    degree = x.shape[0] - 1
    wide = np.result_type(x.dtype, np.complex64)
    if degree < 1:
        return constant(np.zeros(ends, wide))
    row = divide(getitem(x, slice(1, None)), -getitem(x, slice(0, 1)))
    below = constant(np.eye(degree - 1, degree, dtype=x.dtype))
    values = eigvals(concatenate([reshape(row, (1, -1)), below]))
    return concatenate([values, constant(np.zeros(ends, values.dtype))]) if ends else values


@devices.on_device_of_operands
def polydiv(u: Any, v: Any) -> tuple[Tensor, Tensor]:
    """Return quotient and remainder of polynomials, the highest power first.

    The first coefficient of `v` must not be 0. Leading zeros of the remainder are dropped, except
    in `function` and `vmap`.
    """
    rest, divisor = (reshape(_real(polynomial), (-1,)) for polynomial in (u, v))
    n, m = rest.shape[0], divisor.shape[0]
    parts = []
    for i in range(max(n - m + 1, 0)):
        share = divide(getitem(rest, i), getitem(divisor, 0))
        parts.append(reshape(share, (1,)))
        margins = [zeros(i, divisor.dtype), divisor, zeros(n - m - i, divisor.dtype)]
        rest = subtract(rest, multiply(concatenate(margins), share))
    quotient = concatenate(parts) if parts else zeros(1, rest.dtype)
    first = n - m + 1 if parts else 0
    rest = getitem(rest, slice(min(first, n - 1), None))
    if not isinstance(rest._data, Aval):
        small = np.isclose(np.asarray(stop_gradient(rest)), 0, rtol=1e-14)
        kept = np.flatnonzero(~small)
        rest = getitem(rest, slice(int(kept[0]) if kept.size else -1, None))
    return quotient, rest


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """Return the elements that are in only one of two tensors, in ascending order.

    The gradient goes to the first of equal elements. Inside `function` and `vmap` it raises; see
    `unique`.
    """
    both = [reshape(_array(array), (-1,)) for array in (ar1, ar2)]
    positions = []
    for x, other, start in ((both[0], both[1], 0), (both[1], both[0], both[0].shape[0])):
        values = _deciding("setxor1d", x)
        first = np.arange(values.size) if assume_unique else np.unique(values, True)[1]
        positions.append(first[~np.isin(values[first], _deciding("setxor1d", other))] + start)
    joined = concatenate(both)
    index = np.concatenate(positions)
    values = _deciding("setxor1d", joined)[index]
    return getitem(joined, (index[np.argsort(values, kind="stable")],))


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    density: Any = None,
    weights: Any = None,
) -> tuple[Tensor, list[Tensor]]:
    """Return how many points lie in each bin of a grid, and the edges along each dimension.

    `sample` has a row for each point. Sums of `weights` have a gradient with respect to these;
    counts and edges have no gradient. Arguments as for ``numpy.histogramdd``. Inside `function` and
    `vmap` it raises.
    """
    if isinstance(sample, (list, tuple)):
        points = np.stack(
            [_deciding("histogramdd", _array(coordinates)) for coordinates in sample], -1
        )
    else:
        points = _deciding("histogramdd", _array(sample))
    points = points[:, None] if points.ndim == 1 else points
    whole = [
        _deciding("histogramdd", choice) if isinstance(choice, Tensor) else choice
        for choice in (bins if isinstance(bins, (list, tuple)) else (bins,))
    ]
    read = whole if isinstance(bins, (list, tuple)) else whole[0]
    _, edges = np.histogramdd(points, read, range)
    sizes = [len(along) - 1 for along in edges]
    flat, inside = np.zeros(len(points), np.int64), np.ones(len(points), bool)
    for k, limits in enumerate(edges):
        index = np.searchsorted(limits, points[:, k], "right") - 1
        index[points[:, k] == limits[-1]] -= 1
        inside &= (index >= 0) & (index < sizes[k])
        flat = flat * sizes[k] + index
    shares = constant(np.ones(len(points))) if weights is None else reshape(_real(weights), (-1,))
    if shares.shape[0] != len(points):
        raise InvalidArgumentError(
            f"histogramdd: needs a weight for each of {len(points)} points, got {shares.shape[0]}"
        )
    kept = np.flatnonzero(inside)
    total = IndexedSlices(gather(shares, kept), flat[kept], (int(np.prod(sizes)),)).dense()
    counts = reshape(total, sizes)
    if density:
        volume = np.ones(())
        for limits in edges:
            volume = np.multiply.outer(volume, np.diff(limits))
        counts = divide(counts, multiply(reduce_sum(counts), volume))
    return counts, [constant(along) for along in edges]


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return how many of the points (x, y) lie in each bin, and the edges; see `histogramdd`."""
    if isinstance(bins, (list, tuple, np.ndarray, Tensor)) and len(bins) not in (1, 2):
        bins = [bins, bins]  # edges of both
    counts, (first, second) = histogramdd([x, y], bins, range, density, weights)
    return counts, first, second
