"""TensorFlow's ``tf.signal``: transforms over the last axes of a tensor."""

from __future__ import annotations

from typing import Any

from ._core.annotations import Axes, TensorLike
from ._core.tensor import Tensor
from ._ops import fourier as _fourier
from ._ops import spectra as _spectra
from ._ops.namespaces.namespace import export_functions
from ._ops.spectra import (
    INVERSE_TYPES,
    dct,
    frame,
    inverse_mdct,
    inverse_stft,
    inverse_stft_window_fn,
    kaiser_bessel_derived_window,
    linear_to_mel_weight_matrix,
    mdct,
    mfccs_from_log_mel_spectrograms,
    overlap_and_add,
    stft,
    vorbis_window,
)
from ._ops.tapers import hamming_window, hann_window, kaiser_window
from ._ops.validation import as_shape
from .errors import InvalidArgumentError

__all__ = [
    "dct",
    "frame",
    "hamming_window",
    "hann_window",
    "inverse_mdct",
    "inverse_stft",
    "inverse_stft_window_fn",
    "kaiser_bessel_derived_window",
    "kaiser_window",
    "linear_to_mel_weight_matrix",
    "mdct",
    "mfccs_from_log_mel_spectrograms",
    "overlap_and_add",
    "stft",
    "vorbis_window",
]


def _last(count: int) -> tuple[int, ...]:
    return tuple(range(-count, 0))


def _sizes(name: str, length: Any, count: int) -> tuple[int, ...] | None:
    """Return `fft_length`, a size for each axis; None where it is not given."""
    if length is None:
        return None
    sizes = as_shape(name, length)
    if len(sizes) != count:
        raise InvalidArgumentError(
            f"{name}: fft_length must have {count} sizes, one for each axis, got {sizes}"
        )
    return sizes


def idct(
    input: TensorLike,
    type: Any = 2,
    n: int | None = None,
    axis: Axes = -1,
    norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the inverse of ``dct`` of that `type`: up to a factor, unless `norm` is "ortho"."""
    return dct(input, INVERSE_TYPES.get(type), n, axis, norm)


def fft(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the discrete Fourier transform of a complex `input` over its last axis."""
    return _fourier.fftn(_spectra.complex_of_rank("fft", input, 1), None, _last(1))


def fft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the discrete Fourier transform of a complex `input` over its last two axes."""
    return _fourier.fftn(_spectra.complex_of_rank("fft2d", input, 2), None, _last(2))


def fft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the discrete Fourier transform of a complex `input` over its last three axes."""
    return _fourier.fftn(_spectra.complex_of_rank("fft3d", input, 3), None, _last(3))


def fftnd(
    input: TensorLike,
    fft_length: Any = None,
    axes: Any = None,
    norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the discrete Fourier transform of a complex `input` over `axes`, by default all, cut
    or padded to `fft_length`; `norm` is "backward", "ortho" or "forward"."""
    return _fourier.fftn(_spectra.complex_of_rank("fftnd", input, 1), fft_length, axes, norm)


def ifft(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the inverse of `fft`."""
    return _fourier.ifftn(_spectra.complex_of_rank("ifft", input, 1), None, _last(1))


def ifft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the inverse of ``fft2d``."""
    return _fourier.ifftn(_spectra.complex_of_rank("ifft2d", input, 2), None, _last(2))


def ifft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """Return the inverse of ``fft3d``."""
    return _fourier.ifftn(_spectra.complex_of_rank("ifft3d", input, 3), None, _last(3))


def ifftnd(
    input: TensorLike,
    fft_length: Any = None,
    axes: Any = None,
    norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the inverse of ``fftnd``."""
    return _fourier.ifftn(_spectra.complex_of_rank("ifftnd", input, 1), fft_length, axes, norm)


def rfft(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Return the first half of the transform of a real `input_tensor` over its last axis, cut or
    padded to `fft_length`."""
    return _fourier.rfftn(
        _spectra.of_rank("rfft", input_tensor, 1), _sizes("rfft", fft_length, 1), _last(1)
    )


def rfft2d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Return `rfft` over the last axis and `fft` over the second last."""
    return _fourier.rfftn(
        _spectra.of_rank("rfft2d", input_tensor, 2), _sizes("rfft2d", fft_length, 2), _last(2)
    )


def rfft3d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Return `rfft` over the last axis and `fft` over the two before it."""
    return _fourier.rfftn(
        _spectra.of_rank("rfft3d", input_tensor, 3), _sizes("rfft3d", fft_length, 3), _last(3)
    )


def rfftnd(
    input: TensorLike,
    fft_length: Any = None,
    axes: Any = None,
    norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return `rfft` over the last of `axes` and `fft` over the others."""
    return _fourier.rfftn(_spectra.of_rank("rfftnd", input, 1), fft_length, axes, norm)


def irfft(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Return the inverse of `rfft`: real, of `fft_length` elements."""
    return _fourier.irfftn(
        _spectra.of_rank("irfft", input_tensor, 1), _sizes("irfft", fft_length, 1), _last(1)
    )


def irfft2d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Return the inverse of ``rfft2d``."""
    return _fourier.irfftn(
        _spectra.of_rank("irfft2d", input_tensor, 2), _sizes("irfft2d", fft_length, 2), _last(2)
    )


def irfft3d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Return the inverse of ``rfft3d``."""
    return _fourier.irfftn(
        _spectra.of_rank("irfft3d", input_tensor, 3), _sizes("irfft3d", fft_length, 3), _last(3)
    )


def irfftnd(
    input: TensorLike,
    fft_length: Any = None,
    axes: Any = None,
    norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the inverse of ``rfftnd``."""
    return _fourier.irfftn(_spectra.of_rank("irfftnd", input, 1), fft_length, axes, norm)


def fftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """Return `x` with the frequency 0 in the middle of each of `axes`, by default of all."""
    return _fourier.fftshift(x, axes)


def ifftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """Return the inverse of `fftshift`."""
    return _fourier.ifftshift(x, axes)


__all__ += export_functions(globals())
