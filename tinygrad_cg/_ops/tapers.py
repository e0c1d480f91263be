"""Windows of signals: weights that taper off to both ends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._core.annotations import DTypeLike
from .._core.conversion import FLOAT32, as_dtype
from .._core.kinds import is_floating
from .._core.tensor import ArrayLike, Tensor
from ..errors import InvalidArgumentError
from .casts import cast
from .creation import constant
from .elementwise import absolute, divide, exp, multiply, subtract
from .special_functions import bessel_ie
from .validation import as_count


def bartlett(M: Any) -> Tensor:
    """Return the triangular window of `M` points, float64, which ends in zeros."""
    return constant(np.bartlett(as_count("bartlett", "the length", M)))


def blackman(M: Any) -> Tensor:
    """Return the Blackman window of `M` points, float64: a sum of three cosines with little
    leakage."""
    return constant(np.blackman(as_count("blackman", "the length", M)))


def hamming(M: Any) -> Tensor:
    """Return the window of `M` points, float64: 0.54 - 0.46 cos(2 pi n / (M - 1))."""
    return constant(np.hamming(as_count("hamming", "the length", M)))


def hanning(M: Any) -> Tensor:
    """Return the window of `M` points, float64: 0.5 - 0.5 cos(2 pi n / (M - 1))."""
    return constant(np.hanning(as_count("hanning", "the length", M)))


def kaiser(M: Any, beta: Any) -> Tensor:
    """Return Kaiser's window of `M` points, float64, with the shape parameter `beta`, a scalar."""
    size = as_count("kaiser", "the length", M)
    if not isinstance(beta, ArrayLike):
        return constant(np.kaiser(size, float(beta)))
    shape = cast(beta, np.float64)
    if shape.shape != ():
        raise InvalidArgumentError(f"kaiser: beta must be a scalar, got shape {shape.shape}")
    if size < 2:
        return constant(np.ones(size))
    at = 2 * np.arange(size) / (size - 1) - 1
    inner, outer = multiply(shape, np.sqrt(1 - at * at)), shape
    ratio = divide(bessel_ie(0, inner), bessel_ie(0, outer))
    return multiply(ratio, exp(subtract(absolute(inner), absolute(outer))))


def raised_cosine(name: str, length: Any, periodic: bool, mean: float, dtype: Any) -> Tensor:
    """Return ``mean - (1 - mean) cos(2 pi n / N)``, as ``tf.signal.hann_window`` has it.

    N is the length of a window that is `periodic`, and of even length; else it is one less.
    """
    size, wanted = as_count(name, "the length", length), _floating(name, dtype)
    if size == 1:
        return constant(np.ones(1, wanted))
    count = size - 1 + (size % 2 == 0 and bool(periodic))
    angles = 2 * math.pi * np.arange(size) / count
    return constant((mean - (1 - mean) * np.cos(angles)).astype(wanted))


def hamming_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = FLOAT32, name: str | None = None
) -> Tensor:
    """Return Hamming's window, 0.54 - 0.46 cos(2 pi n / N), float32 by default; N is
    `window_length`, or one less if it is odd or the window not `periodic`."""
    return raised_cosine("hamming_window", window_length, periodic, 0.54, dtype)


def hann_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = FLOAT32, name: str | None = None
) -> Tensor:
    """Return von Hann's window, 0.5 - 0.5 cos(2 pi n / N), float32 by default; N is
    `window_length`, or one less if it is odd or the window not `periodic`."""
    return raised_cosine("hann_window", window_length, periodic, 0.5, dtype)


def kaiser_window(
    window_length: Any, beta: Any = 12.0, dtype: DTypeLike = FLOAT32, name: str | None = None
) -> Tensor:
    """Return Kaiser's window with the shape parameter `beta`, float32 by default."""
    return cast(kaiser(window_length, beta), _floating("kaiser_window", dtype))


def _floating(name: str, dtype: Any) -> np.dtype:
    wanted = as_dtype(dtype)
    if not is_floating(wanted):
        raise TypeError(f"{name}: dtype must be a floating one, got {wanted}")
    return wanted
