"""Searches on the device: the indices of values in sorted rows, and of unique elements.

Numbers are real. Comparisons are those of NumPy's sorting: NaN is larger than all else, and equal
to NaN.
"""

from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.elementwise import contiguous, launch
from tinygrad_cg_kernels.runtime.promotion import INT64, is_bool, loop_dtype, promote

_SEARCH = """
def kernel(table, values, out, units, length, count, after_equal):
    for unit in range(cuda.grid(1), units, cuda.gridsize(1)):
        start = unit // count * length
        value = values[unit]
        low = 0
        high = length
        while low < high:
            middle = (low + high) // 2
            other = table[start + middle]
            if after_equal:
                stands_before = not is_below(value, other)
            else:
                stands_before = is_below(other, value)
            if stands_before:
                low = middle + 1
            else:
                high = middle
        out[unit] = low
"""


def _is_below(x: Any, y: Any) -> Any:
    return x < y or (y != y and x == x)


def search(table: Any, values: Any, right: bool) -> Any:
    """Return the indices of values in sorted rows, before equal elements or after them (`right`).

    Both have the same axes before the last. One thread searches a row for each value.
    """
    library = adapter.array_module()
    out = library.empty(values.shape, dtype=INT64)
    if not values.size:
        return out
    kind = loop_dtype(promote(table.dtype, values.dtype))
    kind = np.dtype(np.uint8) if is_bool(kind) else kind
    operands = [contiguous(x, kind) for x in (table, values)]
    numbers = [values.size, table.shape[-1], values.shape[-1], int(right)]
    is_below = adapter.device_function(_is_below)
    launch(_SEARCH, values.size, (*operands, out), numbers, is_below=is_below)
    return out


def coordinates(x: Any) -> tuple[Any, ...]:
    """Return the coordinates of the non-zero elements, one array per axis."""
    library = adapter.array_module()
    indices = library.nonzero(x)
    return tuple([library.ascontiguousarray(index.astype(INT64, copy=False)) for index in indices])


def unique(x: Any, equal_nan: bool = True) -> tuple[Any, Any, Any]:
    """Return the first indices, the inverse and the counts of ``numpy.unique(x)``.

    First indices and counts are in ascending order of the elements.
    """
    library = adapter.array_module()
    flat = x.reshape(-1)
    if not flat.size:
        none = library.empty(0, dtype=INT64)
        return none, none.reshape(x.shape), none
    order = library.argsort(flat, kind="stable").astype(INT64, copy=False)
    rows = flat[order]
    begins = library.ones(rows.shape, dtype=np.bool_)
    begins[1:] = rows[1:] != rows[:-1]
    if equal_nan:
        begins[1:] &= (rows[1:] == rows[1:]) | (rows[:-1] == rows[:-1])
    starts = np.nonzero(begins)[0].astype(INT64, copy=False)
    inverse = library.empty(rows.shape, dtype=INT64)
    inverse[order] = np.cumsum(begins.astype(INT64)) - 1
    ends = np.concatenate([starts[1:], library.full(1, prod(x.shape), dtype=INT64)])
    return order[starts], inverse.reshape(x.shape), ends - starts
