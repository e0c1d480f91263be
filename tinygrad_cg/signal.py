"""TensorFlow's ``tf.signal``: transforms over the last axes of a tensor."""

from __future__ import annotations

from typing import Any

from ._ops.define import as_shape
from ._ops.spectra import INVERSE_TYPES  # noqa: F401 (the table reads it)
from ._spellings.spell import spell
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


_TABLE = """
    hamming_window(window_length, periodic=True, dtype=float32, name=None)
        = raised_cosine("hamming_window", window_length, periodic, 0.54, dtype)
        # Return Hamming's window, 0.54 - 0.46 cos(2 pi n / N), float32 by default; N is
        `window_length`, or one less if it is odd or the window not `periodic`.
    hann_window(window_length, periodic=True, dtype=float32, name=None)
        = raised_cosine("hann_window", window_length, periodic, 0.5, dtype)
        # Return von Hann's window, 0.5 - 0.5 cos(2 pi n / N), float32 by default; N is
        `window_length`, or one less if it is odd or the window not `periodic`.
    kaiser_window(window_length, beta=12.0, dtype=float32, name=None)
        = kaiser_window(window_length, beta, dtype)
        # Return Kaiser's window with the shape parameter `beta`, float32 by default.
    kaiser_bessel_derived_window(window_length, beta=12.0, dtype=float32, name=None)
        = kaiser_bessel_derived_window(window_length, beta, dtype)
    vorbis_window(window_length, dtype=float32, name=None) = vorbis_window(window_length, dtype)
    dct(input, type=2, n=None, axis=-1, norm=None, name=None)
        = cosines(input, type, n, axis, norm)
        # Return the discrete cosine transform of a real `input` over its last axis, cut or padded
        to `n`; `type` is 1 to 4, `norm` None or "ortho", which makes the types 2 to 4 orthogonal.
    frame(signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1, name=None)
        = framed(signal, frame_length, frame_step, pad_end, pad_value, axis)
        # Return pieces of `signal` of `frame_length` elements, which begin every `frame_step`
        elements, along a new axis before `axis`; those that pass the end too if `pad_end`.
    idct(input, type=2, n=None, axis=-1, norm=None, name=None)
        = cosines(input, INVERSE_TYPES.get(type), n, axis, norm)
        # Return the inverse of ``dct`` of that `type`: up to a factor, unless `norm` is "ortho".
    inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=hann_window, name=None)
        = inverse_stft(stfts, frame_length, frame_step, fft_length, window_fn)
        # Return the signals of which ``stft`` gives `stfts`, up to what the windows do.
    inverse_mdct(mdcts, window_fn=vorbis_window, norm=None, name=None)
        = inverse_mdct(mdcts, window_fn, norm)
    inverse_stft_window_fn(frame_step, forward_window_fn=hann_window, name=None) -> Any
        = inverse_window(frame_step, forward_window_fn)
        # Return a function of a length and a dtype, which gives the window for ``inverse_stft``
        that undoes `forward_window_fn` of ``stft``, where steps are of `frame_step` elements.
    linear_to_mel_weight_matrix(num_mel_bins=20, num_spectrogram_bins=129, sample_rate=8000,
        lower_edge_hertz=125.0, upper_edge_hertz=3800.0, dtype=float32, name=None)
        = mel_weights(num_mel_bins, num_spectrogram_bins, sample_rate, lower_edge_hertz,
        upper_edge_hertz, dtype)
    mdct(signals, frame_length, window_fn=vorbis_window, pad_end=False, norm=None, name=None)
        = mdct(signals, frame_length, window_fn, pad_end, norm)
    mfccs_from_log_mel_spectrograms(log_mel_spectrograms, name=None)
        = mfccs(log_mel_spectrograms)
    overlap_and_add(signal, frame_step, name=None) = overlap_and_add(signal, frame_step)
        # Return the sum of frames (..., frames, length) that begin every `frame_step` elements.
    stft(signals, frame_length, frame_step, fft_length=None, window_fn=hann_window, pad_end=False,
        name=None)
        = stft(signals, frame_length, frame_step, fft_length, window_fn, pad_end)
        # Return the transforms of the pieces of `signals` that ``frame`` gives, times a window: of
        `fft_length` elements, by default the next power of 2.
    fft(input, name=None) = fftn(complex_of_rank("fft", input, 1), None, _last(1))
        # Return the discrete Fourier transform of a complex `input` over its last axis.
    fft2d(input, name=None) = fftn(complex_of_rank("fft2d", input, 2), None, _last(2))
        # Return the discrete Fourier transform of a complex `input` over its last two axes.
    fft3d(input, name=None) = fftn(complex_of_rank("fft3d", input, 3), None, _last(3))
        # Return the discrete Fourier transform of a complex `input` over its last three axes.
    fftnd(input, fft_length=None, axes=None, norm=None, name=None)
        = fftn(complex_of_rank("fftnd", input, 1), fft_length, axes, norm)
        # Return the discrete Fourier transform of a complex `input` over `axes`, by default all,
        cut or padded to `fft_length`; `norm` is "backward", "ortho" or "forward".
    ifft(input, name=None) = ifftn(complex_of_rank("ifft", input, 1), None, _last(1))
        # Return the inverse of `fft`.
    ifft2d(input, name=None) = ifftn(complex_of_rank("ifft2d", input, 2), None, _last(2))
        # Return the inverse of ``fft2d``.
    ifft3d(input, name=None) = ifftn(complex_of_rank("ifft3d", input, 3), None, _last(3))
        # Return the inverse of ``fft3d``.
    ifftnd(input, fft_length=None, axes=None, norm=None, name=None)
        = ifftn(complex_of_rank("ifftnd", input, 1), fft_length, axes, norm)
        # Return the inverse of ``fftnd``.
    rfft(input_tensor, fft_length=None, name=None)
        = rfftn(of_rank("rfft", input_tensor, 1), _sizes("rfft", fft_length, 1), _last(1))
        # Return the first half of the transform of a real `input_tensor` over its last axis, cut or
        padded to `fft_length`.
    rfft2d(input_tensor, fft_length=None, name=None)
        = rfftn(of_rank("rfft2d", input_tensor, 2), _sizes("rfft2d", fft_length, 2), _last(2))
        # Return `rfft` over the last axis and `fft` over the one before it.
    rfft3d(input_tensor, fft_length=None, name=None)
        = rfftn(of_rank("rfft3d", input_tensor, 3), _sizes("rfft3d", fft_length, 3), _last(3))
        # Return `rfft` over the last axis and `fft` over the two before it.
    rfftnd(input, fft_length=None, axes=None, norm=None, name=None)
        = rfftn(of_rank("rfftnd", input, 1), fft_length, axes, norm)
        # Return `rfft` over the last of `axes` and `fft` over the others.
    irfft(input_tensor, fft_length=None, name=None)
        = irfftn(of_rank("irfft", input_tensor, 1), _sizes("irfft", fft_length, 1), _last(1))
        # Return the inverse of `rfft`: real, of `fft_length` elements.
    irfft2d(input_tensor, fft_length=None, name=None)
        = irfftn(of_rank("irfft2d", input_tensor, 2), _sizes("irfft2d", fft_length, 2), _last(2))
        # Return the inverse of ``rfft2d``.
    irfft3d(input_tensor, fft_length=None, name=None)
        = irfftn(of_rank("irfft3d", input_tensor, 3), _sizes("irfft3d", fft_length, 3), _last(3))
        # Return the inverse of ``rfft3d``.
    irfftnd(input, fft_length=None, axes=None, norm=None, name=None)
        = irfftn(of_rank("irfftnd", input, 1), fft_length, axes, norm)
        # Return the inverse of ``rfftnd``.
    fftshift ifftshift(x, axes=None, name=None) = {}(x, axes)
"""
__all__: list[str] = []
spell(globals(), _TABLE)
