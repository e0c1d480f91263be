"""TensorFlow's ``tf.signal``: transforms over the last axes of a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._core.conversion import convert
from ._core.kinds import is_complex, is_exact
from ._core.tensor import Tensor
from ._ops.complex import real
from ._ops.creation import constant
from ._ops.define import as_int, as_shape, normalize_axis
from ._ops.elementwise import add, multiply
from ._ops.fourier import fftn, irfftn, rfftn
from ._ops.indexing import gather, getitem
from ._ops.padding import pad
from ._ops.shape import cast, concatenate, reshape
from ._spellings.spell import spell
from .errors import InvalidArgumentError


def _last(count: int) -> tuple[int, ...]:
    return tuple(range(-count, 0))


def _complex(name: str, x: Any, count: int) -> Tensor:
    """Return a complex operand of at least `count` axes, as the original asks for."""
    x = convert(x)
    if not is_complex(x.dtype):
        raise TypeError(f"{name}: needs complex numbers, got {x.dtype}: use rfft, or cast first")
    return _of_rank(name, x, count)


def _of_rank(name: str, x: Any, count: int) -> Tensor:
    x = convert(x)
    if x.ndim < count:
        raise InvalidArgumentError(
            f"{name}: needs at least {count} dimensions, got shape {tuple(x.shape)}"
        )
    return x


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


# Windows, frames and spectra over time ----------------------------------------------------------


def _window(length: Any, periodic: Any, dtype: Any, mean: float) -> Tensor:
    """Return a raised cosine; one of even length may be a period of a longer one."""
    size = as_int("window", "window_length", length)
    last = size - 1 + (size % 2 == 0 and bool(periodic))
    turns = np.arange(size) / max(last, 1)
    values = mean - (1 - mean) * np.cos(2 * np.pi * turns) if size > 1 else np.ones(size)
    return cast(constant(values), dtype)


def _frames(x: Any, length: Any, step: Any, pad_end: bool, pad_value: Any, axis: Any) -> Tensor:
    x = _of_rank("frame", x, 1)
    dim = normalize_axis("frame", axis, x.ndim)
    size, length = x.shape[dim], as_int("frame", "frame_length", length)
    step = as_int("frame", "frame_step", step)
    if length < 1 or step < 1:
        raise InvalidArgumentError(
            f"frame: frame_length and frame_step must be positive, got {length} and {step}"
        )
    count = -(-size // step) if pad_end else max(0, 1 + (size - length) // step)
    missing = max(0, (count - 1) * step + length - size) if pad_end and count else 0
    if missing:
        widths = [(0, missing if i == dim else 0) for i in range(x.ndim)]
        x = pad(x, widths, value=pad_value)
    return gather(x, np.arange(count)[:, None] * step + np.arange(length), dim)


def _overlap(x: Any, step: Any) -> Tensor:
    x = _of_rank("overlap_and_add", x, 2)
    step = as_int("overlap_and_add", "frame_step", step)
    (count, length), before = x.shape[-2:], x.ndim - 2
    pieces = -(-length // step)
    still = [(0, 0)] * before
    x = pad(x, [*still, (0, 0), (0, pieces * step - length)])
    x = reshape(x, (*x.shape[:-1], pieces, step))
    total: Any = None
    for i in range(pieces):  # the piece i of each frame comes i steps later
        part = pad(getitem(x, (Ellipsis, i, slice(None))), [*still, (i, pieces - 1 - i), (0, 0)])
        total = part if total is None else add(total, part)
    flat = reshape(total, (*total.shape[:-2], (count + pieces - 1) * step))
    return getitem(flat, (Ellipsis, slice((count - 1) * step + length)))


def _whole_length(frame_length: Any, fft_length: Any) -> int:
    if fft_length is not None:
        return as_int("stft", "fft_length", fft_length)
    return 1 << (as_int("stft", "frame_length", frame_length) - 1).bit_length()


def _spectra(
    signals: Any, frame_length: Any, frame_step: Any, fft_length: Any, window_fn: Any, pad_end: bool
) -> Tensor:
    x = _frames(signals, frame_length, frame_step, pad_end, 0, -1)
    if window_fn is not None:
        x = multiply(x, window_fn(frame_length, dtype=x.dtype))
    return rfftn(x, (_whole_length(frame_length, fft_length),), (-1,))


def _from_spectra(
    stfts: Any, frame_length: Any, frame_step: Any, fft_length: Any, window_fn: Any
) -> Tensor:
    size = as_int("inverse_stft", "frame_length", frame_length)
    whole = _whole_length(size, fft_length)
    x = irfftn(_complex("inverse_stft", stfts, 2), (whole,), (-1,))
    x = getitem(x, (Ellipsis, slice(size)))
    if whole < size:
        x = pad(x, [*[(0, 0)] * (x.ndim - 1), (0, size - whole)])
    if window_fn is not None:
        x = multiply(x, window_fn(size, dtype=x.dtype))
    return _overlap(x, frame_step)


def _hann(window_length: Any, dtype: Any) -> Tensor:
    return _window(window_length, True, dtype, 0.5)


# Cosine transforms -------------------------------------------------------------------------------


def _turned(x: Tensor, angles: np.ndarray) -> Tensor:
    """Return elements times ``exp(1j * angles)``."""
    factors = np.exp(1j * angles)
    return multiply(x, factors.astype(np.result_type(x.dtype, np.complex64)))


def _cosines(x: Any, kind: Any, n: Any, axis: Any, norm: Any) -> Tensor:
    x = _of_rank("dct", x, 1)
    if is_complex(x.dtype) or axis not in (-1, x.ndim - 1):
        raise InvalidArgumentError("dct: needs real numbers, and axis must be -1")
    if kind not in (1, 2, 3, 4) or norm not in (None, "ortho") or (kind == 1 and norm):
        raise InvalidArgumentError(
            "dct: type must be 1, 2, 3 or 4, and norm None or (not for type 1) 'ortho'; got "
            f"{kind} and {norm!r}"
        )
    x = x if not is_exact(x.dtype) else cast(x, np.float64)
    if n is not None:
        size = as_int("dct", "n", n)
        x = getitem(x, (Ellipsis, slice(size)))
        x = pad(x, [*[(0, 0)] * (x.ndim - 1), (0, size - x.shape[-1])])
    size = x.shape[-1]
    if size < 1 + (kind == 1):
        raise InvalidArgumentError(f"dct: type {kind} of {size} elements is not defined")
    places = np.arange(size)
    scale = np.full(size, 1 / np.sqrt(2 * size) if norm else 1.0)
    if kind == 1:
        mirrored = getitem(x, (Ellipsis, slice(size - 2, 0, -1)))
        return real(rfftn(concatenate([x, mirrored], -1), None, (-1,)))
    first = np.where(places == 0, np.sqrt(0.5 if kind == 2 else 2) if norm else 1.0, 1.0)
    if kind == 2:
        half = getitem(rfftn(x, (2 * size,), (-1,)), (Ellipsis, slice(size)))
        found = multiply(real(_turned(half, -np.pi * places / (2 * size))), 2)
        return multiply(found, (scale * first).astype(x.dtype))
    if kind == 3:
        x = multiply(x, (scale * first).astype(x.dtype))
        half = pad(_turned(x, np.pi * places / (2 * size)), [*[(0, 0)] * (x.ndim - 1), (0, 1)])
        whole = irfftn(half, (2 * size,), (-1,), "forward")
        return getitem(whole, (Ellipsis, slice(size)))
    whole = fftn(_turned(x, -np.pi * places / (2 * size)), (2 * size,), (-1,))
    half = getitem(whole, (Ellipsis, slice(size)))
    found = real(_turned(half, -np.pi * (2 * places + 1) / (4 * size)))
    return multiply(found, (2 * scale).astype(x.dtype))


_INVERSE_TYPES = {1: 1, 2: 3, 3: 2, 4: 4}
_TABLE = """
    dct(input, type=2, n=None, axis=-1, norm=None, name=None)
        = _cosines(input, type, n, axis, norm)
        # Return the discrete cosine transform of a real `input` over its last axis, cut or padded
        to `n`; `type` is 1 to 4, `norm` None or "ortho", which makes the types 2 to 4 orthogonal.
    frame(signal, frame_length, frame_step, pad_end=False, pad_value=0, axis=-1, name=None)
        = _frames(signal, frame_length, frame_step, pad_end, pad_value, axis)
        # Return pieces of `signal` of `frame_length` elements, which begin every `frame_step`
        elements, along a new axis before `axis`; those that pass the end too if `pad_end`.
    hamming_window(window_length, periodic=True, dtype=float32, name=None)
        = _window(window_length, periodic, dtype, 0.54)
        # Return ``0.54 - 0.46 cos(2 pi k / n)``, a window of `window_length` elements.
    hann_window(window_length, periodic=True, dtype=float32, name=None)
        = _window(window_length, periodic, dtype, 0.5)
        # Return ``0.5 - 0.5 cos(2 pi k / n)``, a window of `window_length` elements.
    idct(input, type=2, n=None, axis=-1, norm=None, name=None)
        = _cosines(input, _INVERSE_TYPES.get(type), n, axis, norm)
        # Return the inverse of ``dct`` of that `type`: up to a factor, unless `norm` is "ortho".
    inverse_stft(stfts, frame_length, frame_step, fft_length=None, window_fn=_hann, name=None)
        = _from_spectra(stfts, frame_length, frame_step, fft_length, window_fn)
        # Return the signals of which ``stft`` gives `stfts`, up to what the windows do.
    kaiser_window(window_length, beta=12.0, dtype=float32, name=None)
        = cast(constant(np.kaiser(window_length, beta)), dtype)
        # Return Kaiser's window of `window_length` elements.
    overlap_and_add(signal, frame_step, name=None) = _overlap(signal, frame_step)
        # Return the sum of frames (..., frames, length) that begin every `frame_step` elements.
    stft(signals, frame_length, frame_step, fft_length=None, window_fn=_hann, pad_end=False,
        name=None)
        = _spectra(signals, frame_length, frame_step, fft_length, window_fn, pad_end)
        # Return the transforms of the pieces of `signals` that ``frame`` gives, times a window: of
        `fft_length` elements, by default the next power of 2.
    fft(input, name=None) = fftn(_complex("fft", input, 1), None, _last(1))
        # Return the discrete Fourier transform of a complex `input` over its last axis.
    fft2d(input, name=None) = fftn(_complex("fft2d", input, 2), None, _last(2))
        # Return the discrete Fourier transform of a complex `input` over its last two axes.
    fft3d(input, name=None) = fftn(_complex("fft3d", input, 3), None, _last(3))
        # Return the discrete Fourier transform of a complex `input` over its last three axes.
    fftnd(input, fft_length=None, axes=None, norm=None, name=None)
        = fftn(_complex("fftnd", input, 1), fft_length, axes, norm)
        # Return the discrete Fourier transform of a complex `input` over `axes`, by default all,
        cut or padded to `fft_length`; `norm` is "backward", "ortho" or "forward".
    ifft(input, name=None) = ifftn(_complex("ifft", input, 1), None, _last(1))
        # Return the inverse of `fft`.
    ifft2d(input, name=None) = ifftn(_complex("ifft2d", input, 2), None, _last(2))
        # Return the inverse of ``fft2d``.
    ifft3d(input, name=None) = ifftn(_complex("ifft3d", input, 3), None, _last(3))
        # Return the inverse of ``fft3d``.
    ifftnd(input, fft_length=None, axes=None, norm=None, name=None)
        = ifftn(_complex("ifftnd", input, 1), fft_length, axes, norm)
        # Return the inverse of ``fftnd``.
    rfft(input_tensor, fft_length=None, name=None)
        = rfftn(_of_rank("rfft", input_tensor, 1), _sizes("rfft", fft_length, 1), _last(1))
        # Return the first half of the transform of a real `input_tensor` over its last axis, cut or
        padded to `fft_length`.
    rfft2d(input_tensor, fft_length=None, name=None)
        = rfftn(_of_rank("rfft2d", input_tensor, 2), _sizes("rfft2d", fft_length, 2), _last(2))
        # Return `rfft` over the last axis and `fft` over the one before it.
    rfft3d(input_tensor, fft_length=None, name=None)
        = rfftn(_of_rank("rfft3d", input_tensor, 3), _sizes("rfft3d", fft_length, 3), _last(3))
        # Return `rfft` over the last axis and `fft` over the two before it.
    rfftnd(input, fft_length=None, axes=None, norm=None, name=None)
        = rfftn(_of_rank("rfftnd", input, 1), fft_length, axes, norm)
        # Return `rfft` over the last of `axes` and `fft` over the others.
    irfft(input_tensor, fft_length=None, name=None)
        = irfftn(_of_rank("irfft", input_tensor, 1), _sizes("irfft", fft_length, 1), _last(1))
        # Return the inverse of `rfft`: real, of `fft_length` elements.
    irfft2d(input_tensor, fft_length=None, name=None)
        = irfftn(_of_rank("irfft2d", input_tensor, 2), _sizes("irfft2d", fft_length, 2), _last(2))
        # Return the inverse of ``rfft2d``.
    irfft3d(input_tensor, fft_length=None, name=None)
        = irfftn(_of_rank("irfft3d", input_tensor, 3), _sizes("irfft3d", fft_length, 3), _last(3))
        # Return the inverse of ``rfft3d``.
    irfftnd(input, fft_length=None, axes=None, norm=None, name=None)
        = irfftn(_of_rank("irfftnd", input, 1), fft_length, axes, norm)
        # Return the inverse of ``rfftnd``.
    fftshift ifftshift(x, axes=None, name=None) = {}(x, axes)
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
"""
__all__: list[str] = []
spell(globals(), _TABLE)
