"""Norms of vectors and matrices, of all orders."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.annotations import Axes, TensorLike
from .._core.conversion import convert
from .._core.kinds import is_complex, is_exact
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .comparison import equal, isfinite, less_equal, logical_and, not_equal
from .elementwise import absolute, divide, multiply, power, where
from .factorizations import svdvals
from .reductions import euclidean_length, reduce_max, reduce_min, reduce_sum
from .shape import cast, in_float32, reshape, squeeze, stop_gradient, transpose
from .validation import as_shape, normalize_axes, normalize_axis


def norm(x: Any, order: Any = "euclidean", axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the norm of vectors along one axis or of all elements; of matrices along two."""
    x = convert(x)
    if isinstance(axis, (tuple, list)) and len(axis) == 2:
        if order not in ("euclidean", "fro", 1, 2, np.inf):
            raise InvalidArgumentError(
                f"norm: 'ord' must be a supported matrix norm: 'euclidean', 'fro', 1, 2 or inf; "
                f"got {order!r}"
            )
        return matrix_norm(x, "fro" if order == "euclidean" else order, axis, keepdims)
    if order == "euclidean":
        return vector_norm(x, 2, axis, keepdims)
    if isinstance(order, str) or not order > 0:
        raise InvalidArgumentError(
            "norm: 'ord' must be a supported vector norm: 'euclidean' or a positive number; "
            f"got {order!r}"
        )
    return vector_norm(x, order, axis, keepdims)


@in_float32
def vector_norm(x: Any, order: Any = 2, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the norm of vectors along an axis, several, or of all elements (None).

    ``sum(abs(x) ** order) ** (1 / order)`` for any number but 0, which counts the elements that are
    not 0; inf is the largest size, -inf the smallest. Real for complex `x`; integers are float64.
    Raises InvalidArgumentError for orders that are not numbers.
    """
    x = convert(x)
    if isinstance(order, str):
        raise InvalidArgumentError(
            f"norm: Invalid norm order {order!r} for vectors: order must be a number"
        )
    if is_exact(x.dtype):
        x = cast(x, np.float64)
    if order is None or order == 2:
        return euclidean_length(x, axis, keepdims)
    size = absolute(x)
    if order in (np.inf, -np.inf):
        return (reduce_max if order > 0 else reduce_min)(size, axis, keepdims)
    if order == 0:
        return reduce_sum(cast(not_equal(x, 0), size.dtype), axis, keepdims)
    if order == 1:
        return reduce_sum(size, axis, keepdims)
    return _power_norm(size, order, normalize_axes("norm", axis, x._data.ndim), keepdims)


def _power_norm(size: Tensor, order: Any, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    """Return the root of a sum of powers, of sizes over that which counts most: none overflows.

    That size is a constant: the norm of multiples is the multiple of the norm.
    """
    if 0 not in size._data.shape:
        extreme = (reduce_max if order > 0 else reduce_min)(stop_gradient(size), axes, True)
        scale = where(logical_and(isfinite(extreme), not_equal(extreme, 0)), extreme, 1)
        size = divide(size, scale)
    else:
        scale = 1
    total = reduce_sum(power(size, order), axes, True)
    is_zero = equal(total, 0)  # where the gradient is 0, as for other norms
    root = power(where(is_zero, 1, total), 1 / order)
    norm = multiply(where(is_zero, 0.0 if order > 0 else np.inf, root), scale)
    return norm if keepdims else squeeze(norm, axes)


@in_float32
def matrix_norm(x: Any, order: Any = "fro", axis: Any = (-2, -1), keepdims: bool = False) -> Tensor:
    """Return the norm of matrices along two axes, by default the last ones.

    `order` is "fro" (the root of the sum of squared sizes), "nuc" (the sum of singular values), 2
    or -2 (the largest or smallest of them), 1 or -1 (the largest or smallest sum of sizes of a
    column), inf or -inf (of a row). Real for complex `x`; integers become float64. Raises
    InvalidArgumentError for other orders and for axes that are not two.
    """
    x = convert(x)
    if is_exact(x.dtype):
        x = cast(x, np.float64)
    rank = x._data.ndim
    axes = [normalize_axis("norm", dim, rank) for dim in as_shape("norm", axis)]
    if len(axes) != 2 or axes[0] == axes[1]:
        raise InvalidArgumentError(f"norm: axis must name one or two axes, got {axis}")
    if order is None or order in ("fro", "f"):
        return euclidean_length(x, axes, keepdims)
    if order in ("nuc", 2, -2):
        others = [i for i in range(rank) if i not in axes]
        if others + axes != list(range(rank)):
            x = transpose(x, others + axes)
        values = _without_kinks(svdvals(x))
        reduce = reduce_sum if order == "nuc" else (reduce_max if order > 0 else reduce_min)
        norm = reduce(values, -1)
        if keepdims:
            shape = x._data.shape[:-2]
            kept = iter(shape)
            norm = reshape(norm, [1 if i in axes else next(kept) for i in range(rank)])
        return norm
    if order not in (1, -1, np.inf, -np.inf):
        raise InvalidArgumentError(
            f"norm: Invalid norm order {order!r} for matrices: it must be 'fro', 'nuc', 1, -1, 2, "
            "-2, inf or -inf"
        )
    summed, other = axes if abs(order) == 1 else axes[::-1]
    sums = reduce_sum(absolute(x), summed, keepdims=True)
    norm = (reduce_max if order > 0 else reduce_min)(sums, other, keepdims=True)
    return norm if keepdims else squeeze(norm, axes)


def _without_kinks(values: Tensor) -> Tensor:
    """Return singular values, without the gradient of those that are 0.

    Sums of them have a kink there: the subgradient of least norm is that of the others.
    """
    size = values._data.shape[-1]
    if not size:
        return values
    bound = 8 * size**0.5 * float(np.finfo(values.dtype).eps)
    zero = less_equal(values, multiply(reduce_max(values, -1, True), bound))
    return where(zero, stop_gradient(values), values)


@reads_own_arguments
def normalize(
    tensor: TensorLike, ord: str = "euclidean", axis: Axes = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return `tensor` divided by its `norm` of order `ord`, and that norm, whose axes have size
    1."""
    x = convert(tensor)
    size = norm(x, ord, axis, True)
    return divide(x, cast(size, x.dtype) if is_complex(x.dtype) else size), size


def reduce_euclidean_norm(x: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the square root of the sum of squared sizes over axes; a complex `x` gives complex.

    `axis` is one axis, several, or None for all; `keepdims` keeps them, with size 1. Integers
    become float64. Raises InvalidArgumentError for an axis that `x` does not have.
    """
    x = convert(x)
    norm = vector_norm(x, 2, axis, keepdims)
    return cast(norm, x.dtype) if is_complex(x.dtype) else norm
