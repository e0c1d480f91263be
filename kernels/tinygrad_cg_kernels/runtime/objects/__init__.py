"""Python objects in compiled code: arrays as they lie in memory, and boxes that hold an array.

Unboxing an array as Numba does, and making one from Python, take longer than the work on a few
elements. Small kernels therefore take the objects themselves: they read the fields of operands, and
make the result through NumPy's C interface. Only this package knows the offsets of fields.

Samples at import check the offsets. If the check fails, for example on an interpreter without its
lock or on another implementation of Python, `supported` is False. Then there are no small kernels
(`small.SmallKernels` serves nothing), and `data_address` reads NumPy's own attribute. Everything
else runs as usual, with the same bits.

`fields` reads and writes objects in compiled code, `prepare` checks operands for small kernels.
"""

import ctypes
import sys
from typing import Any, NamedTuple

import llvmlite.binding
import numpy as np

KIND = object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
DATA, NDIM, SHAPE, DTYPE, FLAGS = (KIND + 8 * start for start in (1, 2, 3, 6, 7))
VALUE = KIND + 8  # of a float
LENGTH, ITEMS = KIND + 8, tuple.__basicsize__
CONTIGUOUS = 0x101
"""The flags of an array that is C-contiguous and aligned."""
ALIGNED, WRITEABLE = 0x100, 0x400
DOUBLE, SINGLE = (float(np.finfo(dtype).max) for dtype in (np.float64, np.float32))
_NEW_ARRAY = 94  # PyArray_NewFromDescr in NumPy's table of functions, which never changes
_DTYPES = ["bool", "float32", "float64", "complex64", "complex128"]
_DTYPES += [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)]


def _word(address: int) -> int:
    return ctypes.c_ssize_t.from_address(address).value


def _as_expected() -> bool:
    """Return whether arrays, floats and tuples have the memory layout that this module assumes."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    sample, number = np.zeros((3, 5), np.float32)[:, ::2], 1.5
    start = id(sample)
    fields = [_word(start + KIND), _word(start + DATA), _word(start + DTYPE)]
    group = (sample, number)
    items = [_word(id(group) + offset) for offset in (LENGTH, ITEMS, ITEMS + 8)]
    shape = [_word(_word(start + SHAPE) + 8 * axis) for axis in range(2)]
    counts = [ctypes.c_int.from_address(start + offset).value for offset in (NDIM, FLAGS)]
    return (
        fields == [id(np.ndarray), sample.ctypes.data, id(sample.dtype)]
        and items == [2, id(sample), id(number)]
        and shape == [3, 3]
        and counts == [2, sample.flags.num]
        and ctypes.c_double.from_address(id(number) + VALUE).value == number
    )


def _new_array() -> int:
    """Return the address of NumPy's function that makes an array."""
    table = np._core.multiarray._ARRAY_API  # type: ignore[attr-defined]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    functions: Any = pointer(table, None)
    return _word(functions + 8 * _NEW_ARRAY)


class Boxes(NamedTuple):
    """Offsets in a box: of its array, and of the field that is None."""

    array: int
    empty: int


class _NoBox:
    """The class of boxes until one is registered."""


def _announce() -> bool:
    """Register the symbols of objects; return False if their layout is not as assumed."""
    try:
        if not _as_expected():
            return False
        things: dict[str, Any] = {f"dtype_{name}": np.dtype(name) for name in _DTYPES}
        things |= {"array": np.ndarray, "float": float, "int": int, "none": None, "box": _NoBox}
        symbols = {name: id(thing) for name, thing in things.items()}
        symbols["new_array"] = _new_array()
        symbols["new_box"] = _address(ctypes.pythonapi.PyType_GenericAlloc)
        symbols["integer"] = _address(ctypes.pythonapi.PyLong_AsLongLongAndOverflow)
    except (AttributeError, ValueError):
        return False
    for name, start in symbols.items():
        llvmlite.binding.add_symbol(PREFIX + name, start)
    return True


def _address(function: Any) -> int:
    return _word(ctypes.addressof(function))


PREFIX = "tinygrad_cg_"
supported = _announce()
boxes = Boxes(0, 0)


def data_address(array: np.ndarray) -> int:
    """Return the address of an array's elements, three times as fast as `array.ctypes.data`."""
    if supported:
        return ctypes.c_ssize_t.from_address(id(array) + DATA).value
    return array.ctypes.data


def register(cls: type, sample: Any, array: np.ndarray) -> None:
    """Register the class of boxes. `sample` is one that holds `array`, and else None."""
    global boxes
    if not supported:
        return
    offsets = range(KIND + 8, cls.__basicsize__, 8)
    words = [_word(id(sample) + offset) for offset in offsets]
    if words.count(id(array)) == 1 == words.count(id(None)):
        boxes = Boxes(*[offsets[words.index(id(thing))] for thing in (array, None)])
        llvmlite.binding.add_symbol(f"{PREFIX}box", id(cls))
