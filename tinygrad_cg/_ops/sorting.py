"""Sorting, and elements at indices that differ from line to line."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.move import order as korder

from .._core.conversion import as_dtype, convert
from .._core.device_runs import kernel_for
from .._core.primitive import apply
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .comparison import greater, greater_equal, isfinite, less, logical_and
from .define import Case, later_axis, operation
from .elementwise import where
from .indexing import getitem
from .reductions import reduce_sum
from .shape import broadcast_to, cast, expand_dims
from .validation import (
    as_count,
    as_int,
    as_integers,
    broadcast_shapes,
    check_shapes,
    normalize_axis,
)

_INDICES = np.array([[2, 0], [1, -1], [2, 0], [2, 1]])

_take_along_axis = operation(
    "take_along_axis",
    lambda x, indices, axis: kernel_for(x, korder.take_along_axis)(x, indices, axis),
    lambda x, indices, axis: Aval(indices.shape, x.dtype),
    (lambda dy, indices, shape, axis: add_along_axis(dy, indices, shape, axis), None),
    inputs=("x", "indices"),
    linear=True,
    kernel=korder.take_along_axis,
    batch=later_axis,
    samples=[
        Case(((3, 2), ()), {"axis": 0}, {1: _INDICES}),
        Case(((2, 2, 3), ()), {"axis": 2}, {1: np.array([[[2], [0]], [[1], [-2]]])}),
    ],
)
_add_along_axis = operation(
    "add_along_axis",
    lambda x, indices, shape, axis: kernel_for(x, korder.add_along_axis)(
        shape, x.dtype, indices, x, axis
    ),
    lambda x, indices, shape, axis: Aval(shape, x.dtype),
    (lambda dy, indices, axis: apply(_take_along_axis, (dy, indices), {"axis": axis}), None),
    inputs=("x", "indices"),
    linear=True,
    kernel=korder.add_along_axis,
    batch=lambda params, size: {"axis": params["axis"] + 1, "shape": (size, *params["shape"])},
    samples=[
        Case(((4, 2), ()), {"axis": 0, "shape": (3, 2)}, {1: _INDICES}),
        Case(((1, 3), ()), {"axis": 1, "shape": (1, 2)}, {1: np.array([[1, 1, -2]])}),
    ],
)


def add_along_axis(values: Tensor, indices: Tensor, shape: Any, axis: int) -> Tensor:
    """Return zeros(shape) with `values` added at `indices` along `axis`, a non-negative one."""
    return apply(_add_along_axis, (values, indices), {"shape": tuple(shape), "axis": axis})


def take_along_axis(x: Any, indices: Any, axis: Any = -1) -> Tensor:
    """Return the elements of `x` at integer `indices` along `axis`, line by line.

    Modelled on ``np.take_along_axis``: both have the same number of dimensions, and but for `axis`
    broadcast. Negative indices count from the end; one out of bounds is an IndexError. Raises
    InvalidArgumentError for shapes that do not fit, and for indices that are not integers.
    """
    x, indices = convert(x), as_integers("take_along_axis", "indices", indices)
    dim = normalize_axis("take_along_axis", axis, x._data.ndim)
    if x._data.ndim != indices._data.ndim:
        raise InvalidArgumentError(
            f"take_along_axis: x has {x._data.ndim} dimensions and indices have "
            f"{indices._data.ndim}: the numbers must be equal"
        )
    (*sizes,), (*counts,) = x._data.shape, indices._data.shape
    sizes[dim] = counts[dim] = 1
    common = list(broadcast_shapes("take_along_axis", tuple(sizes), tuple(counts)))
    x, indices = (_broadcast_others(tensor, common, dim) for tensor in (x, indices))
    return apply(_take_along_axis, (x, indices), {"axis": dim})


def _broadcast_others(x: Tensor, common: list[int], dim: int) -> Tensor:
    shape = (*common[:dim], x._data.shape[dim], *common[dim + 1 :])
    return x if x._data.shape == shape else broadcast_to(x, shape)


# Sorting -------------------------------------------------------------------------------------


_sort = operation(
    "sort",
    lambda x, axis, descending: kernel_for(x, korder.sort)(x, axis, descending),
    lambda x, axis, descending: x,
    (
        lambda dy, x, shape, axis, descending: add_along_axis(
            dy, _sorted_indices(x, axis, descending), shape, axis
        ),
    ),
    kernel=korder.sort,
    batch=later_axis,
    samples=[
        Case(((2, 5),), {"axis": 1, "descending": False}),
        Case(((4, 2),), {"axis": 0, "descending": True}),
    ],
)
_argsort = operation(
    "argsort",
    lambda x, axis, descending, stable: kernel_for(x, korder.argsort)(x, axis, descending, stable),
    lambda x, axis, descending, stable: Aval(x.shape, np.dtype(np.int64)),
    kernel=korder.argsort,
    batch=later_axis,
    samples=[
        Case(((2, 5),), {"axis": 1, "descending": False, "stable": True}),
        Case(((4, 2),), {"axis": 0, "descending": True, "stable": True}),
    ],
)


def _sorted_indices(x: Tensor, axis: int, descending: bool, stable: bool = True) -> Tensor:
    return apply(_argsort, (x,), {"axis": axis, "descending": descending, "stable": stable})


def sort(x: Any, axis: Any = -1, descending: bool = False) -> Tensor:
    """Return `x` sorted along `axis`, by default the last; NaN counts as the largest.

    Complex numbers go by their real and then their imaginary parts. The gradient goes back to where
    the elements came from. Raises InvalidArgumentError for an axis that `x` does not have.
    """
    x = convert(x)
    dim = normalize_axis("sort", axis, x._data.ndim)
    return apply(_sort, (x,), {"axis": dim, "descending": bool(descending)})


def argsort(x: Any, axis: Any = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices (int64) that sort `x` along `axis`; see `sort`.

    If `stable`, equal elements stay in the order in which they stand, also if `descending`.
    """
    x = convert(x)
    return _sorted_indices(
        x, normalize_axis("argsort", axis, x._data.ndim), bool(descending), bool(stable)
    )


class TopK(NamedTuple):
    """The largest elements, and their indices."""

    values: Tensor
    indices: Tensor


def top_k(x: Any, k: Any = 1, dtype: Any = np.int32) -> TopK:
    """Return the `k` largest elements along the last axis, largest first, and their indices.

    Modelled on ``tf.math.top_k``: equal elements keep their order. NaN counts as the largest.
    Raises InvalidArgumentError for scalars and a `k` that is too large.
    """
    x, count = convert(x), as_int("top_k", "k", k)
    size = x._data.shape[-1] if x._data.ndim else -1
    if not 0 <= count <= size:
        raise InvalidArgumentError(
            f"top_k: k must be at most the size of the last axis, got k = {count} and shape "
            f"{tuple(x.shape)}"
        )
    order = getitem(argsort(x, -1, descending=True), (..., slice(0, count)))
    values = take_along_axis(x, order, -1)
    return TopK(values, order if dtype is None else cast(order, as_dtype(dtype)))


_one_hot = operation(
    "one_hot",
    lambda indices, depth, axis, dtype: kernel_for(indices, korder.one_hot)(
        indices, depth, axis, dtype
    ),
    lambda indices, depth, axis, dtype: Aval(
        (*indices.shape[:axis], depth, *indices.shape[axis:]), dtype
    ),
    inputs=("indices",),
    kernel=korder.one_hot,
    batch=later_axis,
    samples=[
        Case(
            ((),),
            {"depth": 3, "axis": 1, "dtype": np.dtype(np.int32)},
            {0: np.array([[0, 2, 3], [-1, 1, 1]])},
        ),
        Case(((),), {"depth": 2, "axis": 0, "dtype": np.dtype(bool)}, {0: np.array(1)}),
    ],
)


def one_hot(indices: Any, depth: Any, axis: Any = -1, dtype: Any = np.float32) -> Tensor:
    """Return ones at integer `indices` along a new `axis` of size `depth`, and zeros elsewhere.

    Modelled on ``tf.one_hot``: an index outside 0 .. depth - 1 gives zeros alone. Raises
    InvalidArgumentError for indices that are not integers, and for a negative `depth`.
    """
    indices = as_integers("one_hot", "indices", indices)
    count = as_count("one_hot", "depth", depth)
    dim = normalize_axis("one_hot", axis, indices._data.ndim + 1)
    return _one_hot(indices, depth=count, axis=dim, dtype=as_dtype(dtype))


def in_top_k(targets: Any, predictions: Any, k: int) -> Tensor:
    """Return whether the target of each row is among its `k` largest `predictions`, ties included.

    Modelled on ``tf.math.in_top_k``: `predictions` are (rows, classes) and `targets` one integer
    for each row. The result is false if a target is not a class or its prediction is not finite.
    Raises InvalidArgumentError for other shapes.
    """
    classes, scores = as_integers("in_top_k", "targets", targets), convert(predictions)
    count = as_int("in_top_k", "k", k)
    operands = {"predictions": (scores, "rows classes"), "targets": (classes, "rows")}
    check_shapes("in_top_k", operands)
    inside = logical_and(greater_equal(classes, 0), less(classes, scores.shape[1]))
    own = take_along_axis(scores, expand_dims(where(inside, classes, 0), 1), 1)
    above = reduce_sum(cast(greater(scores, own), np.int64), 1)
    inside = logical_and(inside, isfinite(getitem(own, (slice(None), 0))))
    return logical_and(inside, less(above, count))
