"""Conversion of arguments as in NumPy: Python's floats are float64, lists are arrays; dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.conversion import any_tensor, convert, is_tensor
from .._core.kinds import is_exact, is_floating, is_unsigned, rank
from .._core.tensor import Tensor
from .._ops.creation import constant
from .._ops.einsum import from_lists
from .._ops.indexing import gather
from .._ops.shape import cast, concatenate, reshape


def _read(x: Any) -> Any:
    """Return lists as arrays; an array, a tensor or a single number as it is."""
    if isinstance(x, (list, tuple)):
        return convert(x) if any_tensor(x) else np.asarray(x)
    return x


def _array(x: Any) -> Tensor:
    """Return a tensor, with the dtype that NumPy gives numbers and lists."""
    return x if isinstance(x, Tensor) else convert(x if is_tensor(x) else np.asarray(_read(x)))


def _pair(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Return two operands with the dtypes that NumPy gives them together."""
    x1, x2 = _read(x1), _read(x2)
    return _with_weak_dtype(x1, x2), _with_weak_dtype(x2, x1)


def _with_weak_dtype(x: Any, other: Any) -> Any:
    """Return `x`; a Python number takes the dtype of an array of its own kind or a higher one."""
    if not isinstance(x, (bool, int, float, complex)) or isinstance(x, np.generic):
        return x
    found = np.asarray(x)
    if not hasattr(other, "dtype"):
        return found
    gives_way = is_floating(other.dtype) or rank(other.dtype) >= rank(found.dtype)
    return x if gives_way else found


def _clip_operands(a: Any, low: Any, high: Any) -> tuple:
    """Return the arguments of `clip`; limits that are Python numbers take the dtype of `a`."""
    a = _array(a)
    return a, *[
        None if limit is None else _with_weak_dtype(_read(limit), a) for limit in (low, high)
    ]


def _as(x: Tensor, dtype: Any) -> Tensor:
    return x if dtype is None else cast(x, np.dtype(dtype))


def _real(x: Any) -> Tensor:
    """Return integers and booleans as float64."""
    x = _array(x)
    return cast(x, np.float64) if is_exact(x.dtype) else x


def _widen(x: Any) -> Tensor:
    """Return integers of less than 64 bits as such of 64, for their sum."""
    x = _array(x)
    if not is_exact(x.dtype):
        return x
    return cast(x, np.uint64 if is_unsigned(x.dtype) else np.int64)


def _flat(arrays: Any, axis: Any) -> tuple[list[Tensor], Any]:
    """Return the arrays to join and the axis; flattened where it is None."""
    tensors = [_array(array) for array in arrays]
    if axis is None:
        return [reshape(tensor, (-1,)) for tensor in tensors], 0
    return tensors, axis


def _true_coordinates(condition: Any) -> tuple[Tensor, ...]:
    """Return the coordinates of the true elements, one tensor for each axis."""
    return tuple([constant(one) for one in np.nonzero(convert(condition)._values())])


def _as_array(x: Any) -> Any:
    return np.asarray(x) if is_tensor(x) else x


def _kind(dtype: Any, default: Any = None) -> Any:
    """Return a dtype as NumPy reads it: Python's float is float64."""
    return default if dtype is None else np.dtype(dtype)


def _terms(operands: tuple) -> list:
    """Return the arguments of `einsum`, from subscripts and operands or operands and labels."""
    subscripts, *arrays = from_lists(operands)
    return [subscripts, *map(_array, arrays)]


def _is_stable(kind: Any, stable: Any) -> bool:
    if kind is not None and stable is not None:
        raise ValueError("argsort: kind and stable exclude each other: give one of them")
    return bool(stable) or kind in ("stable", "mergesort")


def _arange(start: Any, stop: Any, step: Any, dtype: Any) -> Tensor:
    bounds = (0, start) if stop is None else (start, stop)
    first, last = map(_as_array, bounds)
    return constant(np.arange(first, last, _as_array(step), dtype=dtype))


def _spacing(start: Any, stop: Any, dtype: Any) -> Any:
    return _kind(dtype, np.result_type(_as_array(start), _as_array(stop), 1.0))


def _rearrange(move: Callable[..., np.ndarray], *tensors: Any) -> Tensor:
    """Apply `move`, a function of NumPy that only moves elements, to tensors of one dtype.

    It is asked for the indices of the elements, which are then gathered in one operation.
    """
    indices, first, tensors = [], 0, tuple(map(_array, tensors))
    for tensor in tensors:
        count = tensor.shape.num_elements()
        indices.append(np.arange(first, first + count).reshape(tensor.shape))
        first += count
    flat = [reshape(tensor, (-1,)) for tensor in tensors]
    return gather(flat[0] if len(flat) == 1 else concatenate(flat), move(*indices), 0)
