"""Loops inside NumPy's generalized ufuncs, `matmul` among them, as functions of compiled code.

A ufunc has a compiled function for each choice of dtypes, which takes addresses of operands and
result, sizes and strides. Compiled code that calls it computes what NumPy does, by the same
routine of BLAS, and with the same bits.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np

from tinygrad_cg_frontend import address_call, intrinsic
from tinygrad_cg_kernels.runtime import objects


class _Ufunc(ctypes.Structure):
    """The first fields of `PyUFuncObject`, which are a part of NumPy's interface in C."""

    _fields_ = [
        ("head", ctypes.c_char * object.__basicsize__),
        *[(name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")],
        *[(name, ctypes.POINTER(ctypes.c_void_p)) for name in ("functions", "data")],
        *[(name, ctypes.c_int) for name in ("ntypes", "reserved")],
        *[("name", ctypes.c_char_p), ("types", ctypes.POINTER(ctypes.c_byte))],
    ]


@cache
def inner_loop(ufunc: Any, dtype: np.dtype) -> tuple[int, int] | None:
    """Return the addresses of a ufunc's loop over arrays of one dtype, and of what it is given.

    None where there is no such loop, or a ufunc does not lie in memory as this module takes it to.
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
    """Call a ufunc's loop at an address, with the addresses of what it takes."""
    ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(loop)(operands, sizes, steps, data)
