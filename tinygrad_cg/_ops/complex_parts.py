"""Complex numbers from their parts, without arithmetic: infinities and signs of zeros stay."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.errstate import cast as cast_array

from .._core import devices
from .._core.conversion import convert_operands
from .._core.kinds import REAL, is_complex
from .._core.tensor import Aval, Tensor
from ..errors import InvalidArgumentError
from .complex import imag, real
from .define import Case, Wrong, operation, public
from .matrices import complex_dtype, real_dtype
from .shape import broadcast_to, stack
from .validation import broadcast_shapes, check_kind, check_shapes


def _run(x: np.ndarray) -> np.ndarray:
    check_kind("view_as_complex", "x", x, REAL, error=TypeError)
    wanted = complex_dtype(x.dtype)
    parts = devices.library_of(x).ascontiguousarray(cast_array(x, real_dtype(wanted)))
    return parts.view(wanted)[..., 0]


_of_pairs = operation(
    "complex_of_pairs",
    _run,
    lambda x: Aval(x.shape[:-1], complex_dtype(x.dtype)),
    (lambda dy: stack([real(dy), imag(dy)], -1),),
    core=(1,),
    aliases=True,
    dtypes=(lambda dtype: not is_complex(dtype),),
    samples=[Case(((3, 2),)), Case(((2,),))],
    analytic=False,
    errors=(
        Wrong(InvalidArgumentError, r"x must have shape \(..., 2\)", (np.ones(3),)),
        Wrong(TypeError, "real numbers", (np.ones(2, np.complex64),)),
    ),
)


@public(_of_pairs)
def complex_of_pairs(x: Any) -> Tensor:
    """Return complex numbers whose real and imaginary parts are the last axis of `x`, of size 2.

    float16 becomes complex64, integers complex128. Raises InvalidArgumentError for another size,
    TypeError for complex numbers.
    """
    (x,) = convert_operands((x,))
    check_shapes("view_as_complex", {"x": (x, "... 2")})
    return _of_pairs(x)


def complex_of(real: Any, imag: Any) -> Tensor:
    """Return complex numbers of real and imaginary parts, which broadcast."""
    parts = convert_operands((real, imag))
    if any(is_complex(part.dtype) for part in parts):
        kinds = " and ".join(str(part.dtype) for part in parts)
        raise TypeError(f"complex: real and imag must be real numbers, got {kinds}")
    shape = broadcast_shapes("complex", *[tuple(part.shape) for part in parts])
    return complex_of_pairs(stack([broadcast_to(part, shape) for part in parts], -1))
