"""TensorFlow's ``tf.signal``: transforms over the last axes of a tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._core.annotations import Axes, TensorLike
from ._core.tensor import Tensor
from ._ops import fourier as _fourier
from ._ops import spectra as _spectra
from ._ops.fourier import fftshift, ifftshift
from ._ops.namespaces.namespace import export_functions, spelled
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
    "fftshift",
    "frame",
    "hamming_window",
    "hann_window",
    "ifftshift",
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


def _complex_transform(name: str, count: int, transform: Callable[..., Tensor], doc: str):
    """Return a transform over the last axes, which are `count`, of a complex tensor."""

    def run(input: TensorLike, name: str | None = None) -> Tensor:
        return transform(_spectra.complex_of_rank(run.__name__, input, count), None, _last(count))

    run.__doc__ = doc
    return spelled(run, name)


def _real_transform(name: str, count: int, transform: Callable[..., Tensor], doc: str):
    """Return a transform between a real tensor and half its spectrum, over the last axes."""

    def run(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
        x, sizes = _spectra.of_rank(run.__name__, input_tensor, count), None
        if fft_length is not None:
            sizes = as_shape(run.__name__, fft_length)
            if len(sizes) != count:
                raise InvalidArgumentError(
                    f"{run.__name__}: fft_length must have {count} sizes, one for each axis, got "
                    f"{sizes}"
                )
        return transform(x, sizes, _last(count))

    run.__doc__ = doc
    return spelled(run, name)


def _transform_over(name: str, transform: Callable[..., Tensor], read: Any, doc: str):
    """Return a transform over any axes of a tensor that `read` checks."""

    def run(
        input: TensorLike,
        fft_length: Any = None,
        axes: Any = None,
        norm: Any = None,
        name: str | None = None,
    ) -> Tensor:
        return transform(read(run.__name__, input, 1), fft_length, axes, norm)

    run.__doc__ = doc
    return spelled(run, name)


_WHOLE = "Return the discrete Fourier transform of a complex `input` over"
fft = _complex_transform("fft", 1, _fourier.fftn, f"{_WHOLE} its last axis.")
fft2d = _complex_transform("fft2d", 2, _fourier.fftn, f"{_WHOLE} its last two axes.")
fft3d = _complex_transform("fft3d", 3, _fourier.fftn, f"{_WHOLE} its last three axes.")
fftnd = _transform_over(
    "fftnd",
    _fourier.fftn,
    _spectra.complex_of_rank,
    f'{_WHOLE} `axes`, by default all, cut or padded to `fft_length`; `norm` is "backward", '
    '"ortho" or "forward".',
)
ifft = _complex_transform("ifft", 1, _fourier.ifftn, "Return the inverse of `fft`.")
ifft2d = _complex_transform("ifft2d", 2, _fourier.ifftn, "Return the inverse of ``fft2d``.")
ifft3d = _complex_transform("ifft3d", 3, _fourier.ifftn, "Return the inverse of ``fft3d``.")
ifftnd = _transform_over(
    "ifftnd", _fourier.ifftn, _spectra.complex_of_rank, "Return the inverse of ``fftnd``."
)
rfft = _real_transform(
    "rfft",
    1,
    _fourier.rfftn,
    "Return the first half of the transform of a real `input_tensor` over its last axis, cut or "
    "padded to `fft_length`.",
)
rfft2d = _real_transform(
    "rfft2d",
    2,
    _fourier.rfftn,
    "Return `rfft` over the last axis and `fft` over the second last.",
)
rfft3d = _real_transform(
    "rfft3d",
    3,
    _fourier.rfftn,
    "Return `rfft` over the last axis and `fft` over the two before it.",
)
rfftnd = _transform_over(
    "rfftnd",
    _fourier.rfftn,
    _spectra.of_rank,
    "Return `rfft` over the last of `axes` and `fft` over the others.",
)
irfft = _real_transform(
    "irfft", 1, _fourier.irfftn, "Return the inverse of `rfft`: real, of `fft_length` elements."
)
irfft2d = _real_transform("irfft2d", 2, _fourier.irfftn, "Return the inverse of ``rfft2d``.")
irfft3d = _real_transform("irfft3d", 3, _fourier.irfftn, "Return the inverse of ``rfft3d``.")
irfftnd = _transform_over(
    "irfftnd", _fourier.irfftn, _spectra.of_rank, "Return the inverse of ``rfftnd``."
)


__all__ += export_functions(globals())
