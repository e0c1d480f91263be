"""TensorFlow's names at the top level that are rarely needed: moves, checks, and what graphs need.

They are loaded at their first use, so that importing the library stays quick.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from .._core.conversion import as_dtype, convert, convert_operands
from .._core.tensor import Tensor, TensorShape  # noqa: F401 (the table names it)
from .._ops.blocks import rearrange
from .._ops.creation import constant
from .._ops.define import as_shape, normalize_axes, normalize_axis
from .._ops.elementwise import add, floor_divide, multiply
from .._ops.indexing import gather, getitem
from .._ops.shape import broadcast_to, cast, reshape
from ..errors import InvalidArgumentError
from .spell import spell

__all__ = [
    "control_dependencies",
    "ensure_shape",
    "group",
    "meshgrid",
    "no_op",
    "repeat",
    "roll",
    "strided_slice",
]


class Unique(NamedTuple):
    """The different elements in the order of their first appearance, and which each one is."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """The different elements, which of them each one is, and how many there are."""

    y: Tensor
    idx: Tensor
    count: Tensor


def _values(x: Any) -> np.ndarray:
    return np.asarray(convert(x)._values())


def _unique(name: str, x: Any, kind: Any) -> tuple[Tensor, Tensor, Tensor]:
    x = convert(x)
    if x.ndim != 1:
        raise InvalidArgumentError(f"{name}: x must be 1-D, got shape {tuple(x.shape)}")
    _, first, inverse, counts = np.unique(x._values(), True, True, True)
    order = np.argsort(first)
    rank = np.argsort(order)
    places, numbers = (constant(one, as_dtype(kind)) for one in (rank[inverse], counts[order]))
    return gather(x, first[order], 0), places, numbers


def _tiled(x: Any, multiples: Any) -> Tensor:
    x, times = convert(x), as_shape("tile", multiples)
    if len(times) != x.ndim:
        raise InvalidArgumentError(
            f"tile: multiples must be a number for each axis of shape {tuple(x.shape)}, got {times}"
        )
    return rearrange(lambda indices: np.tile(indices, times), x)


def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Return `input` with each slice along `axis` `repeats` times; flattened if it is None.

    After ``tf.repeat``.
    """
    x, times = convert(input), _values(repeats)
    dim = None if axis is None else normalize_axis("repeat", axis, x.ndim)
    return rearrange(lambda indices: np.repeat(indices, times.reshape(-1), dim), x)


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return `input` with its elements moved on by `shift` along axes, and round. See ``tf.roll``.

    Of an axis that is named twice the shifts add up.
    """
    x, axes = convert(input), as_shape("roll", axis)
    dims = tuple(normalize_axis("roll", one, x.ndim) for one in axes)
    shifts = as_shape("roll", shift)
    if len(shifts) != len(dims):
        raise InvalidArgumentError(
            f"roll: shift and axis must have one length, got {shifts} and {axes}"
        )
    return rearrange(lambda indices: np.roll(indices, shifts, dims), x)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Return the coordinates of the points of a grid, a tensor for each of its axes.

    After ``tf.meshgrid``: `indexing` is "xy" (the first axis goes along columns) or "ij".
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    points = [reshape(one, (-1,)) for one in args]
    order = list(range(len(points)))
    if indexing == "xy":
        order[:2] = order[:2][::-1]
    sizes = [points[i].shape[0] for i in order]
    found = []
    for i, one in enumerate(points):
        own = [-1 if dim == order[i] else 1 for dim in range(len(points))]
        found.append(broadcast_to(reshape(one, own), sizes))
    return found


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return `x`; InvalidArgumentError unless it has `shape`, in which None fits any size."""
    x = convert(x)
    wanted = list(shape)
    fits = len(wanted) == x.ndim and all(
        size is None or int(size) == own for size, own in zip(wanted, x.shape, strict=True)
    )
    if not fits:
        raise InvalidArgumentError(
            f"ensure_shape: x has shape {tuple(x.shape)}, which is not {tuple(wanted)}"
        )
    return x


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: None = None,
    name: str | None = None,
) -> Tensor:
    """Return ``input_[begin:end:strides]`` over the first axes. After ``tf.strided_slice``.

    A bit of a mask is for an entry: it leaves out its begin or end, makes it an ellipsis or a new
    axis, or takes the element at `begin` alone.
    """
    if var is not None:
        raise InvalidArgumentError("strided_slice: var is not supported: assign to the Variable")
    first, last = as_shape("strided_slice", begin), as_shape("strided_slice", end)
    steps = (1,) * len(first) if strides is None else as_shape("strided_slice", strides)
    if not len(first) == len(last) == len(steps):
        raise InvalidArgumentError(
            f"strided_slice: begin, end and strides must have one length, got {first}, {last} and "
            f"{steps}"
        )
    key: list[Any] = []
    for i, (start, stop, step) in enumerate(zip(first, last, steps, strict=True)):
        if ellipsis_mask >> i & 1:
            key.append(Ellipsis)
        elif new_axis_mask >> i & 1:
            key.append(None)
        elif shrink_axis_mask >> i & 1:
            key.append(start)
        else:
            lower = None if begin_mask >> i & 1 else start
            key.append(slice(lower, None if end_mask >> i & 1 else stop, step))
    return getitem(convert(input_), tuple(key))


def group(*inputs: Any, **kwargs: Any) -> None:
    """Return None: everything is computed when it is called. After ``tf.group``."""


def no_op(name: str | None = None) -> None:
    """Return None and do nothing. After ``tf.no_op``."""


def control_dependencies(control_inputs: Any) -> Any:
    """Return a context that does nothing: everything is computed in the order it is written in."""
    return nullcontext()


def _towards_zero(x: Any, y: Any) -> Tensor:
    x, y = convert_operands((x, y))
    found = floor_divide(x, y)
    rest = x - multiply(found, y)
    inexact = (rest != 0) & ((x < 0) != (y < 0))
    return add(found, cast(inexact, found.dtype))


def _truncated_rest(x: Any, y: Any) -> Tensor:
    x, y = convert_operands((x, y))
    return x - multiply(_towards_zero(x, y), y)


def _reversed(x: Any, axis: Any) -> Tensor:
    x = convert(x)
    axes = normalize_axes("reverse", as_shape("reverse", axis), x.ndim)
    return getitem(x, tuple(slice(None, None, -1 if i in axes else None) for i in range(x.ndim)))


def _placed(rows: Any, values: Any, side: str, kind: Any) -> Tensor:
    """Return where values stand in sorted rows, which have the same axes before the last."""
    table, found = _values(rows), _values(values)
    if table.shape[:-1] != found.shape[:-1] or not table.ndim:
        raise InvalidArgumentError(
            "searchsorted: sorted_sequence and values must have the same axes before the last, got "
            f"shapes {table.shape} and {found.shape}"
        )
    lines = zip(table.reshape(-1, table.shape[-1]), found.reshape(-1, found.shape[-1]), strict=True)
    places = [np.searchsorted(row, one, side) for row, one in lines]  # pyright: ignore
    return constant(np.reshape(places, found.shape), as_dtype(kind))


_TABLE = """
    batch_to_space(input, block_shape, crops, name=None) = batch_to_space(input, block_shape, crops)
    bitcast(input, type, name=None) = bitcast(input, type)
        # Return the bits of `input` read as another dtype; it has no gradient.
    broadcast_static_shape(shape_x, shape_y) -> TensorShape
        = TensorShape(np.broadcast_shapes(tuple(shape_x), tuple(shape_y)))
        # Return the shape that tensors of both shapes have together; ValueError if there is none.
    broadcast_dynamic_shape(shape_x, shape_y)
        = constant(np.int32(np.broadcast_shapes(as_shape("broadcast_dynamic_shape", shape_x),
        as_shape("broadcast_dynamic_shape", shape_y))))
        # Return the shape that tensors of both shapes have together, as a tensor of int32.
    identity_n(input, name=None) -> list[Tensor] = [identity(one) for one in input]
        # Return the tensors of a list as they are.
    realdiv(x, y, name=None) = divide(x, y)
    reverse(tensor, axis, name=None) = _reversed(tensor, axis)
        # Return `tensor` in reverse order along the axes of the list `axis`.
    reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=None, name=None)
        = reverse_sequence(input, seq_lengths, seq_axis, 0 if batch_axis is None else batch_axis)
        # Return `input` with the first of `seq_lengths` elements along `seq_axis` reversed, for
        each of the batch along `batch_axis`, by default the first axis.
    saturate_cast(value, dtype, name=None) = saturate_cast(value, dtype)
    searchsorted(sorted_sequence, values, side="left", out_type=int32, name=None)
        = _placed(sorted_sequence, values, side, out_type)
        # Return where `values` stand in the last axis of `sorted_sequence` (int32): before those
        equal to them, or with side="right" behind. The axes before the last are the same.
    shape_n(input, out_type=int32, name=None) -> list[Tensor]
        = [constant(np.array(convert(one).shape), out_type) for one in input]
        # Return the shapes of the tensors of a list, as tensors of int32 by default.
    space_to_batch space_to_batch_nd(input, block_shape, paddings, name=None)
        = space_to_batch(input, block_shape, paddings)
    tile(input, multiples, name=None) = _tiled(input, multiples)
        # Return `input` side by side, `multiples` times along each axis.
    truncatediv(x, y, name=None) = _towards_zero(x, y)
        # Return x / y for integers, rounded towards zero.
    truncatemod(x, y, name=None) = _truncated_rest(x, y)
        # Return the rest of ``truncatediv``, with the sign of `x`.
    unique(x, out_idx=int32, name=None) -> Unique = Unique(*_unique("unique", x, out_idx)[:2])
        # Return the different elements of 1-D `x` in the order of their first appearance, and which
        of them each one is. The gradient goes to the first of those that are equal.
    unique_with_counts(x, out_idx=int32, name=None) -> UniqueWithCounts
        = UniqueWithCounts(*_unique("unique_with_counts", x, out_idx))
        # Return what ``unique`` does, and how many there are of each.
    unravel_index(indices, dims, name=None)
        = constant(np.stack(np.unravel_index(_values(indices), as_shape("unravel_index", dims))),
        convert(indices).dtype)
        # Return the coordinates of elements at `indices` in row-major order, a row for each axis of
        the shape `dims`.
"""
spell(globals(), _TABLE)
