"""The dtypes that kernels take, and their promotion."""

from functools import cache

import numpy as np

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)
FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)

SUPPORTED = frozenset(np.dtype(code) for code in "?bhilqBHILQefdFD")


def is_bool(dtype: np.dtype) -> bool:
    """Return True for bool."""
    return dtype.kind == "b"


def is_signed(dtype: np.dtype) -> bool:
    """Return True for signed integers."""
    return dtype.kind == "i"


def is_unsigned(dtype: np.dtype) -> bool:
    """Return True for unsigned integers."""
    return dtype.kind == "u"


def is_integer(dtype: np.dtype) -> bool:
    """Return True for signed and unsigned integers, not for bool."""
    return dtype.kind in "iu"


def is_exact(dtype: np.dtype) -> bool:
    """Return True for bool and integers."""
    return dtype.kind in "biu"


def is_floating(dtype: np.dtype) -> bool:
    """Return True for real floating-point numbers."""
    return dtype.kind == "f"


def is_native_float(dtype: np.dtype) -> bool:
    """Return True for the real floats that processors compute with: float32 and float64."""
    return dtype.kind == "f" and dtype.itemsize >= 4


def is_complex(dtype: np.dtype) -> bool:
    """Return True for complex numbers."""
    return dtype.kind == "c"


def is_inexact(dtype: np.dtype) -> bool:
    """Return True for real and complex floating-point numbers."""
    return dtype.kind in "fc"


def is_real_number(dtype: np.dtype) -> bool:
    """Return True for integers and real floating-point numbers."""
    return dtype.kind in "iuf"


def rank(dtype: np.dtype) -> int:
    """Return where its class stands in the order bool, signed, unsigned, floating, complex."""
    return "biufc".index(dtype.kind)


def is_differentiable(dtype: np.dtype) -> bool:
    """Return True for dtypes by which gradients flow: floating-point numbers."""
    return dtype.kind in "fc"


def native(name: str, dtype: np.dtype) -> np.dtype:
    """Return the native-order form of a supported dtype; TypeError for any other."""
    result = np.result_type(dtype)  # the one object NumPy has for it, so `is` compares
    if result not in SUPPORTED:
        raise TypeError(f"{name}: dtype {dtype} is not supported")
    return result


def no_kernel(name: str, *dtypes: np.dtype) -> str:
    """Return the message for an operation that is not for these dtypes, with a remedy."""
    said = f"{name}: no kernel for dtype {', '.join(map(str, dtypes))}"
    kinds = {dtype.kind for dtype in dtypes}
    if "c" in kinds:
        return f"{said}: take abs, real or imag of complex numbers first"
    return f"{said}: cast bool to a number's dtype first" if "b" in kinds else said


def real_float(name: str, dtype: np.dtype) -> np.dtype:
    """Return a real float dtype itself, float64 for integers and bool; TypeError for any other."""
    dtype = native(name, dtype)
    if is_complex(dtype):
        raise TypeError(no_kernel(name, dtype))
    return FLOAT64 if is_exact(dtype) else dtype


@cache
def promote(*dtypes: np.dtype) -> np.dtype:
    """Return the dtype in which arrays of these dtypes meet.

    Integers and bool among themselves promote as in NumPy, but an integer never widens a
    float: int64 with float32 is float32.
    """
    inexact = [dtype for dtype in dtypes if is_inexact(dtype)]
    return np.result_type(*(inexact or dtypes))


def real(dtype: np.dtype) -> np.dtype:
    """Return the dtype of the parts of a complex dtype; any other dtype itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if is_complex(dtype) else dtype


def loop_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype a loop computes in: Numba has no float16, so float32 stands in."""
    return FLOAT32 if dtype == FLOAT16 else dtype
