"""TensorFlow's ``tf.signal``: transforms over the last axes of a tensor."""

from __future__ import annotations

from typing import Any

from ._core.annotations import Axes, DTypeLike, TensorLike
from ._core.conversion import FLOAT32
from ._core.suggestions import reads_own_arguments
from ._core.tensor import Tensor
from ._ops import fourier as _fourier
from ._ops import spectra as _spectra
from ._ops import tapers as _tapers
from ._ops.namespaces.namespace import export_functions
from ._ops.spectra import INVERSE_TYPES
from ._ops.validation import as_shape
from .errors import InvalidArgumentError


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


def hamming_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = FLOAT32, name: str | None = None
) -> Tensor:
    """Return Hamming's window, 0.54 - 0.46 cos(2 pi n / N), float32 by default; N is
    `window_length`, or one less if it is odd or the window not `periodic`."""
    return _tapers.raised_cosine("hamming_window", window_length, periodic, 0.54, dtype)


def hann_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = FLOAT32, name: str | None = None
) -> Tensor:
    """Return von Hann's window, 0.5 - 0.5 cos(2 pi n / N), float32 by default; N is
    `window_length`, or one less if it is odd or the window not `periodic`."""
    return _tapers.raised_cosine("hann_window", window_length, periodic, 0.5, dtype)


def kaiser_window(
    window_length: Any, beta: Any = 12.0, dtype: DTypeLike = FLOAT32, name: str | None = None
) -> Tensor:
    """Return Kaiser's window with the shape parameter `beta`, float32 by default."""
    return _tapers.kaiser_window(window_length, beta, dtype)


def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: DTypeLike = FLOAT32, name: str | None = None
) -> Tensor:
    """Return the window whose halves are roots of sums of Kaiser's, with shape parameter `beta`.

    Modelled on ``tf.signal.kaiser_bessel_derived_window``: an odd length is made even. It is
    differentiable with respect to a tensor `beta`. Errors as of `vorbis_window`.
    """
    return _spectra.kaiser_bessel_derived_window(window_length, beta, dtype)


def vorbis_window(
    window_length: Any, dtype: DTypeLike = FLOAT32, name: str | None = None
) -> Tensor:
    """Return Vorbis' window, ``sin(pi/2 sin(pi (n + 1/2) / N)**2)`` for n from 0 to N - 1.

    Modelled on ``tf.signal.vorbis_window``. InvalidArgumentError for a length below 1, TypeError
    for a `dtype` that is not a floating one.
    """
    return _spectra.vorbis_window(window_length, dtype)


@reads_own_arguments
def dct(
    input: TensorLike,
    type: Any = 2,
    n: int | None = None,
    axis: Axes = -1,
    norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the discrete cosine transform of a real `input` over its last axis, cut or padded to
    `n`; `type` is 1 to 4, `norm` None or "ortho", which makes the types 2 to 4 orthogonal."""
    return _spectra.cosines(input, type, n, axis, norm)


@reads_own_arguments
def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: Axes = -1,
    name: str | None = None,
) -> Tensor:
    """Return frames of `signal` with `frame_length` elements, which start every `frame_step`
    elements, along a new axis before `axis`; `pad_end` adds padded frames at the end."""
    return _spectra.framed(signal, frame_length, frame_step, pad_end, pad_value, axis)


@reads_own_arguments
def idct(
    input: TensorLike,
    type: Any = 2,
    n: int | None = None,
    axis: Axes = -1,
    norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the inverse of ``dct`` of that `type`: up to a factor, unless `norm` is "ortho"."""
    return _spectra.cosines(input, INVERSE_TYPES.get(type), n, axis, norm)


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
    name: str | None = None,
) -> Tensor:
    """Return the signals whose ``stft`` is `stfts`, up to the effect of the windows."""
    return _spectra.inverse_stft(stfts, frame_length, frame_step, fft_length, window_fn)


def inverse_mdct(
    mdcts: Any, window_fn: Any = vorbis_window, norm: Any = None, name: str | None = None
) -> Tensor:
    """Return the signals whose ``mdct`` is `mdcts`, for the same window and `norm`.

    Modelled on ``tf.signal.inverse_mdct``. `mdcts` is (..., frames, half a frame's length), an even
    number. Errors as of `mdct`.
    """
    return _spectra.inverse_mdct(mdcts, window_fn, norm)


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Any = hann_window, name: str | None = None
) -> Any:
    """Return a function of a length and a dtype that returns the window with which ``inverse_stft``
    undoes the window `forward_window_fn` of ``stft``, for steps of `frame_step` elements."""
    return _spectra.inverse_window(frame_step, forward_window_fn)


def linear_to_mel_weight_matrix(
    num_mel_bins: Any = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: Any = 125.0,
    upper_edge_hertz: Any = 3800.0,
    dtype: DTypeLike = FLOAT32,
    name: str | None = None,
) -> Tensor:
    """Return the matrix that converts a spectrum to the mel scale: (spectrogram bins, mel bins).

    Modelled on ``tf.signal.linear_to_mel_weight_matrix``: triangles of height 1 on the mel scale
    from `lower_edge_hertz` to `upper_edge_hertz`; the bin of frequency 0 has no weight. They are
    computed in float64. Raises InvalidArgumentError for edges or sizes that make no sense.
    """
    return _spectra.mel_weights(
        num_mel_bins, num_spectrogram_bins, sample_rate, lower_edge_hertz, upper_edge_hertz, dtype
    )


def mdct(
    signals: Any,
    frame_length: Any,
    window_fn: Any = vorbis_window,
    pad_end: bool = False,
    norm: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the modified cosine transforms of real `signals`: (..., frames, frame_length / 2).

    Modelled on ``tf.signal.mdct``: frames of `frame_length` elements, a multiple of 4, begin every
    half frame and are multiplied by a window, or by the root of 1/2 if `window_fn` is None. `norm`
    is that of ``dct`` of type 4. Raises InvalidArgumentError for another length, TypeError for
    complex numbers.
    """
    return _spectra.mdct(signals, frame_length, window_fn, pad_end, norm)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Return the mel-frequency cepstral coefficients of logarithms of mel spectra (..., bins).

    Modelled on ``tf.signal.mfccs_from_log_mel_spectrograms``: the cosine transform of type 2, over
    the root of twice the number of bins. Integers become float64; TypeError for complex numbers.
    """
    return _spectra.mfccs(log_mel_spectrograms)


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """Return the sum of frames (..., frames, length) that begin every `frame_step` elements."""
    return _spectra.overlap_and_add(signal, frame_step)


def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the Fourier transforms of the windowed frames of `signals` (see ``frame``), of
    `fft_length` elements, by default the next power of 2."""
    return _spectra.stft(signals, frame_length, frame_step, fft_length, window_fn, pad_end)


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


__all__ = export_functions(globals())
