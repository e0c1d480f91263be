"""Frames of signals, their spectra over time, cosine transforms, and windows for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import devices
from .._core.annotations import Axes, DTypeLike, TensorLike
from .._core.conversion import FLOAT32, convert, convert_operands
from .._core.kinds import COMPLEX, REAL, is_exact
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .complex import real
from .creation import constant, linspace
from .cumulative import cumsum
from .elementwise import (
    add,
    divide,
    divide_no_nan,
    log1p,
    maximum,
    minimum,
    multiply,
    negative,
    sqrt,
    square,
    subtract,
)
from .fourier import fftn, irfftn, rfftn
from .indexing import gather, getitem
from .matrices import real_dtype
from .padding import pad
from .reductions import reduce_sum
from .shape import cast, concatenate, expand_dims, floating, reshape, split, stop_gradient
from .tapers import _floating, hann_window, kaiser, raised_cosine
from .validation import as_choice, as_count, as_int, check_kind, check_shapes, normalize_axis


def of_rank(name: str, x: Any, count: int) -> Tensor:
    """Return a tensor of at least `count` axes; InvalidArgumentError for another."""
    x = convert(x)
    if x.ndim < count:
        raise InvalidArgumentError(
            f"{name}: needs at least {count} dimensions, got shape {tuple(x.shape)}"
        )
    return x


def complex_of_rank(name: str, x: Any, count: int) -> Tensor:
    """Return a complex operand of at least `count` axes; TypeError for a real one."""
    x = of_rank(name, x, count)
    check_kind(name, "x", x, COMPLEX, "use rfft, or cast first", TypeError)
    return x


def _real_of_rank(name: str, x: Any, count: int) -> Tensor:
    """Return a real operand, integers as float64; TypeError for a complex one."""
    x = of_rank(name, x, count)
    check_kind(name, "x", x, REAL, "take real or imag first", TypeError)
    return floating(x)


def _wider(x: Tensor, before: int, after: int) -> Tensor:
    """Return `x` with zeros around its last axis."""
    return pad(x, [*[(0, 0)] * (x.ndim - 1), (before, after)])


def _part(x: Tensor, start: int | None, stop: int | None, step: int | None = None) -> Tensor:
    return getitem(x, (Ellipsis, slice(start, stop, step)))


# Windows -----------------------------------------------------------------------------------------


def vorbis_window(
    window_length: Any, dtype: DTypeLike = FLOAT32, name: str | None = None
) -> Tensor:
    """Return Vorbis' window, ``sin(pi/2 sin(pi (n + 1/2) / N)**2)`` for n from 0 to N - 1.

    Modelled on ``tf.signal.vorbis_window``. InvalidArgumentError for a length below 1, TypeError
    for a `dtype` that is not a floating one.
    """
    size = as_count("vorbis_window", "window_length", window_length, 1)
    inner = np.sin(np.pi / size * (np.arange(size) + 0.5)) ** 2
    return constant(np.sin(np.pi / 2 * inner), _floating("vorbis_window", dtype))


def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: DTypeLike = FLOAT32, name: str | None = None
) -> Tensor:
    """Return the window whose halves are roots of sums of Kaiser's, with shape parameter `beta`.

    Modelled on ``tf.signal.kaiser_bessel_derived_window``: an odd length is made even. It is
    differentiable with respect to a tensor `beta`. Errors as for `vorbis_window`.
    """
    op_name = "kaiser_bessel_derived_window"
    wanted = _floating(op_name, dtype)
    half = as_count(op_name, "window_length", window_length, 1) // 2
    sums = cumsum(kaiser(half + 1, beta))
    rising = sqrt(divide(_part(sums, None, half), getitem(sums, half)))
    return cast(concatenate([rising, _part(rising, None, None, -1)]), wanted)


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Any = hann_window, name: str | None = None
) -> Any:
    """Return a function of a length and a dtype that returns the window with which ``inverse_stft``
    undoes the window `forward_window_fn` of ``stft``, for steps of `frame_step` elements."""
    step = as_count("inverse_stft_window_fn", "frame_step", frame_step, 1)

    def window_fn(frame_length: Any, dtype: Any = np.float32) -> Tensor:
        size = as_int("inverse_stft_window_fn", "frame_length", frame_length)
        window = convert(forward_window_fn(size, dtype=dtype))
        count = -(-size // step)
        squares = _wider(square(window), 0, count * step - size)
        sums = reduce_sum(reshape(squares, (count, step)), 0)
        return divide_no_nan(window, gather(sums, np.arange(size) % step, 0))

    return window_fn


# Frames and spectra over time --------------------------------------------------------------------


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
    x = of_rank("frame", signal, 1)
    dim = normalize_axis("frame", axis, x.ndim)
    size, length = x.shape[dim], as_count("frame", "frame_length", frame_length, 1)
    step = as_count("frame", "frame_step", frame_step, 1)
    count = -(-size // step) if pad_end else max(0, 1 + (size - length) // step)
    missing = max(0, (count - 1) * step + length - size) if pad_end and count else 0
    if missing:
        widths = [(0, missing if i == dim else 0) for i in range(x.ndim)]
        x = pad(x, widths, value=pad_value)
    return gather(x, np.arange(count)[:, None] * step + np.arange(length), dim)


def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """Return the sum of frames (..., frames, length) that begin every `frame_step` elements."""
    x = of_rank("overlap_and_add", signal, 2)
    step = as_count("overlap_and_add", "frame_step", frame_step, 1)
    (count, length), before = x.shape[-2:], x.ndim - 2
    pieces = -(-length // step)
    still = [(0, 0)] * before
    x = _wider(x, 0, pieces * step - length)
    x = reshape(x, (*x.shape[:-1], pieces, step))
    total: Any = None
    for i in range(pieces):  # the piece i of each frame comes i steps later
        part = pad(getitem(x, (Ellipsis, i, slice(None))), [*still, (i, pieces - 1 - i), (0, 0)])
        total = part if total is None else add(total, part)
    flat = reshape(total, (*total.shape[:-2], (count + pieces - 1) * step))
    return _part(flat, None, (count - 1) * step + length)


def _whole_length(frame_length: Any, fft_length: Any) -> int:
    if fft_length is not None:
        return as_int("stft", "fft_length", fft_length)
    return 1 << (as_int("stft", "frame_length", frame_length) - 1).bit_length()


@devices.on_device_of_operands
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
    signals = _real_of_rank("stft", signals, 1)
    x = frame(signals, frame_length, frame_step, pad_end, 0, -1)
    if window_fn is not None:
        x = multiply(x, window_fn(frame_length, dtype=x.dtype))
    return rfftn(x, (_whole_length(frame_length, fft_length),), (-1,))


def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Any = hann_window,
    name: str | None = None,
) -> Tensor:
    """Return the signals whose ``stft`` is `stfts`, up to the effect of the windows."""
    size = as_int("inverse_stft", "frame_length", frame_length)
    whole = _whole_length(size, fft_length)
    x = irfftn(complex_of_rank("inverse_stft", stfts, 2), (whole,), (-1,))
    x = _part(x, None, size)
    if whole < size:
        x = _wider(x, 0, size - whole)
    if window_fn is not None:
        x = multiply(x, window_fn(size, dtype=x.dtype))
    return overlap_and_add(x, frame_step)


def _padded_window(name: str, window: Any, length: Any, fft_length: Any, dtype: Any) -> Any:
    """Return Keras's window of `length` elements in the middle of `fft_length`; None for ones."""
    size, whole = as_int(name, "sequence_length", length), as_int(name, "fft_length", fft_length)
    if not 0 < size <= whole:
        raise InvalidArgumentError(
            f"{name}: sequence_length must be positive and no more than fft_length, got {size} "
            f"and {whole}"
        )
    if window is None:
        return None
    if isinstance(window, str):
        means = {"hann": 0.5, "hamming": 0.54}
        if window not in means:
            raise InvalidArgumentError(
                f"{name}: window must be 'hann', 'hamming', a tensor or None, got {window!r}"
            )
        values = raised_cosine(name, size, True, means[window], dtype)
    else:
        values = cast(window, dtype)
    check_shapes(name, {"window": (values, "sequence_length")}, sequence_length=size)
    before = (whole - size) // 2
    return _wider(values, before, whole - size - before)


def centred_stft(
    x: Tensor,
    sequence_length: Any,
    sequence_stride: Any,
    fft_length: Any,
    window: Any,
    center: bool,
) -> Tensor:
    """Return the transforms of frames of `fft_length` elements. Modelled on ``keras.ops.stft``.

    The window stands in their middle; if `center`, frame i has element ``i * sequence_stride`` in
    its middle, and the signal is mirrored at its ends.
    """
    x = _real_of_rank("stft", x, 1)
    values = _padded_window("stft", window, sequence_length, fft_length, x.dtype)
    if center:
        room = fft_length // 2
        x = pad(x, [*[(0, 0)] * (x.ndim - 1), (room, room)], "reflect")
    fixed = None if values is None else lambda length, dtype: values
    return stft(x, fft_length, sequence_stride, fft_length, fixed, False)


def centred_inverse_stft(
    x: Tensor,
    sequence_length: Any,
    sequence_stride: Any,
    fft_length: Any,
    length: Any,
    window: Any,
    center: bool,
) -> Tensor:
    """Return the signals of which `centred_stft` gives `x`. Modelled on ``keras.ops.istft``."""
    x = complex_of_rank("istft", x, 2)
    values = _padded_window("istft", window, sequence_length, fft_length, real_dtype(x.dtype))
    fixed = None
    if values is not None:
        fixed = inverse_stft_window_fn(sequence_stride, lambda length, dtype: values)
    signal = inverse_stft(x, fft_length, sequence_stride, fft_length, fixed)
    start = fft_length // 2 if center else 0
    if length is not None:
        return _part(signal, start, start + as_int("istft", "length", length))
    return _part(signal, start, signal.shape[-1] - start)


# Cosine transforms -------------------------------------------------------------------------------


def _turned(x: Tensor, angles: np.ndarray) -> Tensor:
    """Return elements times ``exp(1j * angles)``."""
    factors = np.exp(1j * angles)
    return multiply(x, factors.astype(np.result_type(x.dtype, np.complex64)))


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
    x = of_rank("dct", input, 1)
    check_kind("dct", "x", x, REAL)
    as_choice("dct", "axis", axis, (-1, x.ndim - 1))
    as_choice("dct", "type", type, (1, 2, 3, 4))
    as_choice("dct", "norm", norm, (None,) if type == 1 else (None, "ortho"))
    x = x if not is_exact(x.dtype) else cast(x, np.float64)
    if n is not None:
        size = as_int("dct", "n", n)
        x = _part(x, None, size)
        x = _wider(x, 0, size - x.shape[-1])
    size = x.shape[-1]
    if size < 1 + (type == 1):
        raise InvalidArgumentError(f"dct: type {type} of {size} elements is not defined")
    indices = np.arange(size)
    scale = np.full(size, 1 / np.sqrt(2 * size) if norm else 1.0)
    if type == 1:
        mirrored = _part(x, size - 2, 0, -1)
        return real(rfftn(concatenate([x, mirrored], -1), None, (-1,)))
    first = np.where(indices == 0, np.sqrt(0.5 if type == 2 else 2) if norm else 1.0, 1.0)
    if type == 2:
        half = _part(rfftn(x, (2 * size,), (-1,)), None, size)
        result = multiply(real(_turned(half, -np.pi * indices / (2 * size))), 2)
        return multiply(result, (scale * first).astype(x.dtype))
    if type == 3:
        x = multiply(x, (scale * first).astype(x.dtype))
        half = _wider(_turned(x, np.pi * indices / (2 * size)), 0, 1)
        return _part(irfftn(half, (2 * size,), (-1,), "forward"), None, size)
    whole = fftn(_turned(x, -np.pi * indices / (2 * size)), (2 * size,), (-1,))
    result = real(_turned(_part(whole, None, size), -np.pi * (2 * indices + 1) / (4 * size)))
    return multiply(result, (2 * scale).astype(x.dtype))


INVERSE_TYPES = {1: 1, 2: 3, 3: 2, 4: 4}


def _windowed(x: Tensor, size: int, window_fn: Any) -> Tensor:
    factor = float(np.sqrt(0.5)) if window_fn is None else window_fn(size, dtype=x.dtype)
    return multiply(x, factor)


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
    half frame and are multiplied by a window, or by the root of 1/2 if `window_fn` is None. See
    ``dct`` of type 4 for `norm`. Raises InvalidArgumentError for another length, TypeError for
    complex numbers.
    """
    x, size = _real_of_rank("mdct", signals, 1), as_int("mdct", "frame_length", frame_length)
    if size < 4 or size % 4:
        raise InvalidArgumentError(
            f"mdct: frame_length must be a positive multiple of 4, got {size}"
        )
    x = _windowed(frame(x, size, size // 2, pad_end, 0, -1), size, window_fn)
    a, b, c, d = split(x, 4, -1)
    left = negative(add(_part(c, None, None, -1), d))
    right = subtract(a, _part(b, None, None, -1))
    return dct(concatenate([left, right], -1), 4, None, -1, norm)


@devices.on_device_of_operands
def inverse_mdct(
    mdcts: Any, window_fn: Any = vorbis_window, norm: Any = None, name: str | None = None
) -> Tensor:
    """Return the signals whose ``mdct`` is `mdcts`, for the same window and `norm`.

    Modelled on ``tf.signal.inverse_mdct``. `mdcts` is (..., frames, half a frame's length), an even
    number. Errors as for `mdct`.
    """
    x = _real_of_rank("inverse_mdct", mdcts, 2)
    half = x.shape[-1]
    if half < 2 or half % 2:
        raise InvalidArgumentError(
            f"inverse_mdct: the last axis must have an even size, got shape {tuple(x.shape)}"
        )
    signal = dct(x, 4, None, -1, norm)
    if norm is None:
        signal = multiply(signal, 0.5 / half)
    left, right = split(signal, 2, -1)
    turned = _part(left, None, None, -1)
    parts = [right, negative(_part(right, None, None, -1)), negative(turned), negative(left)]
    return overlap_and_add(_windowed(concatenate(parts, -1), 2 * half, window_fn), half)


# The mel scale -----------------------------------------------------------------------------------


def _mel(hertz: Any) -> Tensor:
    """Return frequencies on the mel scale of the HTK book (S. Young et al., 2006)."""
    return multiply(log1p(divide(hertz, 700.0)), 1127.0)


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
    computed in float64. Raises InvalidArgumentError for invalid edges or sizes.
    """
    op_name = "linear_to_mel_weight_matrix"
    wanted = _floating(op_name, dtype)
    bins = as_count(op_name, "num_mel_bins", num_mel_bins, 1)
    count = as_count(op_name, "num_spectrogram_bins", num_spectrogram_bins, 2)
    rate, low, high = (
        cast(value, np.float64)
        for value in convert_operands((sample_rate, lower_edge_hertz, upper_edge_hertz))
    )
    values = [float(stop_gradient(tensor)._values()) for tensor in (rate, low, high)]
    if not 0 <= values[1] < values[2] <= values[0] / 2:
        raise InvalidArgumentError(
            f"{op_name}: needs 0 <= lower_edge_hertz < upper_edge_hertz <= sample_rate / 2; got "
            f"{values[1]}, {values[2]} and the sample rate {values[0]}"
        )
    steps = np.arange(1, count) / (2 * (count - 1))
    at = expand_dims(_mel(multiply(rate, steps)), -1)
    edges = linspace(_mel(low), _mel(high), bins + 2)
    left, centre, right = _part(edges, None, bins), _part(edges, 1, bins + 1), _part(edges, 2, None)
    rising = divide(subtract(at, left), subtract(centre, left))
    falling = divide(subtract(right, at), subtract(right, centre))
    weights = maximum(minimum(rising, falling), 0.0)
    return cast(pad(weights, [(1, 0), (0, 0)]), wanted)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Tensor:
    """Return the mel-frequency cepstral coefficients of logarithms of mel spectra (..., bins).

    Modelled on ``tf.signal.mfccs_from_log_mel_spectrograms``: the cosine transform of type 2, over
    the root of twice the number of bins. Integers become float64; TypeError for complex numbers.
    """
    x = _real_of_rank("mfccs_from_log_mel_spectrograms", log_mel_spectrograms, 1)
    return divide(dct(x, 2, None, -1, None), float(np.sqrt(2 * x.shape[-1])))
