"""Scatters that do not add: the last update of each position, and extremes."""

from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.move.gather import check_positions
from tinygrad_cg_kernels.runtime.promotion import INT64, is_bool, is_complex, is_exact, no_kernel


def flat_positions(indices: np.ndarray, sizes: tuple[int, ...], check: Any = None) -> np.ndarray:
    """Return the row-major positions of coordinates, which lie along the last axis.

    A coordinate that is not in 0 .. size - 1 raises IndexError: on a device later, by `check`.
    """
    if indices.size:
        outside = (indices < 0) | (indices >= np.array(sizes, INT64))
        if outside.any():
            first = tuple(np.argwhere(outside.any(-1))[0].tolist())
            raise IndexError(
                f"indices{list(first)} = {indices[first].tolist()} does not index into shape "
                f"{sizes}"
            )
    strides = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return np.asarray(indices.astype(INT64) @ np.array(strides, INT64))


def last_sources(indices: np.ndarray, size: int, batch_dims: int = 0) -> np.ndarray:
    """Return for each of `size` rows the last position in `indices` that names it, or -1.

    The first `batch_dims` axes are batch axes, and the others count as one axis.
    """
    batch = indices.shape[:batch_dims]
    rows = check_positions("scatter", indices, size).reshape(prod(batch), -1)
    out = np.full((rows.shape[0], size), -1, INT64)
    for sources, named in zip(out, rows, strict=True):
        sources[named] = np.arange(named.size)
    return out.reshape(*batch, size)


def segment_extremum(
    x: np.ndarray, indices: np.ndarray, size: int, largest: bool, batch_dims: int = 0
) -> np.ndarray:
    """Return `size` rows: the largest (or smallest) of the rows of `x` that `indices` send there.

    The shape of `indices` is that of the first axes of `x`, of which `batch_dims` are batch axes.
    NaN always wins. A row to which nothing is sent has the least (or largest) number of the dtype.
    Negative indices count from the end. An index out of range raises IndexError.
    """
    if is_complex(x.dtype):
        raise TypeError(no_kernel("segment_extremum", x.dtype))
    batch, tail = x.shape[:batch_dims], x.shape[indices.ndim :]
    count = prod(batch)
    rows = check_positions("scatter", indices, size).reshape(count, -1)
    rows = (rows + np.arange(count).reshape(count, 1) * size).reshape(-1)
    out = np.full((count * size, *tail), limits(x.dtype)[0 if largest else 1], x.dtype)
    with np.errstate(invalid="ignore"):
        (np.maximum if largest else np.minimum).at(out, rows, x.reshape(rows.size, *tail))
    return out.reshape(*batch, size, *tail)


def limits(dtype: np.dtype) -> tuple[Any, Any]:
    """Return the least and the largest value of a real dtype."""
    if not is_exact(dtype):
        return -np.inf, np.inf
    if is_bool(dtype):
        return False, True
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
