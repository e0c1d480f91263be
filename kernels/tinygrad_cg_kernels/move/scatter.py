"""Scatters that do not add: which update is the last at each place, and the extreme one."""

from math import prod

import numpy as np

from tinygrad_cg_kernels.move.gather import check_positions
from tinygrad_cg_kernels.runtime.promotion import INT64


def flat_positions(indices: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Return the row-major positions of coordinates, which lie along the last axis.

    IndexError for a coordinate that is not within 0 .. size - 1.
    """
    if indices.size:
        outside = (indices < 0) | (indices >= np.array(sizes, INT64))
        if outside.any():
            place = tuple(np.argwhere(outside.any(-1))[0].tolist())
            raise IndexError(
                f"indices{list(place)} = {indices[place].tolist()} does not index into shape "
                f"{sizes}"
            )
    strides = [prod(sizes[i + 1 :]) for i in range(len(sizes))]
    return np.asarray(indices.astype(INT64) @ np.array(strides, INT64))


def last_sources(indices: np.ndarray, size: int, batch_dims: int = 0) -> np.ndarray:
    """Return for each of `size` places the last position in `indices` that names it, -1 if none.

    The first `batch_dims` axes are gone through one by one, the others are one.
    """
    batch = indices.shape[:batch_dims]
    rows = check_positions("scatter", indices, size).reshape(prod(batch), -1)
    out = np.full((rows.shape[0], size), -1, INT64)
    for row, places in zip(out, rows, strict=True):
        row[places] = np.arange(places.size)
    return out.reshape(*batch, size)


def scatter_extremum(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, largest: bool, batch_dims: int = 0
) -> np.ndarray:
    """Return `x` with its rows replaced by the largest (or smallest) of them and their updates.

    `indices` name rows along axis `batch_dims`; `updates` have the axes of `indices`, then those
    of a row. NaN is larger and smaller than all else. Negative indices count from the end; one out
    of bounds is an IndexError.
    """
    size, tail = x.shape[batch_dims], x.shape[batch_dims + 1 :]
    count = prod(x.shape[:batch_dims])
    rows = check_positions("scatter", indices, size).reshape(count, -1)
    rows = (rows + np.arange(count).reshape(count, 1) * size).reshape(-1)
    out = np.array(x.reshape(count * size, *tail), order="C")
    values = np.asarray(updates, x.dtype).reshape(rows.size, *tail)
    with np.errstate(invalid="ignore"):
        (np.maximum if largest else np.minimum).at(out, rows, values)
    return out.reshape(x.shape)
