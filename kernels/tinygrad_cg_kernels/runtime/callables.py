"""Machine code as functions of Python, called with an array of objects."""

import ctypes
from collections.abc import Callable
from typing import Any

FASTCALL = 0x0080


class _Definition(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_new_function = ctypes.pythonapi.PyCFunction_NewEx
_new_function.restype = ctypes.py_object
_new_function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]


class NativeFunction:
    """Python's definition of a compiled function ``entry(self, arguments, count)``.

    It has to live as long as the functions that `bound` returns.
    """

    def __init__(self, name: str, address: int) -> None:
        self._definition = _Definition(name.encode(), address, FASTCALL, None)

    def bound(self, owner: Any) -> Callable[..., Any]:
        """Return a function that passes `owner` as `self`, and keeps it alive."""
        return _new_function(ctypes.addressof(self._definition), owner, None)
