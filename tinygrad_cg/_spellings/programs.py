"""TensorFlow's names at the top level that are rarely needed: moves, checks, and what graphs need.

They are loaded at their first use, so that importing the library stays quick.
"""

from __future__ import annotations

import builtins
import logging
import time
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from .._core import devices
from .._core.conversion import as_dtype, convert, convert_operands, is_tensor
from .._core.levels import stack as levels_of
from .._core.levels import state
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor, TensorShape
from .._ops import searching
from .._ops.blocks import rearrange
from .._ops.creation import constant
from .._ops.define import as_shape, normalize_axes, normalize_axis
from .._ops.elementwise import add, floor_divide, multiply
from .._ops.indexing import gather, getitem
from .._ops.reductions import reduce_all
from .._ops.shape import broadcast_to, cast, reshape, stop_gradient
from ..errors import InvalidArgumentError
from .spell import spell

__all__ = [
    "control_dependencies",
    "device",
    "ensure_shape",
    "get_logger",
    "get_static_value",
    "group",
    "inside_function",
    "is_symbolic_tensor",
    "meshgrid",
    "no_op",
    "repeat",
    "roll",
    "strided_slice",
    "timestamp",
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
        raise InvalidArgumentError(f"{name}: x must be 1-D, got {x.shape}")
    first, inverse, counts = searching.unique(searching.values_of(stop_gradient(x)))
    order = np.argsort(first)
    wanted = np.argsort(order)[inverse], counts[order]
    found, numbers = (cast(searching.tensor_of(one), as_dtype(kind)) for one in wanted)
    return gather(x, searching.tensor_of(first[order]), 0), found, numbers


def _tiled(x: Any, multiples: Any) -> Tensor:
    x, times = convert(x), as_shape("tile", multiples)
    if len(times) != x.ndim:
        raise InvalidArgumentError(
            f"tile: multiples must be a number for each axis of {x.shape}, got {times}"
        )
    return rearrange(lambda indices: np.tile(indices, times), x)


@reads_own_arguments
def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Return `input` with each slice along `axis` `repeats` times; flattened if it is None.

    After ``tf.repeat``.

    Examples
    --------
    >>> tf.repeat([1, 2], 2).numpy()
    array([1, 1, 2, 2], dtype=int32)
    """
    x, times = convert(input), _values(repeats)
    dim = None if axis is None else normalize_axis("repeat", axis, x.ndim)
    return rearrange(lambda indices: np.repeat(indices, times.reshape(-1), dim), x)


@reads_own_arguments
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return `input` with its elements moved on by `shift` along axes, and round. See ``tf.roll``.

    Of an axis that is named twice the shifts add up.

    Examples
    --------
    >>> tf.roll([1, 2, 3], 1, 0).numpy()
    array([3, 1, 2], dtype=int32)
    """
    x, axes = convert(input), as_shape("roll", axis)
    dims = builtins.tuple(normalize_axis("roll", one, x.ndim) for one in axes)
    shifts = as_shape("roll", shift)
    if len(shifts) != len(dims):
        raise InvalidArgumentError(
            f"roll: shift and axis must have one length, got {shifts} and {axes}"
        )
    return rearrange(lambda indices: np.roll(indices, shifts, dims), x)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Return the coordinates of the points of a grid, a tensor for each of its axes.

    After ``tf.meshgrid``: `indexing` is "xy" (the first axis goes along columns) or "ij".

    Examples
    --------
    >>> [part.numpy().tolist() for part in tf.meshgrid([1, 2], [3, 4])]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
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
            f"ensure_shape: x has shape {x.shape}, which is not {TensorShape(wanted)}"
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
    return getitem(convert(input_), builtins.tuple(key))


def group(*inputs: Any, **kwargs: Any) -> None:
    """Return None: everything is computed when it is called. After ``tf.group``."""


def no_op(name: str | None = None) -> None:
    """Return None and do nothing. After ``tf.no_op``."""


def control_dependencies(control_inputs: Any) -> Any:
    """Return a context that does nothing: everything is computed in the order it is written in."""
    return nullcontext()


def device(device_name: Any) -> Any:
    """Return a context in which new tensors and Variables are on a device. After ``tf.device``.

    "/GPU:0" is the GPU, as are "GPU", "cuda:0" and "/device:GPU:0"; "/CPU:0" and None are the
    processor's memory. What is made of Python's numbers and of NumPy's arrays is there, in this
    thread; operations on tensors run where these are. Where there is no such device everything
    is in the processor's memory, as in the original with soft placement: see
    ``config.list_physical_devices``. ValueError for what is no name of a device.
    """
    name = "" if device_name is None else device_name
    known = devices.read_name(name)
    if known is None:
        raise InvalidArgumentError(
            f"device: {device_name!r} is not the name of a device, such as '/CPU:0'"
        )
    if device_name is not None and known[0] == "":  # a name that leaves the device open
        return nullcontext()
    return devices.on(devices.find_softly(name))


def get_logger() -> Any:
    """Return the logging.Logger of this library. After ``tf.get_logger``."""
    return logging.getLogger("tinygrad_cg")


def inside_function() -> bool:
    """Return whether a `function` is being traced. After ``tf.inside_function``."""
    return any(level.is_abstract for level in levels_of(state.frame))


def is_symbolic_tensor(tensor: Any) -> bool:
    """Return whether `tensor` is a tensor without values, as inside a `function`.

    After ``tf.is_symbolic_tensor``.
    """
    return is_tensor(tensor) and get_static_value(tensor) is None


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the values of `tensor` as an array, or None where it has none yet.

    After ``tf.get_static_value``: inside a `function` only constants have values. What is no tensor
    is returned as it is; `partial` makes no difference.
    """
    if not is_tensor(tensor):
        return tensor
    data = convert(tensor)._data
    return data.copy() if isinstance(data, np.ndarray) else None


def timestamp(name: str | None = None) -> Tensor:
    """Return the seconds since 1970 as a float64 tensor. After ``tf.timestamp``."""
    return constant(np.float64(time.time()))


def _required_paddings(shape: Any, block_shape: Any, base: Any) -> tuple[Tensor, Tensor]:
    name = "required_space_to_batch_paddings"
    sizes, blocks = as_shape(name, shape), as_shape(name, block_shape)
    pairs = np.zeros((len(sizes), 2), int) if base is None else np.asarray(_values(base))
    if len(sizes) != len(blocks) or pairs.shape != (len(sizes), 2) or min(blocks, default=1) < 1:
        raise InvalidArgumentError(
            f"{name}: input_shape, block_shape of positive sizes and base_paddings of pairs must "
            f"have one length; got {sizes}, {blocks} and {pairs.tolist()}"
        )
    more = [
        -(size + sum(pair)) % block
        for size, block, pair in zip(sizes, blocks, pairs.tolist(), strict=True)
    ]
    room = np.stack([0 * np.array(more, int), more], 1)
    return constant(np.int32(pairs + room)), constant(np.int32(room))


def _towards_zero(x: Any, y: Any) -> Tensor:
    x, y = convert_operands((x, y))
    found = floor_divide(x, y)
    rest = x - multiply(found, y)
    inexact = (rest != 0) & ((x < 0) != (y < 0))
    return add(found, cast(inexact, found.dtype))


def _truncated_rest(x: Any, y: Any) -> Tensor:
    x, y = convert_operands((x, y))
    return x - multiply(_towards_zero(x, y), y)


def _increases(compare: Any, x: Any) -> Tensor:
    flat = reshape(x, (-1,))
    return reduce_all(compare(getitem(flat, slice(None, -1)), getitem(flat, slice(1, None))))


def _reversed(x: Any, axis: Any) -> Tensor:
    x = convert(x)
    axes = normalize_axes("reverse", as_shape("reverse", axis), x.ndim)
    return getitem(
        x, builtins.tuple(slice(None, None, -1 if i in axes else None) for i in range(x.ndim))
    )


def _searchsorted(rows: Any, values: Any, side: str, kind: Any) -> Tensor:
    """Return where values stand in sorted rows, which have the same axes before the last."""
    table, found = convert_operands((rows, values))
    if table.shape[:-1] != found.shape[:-1] or not table.ndim:
        raise InvalidArgumentError(
            "searchsorted: sorted_sequence and values must have the same axes before the last, got "
            f"shapes {tuple(table.shape)} and {tuple(found.shape)}"
        )
    return cast(searching.searchsorted(table, found, side), as_dtype(kind))


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
    bincount(arr, weights=None, minlength=None, maxlength=None, dtype=int32, name=None, axis=None,
        binary_output=False)
        = bincount(arr, weights, minlength, maxlength, dtype, axis, binary_output)
    complex(real, imag, name=None) = complex_of(real, imag)
    confusion_matrix(labels, predictions, num_classes=None, weights=None, dtype=int32, name=None)
        = confusion_matrix(labels, predictions, num_classes, weights, dtype)
    guarantee_const(input, name=None) = identity(input)
    histogram_fixed_width(values, value_range, nbins=100, dtype=int32, name=None)
        = histogram(values, value_range, nbins, dtype)
    histogram_fixed_width_bins(values, value_range, nbins=100, dtype=int32, name=None)
        = histogram_bins(values, value_range, nbins, dtype)
    identity_n(input, name=None) -> list[Tensor] = [identity(one) for one in input]
        # Return the tensors of a list as they are.
    invert_permutation(x, name=None) = invert_permutation(x)
    is_non_decreasing(x, name=None) = _increases(less_equal, x)
        # Return whether no element of `x`, in row-major order, is less than the one before it.
    is_strictly_increasing(x, name=None) = _increases(less, x)
        # Return whether each element of `x`, in row-major order, is larger than the one before it.
    matrix_square_root(input, name=None) = sqrtm(input)
    polyval(coeffs, x, name=None) = polynomial(coeffs, x)
    realdiv(x, y, name=None) = divide(x, y)
    required_space_to_batch_paddings(input_shape, block_shape, base_paddings=None, name=None)
        -> tuple[Tensor, Tensor]
        = _required_paddings(input_shape, block_shape, base_paddings)
        # Return the paddings, no less than `base_paddings`, with which ``space_to_batch`` takes
        `input_shape`, and the crops with which ``batch_to_space`` takes away what is more.
    reverse(tensor, axis, name=None) = _reversed(tensor, axis)
        # Return `tensor` in reverse order along the axes of the list `axis`.
    reverse_sequence(input, seq_lengths, seq_axis=None, batch_axis=None, name=None)
        = reverse_sequence(input, seq_lengths, seq_axis, 0 if batch_axis is None else batch_axis)
        # Return `input` with the first of `seq_lengths` elements along `seq_axis` reversed, for
        each of the batch along `batch_axis`, by default the first axis.
    saturate_cast(value, dtype, name=None) = saturate_cast(value, dtype)
    searchsorted(sorted_sequence, values, side="left", out_type=int32, name=None)
        = _searchsorted(sorted_sequence, values, side, out_type)
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
    tuple(tensors, control_inputs=None, name=None) -> list[Any]
        = [one if one is None else identity(one) for one in tensors]
        # Return the tensors of a list as they are; everything is computed in the order it is
        written in.
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
