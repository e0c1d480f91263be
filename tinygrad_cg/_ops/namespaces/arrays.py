"""TensorFlow's operations on arrays, which stand at its top level."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Never

import numpy as np

from ... import _ops
from ..._core.annotations import Axes, DTypeLike, Shape, TensorLike
from ..._core.conversion import FLOAT32, FLOAT64, INT32, convert, is_tensor
from ..._core.kinds import is_integer
from ..._core.suggestions import REQUIRED, hides_others, reads_own_arguments, refuse_call
from ..._core.tensor import Aval, Tensor
from ...errors import InvalidArgumentError
from .. import comparison as _comparison
from .. import complex as _complex
from .. import creation as _creation
from .. import elementwise as _elementwise
from .. import indexing as _indexing
from .. import shape as _shape
from .. import sorting as _sorting
from ..validation import as_shape
from .adapt import check_count, neither
from .namespace import export_functions, restates, spelled, unary_of_input


def _descending(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"direction must be 'ASCENDING' or 'DESCENDING', got {direction!r}")
    return direction == "DESCENDING"


def _slices(x: Any, begin: Any, size: Any) -> tuple[Any, ...]:
    starts, sizes = as_shape("slice", begin), as_shape("slice", size)
    shape = convert(x).shape
    if not len(starts) == len(sizes) == len(shape):
        raise InvalidArgumentError(
            f"slice: begin and size must have a number for each axis of shape {tuple(shape)}, got "
            f"{starts} and {sizes}"
        )
    ends = [
        whole if size == -1 else start + size
        for start, size, whole in zip(starts, sizes, shape, strict=True)
    ]
    for start, end, whole in zip(starts, ends, shape, strict=True):
        if not 0 <= start <= end <= whole:
            raise InvalidArgumentError(
                f"slice: start {starts} and size {sizes} exceed shape {tuple(shape)}"
            )
    return tuple(map(builtins.slice, starts, ends))


def argsort(
    values: Any,
    axis: Axes = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the indices (int32) of a stable sort along `axis`; NaN counts as largest."""
    return _shape.cast(_sorting.argsort(values, axis, _descending(direction)), INT32)


@restates(_shape.broadcast_to)
def broadcast_to(input: TensorLike, shape: Shape, name: str | None = None) -> Tensor:
    return _shape.broadcast_to(input, shape)


@restates(_elementwise.clip)
def clip_by_value(
    t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> Tensor:
    return _elementwise.clip(t, clip_value_min, clip_value_max)


@hides_others
def concat(values: Any, axis: Axes = REQUIRED, name: str | None = None, **others: Never) -> Tensor:
    """Return the tensors `values` joined along an axis; one tensor counts as a list."""
    if others or axis is REQUIRED:
        refuse_call(concat, others)
    return _shape.concatenate([values] if is_tensor(values) else values, axis)


@hides_others
def expand_dims(
    input: TensorLike, axis: Axes = REQUIRED, name: str | None = None, **others: Never
) -> Tensor:
    """Return `input` with a new axis of size 1 at position `axis`, which may be negative.

    Raises InvalidArgumentError for a position that the result does not have.
    """
    if others or axis is REQUIRED:
        refuse_call(expand_dims, others)
    return _shape.expand_dims(input, axis)


@hides_others
def fill(dims: Shape, value: TensorLike, name: str | None = None, **others: Never) -> Tensor:
    """Return a tensor of shape `dims` filled with the single number `value`."""
    if others:
        refuse_call(fill, others)
    return _creation.full(dims, value)


def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: Any = None,
    axis: Axes = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """Return slices of `params` along `axis`, by default the first not shared, at integer
    `indices`; the first `batch_dims` axes are common to both."""
    return _indexing.gather(params, indices, batch_dims if axis is None else axis, batch_dims)


@reads_own_arguments
def linspace(start: TensorLike, stop: TensorLike, num: int, name: str | None = None) -> Tensor:
    """Return `num` evenly spaced numbers from `start` to `stop`, both included; float64 between
    integers."""
    between_integers = all(is_integer(convert(end).dtype) for end in (start, stop))
    return _creation.linspace(start, stop, num, FLOAT64 if between_integers else None)


def one_hot(
    indices: TensorLike,
    depth: int,
    on_value: TensorLike | None = None,
    off_value: TensorLike | None = None,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return `on_value` (1) at `indices` along a new axis of size `depth`, by default the last, and
    `off_value` (0) elsewhere: everywhere for an index outside 0 .. depth - 1. float32 unless the
    values or `dtype` say otherwise."""
    dim = -1 if axis is None else axis
    if on_value is None and off_value is None:
        return _sorting.one_hot(indices, depth, dim, FLOAT32 if dtype is None else dtype)
    values = [1 if on_value is None else on_value, 0 if off_value is None else off_value]
    if dtype is not None:
        values = [_shape.cast(value, dtype) for value in values]
    return _elementwise.where(_sorting.one_hot(indices, depth, dim, bool), *values)


def _filled(operation: Callable[..., Tensor]):
    @hides_others
    def filled(
        shape: Shape, dtype: DTypeLike = FLOAT32, name: str | None = None, **others: Never
    ) -> Tensor:
        if others:
            refuse_call(filled, others)
        return operation(shape, dtype)

    return spelled(filled, operation.__name__, operation)


def _filled_like(operation: Callable[..., Tensor]):
    @hides_others
    def like(
        input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, **others: Never
    ) -> Tensor:
        if others:
            refuse_call(like, others)
        return operation(input, dtype)

    return spelled(like, operation.__name__, operation)


ones = _filled(_creation.ones)
zeros = _filled(_creation.zeros)
ones_like = _filled_like(_creation.ones_like)
zeros_like = _filled_like(_creation.zeros_like)


def pad(
    tensor: TensorLike,
    paddings: Any,
    mode: str = "CONSTANT",
    constant_values: Any = 0,
    name: str | None = None,
) -> Tensor:
    """Return `tensor` with elements added before and after along each axis: `paddings` has a pair
    for each axis. They are `constant_values` or mirrored; only SYMMETRIC repeats the border.
    """
    rank = convert(tensor).ndim
    if np.shape(paddings) != (rank, 2):
        raise InvalidArgumentError(
            f"pad: paddings must have shape ({rank}, 2), a pair for each axis of the tensor; "
            f"got {np.shape(paddings)}"
        )
    if mode.upper() not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(f"pad: mode must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC', got {mode!r}")
    return _ops.padding.pad(tensor, paddings, mode.lower(), constant_values)


@reads_own_arguments
def range(
    start: TensorLike,
    limit: TensorLike | None = None,
    delta: TensorLike = 1,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return numbers from `start` (0 if only one bound is given) to below `limit`, in steps.

    Modelled on ``tf.range``: 1-D, of the common dtype of the three; it has no gradient. Raises
    InvalidArgumentError for arrays, a step of 0, and bounds that are not finite.
    """
    return _creation.arange(start, limit, delta, dtype)


def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the number of dimensions of `input`, as a scalar tensor."""
    return _creation.constant(convert(input).ndim)


@restates(_shape.reshape)
def reshape(tensor: TensorLike, shape: Shape, name: str | None = None) -> Tensor:
    return _shape.reshape(tensor, shape)


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: DTypeLike = bool, name: str | None = None
) -> Tensor:
    """Return a row of `maxlen` bools for each of `lengths`; that many elements are True. `maxlen`
    is by default the largest of `lengths`. The rows are the last axis."""
    counts = convert(lengths)
    if not is_integer(counts.dtype):
        raise ValueError(f"sequence_mask: lengths must be integers, got {counts.dtype}")
    if maxlen is None:
        values = counts._values()
        maxlen = max(0, int(values.max())) if values.size else 0
    mask = _comparison.less(np.arange(int(maxlen)), _shape.expand_dims(counts, -1))
    return _shape.cast(mask, dtype)


def shape(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """Return the shape of `input`, as a tensor of integers (int32 by default)."""
    return _shape.cast(
        _creation.constant(np.array(convert(input).shape, np.int32)), out_type or INT32
    )


def size(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """Return the number of elements of `input`, as a scalar tensor (int32 by default)."""
    return _creation.constant(convert(input).size, out_type or INT32)


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Return the part of `input_` that starts at `begin` (one number for each axis) and has the
    sizes `size`; -1 means all remaining elements."""
    x, sizes = convert(input_), list(as_shape("slice", size))
    several = isinstance(begin, (list, builtins.tuple)) or (
        isinstance(begin, Tensor) and begin.ndim
    )
    starts: list[Any] = list(begin) if several else [begin]
    unknown = [
        i for i, start in enumerate(starts) if isinstance(getattr(start, "_data", None), Aval)
    ]
    if not unknown or not len(starts) == len(sizes) == x.ndim:
        return _indexing.getitem(x, _slices(x, begin, size))
    positions = []
    for axis in unknown:
        whole, count, start = x.shape[axis], sizes[axis], _shape.cast(starts[axis], np.int64)
        if not 0 <= count <= whole:
            raise InvalidArgumentError(
                f"slice: from a tensor without a value yet, axis {axis} needs a size from 0 to "
                f"{whole}, got {count}"
            )
        positions.append(
            _elementwise.where(_comparison.less(start, 0), whole, start) + np.arange(count)
        )
        starts[axis], sizes[axis] = 0, whole
    x = _indexing.getitem(x, _slices(x, starts, sizes))
    for axis, indices in zip(unknown, positions, strict=True):
        x = _indexing.gather(x, indices, axis)
    return x


@hides_others
def sort(
    values: Any,
    axis: Axes = -1,
    direction: str = "ASCENDING",
    name: str | None = None,
    **others: Never,
) -> Tensor:
    """Return `values` sorted along `axis`, by default the last; NaN counts as the largest."""
    if others:
        refuse_call(sort, others)
    return _sorting.sort(values, axis, _descending(direction))


def split(
    value: TensorLike,
    num_or_size_splits: Any,
    axis: Axes = 0,
    num: int | None = None,
    name: str | None = None,
) -> list[Tensor]:
    """Return consecutive parts of `value` along `axis`: a number of equal parts, or parts of given
    sizes.

    Modelled on ``tf.split``: one size may be -1. Raises InvalidArgumentError for sizes that are not
    those of the axis, and for an axis that `value` does not have.
    """
    return _shape.split(value, num_or_size_splits, axis)


@hides_others
@restates(_shape.squeeze)
def squeeze(
    input: TensorLike, axis: Axes = None, name: str | None = None, **others: Never
) -> Tensor:
    if others:
        refuse_call(squeeze, others)
    return _shape.squeeze(input, axis)


@restates(_shape.stack)
def stack(values: Any, axis: Axes = 0, name: str | None = None) -> Tensor:
    return _shape.stack(values, axis)


identity = unary_of_input(_shape.identity, __name__)
stop_gradient = unary_of_input(_shape.stop_gradient, __name__)


def _tensor_scatter(kind: str):
    def scatter(
        tensor: TensorLike, indices: TensorLike, updates: Any, name: str | None = None
    ) -> Tensor:
        """Return `tensor` with `updates` at `indices`, whose last axis has coordinates: they
        replace the elements, are added or subtracted, or the larger or smaller element is kept. If
        several updates have the same index, the last replaces, sums add up, and extremes share the
        gradient. Raises InvalidArgumentError for indices that point outside, and for `updates` of
        another shape."""
        return _ops.updates.tensor_scatter(kind, tensor, indices, updates)

    return spelled(scatter, f"tensor_scatter_nd_{kind}")


tensor_scatter_nd_update = _tensor_scatter("update")
tensor_scatter_nd_add = _tensor_scatter("add")
tensor_scatter_nd_sub = _tensor_scatter("sub")
tensor_scatter_nd_max = _tensor_scatter("max")
tensor_scatter_nd_min = _tensor_scatter("min")


def transpose(
    a: TensorLike, perm: Axes = None, conjugate: bool = False, name: str | None = None
) -> Tensor:
    """Return `a` with axes in the order `perm`, reversed by default; conjugated if `conjugate`."""
    transposed = _shape.transpose(a, perm)
    return _complex.conj(transposed) if conjugate else transposed


def unstack(
    value: TensorLike, num: int | None = None, axis: Axes = 0, name: str | None = None
) -> list[Tensor]:
    """Return the slices of `value` along `axis` as a list, of `num` parts if given."""
    return check_count(_shape.unstack(value, axis), num)


def where(
    condition: TensorLike,
    x: TensorLike | None = None,
    y: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Return `x` where `condition` holds and `y` elsewhere; without both, the coordinates of true
    elements, one row each."""
    if neither(x, y):
        return _ops.searching.true_rows(convert(condition))
    return _elementwise.where(condition, x, y)


__all__ = export_functions(globals())
