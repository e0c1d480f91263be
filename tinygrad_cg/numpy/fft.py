"""NumPy's ``numpy.fft``: transforms by its pocketfft, with gradients of any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.annotations import Axes, TensorLike
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor
from .._ops import creation as _creation
from .._ops import elementwise as _elementwise
from .._ops import fourier as _fourier
from .._ops.namespaces.namespace import export_functions, spelled
from ._readers import _array


def _transform(name: str, operation: Callable[..., Tensor]):
    def transform(a: TensorLike, n: int | None = None, axis: Axes = -1, norm: Any = None) -> Tensor:
        return operation(_array(a), n, axis, norm)

    return reads_own_arguments(spelled(transform, name, operation))


fft = _transform("fft", _fourier.fft)
ifft = _transform("ifft", _fourier.ifft)
rfft = _transform("rfft", _fourier.rfft)
irfft = _transform("irfft", _fourier.irfft)
hfft = _transform("hfft", _fourier.hfft)
ihfft = _transform("ihfft", _fourier.ihfft)


def _over_axes(name: str, operation: Callable[..., Tensor], default: Any = None, doc: str = ""):
    def transform(a: TensorLike, s: Any = None, axes: Any = default, norm: Any = None) -> Tensor:
        return operation(_array(a), s, axes, norm)

    spelled(transform, name, operation)
    transform.__doc__ = doc or transform.__doc__
    return transform


_LAST = (-2, -1)
fft2 = _over_axes(
    "fft2",
    _fourier.fftn,
    _LAST,
    "Return the discrete Fourier transform over two axes; see `fftn`.",
)
ifft2 = _over_axes("ifft2", _fourier.ifftn, _LAST, "Return the inverse of ``fft2``.")
rfft2 = _over_axes(
    "rfft2",
    _fourier.rfftn,
    _LAST,
    "Return `rfft` along the last of two axes and `fft` along the other; see `rfftn`.",
)
irfft2 = _over_axes("irfft2", _fourier.irfftn, _LAST, "Return the inverse of ``rfft2``.")
fftn = _over_axes("fftn", _fourier.fftn)
ifftn = _over_axes("ifftn", _fourier.ifftn)
rfftn = _over_axes("rfftn", _fourier.rfftn)
irfftn = _over_axes("irfftn", _fourier.irfftn)


def fftfreq(n: int, d: Any = 1.0) -> Tensor:
    """Return the frequencies of the elements of `fft`, in cycles per unit of the spacing `d`."""
    return _elementwise.divide(_creation.constant(np.fft.fftfreq(n)), d)


def rfftfreq(n: int, d: Any = 1.0) -> Tensor:
    """Return the frequencies of the elements of `rfft`, in cycles per unit of the spacing `d`."""
    return _elementwise.divide(_creation.constant(np.fft.rfftfreq(n)), d)


def fftshift(x: TensorLike, axes: Any = None) -> Tensor:
    """Return `x` with the frequency 0 in the middle of each of `axes`, by default of all."""
    return _fourier.fftshift(_array(x), axes)


def ifftshift(x: TensorLike, axes: Any = None) -> Tensor:
    """Return the inverse of `fftshift`."""
    return _fourier.ifftshift(_array(x), axes)


__all__ = export_functions(globals())
