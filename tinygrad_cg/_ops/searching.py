"""Indices that are found by values: on the CPU by NumPy, on a GPU by kernels.

They have no gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import devices
from .._core.kinds import is_complex
from .._core.tensor import Aval, Tensor
from .creation import constant
from .define import Case, operation
from .validation import broadcast_shapes


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
    positions = coordinates(x) if x.ndim else ()
    with devices.memory_for("where"):
        if x.ndim:
            return Tensor(np.stack(positions, 1))
        return Tensor(devices.library().empty((int(bool(x != 0)), 0), dtype=np.int64))


def _search_rows(table: Any, values: Any, side: Any) -> Any:
    """Return the indices of values in sorted rows, as ``numpy.searchsorted`` in each; rows of one
    of both may be repeated.

    If one of both is on a GPU, the other is copied there, and so is a result of the CPU.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    there = is_on_gpu(table, values)
    if there:
        from tinygrad_cg_kernels.cuda import searching

        if not (is_complex(table.dtype) or is_complex(values.dtype)):
            with devices.memory_for("searchsorted"):
                table, values = (devices.move(array, devices.GPU) for array in (table, values))
                return searching.search(*_of_same_rows(table, values), side == "right")
        table, values = devices.to_host(table), devices.to_host(values)
    table, values = _of_same_rows(table, values)
    indices = np.empty(values.shape, np.int64)
    for line in np.ndindex(table.shape[:-1]):
        indices[line] = np.searchsorted(table[line], values[line], side)
    return devices.move(indices, devices.GPU) if there else indices


def _of_same_rows(table: Any, values: Any) -> tuple[Any, Any]:
    rows = np.broadcast_shapes(table.shape[:-1], values.shape[:-1])
    table = np.broadcast_to(table, (*rows, table.shape[-1]))
    return table, np.broadcast_to(values, (*rows, values.shape[-1]))


def _search_aval(table: Aval, values: Aval, side: str) -> Aval:
    rows = broadcast_shapes("searchsorted", table.shape[:-1], values.shape[:-1])
    return Aval((*rows, values.shape[-1]), np.dtype(np.int64))


_search = operation(
    "searchsorted",
    _search_rows,
    _search_aval,
    inputs=("table", "values"),
    on_gpu=_search_rows,
    mixes_devices=True,
    core=(1, 1),
    samples=[
        Case(((4,), (3,)), {"side": "left"}, {0: np.array([-1.0, 0.0, 0.0, 1.5])}),
        Case(((2, 3), (2, 4)), {"side": "right"}, {0: np.arange(-3.0, 3.0).reshape(2, 3)}),
    ],
)


def searchsorted(table: Tensor, values: Tensor, side: Any) -> Tensor:
    """Return the indices (int64) of values in sorted rows, which have the same first axes."""
    return _search(table, values, side=side)


def unique(x: Any, axis: int | None = None, equal_nan: bool = True) -> tuple[Any, Any, Any]:
    """Return what ``numpy.unique`` returns after the elements: first indices, inverse, counts.

    Rows along an axis and complex elements of a GPU are compared on the CPU; the result is there.
    """
    if not is_on_gpu(x):
        return np.unique(x, True, True, True, axis, equal_nan=equal_nan)[1:]
    from tinygrad_cg_kernels.cuda import searching

    if axis is None and not is_complex(x.dtype):
        with devices.memory_for("unique"):
            return searching.unique(x, equal_nan)
    arrays = np.unique(devices.to_host(x), True, True, True, axis, equal_nan=equal_nan)[1:]
    first, inverse, counts = [devices.move(array, devices.GPU) for array in arrays]
    return first, inverse, counts
