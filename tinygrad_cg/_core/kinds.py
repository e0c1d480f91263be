"""Classes of NumPy dtypes: what distinguishes bools, integers, floats and complex numbers.

The one place that reads the letters of ``dtype.kind``. A new dtype joins its classes here.
"""

from __future__ import annotations

import numpy as np


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


# What an operation takes: any dtype for which one of the predicates holds.
EVERY = (is_bool, is_integer, is_floating, is_complex)
REAL = (is_bool, is_integer, is_floating)
NUMBERS = (is_integer, is_floating, is_complex)
REAL_NUMBERS = (is_integer, is_floating)
INEXACT = (is_floating, is_complex)


def is_one_of(dtype: np.dtype, classes: tuple) -> bool:
    """Return True if `dtype` belongs to one of `classes`, which are predicates."""
    return any(holds(dtype) for holds in classes)
