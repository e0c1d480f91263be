"""Conversion of arguments as in NumPy: Python's floats are float64, lists are arrays; dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import devices
from .._core.conversion import any_tensor, convert, is_tensor, refuse_masked
from .._core.kinds import is_exact, is_floating, is_unsigned, rank
from .._core.tensor import NoValueError, Tensor
from .._ops import searching
from .._ops.block_moves import rearrange
from .._ops.creation import full
from .._ops.elementwise import maximum, minimum, remainder
from .._ops.indexing import gather
from .._ops.namespaces.adapt import arg_extremum
from .._ops.shape import broadcast_to, cast, floating, reshape, stack, stop_gradient
from .._ops.validation import as_sizes
from ..errors import OperatorNotAllowedInGraphError


def _read(x: Any) -> Any:
    """Return a list as an array, or as a tensor if it contains one; other values unchanged."""
    if not isinstance(x, (list, tuple)):
        return x
    if not any_tensor(x):
        return np.asarray(x)
    rows = [_read(item) for item in x]
    widest = max((row.dtype for row in rows if hasattr(row, "dtype")), key=rank, default=None)
    return stack([_with_weak_dtype(row, widest) for row in rows])


def _array(x: Any) -> Tensor:
    """Return a tensor, with the dtype that NumPy gives numbers and lists."""
    if isinstance(x, Tensor):
        return x
    x = _read(x)
    return convert(np.asarray(x) if isinstance(x, _NUMBERS) else x)


_NUMBERS = (bool, int, float, complex, range)


def _pair(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Return two operands with the dtypes that NumPy gives them together."""
    x1, x2 = _read(x1), _read(x2)
    first, second = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
    return _with_weak_dtype(x1, second), _with_weak_dtype(x2, first)


def _with_weak_dtype(x: Any, other: np.dtype | None) -> Any:
    """Return `x`; a Python number takes a dtype `other` of its own kind or a higher one."""
    if not isinstance(x, (bool, int, float, complex)) or isinstance(x, np.generic):
        return x
    array = np.asarray(x)
    if other is None:
        return array
    gives_way = is_floating(other) or rank(other) >= rank(array.dtype)
    return x if gives_way else array


def _no_out(name: str, out: Any, result: Any) -> Any:
    """Return `result`; TypeError if `out` is given."""
    if out is not None:
        raise TypeError(f"{name}: out= is not supported, tensors are immutable: use the result")
    return result


def _on(name: str, device: Any, result: Any) -> Any:
    """Return `result`, which is on the only device; ValueError for another device."""
    if device not in (None, "cpu"):
        raise ValueError(f"{name}: device must be 'cpu', the only one, got {device!r}")
    return result


def _into(index: Tensor, size: int, mode: str) -> Tensor:
    """Return indices; out of range they wrap around or are clipped, if `mode` says so."""
    if mode == "wrap":
        return remainder(index, size)
    return maximum(minimum(index, size - 1), 0) if mode == "clip" else index


def _axis(x: Tensor, axis: Any) -> Any:
    """Return the axis of a reduction; as in NumPy, a scalar has an axis 0, or -1."""
    return None if type(axis) is int and axis in (0, -1) and not x.ndim else axis


def _position(find: Callable, x: Tensor, axis: Any, keepdims: Any) -> Tensor:
    """Return `argmax` or `argmin` along an axis, which scalars have, too."""
    return arg_extremum(find, x, _axis(x, axis), bool(keepdims))


def _as(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None else cast(x, np.dtype(dtype))


def _real(x: Any) -> Tensor:
    """Return integers and booleans as float64."""
    return floating(_array(x))


def _widen(x: Any) -> Tensor:
    """Return integers of less than 64 bits as 64-bit integers, for their sum."""
    x = _array(x)
    if not is_exact(x.dtype):
        return x
    return cast(x, np.uint64 if is_unsigned(x.dtype) else np.int64)


def _with_int64(x: Any) -> Tensor:
    """Return integers and booleans in the dtype that they have together with int64."""
    x = _array(x)
    return cast(x, np.promote_types(x.dtype, np.int64)) if is_exact(x.dtype) else x


def _flat(arrays: Any, axis: Any) -> tuple[list[Tensor], Any]:
    """Return the arrays to join and the axis; flattened where it is None."""
    tensors = [_array(array) for array in arrays]
    if axis is None:
        return [reshape(tensor, (-1,)) for tensor in tensors], 0
    return tensors, axis


def _true_coordinates(condition: Any) -> tuple[Tensor, ...]:
    """Return the coordinates of the true elements, one tensor for each axis."""
    x = _deciding_there("nonzero", convert(condition))
    return tuple(map(searching.tensor_of, searching.coordinates(x)))


def _deciding_there(name: str, x: Tensor) -> Any:
    """Return what `_deciding` does; for a tensor on a GPU, its array on the GPU."""
    return x._data if searching.is_on_gpu(x._data) else _deciding(name, x)


def _searchsorted(a: Any, v: Any, side: str, sorter: Any) -> Tensor:
    """Return the indices of values in a sorted row."""
    table, values = _array(a), _array(v)
    if table.ndim != 1:
        raise ValueError(f"searchsorted: a must be 1-D, got shape {tuple(table.shape)}")
    table = table if sorter is None else gather(table, sorter)
    indices = searching.searchsorted(table, reshape(values, (-1,)), side)
    return reshape(indices, values.shape)


def _deciding(name: str, x: Tensor) -> np.ndarray:
    """Return the values of a tensor that decides a result's size; an error names `name` if it has
    none."""
    try:
        return np.asarray(stop_gradient(x))
    except (NoValueError, OperatorNotAllowedInGraphError) as error:
        raise type(error)(
            f"{name}: the size of its result depends on values, which tensors do not have inside "
            f"`function` and `vmap`: call {name} outside of them, and pass its result in, or mask "
            f"elements with where(). {error}"
        ) from None


def _as_array(x: Any) -> Any:
    """Return the values of a tensor, or of a list that contains one; other values unchanged."""
    refuse_masked(x)
    if is_tensor(x) or (isinstance(x, (list, tuple)) and any_tensor(x)):
        return np.asarray(_array(x))
    return x


def _as_mask(condition: Any) -> np.ndarray:
    return np.asarray(_as_array(condition), bool)


def _kind(dtype: Any, default: Any = None) -> Any:
    """Return a dtype as NumPy reads it: Python's float is float64."""
    return default if dtype is None else np.dtype(dtype)


def _spacing(start: Any, stop: Any, dtype: Any) -> Any:
    ends = [getattr(_read(end), "dtype", end) for end in (start, stop)]
    return _kind(dtype, np.result_type(*ends, 1.0))


def _converted(name: str, x: Any, dtype: Any, copy: Any, device: Any) -> Tensor:
    """Return `x` as a tensor; ValueError if ``copy=False`` and a copy is needed."""
    result = _as(_array(x), dtype)
    if copy is False and not (is_tensor(x) and x.dtype == result.dtype):
        raise ValueError(
            f"{name}: copy=False, but {type(x).__name__} must be copied: tensors are immutable"
        )
    return _on(name, device, result)


@devices.on_device_of_operands
def _filled_like(name: str, a: Any, value: Any, dtype: Any, shape: Any, device: Any) -> Tensor:
    x = _array(a)
    sizes = tuple(x.shape) if shape is None else as_sizes(name, shape)
    filler = _read(value)
    if not getattr(filler, "ndim", 0):
        return _on(name, device, full(sizes, filler, _kind(dtype, x.dtype)))
    return _on(name, device, broadcast_to(cast(filler, _kind(dtype, x.dtype)), sizes))


def _rearrange(move: Callable[..., np.ndarray], *tensors: Any) -> Tensor:
    """Apply `move`, a function of NumPy that only moves elements, to tensors of one dtype."""
    return rearrange(move, *map(_array, tensors))
