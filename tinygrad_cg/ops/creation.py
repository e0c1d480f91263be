"""New tensors: from values, filled, or in steps. They depend on nothing, so have no gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..convert import (
    FLOAT32,
    as_dtype,
    convert,
    is_tensor,
    promote,
    scalar_dtype,
    to_array,
    weak_dtype,
)
from ..errors import InvalidArgumentError
from ..tensor import ArrayLike, Tensor
from .define import as_int, as_shape


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor of `value`: a number, a nested list of numbers, or an array (copied).

    Python floats become float32, integers int32 (int64 where they need it), arrays keep their
    dtype. `shape` reshapes the value, or repeats a single number. A Tensor comes back as it is.
    """
    tensor = convert_to_tensor(value, dtype)
    if shape is None or tuple(tensor.shape) == as_shape("constant", shape):
        return tensor
    sizes = as_shape("constant", shape)
    data = tensor._data
    if data.size == 1:
        return Tensor(np.full(sizes, data.reshape(())[()]))
    if data.size != np.prod(sizes, dtype=np.int64):
        raise InvalidArgumentError(
            f"constant: cannot give shape {sizes} to {data.size} values of shape {data.shape}"
        )
    return Tensor(data.reshape(sizes))


def convert_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> Tensor:
    """`value` as a Tensor: itself if it is one, else converted as `constant` does.

    A Tensor of another dtype than asked for is a ValueError: use `cast`.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if wanted is None and dtype_hint is not None and not is_tensor(value):
        wanted = as_dtype(dtype_hint)
    if isinstance(value, ArrayLike) and not isinstance(value, Tensor):
        value = value._read_apart()
    tensor = convert(value, wanted)
    if wanted is not None and tensor.dtype != wanted:
        raise InvalidArgumentError(
            f"Tensor conversion requested dtype {wanted} for Tensor with dtype {tensor.dtype}: "
            "use cast(tensor, dtype)"
        )
    return tensor


def full(shape: Any, value: Any, dtype: Any = None) -> Tensor:
    """A tensor of `shape` filled with the single number `value`."""
    data = to_array(_plain(value), _dtype(dtype))
    if data.ndim:
        raise InvalidArgumentError(f"full: value must be a scalar, got shape {data.shape}")
    return Tensor(np.full(as_shape("full", shape), data[()], data.dtype))


def zeros(shape: Any, dtype: Any = FLOAT32) -> Tensor:
    """A tensor of zeros, float32 by default."""
    return Tensor(np.zeros(as_shape("zeros", shape), as_dtype(dtype)))


def ones(shape: Any, dtype: Any = FLOAT32) -> Tensor:
    """A tensor of ones, float32 by default."""
    return Tensor(np.ones(as_shape("ones", shape), as_dtype(dtype)))


def zeros_like(x: Any, dtype: Any = None) -> Tensor:
    """Zeros with the shape and, unless `dtype` is given, the dtype of `x`."""
    aval = convert(x)._data
    return Tensor(np.zeros(aval.shape, _dtype(dtype) or aval.dtype))


def ones_like(x: Any, dtype: Any = None) -> Tensor:
    """Ones with the shape and, unless `dtype` is given, the dtype of `x`."""
    aval = convert(x)._data
    return Tensor(np.ones(aval.shape, _dtype(dtype) or aval.dtype))


def full_like(x: Any, value: Any, dtype: Any = None) -> Tensor:
    """`value` everywhere, with the shape and, unless `dtype` is given, the dtype of `x`."""
    aval = convert(x)._data
    return full(aval.shape, value, _dtype(dtype) or aval.dtype)


def eye(rows: Any, columns: Any = None, dtype: Any = FLOAT32) -> Tensor:
    """The identity matrix of `rows` by `columns` (square by default)."""
    width = None if columns is None else as_int("eye", "columns", columns)
    return Tensor(np.eye(as_int("eye", "rows", rows), width, dtype=as_dtype(dtype)))


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Numbers from `start` (0 if only one bound is given) to below `stop`, in steps."""
    if stop is None:
        start, stop = 0, start
    values: list[Any] = [_plain(value) for value in (start, stop, step)]
    if values[2] == 0:
        raise InvalidArgumentError("range: step must not be 0")
    wanted = _dtype(dtype) or _common_dtype(values)
    return Tensor(np.arange(*values, dtype=wanted))


def linspace(start: Any, stop: Any, num: Any = 50, dtype: Any = None) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both included."""
    count = as_int("linspace", "num", num)
    if count < 0:
        raise InvalidArgumentError(f"linspace: num must not be negative, got {count}")
    first, last = _plain(start), _plain(stop)
    wanted: Any = _dtype(dtype) or _common_dtype([first, last])
    if dtype is None and wanted.kind not in "fc":
        wanted = FLOAT32
    return Tensor(np.linspace(first, last, count, dtype=wanted))


def _common_dtype(values: list) -> np.dtype:
    """The dtype in which bounds meet: NumPy's scalars and tensors first, then Python numbers."""
    strong = [value.dtype for value in values if isinstance(value, (np.generic, np.ndarray))]
    weak = [value for value in values if not isinstance(value, (np.generic, np.ndarray))]
    dtype = promote(*strong) if strong else None
    for value in weak:
        own = scalar_dtype(value)
        if dtype is None:
            dtype = own
        else:
            dtype = weak_dtype(value, dtype) if strong else promote(dtype, own)
    return dtype if dtype is not None else FLOAT32


def _plain(value: Any) -> Any:
    """The value of a 0-d tensor, as a NumPy scalar; anything else itself."""
    return np.asarray(value)[()] if is_tensor(value) else value


def _dtype(dtype: Any) -> np.dtype | None:
    return None if dtype is None else as_dtype(dtype)
