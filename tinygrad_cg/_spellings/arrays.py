"""TensorFlow's operations on arrays, which stand at its top level."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from .._core.conversion import FLOAT32, convert
from .._core.kinds import is_integer
from .._core.tensor import Aval, Tensor
from .._ops.comparison import less as _less
from .._ops.define import as_shape
from .._ops.elementwise import where as _where
from .._ops.indexing import gather as _gather
from .._ops.indexing import getitem as _getitem
from .._ops.shape import cast as _cast
from .._ops.shape import expand_dims as _expand_dims
from .._ops.sorting import one_hot as _one_hot
from ..errors import InvalidArgumentError
from .spell import spell


def _descending(direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"direction must be 'ASCENDING' or 'DESCENDING', got {direction!r}")
    return direction == "DESCENDING"


def _mode(mode: str) -> str:
    if mode.upper() not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(f"pad: mode must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC', got {mode!r}")
    return mode.lower()


def _each_axis(tensor: Any, paddings: Any) -> Any:
    """Return the paddings, which must be a pair for each axis."""
    rank = convert(tensor).ndim
    if np.shape(paddings) != (rank, 2):
        raise InvalidArgumentError(
            f"pad: paddings must have shape ({rank}, 2), a pair for each axis of the tensor; "
            f"got {np.shape(paddings)}"
        )
    return paddings


def _one_hot_values(indices: Any, depth: Any, on: Any, off: Any, axis: Any, dtype: Any) -> Tensor:
    dim = -1 if axis is None else axis
    if on is None and off is None:
        return _one_hot(indices, depth, dim, FLOAT32 if dtype is None else dtype)
    values = [1 if on is None else on, 0 if off is None else off]
    if dtype is not None:
        values = [_cast(one, dtype) for one in values]
    return _where(_one_hot(indices, depth, dim, bool), *values)


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
                f"slice: from {starts} with sizes {sizes} is not within shape {tuple(shape)}"
            )
    return tuple(map(builtins.slice, starts, ends))


def _sliced(x: Any, begin: Any, size: Any) -> Tensor:
    """Return a slice of `x`; where it begins at a tensor without a value, it is gathered."""
    x, sizes = convert(x), list(as_shape("slice", size))
    several = isinstance(begin, (list, builtins.tuple)) or (
        isinstance(begin, Tensor) and begin.ndim
    )
    starts: list[Any] = list(begin) if several else [begin]
    unknown = [i for i, one in enumerate(starts) if isinstance(getattr(one, "_data", None), Aval)]
    if not unknown or not len(starts) == len(sizes) == x.ndim:
        return _getitem(x, _slices(x, begin, size))
    positions = []
    for axis in unknown:
        whole, count, start = x.shape[axis], sizes[axis], _cast(starts[axis], np.int64)
        if not 0 <= count <= whole:
            raise InvalidArgumentError(
                f"slice: from a tensor without a value yet, axis {axis} needs a size from 0 to "
                f"{whole}, got {count}"
            )
        positions.append(_where(_less(start, 0), whole, start) + np.arange(count))
        starts[axis], sizes[axis] = 0, whole
    x = _getitem(x, _slices(x, starts, sizes))
    for axis, indices in zip(unknown, positions, strict=True):
        x = _gather(x, indices, axis)
    return x


def _first(lengths: Any, size: Any) -> Tensor:
    counts = convert(lengths)
    if not is_integer(counts.dtype):
        raise ValueError(f"sequence_mask: lengths must be integers, got {counts.dtype}")
    if size is None:
        values = counts._values()
        size = max(0, int(values.max())) if values.size else 0
    return _less(np.arange(int(size)), _expand_dims(counts, -1))


_TABLE = """
    argsort(values, axis=-1, direction="ASCENDING", stable=False, name=None)
        = cast(argsort(values, axis, _descending(direction)), int32)
        # Return the indices (int32) that sort `values` along `axis`; equal ones stay in the order
        in which they stand. NaN counts as larger than all else.
    boolean_mask(tensor, mask, axis=None, name="boolean_mask") = boolean_mask(tensor, mask, axis)
    broadcast_to(input, shape, name=None) = broadcast_to(input, shape)
    clip_by_value(t, clip_value_min, clip_value_max, name=None)
        = clip(t, clip_value_min, clip_value_max)
    clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None) -> tuple[list[Any], Tensor]
        = clip_by_global_norm(t_list, clip_norm, use_norm)
    clip_by_norm(t, clip_norm, axes=None, name=None) = clip_by_norm(t, clip_norm, axes)
    concat(values, axis, name=None) = concatenate([values] if is_tensor(values) else values, axis)
        # Return the tensors `values` joined along an axis that they have; one tensor is a list of
        itself.
    dynamic_partition(data, partitions, num_partitions, name=None) -> list[Tensor]
        = dynamic_partition(data, partitions, num_partitions)
    dynamic_stitch(indices, data, name=None) = dynamic_stitch(indices, data)
    expand_dims(input, axis, name=None) = expand_dims(input, axis)
    fill(dims, value, name=None) = full(dims, value)
        # Return a tensor of shape `dims` filled with the single number `value`.
    gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None)
        = gather(params, indices, batch_dims if axis is None else axis, batch_dims)
        # Return slices of `params` along `axis`, by default the first not shared, at integer
        `indices`; the first `batch_dims` axes of both are gone through together.
    gather_nd(params, indices, batch_dims=0, name=None) = gather_nd(params, indices, batch_dims)
    linspace(start, stop, num, name=None) = linspace(start, stop, num,
        float64 if all(is_integer(convert(end).dtype) for end in (start, stop)) else None)
        # Return `num` evenly spaced numbers from `start` to `stop`, both included; float64 between
        integers.
    one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None)
        = _one_hot_values(indices, depth, on_value, off_value, axis, dtype)
        # Return `on_value` (1) at `indices` along a new axis of size `depth`, by default the last,
        and `off_value` (0) elsewhere: everywhere for an index outside 0 .. depth - 1. float32
        unless the values or `dtype` say otherwise.
    ones zeros(shape, dtype=float32, name=None) = {}(shape, dtype)
    ones_like zeros_like(input, dtype=None, name=None) = {}(input, dtype)
    pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None)
        = pad(tensor, _each_axis(tensor, paddings), _mode(mode), constant_values)
        # Return `tensor` with more elements before and after along each axis: `paddings` is a pair
        for each. They are `constant_values`; or the elements at the border, which REFLECT does not
        repeat and SYMMETRIC does.
    range(start, limit=None, delta=1, dtype=None, name=None)
        = arange(start, limit, delta, dtype)
    rank(input, name=None) = constant(convert(input).ndim)
        # Return the number of dimensions of `input`, as a scalar tensor.
    reshape(tensor, shape, name=None) = reshape(tensor, shape)
    scatter_nd(indices, updates, shape, name=None) = scatter_nd(indices, updates, shape)
    sequence_mask(lengths, maxlen=None, dtype=bool, name=None)
        = cast(_first(lengths, maxlen), dtype)
        # Return, for each of `lengths`, a row of `maxlen` elements of which so many are True: by
        default the largest of `lengths`. The rows are the last axis.
    shape(input, out_type=None, name=None)
        = cast(constant(np.array(convert(input).shape, np.int32)), out_type or int32)
        # Return the shape of `input`, as a tensor of integers (int32 by default).
    size(input, out_type=None, name=None) = constant(convert(input).size, out_type or int32)
        # Return the number of elements of `input`, as a scalar tensor (int32 by default).
    slice(input_, begin, size, name=None) = _sliced(input_, begin, size)
        # Return the part of `input_` that starts at `begin`, one number for each axis, and has the
        sizes `size`; -1 is all that is left.
    sort(values, axis=-1, direction="ASCENDING", name=None)
        = sort(values, axis, _descending(direction))
        # Return `values` sorted along `axis`, by default the last; NaN counts as larger than all
        else.
    split(value, num_or_size_splits, axis=0, num=None, name=None) -> list[Tensor]
        = split(value, num_or_size_splits, axis)
    squeeze(input, axis=None, name=None) = squeeze(input, axis)
    stack(values, axis=0, name=None) = stack(values, axis)
    stop_gradient identity(input, name=None) = {}(input)
    tensor_scatter_nd_update tensor_scatter_nd_add tensor_scatter_nd_sub tensor_scatter_nd_max
        tensor_scatter_nd_min(tensor, indices, updates, name=None)
        = tensor_scatter("{}".rpartition("_")[2], tensor, indices, updates)
        # Return `tensor` with `updates` at `indices`, whose last axis has coordinates: they
        replace, are added or subtracted, or the larger or smaller element stays. Of several updates
        of one element the last replaces, sums add up, and extremes share their gradient. Raises
        InvalidArgumentError for indices that point outside, and for `updates` of another shape.
    transpose(a, perm=None, conjugate=False, name=None)
        = conj(transpose(a, perm)) if conjugate else transpose(a, perm)
        # Return `a` with its axes in the order `perm`, reversed by default; conjugated if asked.
    unstack(value, num=None, axis=0, name=None) -> list[Tensor]
        = check_count(unstack(value, axis), num)
        # Return the slices of `value` along `axis`, as a list, which must have `num` parts if that
        is given.
    where(condition, x=None, y=None, name=None)
        = true_rows(convert(condition)) if neither(x, y)
        else where(condition, x, y)
        # Return `x` where `condition` holds and `y` elsewhere; without both, the coordinates of
        what is true, one row each.
"""
spell(globals(), _TABLE, lazily=True)
