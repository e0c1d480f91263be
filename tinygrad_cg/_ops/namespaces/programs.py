"""TensorFlow's names at the top level that are rarely needed: moves, checks, and what graphs need.

They are loaded at their first use, so that importing the library stays quick.
"""

from __future__ import annotations

import builtins
import logging
import time
from contextlib import nullcontext
from typing import Any, NamedTuple, Never

import numpy as np

from ..._core import devices
from ..._core.annotations import Axes, DTypeLike, Shape, TensorLike
from ..._core.conversion import INT32, as_dtype, convert, convert_operands, is_tensor
from ..._core.levels import current_trace
from ..._core.suggestions import (
    REQUIRED,
    hides_others,
    refuse_call,
)
from ..._core.tensor import Tensor, TensorShape
from ...errors import InvalidArgumentError
from .. import casts as _casts
from .. import comparison as _comparison
from .. import complex_parts as _complex_parts
from .. import elementwise as _elementwise
from .. import matrix_functions as _matrix_functions
from .. import searching
from ..block_moves import rearrange, space_to_batch
from ..creation import constant
from ..elementwise import add, floor_divide, multiply
from ..indexing import gather, getitem
from ..reductions import reduce_all
from ..shape import broadcast_to, cast, identity, reshape, stop_gradient
from ..validation import as_shape, normalize_axes, normalize_axis
from .adapt import grid_axes
from .namespace import export_functions, named_binary, unary_of_input


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


def _unique(name: str, x: Any, kind: Any) -> builtins.tuple[Tensor, Tensor, Tensor]:
    x = convert(x)
    if x.ndim != 1:
        raise InvalidArgumentError(f"{name}: x must be 1-D, got {x.shape}")
    first, inverse, counts = searching.unique(searching.values_of(stop_gradient(x)))
    order = np.argsort(first)
    wanted = np.argsort(order)[inverse], counts[order]
    positions, numbers = (cast(searching.tensor_of(array), as_dtype(kind)) for array in wanted)
    return gather(x, searching.tensor_of(first[order]), 0), positions, numbers


def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Return `input` with slices along `axis` repeated; flattened if `axis` is None.

    Modelled on ``tf.repeat``.

    Examples
    --------
    >>> tf.repeat([1, 2], 2).numpy()
    array([1, 1, 2, 2], dtype=int32)
    """
    x, times = convert(input), _values(repeats)
    dim = None if axis is None else normalize_axis("repeat", axis, x.ndim)
    return rearrange(lambda indices: np.repeat(indices, times.reshape(-1), dim), x)


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return `input` with its elements shifted cyclically by `shift` along axes. See ``tf.roll``.

    Shifts of an axis that is named twice add up.

    Examples
    --------
    >>> tf.roll([1, 2, 3], 1, 0).numpy()
    array([3, 1, 2], dtype=int32)
    """
    x, axes = convert(input), as_shape("roll", axis)
    dims = builtins.tuple(normalize_axis("roll", dim, x.ndim) for dim in axes)
    shifts = as_shape("roll", shift)
    if len(shifts) != len(dims):
        raise InvalidArgumentError(
            f"roll: shift and axis must have the same length, got {shifts} and {axes}"
        )
    return rearrange(lambda indices: np.roll(indices, shifts, dims), x)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Return the coordinates of the points of a grid, one tensor for each axis.

    Modelled on ``tf.meshgrid``: `indexing` is "xy" (the first axis goes along columns) or "ij".

    Examples
    --------
    >>> [part.numpy().tolist() for part in tf.meshgrid([1, 2], [3, 4])]
    [[[1, 2], [1, 2]], [[3, 3], [4, 4]]]
    """
    grids = grid_axes(args, indexing)
    sizes = np.broadcast_shapes(*[grid.shape for grid in grids])
    return [broadcast_to(grid, sizes) for grid in grids]


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return `x`; InvalidArgumentError unless it has `shape`, where None fits any size."""
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
    """Return ``input_[begin:end:strides]`` over the first axes. Modelled on ``tf.strided_slice``.

    Each bit of a mask belongs to one entry: the masks ignore its begin or end, make it an ellipsis
    or a new axis, or select only the element at `begin`.
    """
    if var is not None:
        raise InvalidArgumentError("strided_slice: var is not supported: assign to the Variable")
    first, last = as_shape("strided_slice", begin), as_shape("strided_slice", end)
    steps = (1,) * len(first) if strides is None else as_shape("strided_slice", strides)
    if not len(first) == len(last) == len(steps):
        raise InvalidArgumentError(
            f"strided_slice: begin, end and strides must have the same length, got {first}, {last} "
            f"and {steps}"
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
    """Return None: operations run immediately. Modelled on ``tf.group``."""


def no_op(name: str | None = None) -> None:
    """Return None and do nothing. Modelled on ``tf.no_op``."""


def control_dependencies(control_inputs: Any) -> Any:
    """Return a context that does nothing: operations already run in the order of the program."""
    return nullcontext()


def device(device_name: Any) -> Any:
    """Return a context in which new tensors and Variables are on a device.

    Modelled on ``tf.device``.

    "/GPU:0" is the GPU, as are "GPU", "cuda:0" and "/device:GPU:0"; "/CPU:0" and None are the
    processor's memory. Tensors made from Python's numbers and NumPy's arrays are placed there, in
    this thread; operations on tensors run where the tensors are. If the device does not exist,
    everything is in the processor's memory, as in TensorFlow with soft placement: see
    ``config.list_physical_devices``. ValueError for other names.
    """
    name = "" if device_name is None else device_name
    parsed = devices.read_name(name)
    if parsed is None:
        raise InvalidArgumentError(
            f"device: {device_name!r} is not the name of a device, such as '/CPU:0'"
        )
    kind, index = parsed
    if device_name is not None and kind == "":  # a name that leaves the device open
        return nullcontext()
    is_there = kind == "gpu" and index < devices.count_gpus()
    return devices.on(devices.find(name, "device") if is_there else devices.CPU)


def get_logger() -> Any:
    """Return the logging.Logger of this library. Modelled on ``tf.get_logger``."""
    return logging.getLogger("tinygrad_cg")


def inside_function() -> bool:
    """Return whether a `function` is being traced. Modelled on ``tf.inside_function``."""
    return current_trace() is not None


def is_symbolic_tensor(tensor: Any) -> bool:
    """Return whether `tensor` is a tensor without values, as inside a `function`.

    Modelled on ``tf.is_symbolic_tensor``.
    """
    return is_tensor(tensor) and get_static_value(tensor) is None


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the values of `tensor` as an array, or None if it has no values yet.

    Modelled on ``tf.get_static_value``: inside a `function` only constants have values. Other
    leaves are returned unchanged; `partial` has no effect.
    """
    if not is_tensor(tensor):
        return tensor
    data = convert(tensor)._data
    return data.copy() if isinstance(data, np.ndarray) else None


def timestamp(name: str | None = None) -> Tensor:
    """Return the seconds since 1970 as a float64 tensor. Modelled on ``tf.timestamp``."""
    return constant(np.float64(time.time()))


def _increases(compare: Any, x: Any) -> Tensor:
    flat = reshape(x, (-1,))
    return reduce_all(compare(getitem(flat, slice(None, -1)), getitem(flat, slice(1, None))))


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """Return the common shape of two shapes that broadcast; ValueError if they do not."""
    return TensorShape(np.broadcast_shapes(builtins.tuple(shape_x), builtins.tuple(shape_y)))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """Return the common shape of two shapes that broadcast, as an int32 tensor."""
    shapes = [as_shape("broadcast_dynamic_shape", shape) for shape in (shape_x, shape_y)]
    return constant(np.array(np.broadcast_shapes(*shapes), np.int32))


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Return complex numbers of real and imaginary parts, which broadcast.

    Modelled on ``tf.complex``. Infinities, NaN and signs of zeros of both parts are kept. complex64
    of float32, complex128 of float64 and of integers. TypeError for complex parts.
    """
    return _complex_parts.complex_of(real, imag)


guarantee_const = unary_of_input(identity, __name__, "guarantee_const")
matrix_square_root = unary_of_input(_matrix_functions.sqrtm, __name__, "matrix_square_root")
realdiv = named_binary(_elementwise.divide, __name__, "realdiv")


def identity_n(input: Any, name: str | None = None) -> list[Tensor]:
    """Return the tensors of a list unchanged."""
    return [identity(tensor) for tensor in input]


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Return whether no element of `x`, in row-major order, is less than the element before it."""
    return _increases(_comparison.less_equal, x)


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Return whether each element of `x`, in row-major order, is larger than the element before
    it."""
    return _increases(_comparison.less, x)


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> builtins.tuple[Tensor, Tensor]:
    """Return paddings for ``space_to_batch`` of `input_shape`, at least `base_paddings`, and the
    crops with which ``batch_to_space`` removes them again."""
    name = "required_space_to_batch_paddings"
    sizes, blocks = as_shape(name, input_shape), as_shape(name, block_shape)
    pairs = np.zeros((len(sizes), 2), int) if base_paddings is None else _values(base_paddings)
    if len(sizes) != len(blocks) or pairs.shape != (len(sizes), 2) or min(blocks, default=1) < 1:
        raise InvalidArgumentError(
            f"{name}: input_shape, block_shape of positive sizes and base_paddings of pairs must "
            f"have the same length; got {sizes}, {blocks} and {pairs.tolist()}"
        )
    more = [
        -(size + sum(pair)) % block
        for size, block, pair in zip(sizes, blocks, pairs.tolist(), strict=True)
    ]
    room = np.stack([0 * np.array(more, int), more], 1)
    return constant(np.int32(pairs + room)), constant(np.int32(room))


@hides_others
def reverse(
    tensor: TensorLike, axis: Axes = REQUIRED, name: str | None = None, **others: Never
) -> Tensor:
    """Return `tensor` in reverse order along the axes of the list `axis`."""
    if others or axis is REQUIRED:
        refuse_call(reverse, others)
    x = convert(tensor)
    axes = normalize_axes("reverse", as_shape("reverse", axis), x.ndim)
    return getitem(
        x, builtins.tuple(slice(None, None, -1 if i in axes else None) for i in range(x.ndim))
    )


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Return `value` as `dtype`, clipped to the limits of `dtype`. NaN as integer is 0.

    Modelled on ``tf.saturate_cast``. The gradient is 0 beyond the limits. Raises TypeError for
    complex numbers that become real.
    """
    return _casts.saturate_cast(value, dtype)


def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: DTypeLike = INT32,
    name: str | None = None,
) -> Tensor:
    """Return the positions (int32) at which `values` can be inserted in the last axis of
    `sorted_sequence`: before equal elements, or after them with side="right". All other axes of
    both are the same."""
    table, queries = convert_operands((sorted_sequence, values))
    if table.shape[:-1] != queries.shape[:-1] or not table.ndim:
        raise InvalidArgumentError(
            "searchsorted: sorted_sequence and values must have the same axes before the last, got "
            f"shapes {builtins.tuple(table.shape)} and {builtins.tuple(queries.shape)}"
        )
    return cast(searching.searchsorted(table, queries, side), as_dtype(out_type))


def shape_n(input: Any, out_type: DTypeLike = INT32, name: str | None = None) -> list[Tensor]:
    """Return the shapes of the tensors of a list, as tensors of int32 by default."""
    return [constant(np.array(convert(tensor).shape), out_type) for tensor in input]


space_to_batch_nd = space_to_batch


def tile(input: TensorLike, multiples: Any, name: str | None = None) -> Tensor:
    """Return `input` repeated `multiples` times along each axis."""
    x, times = convert(input), as_shape("tile", multiples)
    if len(times) != x.ndim:
        raise InvalidArgumentError(
            f"tile: multiples must have a number for each axis of shape {x.shape}, got {times}"
        )
    return rearrange(lambda indices: np.tile(indices, times), x)


def truncatediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return x / y for integers, rounded towards zero."""
    x, y = convert_operands((x, y))
    quotient = floor_divide(x, y)
    inexact = (multiply(quotient, y) != x) & ((x < 0) != (y < 0))
    return add(quotient, cast(inexact, quotient.dtype))


def tuple(tensors: Any, control_inputs: Any = None, name: str | None = None) -> list[Any]:
    """Return the tensors of a list unchanged."""
    return [tensor if tensor is None else identity(tensor) for tensor in tensors]


def truncatemod(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Return the rest of ``truncatediv``, with the sign of `x`."""
    x, y = convert_operands((x, y))
    return x - multiply(truncatediv(x, y), y)


def unique(x: TensorLike, out_idx: Any = INT32, name: str | None = None) -> Unique:
    """Return the distinct elements of 1-D `x` in order of first appearance, and for each element of
    `x` its index among them. The gradient goes to the first of equal elements."""
    return Unique(*_unique("unique", x, out_idx)[:2])


def unique_with_counts(
    x: TensorLike, out_idx: Any = INT32, name: str | None = None
) -> UniqueWithCounts:
    """Return the results of ``unique``, and the count of each element."""
    return UniqueWithCounts(*_unique("unique_with_counts", x, out_idx))


def unravel_index(indices: TensorLike, dims: Shape, name: str | None = None) -> Tensor:
    """Return the coordinates of elements at `indices` in row-major order, a row for each axis of
    the shape `dims`."""
    coordinates = np.unravel_index(_values(indices), as_shape("unravel_index", dims))
    return constant(np.stack(coordinates), convert(indices).dtype)


__all__ = export_functions(globals())
