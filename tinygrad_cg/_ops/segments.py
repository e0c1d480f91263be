"""Reductions of rows that belong together: sums, means, products and extremes by segment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tinygrad_cg_kernels.move import scatter as kscatter

from .._core import devices
from .._core.conversion import convert
from .._core.kinds import REAL, is_exact
from .._core.primitive import same_parameters
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .comparison import equal, not_equal
from .creation import ones, zeros
from .cumulative import recurrence
from .define import Case, operation
from .elementwise import divide, maximum, sqrt, where
from .indexing import gather, getitem, scatter_rows
from .reductions import share_among_ties
from .shape import cast, concatenate, reshape
from .sorting import argsort
from .validation import as_count, as_integers, check_shapes

_IDS = np.array([1, 0, 1, 2])


def _extremum_rule(
    dy: Tensor, x: Tensor, indices: Tensor, out: Tensor, size: int, batch_dims: int
) -> Tensor:
    rows = partial(gather, indices=indices, axis=batch_dims, batch_dims=batch_dims)
    ties = cast(equal(x, rows(out)), dy.dtype)
    count = scatter_rows(ties, indices, size, batch_dims)
    return share_among_ties(rows(dy), ties, rows(count))


_segment_extremum = operation(
    "segment_extremum",
    kscatter.segment_extremum,
    lambda x, indices, size, largest, batch_dims: Aval(
        (*x.shape[:batch_dims], size, *x.shape[len(indices.shape) :]), x.dtype
    ),
    (_extremum_rule, None),
    inputs=("x", "indices"),
    dtypes=REAL,
    batch=lambda params, size: params | {"batch_dims": params["batch_dims"] + 1},
    samples=[
        Case(((4, 3), ()), {"size": 3, "largest": True, "batch_dims": 0}, {1: _IDS}),
        Case(
            ((2, 2), ()),
            {"size": 1, "largest": False, "batch_dims": 1},
            {1: np.array([[0, 0], [0, 0]])},
        ),
    ],
)


def segment_extremum(x: Tensor, rows: Tensor, size: int, largest: bool) -> Tensor:
    """Return the largest or smallest rows by segment: `rows` says where each row of `x` goes."""
    return _segment_extremum(x, rows, size=size, largest=largest, batch_dims=0)


def _rows(ids: np.ndarray, size: int, name: str) -> np.ndarray:
    """Return where rows go: what is dropped goes to one more, after the last."""
    if isinstance(ids, devices.array_types):
        check, wrong = partial(_rows, size=size, name=name), (ids >= size).any()
        devices.bounds().check_later(ids, check, lambda flag: flag.fill(wrong))
    elif ids.size and ids.max() >= size:
        index = np.unravel_index(int(ids.argmax()), ids.shape)
        raise InvalidArgumentError(
            f"{name}: segment_ids{[int(i) for i in index]} = {ids.max()} is not below the "
            f"{size} segments"
        )
    ids = ids.astype(np.int64)
    return np.where(ids < 0, size, ids)


_segment_rows = operation(
    "segment_rows",
    _rows,
    lambda ids, size, name: Aval(ids.shape, np.dtype(np.int64)),
    inputs=("ids",),
    batch=same_parameters,
    samples=[Case(((),), {"size": 4, "name": "segment_sum"}, {0: np.array([3, -1, 0])})],
)

# By name: the reduction of rows into `size` segments.


def _count(x: Tensor, rows: Tensor, size: int) -> Tensor:
    """Return how many rows each segment has, with axes of size 1 for those of a row."""
    counts = scatter_rows(ones(rows._data.shape, np.int64), rows, size)
    return reshape(counts, (size, *[1] * (x._data.ndim - 1)))


def _mean(x: Tensor, rows: Tensor, size: int, is_root: bool = False) -> Tensor:
    """Return the sum of each segment over the count of its rows, or over the root of that."""
    sums, counts = scatter_rows(x, rows, size), maximum(_count(x, rows, size), 1)
    counts = sqrt(cast(counts, np.float64)) if is_root else counts
    if is_exact(x.dtype) and not is_root:
        return cast(divide(sums, counts), x.dtype)
    return divide(sums, cast(counts, x.dtype))


def segment_product(x: Tensor, rows: Tensor, size: int) -> Tensor:
    """Return products by segment, by a scan of the rows in their order: right where they are 0."""
    if not x._data.shape[0]:
        return ones((size, *x._data.shape[1:]), x.dtype)
    order = argsort(rows)
    rows, x = gather(rows, order), gather(x, order)
    edge = not_equal(getitem(rows, slice(1, None)), getitem(rows, slice(None, -1)))
    edge_of_all = ones((1,), bool)
    sizes = (-1, *[1] * (x._data.ndim - 1))
    first = reshape(concatenate([edge_of_all, edge], 0), sizes)
    last = reshape(concatenate([edge, edge_of_all], 0), sizes)
    running = recurrence(where(first, 0, x), where(first, x, 0), 0)
    products = scatter_rows(where(last, running, 0), rows, size)
    return where(equal(_count(x, rows, size), 0), 1, products)


def _extreme(largest: bool) -> Callable[[Tensor, Tensor, int], Tensor]:
    def reduce(x: Tensor, rows: Tensor, size: int) -> Tensor:
        result = segment_extremum(x, rows, size, largest)
        if is_exact(x.dtype):
            return result
        limit = float(np.finfo(x.dtype).min if largest else np.finfo(x.dtype).max)
        return where(equal(_count(x, rows, size), 0), limit, result)

    return reduce


_REDUCTIONS = {
    "sum": scatter_rows,
    "mean": _mean,
    "sqrt_n": partial(_mean, is_root=True),
    "prod": segment_product,
    "max": _extreme(True),
    "min": _extreme(False),
}


@devices.on_device_of_operands
def unsorted_segments(how: str, data: Any, segment_ids: Any, num_segments: Any = None) -> Tensor:
    """Return a reduction of the rows of `data` into `num_segments` rows, by their `segment_ids`.

    The ids have the first axes of `data` (otherwise InvalidArgumentError), in any order; a negative
    one drops its row, one not below `num_segments` raises InvalidArgumentError. By default there
    are as many segments as the largest id asks for. Of no rows the sum and the mean are 0, the
    product is 1, and an extremum the last finite number of the dtype; ties share the gradient.
    """
    name = f"unsorted_segment_{how}"
    data, ids = convert(data), as_integers(name, "segment_ids", segment_ids)
    shape, leading = data._data.shape, ids._data.shape
    if shape[: len(leading)] != leading:
        raise InvalidArgumentError(
            f"{name}: segment_ids have shape {tuple(leading)}: it must be the shape of the first "
            f"axes of data, {tuple(shape)}"
        )
    if num_segments is None:
        values = ids._values()
        num_segments = int(values.max(initial=-1)) + 1
    size = as_count(name, "num_segments", num_segments)
    tail = shape[len(leading) :]
    rows = _segment_rows(reshape(ids, (-1,)), size=size, name=name)
    count = rows._data.shape[0]
    result = _REDUCTIONS[how](reshape(data, (count, *tail)), rows, size + 1)
    return getitem(result, slice(0, size))


@devices.on_device_of_operands
def sorted_segments(how: str, data: Any, segment_ids: Any) -> Tensor:
    """Return a reduction of the rows of `data` by their `segment_ids`, which do not decrease.

    There is an id for each row, and as many segments as the last id asks for; one without rows is
    0, and 1 for products. Raises InvalidArgumentError for ids of another shape, that decrease, or
    are negative. Inside ``function`` and ``vmap`` the ids must be known.
    """
    name = f"segment_{how}"
    data, ids = convert(data), as_integers(name, "segment_ids", segment_ids)
    rows = data._data.shape[0] if data._data.ndim else None
    check_shapes(name, {"segment_ids": (ids, "rows_of_data")}, rows_of_data=rows)
    values = ids._values()
    if values.size and (int(values[0]) < 0 or bool((values[1:] < values[:-1]).any())):
        raise InvalidArgumentError(
            f"{name}: segment_ids must not be negative and must not decrease: use unsorted_{name}"
        )
    size = int(values[-1]) + 1 if values.size else 0
    result = unsorted_segments(how, data, ids, size)
    if how not in ("max", "min"):
        return result
    empty = np.bincount(values.astype(np.int64), minlength=size) == 0
    if not empty.any():
        return result
    kept = Tensor(empty.reshape(-1, *[1] * (result._data.ndim - 1)))
    return where(kept, zeros((), result.dtype), result)
