"""Complex numbers: parts and conjugates.

Gradients follow TensorFlow's convention: the gradient of a real loss by z is
``conj(dL/dRe z - i dL/dIm z)``, so that a descent step is ``z - rate * gradient``.
"""

from __future__ import annotations

from typing import Any

from .._core.conversion import convert
from .._core.kinds import is_complex
from .._core.tensor import Tensor
from .define import public, unary

real = unary(
    "real",
    "Return the real part of x.",
    kind="real",
    vjp=lambda dy: dy,
    analytic=False,
    spellings=("keras.ops.real",),
)
imag = unary(
    "imag",
    "Return the imaginary part of x; 0 for real x.",
    kind="real",
    vjp=lambda dy: dy * 1j,
    analytic=False,
    spellings=("keras.ops.imag",),
)


def _conjugate(dy: Any) -> Tensor:
    return conj(dy)


_conj = unary(
    "conj",
    "Return the complex conjugate of x.",
    kind="same",
    vjp=_conjugate,
    analytic=False,
    spellings=("keras.ops.conj", "keras.ops.conjugate", "numpy.conj", "numpy.conjugate"),
)


@public(_conj.primitive)
def conj(x: Any) -> Tensor:
    """Return the complex conjugate; a real tensor is returned unchanged."""
    x = convert(x)
    return _conj(x) if is_complex(x.dtype) else x
