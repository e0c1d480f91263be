"""Fields of Python objects, read and written in compiled code.

In compiled code, an object is its address, an integer. 0 stands for no object.
"""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_cg_frontend import IRValue, intrinsic
from tinygrad_cg_kernels.runtime import objects


def _object_at(address: int) -> Any:
    return ctypes.cast(address, ctypes.py_object).value


@intrinsic("object -> word", lambda body, thing: thing.text)
def address_of(thing):
    """Return the address of an object."""
    return id(thing)


@intrinsic("word -> object", lambda body, start: start.text)
def as_object(start):
    """Return the object at an address as a function's result, with a reference for the caller."""
    thing = _object_at(start)
    decref(start)
    return thing


def _nothing(body: Any) -> str:
    return _incref(body, body.object_address(f"{objects.PREFIX}none")).text


@intrinsic("-> object", _nothing)
def nothing():
    """Return None as a function's result."""


def _incref(body: Any, start: IRValue) -> IRValue:
    body.call("Py_IncRef", "void", ("ptr", body.pointer(start)))
    return start


@intrinsic("word -> word", _incref)
def incref(start):
    """Add a reference to the object at an address; return the address."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_object_at(start)))
    return start


@intrinsic(
    "word ->", lambda body, start: body.call("Py_DecRef", "void", ("ptr", body.pointer(start)))
)
def decref(start):
    """Drop a reference to the object at an address."""
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(_object_at(start)))


def field(body: Any, start: IRValue, offset: IRValue) -> str:
    """Return the operand of the address of a field."""
    return body.pointer(body.operate("Add", start, offset))


def _peek(kind: str) -> Callable:
    return lambda body, start, offset: body.load(kind, field(body, start, offset))


@intrinsic("word, word -> word", _peek("i64"))
def word(start, offset):
    """Return a field of 64 bits: the integer at an offset from an address."""
    return ctypes.c_int64.from_address(start + offset).value


@intrinsic("word, word -> word", lambda body, *place: body.cast(_peek("i32")(body, *place), "i64"))
def half(start, offset):
    """Return a field of 32 bits."""
    return ctypes.c_int32.from_address(start + offset).value


@intrinsic("word, word -> double", _peek("f64"))
def double(start, offset):
    """Return a field that is a float."""
    return ctypes.c_double.from_address(start + offset).value


@intrinsic(
    "word, word, word ->",
    lambda body, start, offset, value: body.store(value, "i64", field(body, start, offset)),
)
def store(start, offset, value):
    """Write a field of 64 bits."""
    ctypes.c_int64.from_address(start + offset).value = value


@intrinsic(
    None,
    lambda body, dtype: body.object_address(f"{objects.PREFIX}dtype_{dtype.type.value.name}"),
)
def dtype_address(dtype):
    """Return the address of NumPy's object of a dtype."""
    return id(np.dtype(dtype))
