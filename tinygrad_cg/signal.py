"""TensorFlow's ``tf.signal``: transforms over the last axes of a tensor."""

from __future__ import annotations

from typing import Any

from ._core.conversion import convert
from ._core.kinds import is_complex
from ._core.tensor import Tensor
from ._ops.define import as_shape
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


_TABLE = """
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
"""
__all__: list[str] = []
spell(globals(), _TABLE)
