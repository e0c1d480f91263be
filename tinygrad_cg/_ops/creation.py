"""New tensors: from values, filled, or in steps.

They depend on nothing, so have no gradient; unless one is filled or bounded with a tensor.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .._core import devices
from .._core.annotations import DTypeLike, TensorLike
from .._core.conversion import (
    BOOL,
    COMPLEX128,
    FLOAT32,
    FLOAT64,
    Weak,
    as_dtype,
    convert,
    convert_each,
    is_tensor,
    promote,
    scalar_dtype,
    to_array,
    weak_dtype,
)
from .._core.kinds import is_complex, is_floating, is_inexact
from .._core.suggestions import hides_others, refuse_arguments
from .._core.tensor import ArrayLike, Aval, Tensor
from ..errors import InvalidArgumentError
from .shape import broadcast_to, cast, reshape
from .validation import as_count, as_sizes, broadcast_shapes


@hides_others
def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str | None = None,
    **others: Any,
) -> Tensor:
    """Return a tensor of `value`: a number, a nested list of numbers, or an array (copied).

    Python floats become float32, integers int32 (int64 if necessary), arrays keep their dtype.
    `shape` reshapes the value, or repeats a single number. A Tensor is returned unchanged.

    Modelled on ``tf.constant``. Raises TypeError for values that are not numbers or lose their
    fractions in `dtype`, OverflowError for integers that do not fit, ValueError for ragged lists
    and wrong shapes.

    Examples
    --------
    >>> tf.constant([1, 2])
    <tg.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
    """
    if others:
        refuse_arguments("constant", ("value", "dtype", "shape", "name"), others)
    tensor = convert_to_tensor(value, dtype)
    if shape is None:
        return tensor
    sizes = as_sizes("constant", shape)
    old = tensor._data.shape
    if old == sizes:
        return tensor
    count = int(np.prod(old, dtype=np.int64))
    if count == 1:
        return broadcast_to(reshape(tensor, ()), sizes)
    if count != np.prod(sizes, dtype=np.int64):
        raise InvalidArgumentError(
            f"constant: cannot give shape {sizes} to {count} values of shape {tuple(old)}"
        )
    return reshape(tensor, sizes)


@hides_others
def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    dtype_hint: Any = None,
    name: str | None = None,
    **others: Any,
) -> Tensor:
    """Return `value` as a Tensor: a Tensor unchanged, anything else converted like `constant`.

    A Tensor of another dtype raises ValueError: use `cast`.

    Examples
    --------
    >>> tf.convert_to_tensor(np.eye(2)).dtype
    dtype('float64')
    """
    if others:
        refuse_arguments("convert_to_tensor", ("value", "dtype", "dtype_hint", "name"), others)
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is None and dtype_hint is not None and not is_tensor(value):
        wanted = as_dtype(dtype_hint)
    if isinstance(value, ArrayLike) and not isinstance(value, Tensor):
        value = value._read_as_source()
    tensor = convert(value, wanted)
    if wanted is not None and tensor.dtype != wanted:
        raise InvalidArgumentError(
            f"Tensor conversion requested dtype {wanted} for Tensor with dtype {tensor.dtype}: "
            "use cast(tensor, dtype)"
        )
    return tensor


def full(shape: Any, value: Any, dtype: Any = None) -> Tensor:
    """Return a tensor of `shape` filled with the single number `value`.

    Its dtype is that of `value`, as `constant` makes it, unless `dtype` is given. Modelled on
    ``tf.fill``: where `value` is a tensor, the gradients of all elements add up in it. Raises
    InvalidArgumentError for a value that is not a scalar, and for negative sizes.
    """
    sizes, wanted = as_sizes("full", shape), _dtype(dtype)
    if isinstance(value, Weak):
        value = value.strong(wanted)
    if _flows(value, wanted):
        tensor = convert(value)
        _check_scalar("full", "value", tensor._data)
        return broadcast_to(cast(tensor, wanted or tensor.dtype), sizes)
    data = to_array(_as_value(value), wanted)
    _check_scalar("full", "value", data)
    return Tensor(devices.create("full", "full", sizes, data[()], data.dtype))


def zeros(shape: Any, dtype: Any = FLOAT32) -> Tensor:
    """Return a tensor of zeros, float32 by default. InvalidArgumentError for negative sizes."""
    return Tensor(devices.create("zeros", "zeros", as_sizes("zeros", shape), as_dtype(dtype)))


def ones(shape: Any, dtype: Any = FLOAT32) -> Tensor:
    """Return a tensor of ones, float32 by default. InvalidArgumentError for negative sizes."""
    return Tensor(devices.create("ones", "ones", as_sizes("ones", shape), as_dtype(dtype)))


def zeros_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return zeros with the shape and, unless `dtype` is given, the dtype of `x`."""
    tensor = convert(x)
    aval = tensor._data
    wanted = _dtype(dtype) or aval.dtype
    if not devices.array_types:
        return Tensor(np.zeros(aval.shape, wanted))
    return Tensor(devices.create("zeros_like", "zeros", aval.shape, wanted, like=tensor))


def fill_zeros(likes: Iterable, tensors: Iterable) -> list:
    """Return `tensors` with zeros in place of None: of the shape and dtype of each of `likes`.

    Those are tensors, avals, or None, which keeps None.
    """
    return [
        tensor
        if tensor is not None or like is None
        else (zeros(*like) if isinstance(like, Aval) else zeros_like(like))
        for like, tensor in zip(likes, tensors, strict=True)
    ]


def ones_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Return ones with the shape and, unless `dtype` is given, the dtype of `x`."""
    tensor = convert(x)
    aval = tensor._data
    wanted = _dtype(dtype) or aval.dtype
    if devices.array_types:
        return Tensor(devices.create("ones_like", "ones", aval.shape, wanted, like=tensor))
    ones = np.empty(aval.shape, wanted)
    ones.fill(1)  # np.ones takes three times as long for few
    return Tensor(ones)


def full_like(x: Any, value: Any, dtype: Any = None) -> Tensor:
    """Return `value` everywhere, with the shape and, unless `dtype` is given, the dtype of `x`.

    `value` is as for `full`, and gets a gradient, too; `x` gets none.
    """
    tensor = convert(x)
    aval = tensor._data
    with devices.on_device_of(tensor):
        return full(aval.shape, value, _dtype(dtype) or aval.dtype)


def eye(rows: Any, columns: Any = None, dtype: Any = FLOAT32) -> Tensor:
    """Return the identity matrix of `rows` by `columns` (square by default).

    Raises TypeError for sizes that are not integers, InvalidArgumentError for negative ones.
    """
    height = as_count("eye", "rows", rows)
    width = height if columns is None else as_count("eye", "columns", columns)
    return Tensor(devices.create("eye", "eye", height, width, dtype=as_dtype(dtype)))


@devices.on_device_of_operands
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Return numbers from `start` (0 if only one bound is given) to below `stop`, in steps."""
    if stop is None:
        start, stop = 0, start
    values: list[Any] = [_as_value(value) for value in (start, stop, step)]
    for argument, value in zip(("start", "stop", "step"), values, strict=True):
        _check_scalar("range", argument, to_array(value, copy=False))
    if values[2] == 0:
        raise InvalidArgumentError("range: step must not be 0")
    wanted = _dtype(dtype) or _common_dtype(values)
    try:
        return Tensor(devices.to_current(np.arange(*values, dtype=wanted)))
    except (ValueError, OverflowError) as error:
        bounds = "from {} to {} in steps of {}".format(*values)
        raise InvalidArgumentError(
            f"range: cannot count {bounds} ({error}): give finite bounds, and fewer steps"
        ) from None


def linspace(start: Any, stop: Any, num: Any = 50, dtype: Any = None) -> Tensor:
    """Return `num` evenly spaced numbers from `start` to `stop` inclusive, along a new first axis.

    Their dtype is that in which the bounds meet, float32 for integers, unless `dtype` is given.
    Modelled on ``tf.linspace``: bounds that are tensors get gradients. Raises InvalidArgumentError
    if `num` is negative or the shapes of the bounds do not broadcast.
    """
    count = as_count("linspace", "num", num)
    if isinstance(start, (list, tuple)) or isinstance(stop, (list, tuple)):
        start, stop, _ = convert_each(start, stop, np.empty(0, _dtype(dtype) or BOOL))
    wanted: Any = _dtype(dtype) or _common_dtype([start, stop])
    if dtype is None and not is_inexact(wanted):
        wanted = FLOAT32
    if _flows(start, wanted) or _flows(stop, wanted):
        return _interpolate(start, stop, count, wanted)
    first, last = _as_value(start), _as_value(stop)
    try:
        with np.errstate(all="ignore"):
            return Tensor(devices.to_current(np.linspace(first, last, count, dtype=wanted)))
    except ValueError:
        broadcast_shapes("linspace", np.shape(first), np.shape(last))
        raise


def _interpolate(start: Any, stop: Any, count: int, dtype: np.dtype) -> Tensor:
    """Return weighted means of the bounds, exact at both ends."""
    wide = COMPLEX128 if is_complex(dtype) else FLOAT64
    first, last = convert(start, wide), convert(stop, wide)
    axes = [1] * len(broadcast_shapes("linspace", first._data.shape, last._data.shape))
    shares = (np.arange(count) / max(count - 1, 1)).reshape(count, *axes)
    on_gpu = devices.GPU in (devices.home(first), devices.home(last))
    share = Tensor(devices.move(shares, devices.GPU) if on_gpu else shares)
    points = cast(first, wide) * (1.0 - share) + cast(last, wide) * share
    return cast(points, dtype)


def _common_dtype(values: list) -> np.dtype:
    """Return the dtype in which bounds meet: NumPy's scalars and tensors first, then numbers."""
    strong = [value.dtype for value in values if hasattr(value, "dtype")]
    weak = [value for value in values if not hasattr(value, "dtype")]
    dtype = promote(*strong) if strong else None
    for value in weak:
        own = scalar_dtype(value)
        if dtype is None:
            dtype = own
        else:
            dtype = weak_dtype(value, dtype) if strong else promote(dtype, own)
    return dtype if dtype is not None else FLOAT32


def _flows(value: Any, wanted: np.dtype | None) -> bool:
    """Return whether a gradient can reach `value`, a tensor, from a result of dtype `wanted`."""
    if not is_tensor(value) or not is_inexact(value.dtype):
        return False
    if wanted is None or is_complex(wanted):
        return True
    return is_floating(wanted) and is_floating(value.dtype)


def _check_scalar(name: str, argument: str, data: Any) -> None:
    if data.ndim:
        raise InvalidArgumentError(
            f"{name}: {argument} must be a scalar, got shape {tuple(data.shape)}"
        )


def _as_value(value: Any) -> Any:
    """Return the value of a 0-d tensor, as a NumPy scalar; anything else itself."""
    return np.asarray(value)[()] if is_tensor(value) else value


def _dtype(dtype: Any) -> np.dtype | None:
    return None if dtype is None else as_dtype(dtype)
