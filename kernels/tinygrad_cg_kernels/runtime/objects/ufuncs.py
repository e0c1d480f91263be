"""Calls of the inner loops of NumPy's generalized ufuncs, such as `matmul`, in compiled code.

A ufunc has a compiled loop for each choice of dtypes, which takes the addresses of operands and
results, sizes and strides. Compiled code that calls the loop runs the same BLAS routine as NumPy,
with the same bits.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np

from tinygrad_cg_frontend import address_call, intrinsic
from tinygrad_cg_kernels.runtime import objects


class _Ufunc(ctypes.Structure):
    """The first fields of `PyUFuncObject`, which are part of NumPy's C API."""

    _fields_ = [
        ("head", ctypes.c_char * object.__basicsize__),
        *[(name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")],
        *[(name, ctypes.POINTER(ctypes.c_void_p)) for name in ("functions", "data")],
        *[(name, ctypes.c_int) for name in ("ntypes", "reserved")],
        *[("name", ctypes.c_char_p), ("types", ctypes.POINTER(ctypes.c_byte))],
    ]


@cache
def inner_loop(ufunc: Any, dtype: np.dtype) -> tuple[int, int] | None:
    """Return the addresses of a ufunc's loop for one dtype, and of the loop's data.

    None if there is no such loop, or if the ufunc's memory layout is not as assumed.
    """
    kinds = f"{dtype.char * ufunc.nin}->{dtype.char * ufunc.nout}"
    if not objects.supported or kinds not in ufunc.types:
        return None
    fields = _Ufunc.from_address(id(ufunc))
    counts = fields.nin, fields.nout, fields.nargs, fields.ntypes
    if counts != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes):
        return None
    k = ufunc.types.index(kinds)
    numbers = fields.types[k * ufunc.nargs : (k + 1) * ufunc.nargs]
    if fields.name != ufunc.__name__.encode() or set(numbers) != {dtype.num}:
        return None
    address = fields.functions[k]
    return (address, fields.data[k] or 0) if address else None


@intrinsic(", ".join(["word"] * 5) + " ->", address_call)
def call_loop(loop, operands, sizes, steps, data):
    """Call the loop of a ufunc by its address, with the addresses of its arguments."""
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loop)(operands, sizes, steps, data)
