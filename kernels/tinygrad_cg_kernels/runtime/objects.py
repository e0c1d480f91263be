"""Python objects in compiled code: arrays as they lie in memory, and boxes that hold one.

Unboxing an array, as Numba does it, and making one from Python cost more than the work on a few
elements. Kernels for these take the objects themselves: they look at an operand's fields, and
make the result through NumPy's C interface. Fields lie where a look at samples finds them; where
that fails (`supported`), as on an interpreter without its lock, there are no such kernels.

An object is known in compiled code by its address, an integer; 0 is none.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, box, intrinsic, models, register_model, unbox

from tinygrad_cg_kernels.runtime.arrays import declare
from tinygrad_cg_kernels.runtime.compile import block_address, jitable

KIND = object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
DATA, NDIM, SHAPE, DTYPE, FLAGS = (KIND + 8 * place for place in (1, 2, 3, 6, 7))
VALUE = KIND + 8  # of a float
LENGTH, ITEMS = KIND + 8, tuple.__basicsize__
PLAIN = 0x101
"""The flags of an array that is C-contiguous and aligned."""
ALIGNED, WRITEABLE = 0x100, 0x400
DOUBLE, SINGLE = (float(np.finfo(dtype).max) for dtype in (np.float64, np.float32))
_NEW_ARRAY = 94  # PyArray_NewFromDescr in NumPy's table of functions, which never changes


_DTYPES = ["bool", "float32", "float64", "complex64", "complex128"]
_DTYPES += [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)]


def _word(address: int) -> int:
    return ctypes.c_ssize_t.from_address(address).value


def _as_expected() -> bool:
    """Whether arrays, floats and integers lie in memory as this module takes them to."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    sample, number = np.zeros((3, 5), np.float32)[:, ::2], 1.5
    place = id(sample)
    fields = [_word(place + KIND), _word(place + DATA), _word(place + DTYPE)]
    group = (sample, number)
    items = [_word(id(group) + offset) for offset in (LENGTH, ITEMS, ITEMS + 8)]
    shape = [_word(_word(place + SHAPE) + 8 * axis) for axis in range(2)]
    counts = [ctypes.c_int.from_address(place + offset).value for offset in (NDIM, FLAGS)]
    return (
        fields == [id(np.ndarray), sample.ctypes.data, id(sample.dtype)]
        and items == [2, id(sample), id(number)]
        and shape == [3, 3]
        and counts == [2, sample.flags.num]
        and ctypes.c_double.from_address(id(number) + VALUE).value == number
    )


def _new_array() -> int:
    """The address of NumPy's function that makes an array."""
    table = np._core.multiarray._ARRAY_API  # type: ignore[attr-defined]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    functions: Any = pointer(table, None)
    return _word(functions + 8 * _NEW_ARRAY)


class Boxes(NamedTuple):
    """Where objects of the class of boxes keep their array, and what else refers to None."""

    array: int
    empty: int


class _NoBox:
    """Stands for the class of boxes while there is none."""


def _announce() -> bool:
    """Tell compiled code where things are; False where they are not as it takes them to be."""
    try:
        if not _as_expected():
            return False
        known: dict[str, Any] = {"array": np.ndarray, "float": float, "int": int, "none": None}
        known["box"] = _NoBox
        known |= {f"dtype_{name}": np.dtype(name) for name in _DTYPES}
        places = {name: id(thing) for name, thing in known.items()}
        places["new_array"] = _new_array()
        places["new_box"] = _address(ctypes.pythonapi.PyType_GenericAlloc)
        places["integer"] = _address(ctypes.pythonapi.PyLong_AsLongLongAndOverflow)
    except (AttributeError, ValueError):
        return False
    for name, place in places.items():
        llvmlite.binding.add_symbol(PREFIX + name, place)
    return True


def _address(function: Any) -> int:
    return _word(ctypes.addressof(function))


PREFIX = "tinygrad_cg_"
supported = _announce()
boxes = Boxes(0, 0)


def data_address(array: np.ndarray) -> int:
    """Where the elements of an array begin: `array.ctypes.data`, in a third of its time."""
    if supported:
        return ctypes.c_ssize_t.from_address(id(array) + DATA).value
    return array.ctypes.data


def register(cls: type, sample: Any, array: np.ndarray) -> None:
    """Make `cls` the class of boxes, of which `sample` holds `array` and otherwise None."""
    global boxes
    if not supported:
        return
    offsets = range(KIND + 8, cls.__basicsize__, 8)
    words = [_word(id(sample) + offset) for offset in offsets]
    if words.count(id(array)) == 1 == words.count(id(None)):
        boxes = Boxes(*[offsets[words.index(id(one))] for one in (array, None)])
        llvmlite.binding.add_symbol(f"{PREFIX}box", id(cls))


# --- the types and instructions ---------------------------------------------------------


class _Object(types.Type):
    def __init__(self) -> None:
        super().__init__("python_object")


OBJECT = _Object()
register_model(_Object)(models.OpaqueModel)


@unbox(_Object)
def _take(typ, obj, c):
    return NativeValue(obj)


@box(_Object)
def _give(typ, value, c):
    return value


@intrinsic
def address_of(typingctx, thing):
    """Where an object lies."""

    def generate(context, builder, signature, arguments):
        return builder.ptrtoint(arguments[0], context.get_value_type(types.intp))

    return types.intp(thing), generate


@intrinsic
def as_object(typingctx, place):
    """The object at an address, to be returned: the caller gets our reference to it."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(OBJECT))

    return OBJECT(types.intp), generate


@intrinsic
def nothing(typingctx):
    """None, to be returned."""

    def generate(context, builder, signature, arguments):
        return context.get_python_api(builder).make_none()

    return OBJECT(), generate


@intrinsic
def counted(typingctx, place):
    """Count one more reference to the object at an address, which is returned."""

    def generate(context, builder, signature, arguments):
        api = context.get_python_api(builder)
        api.incref(builder.inttoptr(arguments[0], api.pyobj))
        return arguments[0]

    return types.intp(types.intp), generate


@intrinsic
def dropped(typingctx, place):
    """Count one reference less."""

    def generate(context, builder, signature, arguments):
        api = context.get_python_api(builder)
        api.decref(builder.inttoptr(arguments[0], api.pyobj))
        return context.get_dummy_value()

    return types.void(types.intp), generate


def _peek(kind: types.Type, result: types.Type) -> Callable:
    @intrinsic
    def peek(typingctx, place, offset):
        def generate(context, builder, signature, arguments):
            source = context.get_value_type(kind)
            where = builder.inttoptr(builder.add(*arguments), source.as_pointer())
            return context.cast(builder, builder.load(where), kind, result)

        return result(types.intp, types.intp), generate

    return peek


word = _peek(types.intp, types.intp)
"""A field of an object, or 0-terminated: the integer at an address and an offset from it."""
half = _peek(types.int32, types.intp)
double = _peek(types.float64, types.float64)


@intrinsic
def store_word(typingctx, place, offset, value):
    """Write a field of an object."""

    def generate(context, builder, signature, arguments):
        kind = context.get_value_type(types.intp)
        where = builder.inttoptr(builder.add(*arguments[:2]), kind.as_pointer())
        builder.store(arguments[2], where)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.intp), generate


def _symbol(context, builder, name: str):
    known = builder.module.globals.get(PREFIX + name)
    if known is None:
        known = ir.GlobalVariable(builder.module, ir.IntType(8), PREFIX + name)
    return builder.ptrtoint(known, context.get_value_type(types.intp))


def _place(name: str) -> Callable:
    """What gives the address of something that was announced."""

    @intrinsic
    def place(typingctx):
        def generate(context, builder, signature, arguments):
            return _symbol(context, builder, name)

        return types.intp(), generate

    return place


@intrinsic
def dtype_place(typingctx, dtype):
    """The address of NumPy's object for a dtype."""
    from numba.np import numpy_support

    name = f"dtype_{numpy_support.as_dtype(dtype.dtype).name}"

    def generate(context, builder, signature, arguments):
        return _symbol(context, builder, name)

    return types.intp(dtype), generate


array_kind, box_kind, float_kind, int_kind = map(_place, ("array", "box", "float", "int"))
none = _place("none")


@intrinsic
def put_number(typingctx, place, value, width):
    """Write a number as a float of 8 bytes, or of 4."""

    def generate(context, builder, signature, arguments):
        place, value, width = arguments
        for kind, size in ((ir.DoubleType(), 8), (ir.FloatType(), 4)):
            with builder.if_then(builder.icmp_signed("==", width, width.type(size))):
                stored = value if size == 8 else builder.fptrunc(value, kind)
                builder.store(stored, builder.inttoptr(place, kind.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.intp, types.float64, types.intp), generate


def _declared(builder, name: str, result, *arguments):
    return declare(builder, PREFIX + name, result, *arguments)


@intrinsic
def new_array(typingctx, model, ndim, dtype):
    """A new array of the first sizes of another, uninitialised; 0 if there is no memory for it."""

    def generate(context, builder, signature, arguments):
        api = context.get_python_api(builder)
        whole, count, pointer = ir.IntType(64), ir.IntType(32), api.pyobj
        kinds = (pointer, pointer, count, pointer, pointer, pointer, count, pointer)
        function = _declared(builder, "new_array", pointer, *kinds)
        model, ndim, dtype = arguments

        def field(offset):
            where = builder.inttoptr(builder.add(model, whole(offset)), whole.as_pointer())
            return builder.inttoptr(builder.load(where), pointer)

        descriptor = builder.inttoptr(dtype, pointer)
        api.incref(descriptor)  # the function takes it
        null, axes = ir.Constant(pointer, None), builder.trunc(ndim, count)
        rest = [axes, field(SHAPE), null, null, count(0), null]
        made = builder.call(function, [field(KIND), descriptor, *rest])
        return builder.ptrtoint(made, whole)

    return types.intp(types.intp, types.intp, types.intp), generate


@intrinsic
def new_box(typingctx, kind):
    """A new box, all fields 0; 0 if there is no memory for it."""

    def generate(context, builder, signature, arguments):
        api = context.get_python_api(builder)
        whole = ir.IntType(64)
        function = _declared(builder, "new_box", api.pyobj, api.pyobj, whole)
        made = builder.call(function, [builder.inttoptr(arguments[0], api.pyobj), whole(0)])
        return builder.ptrtoint(made, whole)

    return types.intp(types.intp), generate


@intrinsic
def integer_value(typingctx, place):
    """The value of an exact int; -2**63 for one that is too large."""

    def generate(context, builder, signature, arguments):
        api = context.get_python_api(builder)
        whole, count = ir.IntType(64), ir.IntType(32)
        function = _declared(builder, "integer", whole, api.pyobj, count.as_pointer())
        overflow = cgutils.alloca_once(builder, count)
        value = builder.call(function, [builder.inttoptr(arguments[0], api.pyobj), overflow])
        fits = builder.icmp_signed("==", builder.load(overflow), count(0))
        return builder.select(fits, value, whole(-(2**63)))

    return types.intp(types.intp), generate


# --- what kernels are made of -----------------------------------------------------------


@jitable
def held(thing, slot):
    """The array that an operand is, or holds; 0 if it is neither array nor box."""
    kind = word(thing, KIND)
    if kind == array_kind():
        return thing
    if kind == box_kind():
        inside = word(thing, slot)
        if inside != 0 and word(inside, KIND) == array_kind():
            return inside
    return 0


@jitable
def tuple_size(group):
    """How many items a tuple has."""
    return word(group, LENGTH)


@jitable
def tuple_item(group, k):
    """The address of an item of a tuple."""
    return word(group, ITEMS + 8 * k)


@jitable
def is_plain(array, dtype):
    """Whether an array is C-contiguous and aligned, and of this dtype."""
    return word(array, DTYPE) == dtype and (half(array, FLAGS) & PLAIN) == PLAIN


@jitable
def count(array):
    """How many elements an array has."""
    size, shape = 1, word(array, SHAPE)
    for axis in range(half(array, NDIM)):
        size *= word(shape, 8 * axis)
    return size


@jitable
def same_shape(x, y):
    """Whether two arrays have one shape."""
    ndim = half(x, NDIM)
    if half(y, NDIM) != ndim:
        return False
    first, second = word(x, SHAPE), word(y, SHAPE)
    for axis in range(ndim):  # noqa: SIM110 (Numba has no all)
        if word(first, 8 * axis) != word(second, 8 * axis):
            return False
    return True


@jitable
def number(thing, width):
    """A Python number that floats of a width hold: whether it is one, and its value."""
    most, whole = (DOUBLE, 2**53) if width == 8 else (SINGLE, 2**24)
    kind = word(thing, KIND)
    if kind == float_kind():
        value = double(thing, VALUE)
        return abs(value) <= most, value
    if kind == int_kind():
        exact = integer_value(thing)
        return -whole <= exact <= whole, float(exact)
    return False, 0.0


# --- operands, looked at -----------------------------------------------------------------
# One compiled function does this for all kernels, which know it by its address: they would
# take three times as long to compile with it inside.

WORDS = 8
RESULT, LINE, X, Y, Z, SIZE, ONE, NUMBER = range(0, 8 * WORDS, 8)


def _preparing(slot: int, empty: int, most: int) -> Callable:
    def prepare(x, y, z, dtype_x, dtype_y, dtype_z, target, width, total, info):
        """Look at up to three operands and make the result: 1; 0 where they are not for a
        direct kernel, -1 where memory is short. What else is to be known is written to `info`:
        the result, the addresses of its elements and of the operands', how many there are, and
        which operand is one value (1, 2; 0 for none).

        `width` is that of the floats beside which Python's numbers may stand, or 0. With `total`
        the result has no axes.
        """
        place, one, value = info, 0, 0.0
        a = held(x, slot)
        b = held(y, slot) if y != 0 else 0
        c = held(z, slot) if z != 0 else 0
        if (a != 0 and not is_plain(a, dtype_x)) or (b != 0 and not is_plain(b, dtype_y)):
            return 0
        if z != 0:
            if a == 0 or b == 0 or c == 0 or not is_plain(c, dtype_z):
                return 0
            if not (same_shape(a, b) and same_shape(b, c)):
                return 0
        elif y == 0:
            if a == 0:
                return 0
        elif a == 0 or b == 0:
            if a == b or width == 0:
                return 0
            fits, value = number(y if b == 0 else x, width)
            if not fits:
                return 0
            put_number(place + NUMBER, value, width)
            one = 1 if a == 0 else 2
        elif not same_shape(a, b):
            if half(a, NDIM) != 0 and half(b, NDIM) != 0:
                return 0
            one = 1 if half(a, NDIM) == 0 else 2
        model = b if one == 1 else a
        size = count(model)
        if size > most or (total != 0 and size == 0):
            return 0
        out = new_array(model, half(model, NDIM) if total == 0 else 0, target)
        if out == 0:
            return -1
        result = out
        if (a != 0 and a != x) or (b != 0 and b != y) or (c != 0 and c != z):
            result = new_box(box_kind())
            if result == 0:
                dropped(out)
                return -1
            store_word(result, slot, out)
            store_word(result, empty, counted(none()))
        store_word(place, RESULT, result)
        store_word(place, LINE, word(out, DATA))
        store_word(place, X, word(a, DATA) if a != 0 else place + NUMBER)
        store_word(place, Y, word(b, DATA) if b != 0 else place + NUMBER)
        store_word(place, Z, word(c, DATA) if c != 0 else 0)
        store_word(place, SIZE, size)
        store_word(place, ONE, one)
        return 1

    return prepare


def _preparing_in_place(most: int) -> Callable:
    def prepare_in_place(x, y, dtype_x, dtype_y, itemsize, info):
        """Look at an operand that is the output and another one: 1; 0 where they are not for it.

        Where their elements lie, how many there are, and whether the other is one value, is written
        to `info` as `prepare` writes it.
        """
        if word(x, KIND) != array_kind() or word(y, KIND) != array_kind():
            return 0
        if not is_plain(x, dtype_x) or not is_plain(y, dtype_y):
            return 0
        size, one = count(x), half(y, NDIM) == 0 and half(x, NDIM) != 0
        if not half(x, FLAGS) & WRITEABLE or size > most or not (one or same_shape(x, y)):
            return 0
        first, second = word(x, DATA), word(y, DATA)
        if first < second + (1 if one else size) * itemsize and second < first + size * itemsize:
            return 0
        store_word(info, X, first)
        store_word(info, Y, second)
        store_word(info, SIZE, size)
        store_word(info, ONE, 2 if one else 0)
        return 1

    return prepare_in_place


class Prepared(NamedTuple):
    """What `prepare` says of operands; see there."""

    status: int
    result: int
    line: int
    x: int
    y: int
    z: int
    size: int
    one: int


@intrinsic
def prepared(typingctx, x, y, z, dtype_x, dtype_y, dtype_z, target, width, total):
    """Call `prepare`, for what it says."""

    return PREPARED(*[types.intp] * 9), _call_to_prepare("prepare")


@intrinsic
def prepared_in_place(typingctx, x, y, dtype_x, dtype_y, itemsize):
    """Call `prepare_in_place`, for what it says."""
    return PREPARED(*[types.intp] * 5), _call_to_prepare("prepare_in_place")


PREPARED = types.NamedUniTuple(types.intp, WORDS, Prepared)


def _call_to_prepare(name: str) -> Callable:
    def generate(context, builder, signature, arguments):
        whole = context.get_value_type(types.intp)
        function = _declared(builder, name, whole, *[whole] * (len(arguments) + 1))
        info = cgutils.alloca_once(builder, whole, size=WORDS)
        status = builder.call(function, [*arguments, builder.ptrtoint(info, whole)])
        words = [builder.load(builder.gep(info, [whole(k)])) for k in range(WORDS - 1)]
        return context.make_tuple(builder, signature.return_type, [status, *words])

    return generate


_prepared: dict[str, Any] = {}


def ready(most: int, in_place: bool = False) -> bool:
    """Compile what direct kernels call; False if there are none here. They do `most` elements."""
    name = "prepare_in_place" if in_place else "prepare"
    if supported and name not in _prepared:
        made = _preparing_in_place(most) if in_place else _preparing(*boxes, most)
        signature = types.intp(*[types.intp] * (6 if in_place else 10))
        owned = block_address(made, name, True, signature)
        llvmlite.binding.add_symbol(PREFIX + name, owned[0])
        _prepared[name] = owned
    return supported
