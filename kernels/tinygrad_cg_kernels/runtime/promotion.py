"""The dtypes of kernels, and their promotion."""

from collections.abc import Callable
from functools import cache
from itertools import zip_longest

import numpy as np

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)

SUPPORTED = frozenset(np.dtype(code) for code in "?bhilqBHILQefdFD")


def _of_kinds(kinds: str) -> Callable[[np.dtype], bool]:
    return lambda dtype: dtype.kind in kinds


is_bool = _of_kinds("b")
is_signed = _of_kinds("i")
is_unsigned = _of_kinds("u")
is_integer = _of_kinds("iu")
is_exact = _of_kinds("biu")
is_floating = _of_kinds("f")
is_complex = _of_kinds("c")
is_inexact = _of_kinds("fc")
is_real_number = _of_kinds("iuf")
is_differentiable = is_inexact
"""Only floating-point numbers, real and complex, have gradients."""


def is_native_float(dtype: np.dtype) -> bool:
    """Return whether a dtype is a real float that processors compute with: float32 or float64."""
    return dtype.kind == "f" and dtype.itemsize >= 4


def rank(dtype: np.dtype) -> int:
    """Return the position of a dtype's class: bool, signed, unsigned, floating, complex."""
    return "biufc".index(dtype.kind)


@cache
def native(name: str, dtype: np.dtype) -> np.dtype:
    """Return the native-order form of a supported dtype; TypeError for any other."""
    result = np.result_type(dtype)  # NumPy has one object for it, so `is` compares
    if result not in SUPPORTED:
        raise TypeError(f"{name}: dtype {dtype} is not supported")
    return result


def no_kernel(name: str, *dtypes: np.dtype) -> str:
    """Return the message for an operation that does not take these dtypes, with a remedy."""
    said = f"{name}: no kernel for dtype {', '.join(map(str, dtypes))}"
    kinds = {dtype.kind for dtype in dtypes}
    if "c" in kinds:
        return f"{said}: take abs, real or imag of complex numbers first"
    return f"{said}: cast bool to a numeric dtype first" if "b" in kinds else said


def real_float(name: str, dtype: np.dtype) -> np.dtype:
    """Return a real float dtype itself, float64 for integers and bool; TypeError for any other."""
    dtype = native(name, dtype)
    if is_complex(dtype):
        raise TypeError(no_kernel(name, dtype))
    return FLOAT64 if is_exact(dtype) else dtype


@cache
def promote(*dtypes: np.dtype) -> np.dtype:
    """Return the common dtype of arrays of these dtypes.

    It is that of NumPy, except that an integer never widens a float: int64 with float32 is float32.
    """
    inexact = [dtype for dtype in dtypes if is_inexact(dtype)]
    return np.result_type(*(inexact or dtypes))


def real(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the parts of a complex dtype; any other dtype itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if is_complex(dtype) else dtype


def loop_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype that a loop computes in: float32 for float16, else the dtype itself."""
    return FLOAT32 if dtype == FLOAT16 else dtype


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to; ValueError if they do not.

    NumPy's function of this name takes at most 32 axes, but arrays may have 64.
    """
    sizes = []
    for column in zip_longest(*[reversed(shape) for shape in shapes], fillvalue=1):
        size, *others = {*column} - {1} or {1}
        if others:
            raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast")
        sizes.append(size)
    return tuple(reversed(sizes))
