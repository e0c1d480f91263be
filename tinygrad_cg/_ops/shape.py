"""Operations that give elements another shape, order or dtype. All are linear."""

from __future__ import annotations

from collections.abc import Iterable
from functools import wraps
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np

from .._core import conversion
from .._core.conversion import as_dtype, convert, convert_operands, unrounded
from .._core.kinds import is_bool, is_complex, is_exact, is_inexact
from .._core.levels import state
from .._core.primitive import apply, public_function, same_parameters
from .._core.tensor import Aval, Tensor, operations
from ..errors import ArgumentTypeError, InvalidArgumentError
from .define import Case, later_axis, operation, public
from .indexing import getitem
from .validation import (
    as_count,
    as_shape,
    as_sizes,
    check_broadcast,
    normalize_axes,
    normalize_axis,
)


def _same(name: str, **record: Any) -> Any:
    """Return an operation that gives its operand, in a tensor of its own."""
    primitive = operation(
        name,
        lambda x: x.view(),
        lambda x: x,
        aliases=True,
        batch=same_parameters,
        samples=[Case(((2, 3),))],
        **record,
    )
    return public(primitive)(public_function(primitive))


identity = _same(
    "identity",
    doc="Return the same value as a new tensor.",
    vjp=(lambda dy: dy,),
    linear=True,
    ufunc=np.positive,
    spellings=("keras.ops.copy", "numpy.positive"),
)
stop_gradient = _same(
    "stop_gradient", doc="Return the same value as a new tensor that does not depend on `x`."
)
optimization_barrier = _same(
    "optimization_barrier",
    doc="Return the same value; programs compute it again. After JAX's.",
    vjp=(lambda dy: dy,),
    linear=True,
)
_cast = operation(
    "cast",
    lambda x, dtype: _cast_array(x, dtype),
    lambda x, dtype: Aval(x.shape, dtype),
    (lambda dy: dy,),  # the sweep casts every gradient to its operand's dtype
    linear=True,
    batch=same_parameters,
    samples=[Case(((2, 3),), {"dtype": np.dtype(np.float64)})],
)


def _cast_array(x: Any, dtype: np.dtype) -> np.ndarray:
    if is_complex(x.dtype) and not is_complex(dtype) and not is_bool(dtype):
        x = x.real
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def cast(x: Any, dtype: Any) -> Tensor:
    """Return `x` as `dtype`; a tensor of that dtype is returned unchanged. Casts to integers
    truncate.

    Modelled on ``tf.cast``, but Python's floats are not rounded to float32 first. The gradient is
    cast back. Numbers too large for `dtype` become infinite. Raises TypeError for None and for
    unsupported dtypes.
    """
    wanted = as_dtype(dtype)
    if not isinstance(x, Tensor):
        x = convert(unrounded(x))
    return x if x.dtype == wanted else apply(_cast, (x,), {"dtype": wanted})


def floating(x: Any) -> Tensor:
    """Return integers and booleans as float64."""
    x = convert(x)
    return cast(x, np.float64) if is_exact(x.dtype) else x


def in_float32(function: Any) -> Any:
    """Have a function of a tensor compute in float32 what is float16, and round its results.

    Squares of numbers above 255 overflow in float16. Results, several in a tuple, stay float32 if
    another tensor among the arguments has a wider floating dtype.
    """

    @wraps(function)
    def compute(x: Any, *args: Any, **kwargs: Any) -> Any:
        x = convert(x)
        if x.dtype != np.float16:
            return function(x, *args, **kwargs)
        result = function(cast(x, np.float32), *args, **kwargs)
        others = [getattr(value, "dtype", x.dtype) for value in (*args, *kwargs.values())]
        if any(dtype != x.dtype and is_inexact(dtype) for dtype in others):
            return result
        if not isinstance(result, tuple):
            return cast(result, x.dtype)
        return tuple([None if tensor is None else cast(tensor, x.dtype) for tensor in result])

    return compute


# Shapes --------------------------------------------------------------------------------------

_reshape = operation(
    "reshape",
    lambda x, shape: x.reshape(shape),
    lambda x, shape: Aval(shape, x.dtype),
    (lambda dy, shape: reshape(dy, shape),),
    linear=True,
    aliases=True,
    batch=lambda params, size: {"shape": (size, *params["shape"])},
    samples=[Case(((2, 3),), {"shape": (3, 2)}), Case(((),), {"shape": (1, 1)})],
)


def reshape(x: Any, shape: Any) -> Tensor:
    """Return the elements of `x`, in row-major order, with another shape. One size may be -1.

    Raises InvalidArgumentError unless the two shapes have equally many elements.
    """
    x = convert(x)
    sizes = as_shape("reshape", shape)
    return apply(_reshape, (x,), {"shape": _infer("reshape", x._data.shape, sizes)})


def _infer(name: str, old: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...]:
    """Return `new` with its -1 worked out, checked against the number of elements of `old`."""
    count, unknown = prod(old), new.count(-1)
    rest = prod([size for size in new if size != -1])
    if unknown > 1:
        raise InvalidArgumentError(f"{name}: only one size may be -1, got shape {new}")
    if any(size < -1 for size in new):
        raise InvalidArgumentError(f"{name}: sizes must not be negative, got shape {new}")
    if unknown and rest and count % rest == 0:
        return tuple(count // rest if size == -1 else size for size in new)
    if unknown or rest != count:
        reason = f"{count} elements are not {rest}"
        reason += " (several sizes go into one tuple, such as (2, 3))" * (len(new) == 1)
        if unknown:
            reason = f"{count} elements are not a multiple of {rest}"
        raise InvalidArgumentError(
            f"{name}: cannot give shape {new} to a tensor of shape {tuple(old)}: {reason}"
        )
    return new


_expand_dims = operation(
    "expand_dims",
    lambda x, axis: x.reshape((*x.shape[:axis], 1, *x.shape[axis:])),
    lambda x, axis: Aval((*x.shape[:axis], 1, *x.shape[axis:]), x.dtype),
    (lambda dy, axis: squeeze(dy, axis),),
    linear=True,
    aliases=True,
    batch=later_axis,
    samples=[Case(((2, 3),), {"axis": 1}), Case(((),), {"axis": 0})],
)
_squeeze = operation(
    "squeeze",
    lambda x, axis: x.reshape([size for i, size in enumerate(x.shape) if i not in axis]),
    lambda x, axis: Aval(tuple(size for i, size in enumerate(x.shape) if i not in axis), x.dtype),
    (lambda dy, shape: reshape(dy, shape),),
    linear=True,
    aliases=True,
    batch=lambda params, size: {"axis": tuple(axis + 1 for axis in params["axis"])},
    samples=[Case(((1, 3, 1),), {"axis": (0, 2)}), Case(((1, 3),), {"axis": (0,)})],
)


def expand_dims(x: Any, axis: Any) -> Tensor:
    """Return `x` with a new axis of size 1 at position `axis`, which may be negative."""
    x = convert(x)
    dim = normalize_axis("expand_dims", axis, x._data.ndim + 1)
    return apply(_expand_dims, (x,), {"axis": dim})


def squeeze(x: Any, axis: Any = None) -> Tensor:
    """Return `x` without its axes of size 1, or without those that `axis` names.

    Raises InvalidArgumentError for an axis of another size, or one that `x` does not have.
    """
    x = convert(x)
    shape = x._data.shape
    if axis is None:
        axes = tuple(i for i, size in enumerate(shape) if size == 1)
    else:
        axes = normalize_axes("squeeze", axis, len(shape))
    for i in axes:
        if shape[i] != 1:
            raise InvalidArgumentError(
                f"squeeze: can only drop axes of size 1, but axis {i} of shape "
                f"{tuple(shape)} has size {shape[i]}"
            )
    return apply(_squeeze, (x,), {"axis": axes})


_transpose = operation(
    "transpose",
    lambda x, perm: x.transpose(perm),
    lambda x, perm: Aval(tuple(x.shape[i] for i in perm), x.dtype),
    (lambda dy, perm: transpose(dy, [perm.index(i) for i in range(len(perm))]),),
    linear=True,
    aliases=True,
    batch=lambda params, size: {"perm": (0, *[i + 1 for i in params["perm"]])},
    samples=[Case(((2, 3),), {"perm": (1, 0)}), Case(((2, 3, 4),), {"perm": (1, 2, 0)})],
)


def transpose(x: Any, perm: Any = None) -> Tensor:
    """Return `x` with its axes in the order `perm`; reversed by default.

    Raises InvalidArgumentError if `perm` does not name each axis once.
    """
    x = convert(x)
    ndim = x._data.ndim
    if perm is None:
        axes = tuple(range(ndim - 1, -1, -1))
    else:
        axes = tuple(normalize_axis("transpose", i, ndim) for i in as_shape("transpose", perm))
        if sorted(axes) != list(range(ndim)):
            raise InvalidArgumentError(
                f"transpose: perm must have each of the {ndim} axes once, such as "
                f"perm={[*range(1, ndim), 0]}, got {perm} (to swap two axes: "
                "tf.numpy.swapaxes)"
            )
    return apply(_transpose, (x,), {"perm": axes})


def reshape_in(x: Any, shape: Any, order: str) -> Tensor:
    """Return `x` with another shape, its elements counted by rows, or by columns ("F")."""
    if order in ("C", "A", "K"):
        return reshape(x, shape)
    if order != "F":
        raise ValueError(f"reshape: order must be 'C', 'F', 'A' or 'K', got {order!r}")
    return transpose(reshape(transpose(x), as_shape("reshape", shape)[::-1]))


def swap_last(x: Tensor) -> Tensor:
    """Return the transpose of each matrix in a stack of matrices."""
    ndim = x._data.ndim
    return apply(_transpose, (x,), {"perm": (*range(ndim - 2), ndim - 1, ndim - 2)})


def _repeat(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Repeat an array to a shape: a small one is copied, a large one becomes a view.

    Kernels are quicker on contiguous operands. (np.broadcast_to makes the same view in 4 us.)
    """
    size = prod(shape)
    if size == 1:
        return x.reshape(shape)
    if size <= 2**15:  # then a copy and one operation on it take as long as one on a view
        out = np.empty(shape, x.dtype)
        out[...] = x
        return out
    missing = len(shape) - x.ndim
    strides = [0] * missing + [
        0 if old != new else step
        for old, new, step in zip(x.shape, shape[missing:], x.strides, strict=True)
    ]
    if not x.flags.c_contiguous:
        return np.broadcast_to(x, shape)
    return np.ndarray(shape, x.dtype, x, 0, strides)


_broadcast_to = operation(
    "broadcast_to",
    _repeat,
    lambda x, shape: Aval(shape, x.dtype),
    (lambda dy: dy,),  # the sweep sums every gradient to its operand's shape
    on_gpu=np.broadcast_to,
    linear=True,
    aliases=True,
    batch=lambda params, size: {"shape": (size, *params["shape"])},
    samples=[Case(((3, 1),), {"shape": (2, 3, 4)}), Case(((),), {"shape": (2,)})],
)


def broadcast_to(x: Any, shape: Any) -> Tensor:
    """Return `x` repeated to `shape`, by NumPy's rules of broadcasting.

    Raises InvalidArgumentError for a shape that `x` does not broadcast to, or negative sizes.
    """
    x = convert(x)
    sizes = as_sizes("broadcast_to", shape)
    if x._data.shape:
        check_broadcast("broadcast_to", "x", x._data.shape, sizes)
    return apply(_broadcast_to, (x,), {"shape": sizes})


def repeat(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return `tensor` broadcast to a shape that is known to fit; itself if it has that shape."""
    data = x._data
    if data.shape == shape:
        return x
    if x._rec is None and state.frame is None and type(data) is np.ndarray:
        return Tensor(_repeat(data, shape))
    return apply(_broadcast_to, (x,), {"shape": shape})


# Joining -------------------------------------------------------------------------------------


def _concatenate_rule(node: Any, dy: Tensor) -> tuple:
    axis, sizes = node.saved
    gradients, start = [], 0
    for operand, size in zip(node.inputs, sizes, strict=True):
        index = (slice(None),) * axis + (slice(start, start + size),)
        gradients.append(None if operand is None else getitem(dy, index))
        start += size
    return tuple(gradients)


def _concatenate_aval(*avals: Aval, axis: int) -> Aval:
    shape = list(avals[0].shape)
    shape[axis] = sum(aval.shape[axis] for aval in avals)
    return Aval(tuple(shape), _common(avals))


def _common(avals: Iterable[Any]) -> np.dtype:
    dtypes = [aval.dtype for aval in avals]
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = conversion.promote(dtype, other)
    return dtype


_concatenate = operation(
    "concatenate",
    lambda *arrays, axis: np.concatenate(arrays, axis, dtype=_common(arrays)),
    _concatenate_aval,
    inputs=("tensors",),
    save=lambda inputs, params, out: (
        params["axis"],
        [tensor._data.shape[params["axis"]] for tensor in inputs],
    ),
    rule=_concatenate_rule,
    linear=True,
    batch=later_axis,
    samples=[Case(((2, 3), (1, 3)), {"axis": 0}), Case(((2, 1), (2, 3)), {"axis": 1})],
)


def _stack_rule(node: Any, dy: Tensor) -> tuple:
    index = (slice(None),) * node.saved
    return tuple(
        None if operand is None else getitem(dy, (*index, i))
        for i, operand in enumerate(node.inputs)
    )


_stack = operation(
    "stack",
    lambda *arrays, axis: np.stack(arrays, axis, dtype=_common(arrays)),
    lambda *avals, axis: Aval(
        (*avals[0].shape[:axis], len(avals), *avals[0].shape[axis:]), _common(avals)
    ),
    inputs=("tensors",),
    save=lambda inputs, params, out: params["axis"],
    rule=_stack_rule,
    linear=True,
    batch=later_axis,
    samples=[Case(((2, 3), (2, 3)), {"axis": 1}), Case(((), ()), {"axis": 0})],
)


def _operands(name: str, tensors: Any) -> tuple[Tensor, ...]:
    if isinstance(tensors, Tensor):
        tensors = list(tensors)
    try:
        operands = tuple(tensors)
    except TypeError:
        if isinstance(tensors, Tensor):  # a scalar, or one without a value
            raise
        raise ArgumentTypeError(
            f"{name}: the first argument must be a list of tensors, got {type(tensors).__name__}"
        ) from None
    converted = convert_operands(operands)
    if not converted:
        raise InvalidArgumentError(f"{name}: needs at least one tensor, got none")
    return converted


def concatenate(tensors: Any, axis: Any = 0) -> Tensor:
    """Return Tensors joined along an axis that they have; `tensors` is any iterable.

    Their dtypes promote. Raises InvalidArgumentError for no tensors and for other shapes.
    """
    operands = _operands("concatenate", tensors)
    shapes = [tensor._data.shape for tensor in operands]
    dim = normalize_axis("concatenate", axis, len(shapes[0]))
    rest = {(*shape[:dim], *shape[dim + 1 :]) for shape in shapes}
    if len(rest) > 1 or len({len(shape) for shape in shapes}) > 1:
        raise InvalidArgumentError(
            "concatenate: shapes must have equally many axes, and the same sizes except along axis "
            f"{dim}, got {', '.join(map(str, shapes))}"
        )
    return apply(_concatenate, operands, {"axis": dim})


def stack(tensors: Any, axis: Any = 0) -> Tensor:
    """Return Tensors of the same shape joined along a new axis; `tensors` is any iterable.

    Their dtypes promote. Raises InvalidArgumentError for shapes that differ, and for an empty list.
    """
    operands = _operands("stack", tensors)
    shapes = [tensor._data.shape for tensor in operands]
    if len(set(shapes)) > 1:
        raise InvalidArgumentError(f"stack: shapes {', '.join(map(str, shapes))} differ")
    dim = normalize_axis("stack", axis, len(shapes[0]) + 1)
    return apply(_stack, operands, {"axis": dim})


def unstack(x: Any, axis: Any = 0) -> list[Tensor]:
    """Return the slices of `x` along `axis`, as a list of tensors with one axis less.

    Raises InvalidArgumentError for an axis that `x` does not have.
    """
    x = convert(x)
    dim = normalize_axis("unstack", axis, x._data.ndim)
    index = (slice(None),) * dim
    return [getitem(x, (*index, i)) for i in range(x._data.shape[dim])]


def split(x: Any, parts: Any, axis: Any = 0) -> list[Tensor]:
    """Return consecutive parts of `x` along `axis`: so many equal ones, or parts of these sizes."""
    x = convert(x)
    dim = normalize_axis("split", axis, x._data.ndim)
    size = x._data.shape[dim]
    sizes = as_shape("split", parts)
    if not np.ndim(parts):
        if sizes[0] < 1 or size % sizes[0]:
            raise InvalidArgumentError(
                f"split: cannot split axis {dim} of shape {tuple(x.shape)} into {sizes[0]} equal "
                "parts"
            )
        sizes = (size // sizes[0],) * sizes[0]
    if sizes.count(-1) == 1:
        rest = sum(sizes) + 1
        sizes = tuple(size - rest if part == -1 else part for part in sizes)
    if sum(sizes) != size or min(sizes, default=0) < 0:
        raise InvalidArgumentError(f"split: sizes {sizes} do not add up to {size}")
    return _cut(x, list(accumulate(sizes[:-1])), dim)


def split_at(x: Any, boundaries: Any, axis: Any = 0, uneven: bool = False) -> list[Tensor]:
    """Return the parts of `x` along `axis` between `boundaries`, or a number of equal parts.

    Modelled on ``np.split``; ``np.array_split`` if `uneven`: the first parts may then be longer by
    one. Raises InvalidArgumentError for a number of parts that does not divide the axis.
    """
    x = convert(x)
    if not np.ndim(boundaries) and not uneven:
        return split(x, boundaries, axis)
    dim = normalize_axis("split", axis, x._data.ndim)
    if np.ndim(boundaries):
        return _cut(x, list(as_shape("split", boundaries)), dim)
    count = as_count("split", "the number of parts", *as_shape("split", boundaries), least=1)
    size, more = divmod(x._data.shape[dim], count)
    return _cut(x, [size * i + min(i, more) for i in range(1, count)], dim)


def _cut(x: Tensor, boundaries: list[int], axis: int) -> list[Tensor]:
    bounds = [0, *boundaries, None]
    index = (slice(None),) * axis
    return [getitem(x, (*index, slice(start, stop))) for start, stop in pairwise(bounds)]


operations.stack = stack
