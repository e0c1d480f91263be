"""NumPy's ``numpy.fft``: transforms by its pocketfft, with gradients of any order."""

from __future__ import annotations

from .._spellings.spell import spell
from ._readers import _array  # noqa: F401 (the table calls it)

_TABLE = """
    fft ifft rfft irfft hfft ihfft(a, n=None, axis=-1, norm=None) = {}(_array(a), n, axis, norm)
    fft2(a, s=None, axes=(-2, -1), norm=None) = fftn(_array(a), s, axes, norm)
        # Return the discrete Fourier transform over two axes; see `fftn`.
    ifft2(a, s=None, axes=(-2, -1), norm=None) = ifftn(_array(a), s, axes, norm)
        # Return the inverse of ``fft2``.
    rfft2(a, s=None, axes=(-2, -1), norm=None) = rfftn(_array(a), s, axes, norm)
        # Return `rfft` along the last of two axes and `fft` along the other; see `rfftn`.
    irfft2(a, s=None, axes=(-2, -1), norm=None) = irfftn(_array(a), s, axes, norm)
        # Return the inverse of ``rfft2``.
    fftn ifftn rfftn irfftn(a, s=None, axes=None, norm=None) = {}(_array(a), s, axes, norm)
    fftfreq(n, d=1.0) = divide(constant(np.fft.fftfreq(n)), d)
        # Return the frequencies of the elements of `fft`, in cycles per unit of the spacing `d`.
    rfftfreq(n, d=1.0) = divide(constant(np.fft.rfftfreq(n)), d)
        # Return the frequencies of the elements of `rfft`, in cycles per unit of the spacing `d`.
    fftshift ifftshift(x, axes=None) = {}(_array(x), axes)
"""
__all__: list[str] = []
spell(globals(), _TABLE, readers=("_array",))
