"""NumPy's ``numpy.fft``: transforms by its pocketfft, with gradients of any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never, Protocol

import numpy as np

from .._core.annotations import Axes, TensorLike
from .._core.suggestions import hides_others, refuse_call
from .._core.tensor import Tensor
from .._ops import creation as _creation
from .._ops import elementwise as _elementwise
from .._ops import fourier as _fourier
from .._ops.namespaces.namespace import export_functions, spelled
from ._readers import _array


class _Transform(Protocol):
    def __call__(
        self, a: TensorLike, n: int | None = None, axis: Axes = -1, norm: Any = None
    ) -> Tensor: ...


def _transform(name: str, operation: Callable[..., Tensor]) -> _Transform:
    @hides_others
    def transform(
        a: TensorLike, n: int | None = None, axis: Axes = -1, norm: Any = None, **others: Never
    ) -> Tensor:
        if others:
            refuse_call(transform, others)
        return operation(_array(a), n, axis, norm)

    return spelled(transform, name, operation)


fft = _transform("fft", _fourier.fft)
ifft = _transform("ifft", _fourier.ifft)
rfft = _transform("rfft", _fourier.rfft)
irfft = _transform("irfft", _fourier.irfft)
hfft = _transform("hfft", _fourier.hfft)
ihfft = _transform("ihfft", _fourier.ihfft)


def fft2(a: TensorLike, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Tensor:
    """Return the discrete Fourier transform over two axes; see `fftn`."""
    return _fourier.fftn(_array(a), s, axes, norm)


def ifft2(a: TensorLike, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Tensor:
    """Return the inverse of ``fft2``."""
    return _fourier.ifftn(_array(a), s, axes, norm)


def rfft2(a: TensorLike, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Tensor:
    """Return `rfft` along the last of two axes and `fft` along the other; see `rfftn`."""
    return _fourier.rfftn(_array(a), s, axes, norm)


def irfft2(a: TensorLike, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Tensor:
    """Return the inverse of ``rfft2``."""
    return _fourier.irfftn(_array(a), s, axes, norm)


def fftn(a: TensorLike, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """Return the discrete Fourier transform over several axes, by default all; see `fft`.

    `a` is cut or padded to the sizes `s` along `axes` (None or -1: unchanged), by default the last.
    """
    return _fourier.fftn(_array(a), s, axes, norm)


def ifftn(a: TensorLike, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """Return the inverse of `fftn`; same arguments."""
    return _fourier.ifftn(_array(a), s, axes, norm)


def rfftn(a: TensorLike, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """Return `rfft` along the last of `axes` and `fft` along the others; see `fftn`."""
    return _fourier.rfftn(_array(a), s, axes, norm)


def irfftn(a: TensorLike, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """Return the inverse of `rfftn`: real; see `fftn`."""
    return _fourier.irfftn(_array(a), s, axes, norm)


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
