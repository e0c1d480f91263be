"""NumPy's functions that join tensors, reorder their elements, or select some of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._core import devices
from .._core.conversion import convert
from .._core.tensor import Tensor
from .._ops import searching
from .._ops.creation import constant
from .._ops.elementwise import divide, multiply, power, subtract, where
from .._ops.indexing import gather, getitem
from .._ops.namespaces.adapt import grid_axes, space_evenly
from .._ops.shape import (
    broadcast_to,
    cast,
    concatenate,
    reshape,
    split_at,
    stack,
    transpose,
)
from .._ops.validation import as_int, as_shape, broadcast_shapes, normalize_axes, normalize_axis
from ..errors import InvalidArgumentError
from ._readers import (
    _array,
    _as,
    _as_array,
    _deciding,
    _deciding_there,
    _pair,
    _read,
    _rearrange,
    _spacing,
    _with_int64,
    _with_weak_dtype,
)

# Axes ----------------------------------------------------------------------------------------


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Return `a` with the axes `source` at positions `destination`; the others keep their order."""
    x = _array(a)
    left, right = (
        [normalize_axis("moveaxis", i, x.ndim) for i in as_shape("moveaxis", axes)]
        for axes in (source, destination)
    )
    if len(left) != len(right) or len({*left}) != len(left) or len({*right}) != len(right):
        raise InvalidArgumentError(
            f"moveaxis: source {source} and destination {destination} must name equally many axes, "
            "each axis once"
        )
    order = [i for i in range(x.ndim) if i not in left]
    for position, axis in sorted(zip(right, left, strict=True)):
        order.insert(position, axis)
    return transpose(x, order)


def swapaxes(a: Any, axis1: Any, axis2: Any) -> Tensor:
    """Return `a` with two axes exchanged."""
    x = _array(a)
    first, second = (normalize_axis("swapaxes", axis, x.ndim) for axis in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return transpose(x, order)


def rollaxis(a: Any, axis: Any, start: Any = 0) -> Tensor:
    """Return `a` with `axis` moved to the position before `start`."""
    x = _array(a)
    dim = normalize_axis("rollaxis", axis, x.ndim)
    before = as_int("rollaxis", "start", start)
    before += x.ndim * (before < 0)
    if not 0 <= before <= x.ndim:
        raise InvalidArgumentError(f"rollaxis: start {start} is out of range for {x.ndim} axes")
    return moveaxis(x, dim, before - (before > dim))


def matrix_transpose(x: Any, /) -> Tensor:
    """Return the transpose of each matrix in a stack of matrices."""
    if _array(x).ndim < 2:
        raise InvalidArgumentError("matrix_transpose: needs at least 2 dimensions")
    return swapaxes(x, -1, -2)


def flip(m: Any, axis: Any = None) -> Tensor:
    """Return `m` in reversed order along `axis`: one axis, several, or all (None)."""
    x = _array(m)
    axes = normalize_axes("flip", axis, x.ndim)
    return getitem(x, tuple([slice(None, None, -1 if i in axes else 1) for i in range(x.ndim)]))


def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Return `a` with elements shifted cyclically by `shift` along `axis`; flattened if None."""
    x = _array(a)
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), int(np.sum(_as_array(shift))), 0), tuple(x.shape))
    axes, shifts = np.broadcast_arrays(np.atleast_1d(axis), _as_array(shift))
    for dim, by in zip(axes.tolist(), shifts.tolist(), strict=True):
        along = normalize_axis("roll", dim, x.ndim)
        size = x.shape[along]
        cut = size - by % size if size else 0
        if 0 < cut < size:
            x = concatenate([_part(x, along, cut, None), _part(x, along, None, cut)], along)
    return x


def _part(x: Tensor, axis: int, start: Any, stop: Any) -> Tensor:
    return getitem(x, (*[slice(None)] * axis, slice(start, stop)))


# Diagonals and triangles ---------------------------------------------------------------------


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return the diagonals of the matrices along two axes, as the last axis of the result."""
    x = _array(a)
    if x.ndim < 2:
        raise InvalidArgumentError("diagonal: needs at least 2 dimensions")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    down, right = max(-offset, 0), max(offset, 0)
    steps = np.arange(max(0, min(x.shape[-2] - down, x.shape[-1] - right)))
    return getitem(x, (Ellipsis, steps + down, steps + right))


def diag(v: Any, k: int = 0) -> Tensor:
    """Return the diagonal `k` of a matrix, or a matrix with a 1-D `v` on diagonal `k`."""
    x = _array(v)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise InvalidArgumentError(f"diag: needs 1 or 2 dimensions, got {x.ndim}")
    size = x.shape[0] + abs(k)
    indices = np.clip(np.arange(size) - max(k, 0), 0, max(x.shape[0] - 1, 0))
    if not x.shape[0]:
        return constant(np.zeros((size, size), x.dtype))
    return where(np.eye(size, k=k, dtype=bool), getitem(x, (indices,)), x.dtype.type(0))


def tril(m: Any, k: int = 0) -> Tensor:
    """Return the matrices of `m` with zeros above the diagonal `k`."""
    x = _array(m)
    return where(np.tri(*_last_two(x), k=k, dtype=bool), x, x.dtype.type(0))


def triu(m: Any, k: int = 0) -> Tensor:
    """Return the matrices of `m` with zeros below the diagonal `k`."""
    x = _array(m)
    return where(np.tri(*_last_two(x), k=k - 1, dtype=bool), x.dtype.type(0), x)


def _last_two(x: Tensor) -> tuple[int, int]:
    """Return height and width of the matrices in `x`; a vector stands for equal rows."""
    if not x.ndim:
        raise InvalidArgumentError("tril and triu need at least 1 dimension, got a scalar")
    return x.shape[-2 if x.ndim > 1 else -1], x.shape[-1]


def vander(x: Any, N: Any = None, increasing: bool = False) -> Tensor:
    """Return the matrix of powers of `x`: `N` columns (as many as rows), the highest first."""
    x = _with_int64(x)
    if x.ndim != 1:
        raise InvalidArgumentError(f"vander: needs 1 dimension, got {x.ndim}")
    count = x.shape[0] if N is None else as_int("vander", "N", N)
    columns = [power(x, i) for i in range(count)]
    if not columns:
        return constant(np.zeros((x.shape[0], 0), x.dtype))
    return stack(columns if increasing else columns[::-1], 1)


# Some of the elements ------------------------------------------------------------------------


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Tensor:
    """Return `filt` without the zeros at the front ("f"), the back ("b") or both ends."""
    x = _array(filt)
    values = _deciding("trim_zeros", x)
    kept = np.argwhere(values)
    if not kept.size:
        return getitem(x, (slice(0, 0),) * x.ndim)
    axes = normalize_axes("trim_zeros", axis, x.ndim)
    key: list[slice] = [slice(None)] * x.ndim
    for i in axes:
        low = kept[:, i].min() if "f" in trim.lower() else None
        high = kept[:, i].max() + 1 if "b" in trim.lower() else None
        key[i] = slice(low, high)
    return getitem(x, tuple(key))


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


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """Return the distinct elements of `ar` in ascending order, or its distinct rows along `axis`.

    The gradient goes to the first of equal elements. The other results (the first index of each,
    the inverse indices and the counts) are integers. All NaN count as equal if `equal_nan`.

    The size of the result depends on values, so this raises inside `function` and `vmap`. Call it
    outside and pass the result.
    """
    x = _array(ar)
    first, inverse, counts = searching.unique(_deciding_there("unique", x), axis, equal_nan)
    rows = reshape(x, (-1,)) if axis is None else moveaxis(x, axis, 0)
    values = getitem(rows, (searching.tensor_of(first),))
    values = values if axis is None else moveaxis(values, 0, axis)
    wanted = ((return_index, first), (return_inverse, inverse), (return_counts, counts))
    others = [searching.tensor_of(array) for is_asked, array in wanted if is_asked]
    return (values, *others) if others else values


def intersect1d(
    ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """Return the distinct elements of `ar1` that are in `ar2`, in ascending order.

    The gradient goes to the first of equal elements in `ar1`. With `return_indices`, also return
    their first indices in `ar1` and `ar2`, flattened. Inside `function` and `vmap` it raises; see
    `unique`. Modelled on ``numpy.intersect1d``.
    """
    x, others = reshape(_array(ar1), (-1,)), _deciding("intersect1d", _array(ar2))
    _, first, second = np.intersect1d(_deciding("intersect1d", x), others, assume_unique, True)
    common = getitem(x, (first,))
    return (common, constant(first), constant(second)) if return_indices else common


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Tensor:
    """Return the distinct elements of `ar1` that are not in `ar2`; sorted unless `assume_unique`.

    Inside `function` and `vmap` it raises; see `unique`.
    """
    x, others = _array(ar1), _deciding("setdiff1d", _array(ar2))
    values = _deciding("setdiff1d", x)
    elements = reshape(x, (-1,)) if assume_unique else unique(x)
    kept = values.reshape(-1) if assume_unique else np.unique(values)
    return getitem(elements, ~np.isin(kept, others))


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Return the differences of neighbours in `ary` flattened, between `to_begin` and `to_end`."""
    x = reshape(_array(ary), (-1,))
    steps = subtract(getitem(x, slice(1, None)), getitem(x, slice(None, -1)))
    parts = [to_begin, steps, to_end]
    ends = [reshape(_array(part), (-1,)) for part in parts if part is not None]
    return cast(concatenate(ends), x.dtype) if len(ends) > 1 else steps


def _linspace(
    start: Any, stop: Any, num: Any, endpoint: bool, retstep: bool, dtype: Any, axis: Any
) -> Any:
    first, last = _pair(start, stop)
    points = space_evenly(first, last, num, endpoint, _spacing(start, stop, dtype))
    points = moveaxis(points, 0, axis) if axis else points
    if not retstep:
        return points
    gaps = as_int("linspace", "num", num) - bool(endpoint)
    return points, divide(subtract(last, first), float(gaps) if gaps > 0 else np.nan)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: Any = 0
) -> Tensor:
    """Return `num` numbers from `start` to `stop`, each a fixed multiple of the previous number.

    Both ends are exact, and of the same sign: else NaN. `axis` is their axis if the ends are not
    scalars. Both ends have gradients. Raises TypeError for complex ends.
    """
    wanted = _spacing(start, stop, dtype)
    ends = [_array(end) for end in _pair(start, stop)]
    if any(end.dtype.kind == "c" for end in ends):
        raise TypeError("geomspace: complex ends are not supported: use exp of linspace of logs")
    first, last = (cast(end, np.float64) for end in ends)
    count = as_int("geomspace", "num", num)
    share = np.arange(count) / max(count - bool(endpoint), 1)
    share = share.reshape(-1, *[1] * max(first.ndim, last.ndim))
    sign = where(first < 0, -1.0, 1.0)
    points = multiply(power(multiply(first, sign), 1 - share), power(multiply(last, sign), share))
    return cast(moveaxis(multiply(points, sign), 0, axis), wanted)


def _sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Tensor:
    """Return all windows of a shape, as a read-only copy."""
    x, sizes = _array(x), np.atleast_1d(window_shape).tolist()
    axes = range(x.ndim) if axis is None else [int(i) for i in np.atleast_1d(axis)]
    if len(sizes) != len(axes):
        raise InvalidArgumentError(
            f"sliding_window_view: window_shape {sizes} must have a size for each of "
            f"{len(axes)} axes"
        )
    for i, size in zip(axes, sizes, strict=True):
        at = normalize_axis("sliding_window_view", i, x.ndim)
        count = x.shape[at] - size + 1
        if size < 0 or count < 1:
            raise InvalidArgumentError(
                f"sliding_window_view: a window of {size} does not fit an axis of {x.shape[at]}"
            )
        x = moveaxis(gather(x, np.arange(count)[:, None] + np.arange(size), at), at + 1, -1)
    return x


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: Any = 0,
) -> Tensor:
    """Return `base` to the powers of `num` evenly spaced numbers from `start` to `stop`.

    `axis` is their axis if the ends are not scalars.
    """
    wanted = _spacing(start, stop, None)
    powers = power(*_pair(base, _linspace(start, stop, num, endpoint, False, wanted, axis)))
    return cast(powers, wanted if dtype is None else np.dtype(dtype))


# Joining and cutting -------------------------------------------------------------------------

_HIGHER = {1: lambda n: (n,), 2: lambda n: (1, n), 3: lambda n: (1, n, 1)}


def _raise_rank(x: Any, rank: int) -> Tensor:
    """Return `x` with at least `rank` axes; new axes of size 1 stand where NumPy adds them."""
    x = _array(x)
    if x.ndim >= rank:
        return x
    if x.ndim == 2:
        return reshape(x, (*x.shape, 1))
    return reshape(x, _HIGHER[rank](x.size))


def _all_raised(arrays: tuple, rank: int) -> Any:
    if len(arrays) == 1:
        return _raise_rank(arrays[0], rank)
    return tuple([_raise_rank(array, rank) for array in arrays])


def _join(arrays: Any, axis: int, rank: int, dtype: Any) -> Tensor:
    tensors = [_raise_rank(array, rank) for array in arrays]
    return _as(concatenate(tensors, axis), dtype)


class Concatenator:
    """The objects ``r_`` and ``c_``: ``r_[a, 1.0, 2:5]`` joins arrays, numbers and ranges.

    A slice is a range, or with an imaginary step, ``0:1:5j``, that many evenly spaced numbers. A
    first string "axis,ndmin,start" has the axis to join along, the smallest number of axes, and the
    position of each array's own axes among these (-1, the default: at the end). Tensors have
    gradients. Raises InvalidArgumentError for "r" and "c", which make matrices. Modelled on
    ``np.r_``.
    """

    def __init__(self, axis: int, rank: int, start: int):
        self._defaults = (axis, rank, start)

    def __getitem__(self, key: Any) -> Tensor:
        parts = list(key) if isinstance(key, tuple) else [key]
        axis, rank, start = (
            self._directive(parts.pop(0)) if parts and isinstance(parts[0], str) else self._defaults
        )
        items = [_span(part) if isinstance(part, slice) else _read(part) for part in parts]
        dtypes = [item.dtype for item in items if hasattr(item, "dtype")]
        widest = np.result_type(*dtypes) if dtypes else None
        if not items:
            raise InvalidArgumentError("r_ and c_: there is nothing to join")
        read = [_with_weak_dtype(item, widest) for item in items]
        tensors = [
            _array(item) if hasattr(item, "dtype") else convert(item, widest) for item in read
        ]
        return concatenate([self._raised(tensor, max(rank, 1), start) for tensor in tensors], axis)

    def _directive(self, text: str) -> tuple[int, int, int]:
        try:
            numbers = [int(number) for number in text.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise InvalidArgumentError(
                f"r_ and c_: {text!r} must be up to three integers, 'axis,ndmin,start'"
            )
        axis, rank, start = (*numbers, *self._defaults[len(numbers) :])
        return axis, rank, start

    @staticmethod
    def _raised(x: Tensor, rank: int, start: int) -> Tensor:
        missing = rank - x.ndim
        if missing <= 0:
            return x
        if not x.ndim:
            return reshape(x, (1,) * rank)
        before = min(max(start + missing + 1 if start < 0 else start, 0), missing)
        return reshape(x, (*[1] * before, *x.shape, *[1] * (missing - before)))


def _span(part: slice) -> Any:
    """Return the numbers that a slice stands for."""
    start, step = 0 if part.start is None else part.start, part.step
    if isinstance(step, complex):
        return _linspace(start, part.stop, int(abs(step)), True, False, None, 0)
    bounds = [_as_array(bound) for bound in (start, part.stop, 1 if step is None else step)]
    return np.arange(*bounds)


r_, c_ = Concatenator(0, 1, -1), Concatenator(-1, 2, 0)


def hstack(tup: Any, *, dtype: Any = None) -> Tensor:
    """Return the arrays joined along the second axis, or the first axis if they are 1-D."""
    tensors = [_raise_rank(array, 1) for array in tup]
    flat = bool(tensors) and tensors[0].ndim == 1
    return _join(tensors, 0 if flat else 1, 1, dtype)


def column_stack(tup: Any) -> Tensor:
    """Return the arrays joined along the second axis; 1-D arrays count as columns."""
    tensors = [_array(array) for array in tup]
    columns = [
        reshape(tensor, (tensor.size, 1)) if tensor.ndim < 2 else tensor for tensor in tensors
    ]
    return _join(columns, 1, 2, None)


def block(arrays: Any) -> Tensor:
    """Return nested lists of blocks joined: the innermost along the last axis, and so on."""
    depth = _depth(arrays)
    rank = max([depth, *[_array(leaf).ndim for leaf in _leaves(arrays)]])
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
    tensors = [_array(arg) for arg in args]
    shape = broadcast_shapes("broadcast_arrays", *[tuple(tensor.shape) for tensor in tensors])
    return tuple([broadcast_to(tensor, shape) for tensor in tensors])


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return coordinates of a grid from the coordinates of its axes, of shape (len(x2), len(x1),
    ...).

    With ``indexing="ij"`` the shape is (len(x1), len(x2), ...). With `sparse`, each has size 1
    along all axes but one. Raises InvalidArgumentError for another `indexing`.
    """
    grids = grid_axes([_array(x) for x in xi], indexing)
    return tuple(grids) if sparse else broadcast_arrays(*grids)


@devices.on_device_of_operands
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Tensor:
    """Return `arr` with `values` inserted before the rows `obj` of `axis`; flattened if it is None.

    `values` are cast to the dtype of `arr`, and broadcast to the rows, as ``np.insert`` does.
    """
    x, at = _array(arr), _as_array(obj)
    new = cast(_array(values), x.dtype)
    return _rearrange(lambda indices, others: np.insert(indices, at, others, axis), x, new)


def _split(name: str, ary: Any, parts: Any, axis: int, rank: int) -> list[Tensor]:
    x = _array(ary)
    if x.ndim < rank:
        raise InvalidArgumentError(f"{name}: needs at least {rank} dimension{'s' * (rank > 1)}")
    return split_at(x, parts, min(axis, x.ndim - 1))
