"""Classes of NumPy dtypes: what distinguishes bools, integers, floats and complex numbers.

The kernels have the predicates, since they import nothing from here.
"""

from __future__ import annotations

from tinygrad_cg_kernels.runtime.promotion import (  # noqa: F401 (the predicates are found here)
    is_bool,
    is_complex,
    is_differentiable,
    is_exact,
    is_floating,
    is_inexact,
    is_integer,
    is_native_float,
    is_real_number,
    is_signed,
    is_unsigned,
    rank,
)

# What an operation takes: any dtype for which one of the predicates holds.
EVERY = (is_bool, is_integer, is_floating, is_complex)
REAL = (is_bool, is_integer, is_floating)
NUMBERS = (is_integer, is_floating, is_complex)
REAL_NUMBERS = (is_integer, is_floating)
INEXACT = (is_floating, is_complex)
EXACT = (is_bool, is_integer)
INTEGERS = (is_integer,)
FLOATING = (is_floating,)
COMPLEX = (is_complex,)
