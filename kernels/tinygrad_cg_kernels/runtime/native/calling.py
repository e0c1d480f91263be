"""Machine code as functions that Python calls."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from tinygrad_cg_kernels.runtime import machine

FASTCALL = 0x0080


class _Method(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_new_function = ctypes.pythonapi.PyCFunction_NewEx
_new_function.restype = ctypes.py_object
_new_function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]


class PythonFunction:
    """What a compiled function needs: its machine code, and what Python knows of it.

    The code's function `entry` is called with an object, an array of arguments, and their number.
    """

    def __init__(self, code: machine.Code, name: str):
        self.code = code
        self._method = _Method(name.encode(), code.address("entry"), FASTCALL, None)

    def callable(self) -> Callable:
        """Return the function, which keeps its code."""
        return _new_function(ctypes.addressof(self._method), self, None)
