"""Padding with a constant, or with the elements at the border."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import devices
from .._core.conversion import convert, is_tensor
from .._core.primitive import apply
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .define import Case, operation
from .elementwise import add
from .indexing import gather, getitem
from .reductions import reduce_sum
from .shape import cast
from .validation import as_choice, as_count

Widths = tuple[tuple[int, int], ...]


def _pad_array(x: np.ndarray, value: np.ndarray, widths: Widths) -> np.ndarray:
    """Pad an array whose batch axes come first; `value` has these axes too."""
    shape, library = _padded_shape(x.shape, widths), devices.library_of(x)
    if not value.ndim and not any(value.tobytes()):  # the bytes of -0.0 are not all zero
        out = library.zeros(shape, x.dtype.newbyteorder("="))
    else:
        out = library.empty(shape, x.dtype.newbyteorder("="))
        out[...] = value.reshape(value.shape + (1,) * (x.ndim - value.ndim))
    out[_centre(x.shape, widths)] = x
    return out


def _padded_shape(shape: tuple[int, ...], widths: Widths) -> tuple[int, ...]:
    return tuple(low + size + high for size, (low, high) in zip(shape, widths, strict=True))


def _centre(shape: tuple[int, ...], widths: Widths) -> tuple[slice, ...]:
    return tuple(slice(low, low + size) for size, (low, _) in zip(shape, widths, strict=True))


def _border(dy: Tensor, shape: tuple[int, ...], widths: Widths) -> Tensor:
    """Return the sum over all that is not the centre, slab by slab: nothing cancels."""
    index = [slice(a, size - b) for size, (a, b) in zip(dy.shape, widths, strict=True)]
    total = reduce_sum(getitem(dy, (slice(0, 0),)))
    for axis, (low, _) in enumerate(widths):
        rest = (slice(None),) * (len(widths) - axis - 1)
        for slab in (slice(0, low), slice(index[axis].stop, None)):
            total = add(total, reduce_sum(getitem(dy, (*index[:axis], slab, *rest))))
    return total


_pad = operation(
    "pad",
    _pad_array,
    lambda x, value, widths: Aval(_padded_shape(x.shape, widths), x.dtype),
    (lambda dy, shape, widths: getitem(dy, _centre(shape, widths)), _border),
    inputs=("x", "value"),
    linear=True,
    batch=lambda params, size: {"widths": ((0, 0), *params["widths"])},
    samples=[
        Case(((2, 3), ()), {"widths": ((1, 0), (0, 2))}),
        Case(((2,), ()), {"widths": ((2, 1),)}),
    ],
)


def pad(x: Any, widths: Any, mode: str = "constant", value: Any = 0) -> Tensor:
    """Return `x` with more elements before and after along each axis.

    Modelled on ``np.pad``: `widths` is a pair for each axis, one pair for all, or one number.
    `mode` is "constant" (elements are `value`), "reflect" (the border itself is not repeated),
    "symmetric" (it is), "edge" or "wrap". Raises InvalidArgumentError for other modes, for widths
    that are negative or do not fit, and for an empty axis with nothing to repeat.
    """
    x = convert(x)
    pairs = _widths(widths, x._data.ndim)
    as_choice("pad", "mode", mode, ("constant", "reflect", "symmetric", "edge", "wrap"))
    if mode == "constant":
        return apply(_pad, (x, _constant(value, x.dtype)), {"widths": pairs})
    for axis, pair in enumerate(pairs):
        if any(pair):
            x = gather(x, _repeat_indices(x._data.shape[axis], pair, mode), axis)
    return x


def _constant(value: Any, dtype: np.dtype) -> Tensor:
    value = convert(value, dtype) if isinstance(value, (int, float)) else convert(value)
    if value._data.ndim:
        raise InvalidArgumentError(
            f"pad: the constant must be a single number, got shape {tuple(value.shape)}"
        )
    return value if value.dtype == dtype else cast(value, dtype)


def _repeat_indices(size: int, pair: tuple[int, int], mode: Any) -> np.ndarray:
    """Return the indices of the elements that a padded axis repeats."""
    if not size:
        raise InvalidArgumentError(f"pad: mode {mode!r} cannot repeat elements of an empty axis")
    return np.pad(np.arange(size), pair, mode)


def _widths(widths: Any, ndim: int) -> Widths:
    pads = np.asarray(widths).tolist() if is_tensor(widths) else widths
    if not isinstance(pads, (int, np.integer, list, tuple, np.ndarray)):
        raise TypeError(f"pad: widths must be numbers or pairs, got {type(pads).__name__}")
    rows = [pads] if isinstance(pads, (int, np.integer)) else list(pads)
    if rows and all(isinstance(row, (int, np.integer)) for row in rows):
        rows = [rows]
    pairs = [[row] if isinstance(row, (int, np.integer)) else list(row) for row in rows]
    pairs = [pair * 2 if len(pair) == 1 else pair for pair in pairs]
    if len(pairs) == 1:
        pairs = pairs * ndim
    if len(pairs) != ndim or any(len(pair) != 2 for pair in pairs):
        raise InvalidArgumentError(
            f"pad: needs a pair of widths for each of {ndim} axes, one pair or one number; "
            f"got {widths!r}"
        )
    return tuple(
        (as_count("pad", "a width", before), as_count("pad", "a width", after))
        for before, after in pairs
    )
