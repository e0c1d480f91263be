"""Operands of kernels that take objects: looked at, and the result made.

One compiled function does this for all kernels, which know it by its address: they would take three
times as long to compile with it inside.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding
from llvmlite import ir
from numba import types
from numba.core import cgutils

from tinygrad_cg_kernels.runtime import objects
from tinygrad_cg_kernels.runtime.compile import block_address, jitable
from tinygrad_cg_kernels.runtime.intrinsics import emitted
from tinygrad_cg_kernels.runtime.objects import DATA, FLAGS, KIND, NDIM, PREFIX, WRITEABLE
from tinygrad_cg_kernels.runtime.objects.fields import decref, incref, peek, store, symbol, word
from tinygrad_cg_kernels.runtime.views import declare


def _symbol_address(name: str) -> Callable:
    @emitted(types.intp())
    def symbol_address(context, builder):
        return symbol(context, builder, name)

    return symbol_address


array_kind, box_kind, float_kind, int_kind = map(_symbol_address, ("array", "box", "float", "int"))
none = _symbol_address("none")
half = peek(types.int32, types.intp)
double = peek(types.float64, types.float64)


@emitted(types.void(types.intp, types.float64, types.intp))
def put_number(context, builder, start, value, width):
    """Write a number as a float of 8 bytes, or of 4."""
    for kind, size in ((ir.DoubleType(), 8), (ir.FloatType(), 4)):
        with builder.if_then(builder.icmp_signed("==", width, width.type(size))):
            stored = value if size == 8 else builder.fptrunc(value, kind)
            builder.store(stored, builder.inttoptr(start, kind.as_pointer()))


@emitted(types.intp(types.intp, types.intp, types.intp))
def new_array(context, builder, model, ndim, dtype):
    """Return a new array of the first sizes of another, uninitialised; 0 if memory is short."""
    api = context.get_python_api(builder)
    word_type, count, pointer = ir.IntType(64), ir.IntType(32), api.pyobj
    kinds = (pointer, pointer, count, pointer, pointer, pointer, count, pointer)
    function = declare(builder, f"{PREFIX}new_array", pointer, *kinds)

    def field(offset):
        where = builder.inttoptr(builder.add(model, word_type(offset)), word_type.as_pointer())
        return builder.inttoptr(builder.load(where), pointer)

    descriptor = builder.inttoptr(dtype, pointer)
    api.incref(descriptor)  # the function takes it
    null, axes = ir.Constant(pointer, None), builder.trunc(ndim, count)
    rest = [axes, field(objects.SHAPE), null, null, count(0), null]
    made = builder.call(function, [field(KIND), descriptor, *rest])
    return builder.ptrtoint(made, word_type)


@emitted(types.intp(types.intp))
def new_box(context, builder, kind):
    """Return a new box, all fields 0; 0 if there is no memory for it."""
    api = context.get_python_api(builder)
    word_type = ir.IntType(64)
    function = declare(builder, f"{PREFIX}new_box", api.pyobj, api.pyobj, word_type)
    made = builder.call(function, [builder.inttoptr(kind, api.pyobj), word_type(0)])
    return builder.ptrtoint(made, word_type)


@emitted(types.intp(types.intp))
def integer_value(context, builder, start):
    """Return the value of an exact int; -2**63 for one that is too large."""
    api = context.get_python_api(builder)
    word_type, count = ir.IntType(64), ir.IntType(32)
    function = declare(builder, f"{PREFIX}integer", word_type, api.pyobj, count.as_pointer())
    overflow = cgutils.alloca_once(builder, count)
    value = builder.call(function, [builder.inttoptr(start, api.pyobj), overflow])
    fits = builder.icmp_signed("==", builder.load(overflow), count(0))
    return builder.select(fits, value, word_type(-(2**63)))


@jitable
def array_of(thing, slot):
    """Return the array of an operand, which is an array or a box; 0 if it is neither."""
    kind = word(thing, KIND)
    if kind == array_kind():
        return thing
    if kind == box_kind():
        inside = word(thing, slot)
        if inside != 0 and word(inside, KIND) == array_kind():
            return inside
    return 0


@jitable
def is_contiguous(array, dtype):
    """Return whether an array is C-contiguous and aligned, and of this dtype."""
    flags = half(array, FLAGS) & objects.CONTIGUOUS
    return word(array, objects.DTYPE) == dtype and flags == objects.CONTIGUOUS


@jitable
def count(array):
    """Return the number of elements of an array."""
    size, shape = 1, word(array, objects.SHAPE)
    for axis in range(half(array, NDIM)):
        size *= word(shape, 8 * axis)
    return size


@jitable
def same_shape(x, y):
    """Return whether two arrays have one shape."""
    ndim = half(x, NDIM)
    if half(y, NDIM) != ndim:
        return False
    first, second = word(x, objects.SHAPE), word(y, objects.SHAPE)
    for axis in range(ndim):  # noqa: SIM110 (Numba has no all)
        if word(first, 8 * axis) != word(second, 8 * axis):
            return False
    return True


@jitable
def number(thing, width):
    """Return whether an object is a number that floats of a width represent, and its value."""
    most, largest = (objects.DOUBLE, 2**53) if width == 8 else (objects.SINGLE, 2**24)
    kind = word(thing, KIND)
    if kind == float_kind():
        value = double(thing, objects.VALUE)
        return abs(value) <= most, value
    if kind == int_kind():
        exact = integer_value(thing)
        return -largest <= exact <= largest, float(exact)
    return False, 0.0


WORDS = 8
RESULT, LINE, X, Y, Z, SIZE, ONE, NUMBER = range(0, 8 * WORDS, 8)


def _make_prepare(slot: int, empty: int, most: int) -> Callable:
    def prepare(x, y, z, dtype_x, dtype_y, dtype_z, target, width, total, info):
        """Look at up to three operands and make the result: 1; 0 where they are not for a
        small kernel, -1 where memory is short. The rest is written to `info`:
        the result, the addresses of its elements and of the operands', how many there are, and
        which operand is one value (1, 2; 0 for none).

        `width` is that of the floats with which Python's numbers may be combined, or 0. With
        `total` the result has no axes.
        """
        table, one, value = info, 0, 0.0
        a = array_of(x, slot)
        b = array_of(y, slot) if y != 0 else 0
        c = array_of(z, slot) if z != 0 else 0
        if (a != 0 and not is_contiguous(a, dtype_x)) or (b != 0 and not is_contiguous(b, dtype_y)):
            return 0
        if z != 0:
            if a == 0 or b == 0 or c == 0 or not is_contiguous(c, dtype_z):
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
            put_number(table + NUMBER, value, width)
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
                decref(out)
                return -1
            store(result, slot, out)
            store(result, empty, incref(none()))
        store(table, RESULT, result)
        store(table, LINE, word(out, DATA))
        store(table, X, word(a, DATA) if a != 0 else table + NUMBER)
        store(table, Y, word(b, DATA) if b != 0 else table + NUMBER)
        store(table, Z, word(c, DATA) if c != 0 else 0)
        store(table, SIZE, size)
        store(table, ONE, one)
        return 1

    return prepare


def _make_prepare_in_place(most: int) -> Callable:
    def prepare_in_place(x, y, dtype_x, dtype_y, itemsize, info):
        """Look at an operand that is the output and another one: 1; 0 where they are not for it.

        Where their elements lie, how many there are, and whether the other is one value, is written
        to `info` as `prepare` writes it.
        """
        if word(x, KIND) != array_kind() or word(y, KIND) != array_kind():
            return 0
        if not is_contiguous(x, dtype_x) or not is_contiguous(y, dtype_y):
            return 0
        size, one = count(x), half(y, NDIM) == 0 and half(x, NDIM) != 0
        if not half(x, FLAGS) & WRITEABLE or size > most or not (one or same_shape(x, y)):
            return 0
        first, second = word(x, DATA), word(y, DATA)
        if first < second + (1 if one else size) * itemsize and second < first + size * itemsize:
            return 0
        store(info, X, first)
        store(info, Y, second)
        store(info, SIZE, size)
        store(info, ONE, 2 if one else 0)
        return 1

    return prepare_in_place


class Prepared(NamedTuple):
    """The results of `prepare`; see there."""

    status: int
    result: int
    line: int
    x: int
    y: int
    z: int
    size: int
    one: int


PREPARED = types.NamedUniTuple(types.intp, WORDS, Prepared)


def _call(context: Any, builder: Any, name: str, *arguments: Any) -> Any:
    word_type = context.get_value_type(types.intp)
    function = declare(builder, PREFIX + name, word_type, *[word_type] * (len(arguments) + 1))
    info = cgutils.alloca_once(builder, word_type, size=WORDS)
    status = builder.call(function, [*arguments, builder.ptrtoint(info, word_type)])
    words = [builder.load(builder.gep(info, [word_type(k)])) for k in range(WORDS - 1)]
    return context.make_tuple(builder, PREPARED, [status, *words])


@emitted(PREPARED(*[types.intp] * 9))
def call_prepare(context, builder, x, y, z, dtype_x, dtype_y, dtype_z, target, width, total):
    """Call `prepare` and return its results."""
    operands = x, y, z, dtype_x, dtype_y, dtype_z
    return _call(context, builder, "prepare", *operands, target, width, total)


@emitted(PREPARED(*[types.intp] * 5))
def call_prepare_in_place(context, builder, x, y, dtype_x, dtype_y, itemsize):
    """Call `prepare_in_place`, for what it says."""
    return _call(context, builder, "prepare_in_place", x, y, dtype_x, dtype_y, itemsize)


_prepared: dict[str, Any] = {}


def ready(most: int, in_place: bool = False) -> bool:
    """Compile what small kernels call; False if there are none here. They do `most` elements."""
    name = "prepare_in_place" if in_place else "prepare"
    if objects.supported and name not in _prepared:
        made = _make_prepare_in_place(most) if in_place else _make_prepare(*objects.boxes, most)
        signature = types.intp(*[types.intp] * (6 if in_place else 10))
        owned = block_address(made, name, True, signature)
        llvmlite.binding.add_symbol(PREFIX + name, owned[0])
        _prepared[name] = owned
    return objects.supported
