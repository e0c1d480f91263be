"""Indices that are found by values: on the CPU by NumPy, on a GPU by kernels.

The functions take arrays and return arrays, without gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import devices
from .._core.tensor import Tensor
from .creation import constant


def is_on_gpu(*arrays: Any) -> bool:
    """Return whether one of the arrays is on a GPU."""
    return bool(devices.array_types) and any(isinstance(x, devices.array_types) for x in arrays)


def tensor_of(array: Any) -> Tensor:
    """Return a tensor of what was found: on the GPU if the array is there."""
    return Tensor(array) if is_on_gpu(array) else constant(array)


def values_of(tensor: Tensor) -> Any:
    """Return the array of a tensor that has a value: that on a GPU itself, not a copy."""
    return tensor._data if is_on_gpu(tensor._data) else tensor._values()


def coordinates(x: Any) -> tuple[Any, ...]:
    """Return the coordinates of the elements that are not 0, one array for each axis."""
    if not is_on_gpu(x):
        return np.nonzero(x)
    from tinygrad_cg_kernels.cuda import searching

    with devices.memory_for("nonzero"):
        return searching.coordinates(x)


def true_rows(condition: Tensor) -> Tensor:
    """Return the coordinates of the elements that are not 0, one row each."""
    x = values_of(condition)
    if not is_on_gpu(x):
        return constant(np.argwhere(x))
    found = coordinates(x) if x.ndim else ()
    with devices.memory_for("where"):
        if x.ndim:
            return Tensor(np.stack(found, 1))
        return Tensor(devices.library().empty((int(bool(x != 0)), 0), dtype=np.int64))


def search(table: Any, values: Any, side: Any) -> Any:
    """Return the indices of values in one sorted row, as ``numpy.searchsorted``.

    If one of both is on a GPU, the other is copied there, and so is a result of the CPU.
    """
    if not is_on_gpu(table, values):
        return np.searchsorted(table, values, side)
    from tinygrad_cg_kernels.cuda import searching

    known = searching.serves(table.dtype) and searching.serves(values.dtype)
    if table.ndim != 1 or side not in ("left", "right") or not known:
        found = np.searchsorted(devices.to_host(table), devices.to_host(values), side)
        return devices.move(np.asarray(found), devices.GPU)
    with devices.memory_for("searchsorted"):
        operands = [devices.move(one, devices.GPU) for one in (table, values)]
        flat = operands[1].reshape(-1)
        return searching.search(operands[0], flat, side == "right").reshape(values.shape)


def search_rows(table: Any, values: Any, side: Any) -> Any:
    """Return the indices of values in sorted rows, which have the same axes before the last."""
    if is_on_gpu(table, values):
        from tinygrad_cg_kernels.cuda import searching

        known = searching.serves(table.dtype) and searching.serves(values.dtype)
        if known and side in ("left", "right"):
            with devices.memory_for("searchsorted"):
                table, values = (devices.move(one, devices.GPU) for one in (table, values))
                return searching.search(table, values, side == "right")
        found = search_rows(devices.to_host(table), devices.to_host(values), side)
        return devices.move(found, devices.GPU)
    found = np.empty(values.shape, np.int64)
    for line in np.ndindex(table.shape[:-1]):
        found[line] = np.searchsorted(table[line], values[line], side)
    return found


def unique(x: Any, axis: int | None = None, equal_nan: bool = True) -> tuple[Any, Any, Any]:
    """Return what ``numpy.unique`` returns after the elements: first indices, inverse, counts.

    Rows along an axis and complex elements of a GPU are compared on the CPU; the result is there.
    """
    if not is_on_gpu(x):
        return np.unique(x, True, True, True, axis, equal_nan=equal_nan)[1:]
    from tinygrad_cg_kernels.cuda import searching

    if axis is None and searching.serves(x.dtype):
        with devices.memory_for("unique"):
            return searching.unique(x, equal_nan)
    found = np.unique(devices.to_host(x), True, True, True, axis, equal_nan=equal_nan)[1:]
    first, inverse, counts = [devices.move(one, devices.GPU) for one in found]
    return first, inverse, counts
