"""Fields of Python objects, read and written in compiled code.

An object is known in compiled code by its address, an integer; 0 is none.
"""

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import NativeValue, box, intrinsic, models, register_model, unbox

from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.objects import (
    CONTIGUOUS,
    DOUBLE,
    DTYPE,
    FLAGS,
    ITEMS,
    KIND,
    LENGTH,
    NDIM,
    PREFIX,
    SHAPE,
    SINGLE,
    VALUE,
)
from tinygrad_cg_kernels.runtime.views import declare


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
    """Return the address of an object."""

    def generate(context, builder, signature, arguments):
        return builder.ptrtoint(arguments[0], context.get_value_type(types.intp))

    return types.intp(thing), generate


@intrinsic
def as_object(typingctx, start):
    """Return the object at an address, to be returned: the caller gets our reference to it."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(OBJECT))

    return OBJECT(types.intp), generate


@intrinsic
def nothing(typingctx):
    """Return None."""

    def generate(context, builder, signature, arguments):
        return context.get_python_api(builder).make_none()

    return OBJECT(), generate


@intrinsic
def incref(typingctx, start):
    """Count one more reference to the object at an address, which is returned."""

    def generate(context, builder, signature, arguments):
        api = context.get_python_api(builder)
        api.incref(builder.inttoptr(arguments[0], api.pyobj))
        return arguments[0]

    return types.intp(types.intp), generate


@intrinsic
def decref(typingctx, start):
    """Count one reference less."""

    def generate(context, builder, signature, arguments):
        api = context.get_python_api(builder)
        api.decref(builder.inttoptr(arguments[0], api.pyobj))
        return context.get_dummy_value()

    return types.void(types.intp), generate


def _peek(kind: types.Type, result: types.Type) -> Callable:
    @intrinsic
    def peek(typingctx, start, offset):
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
def store_word(typingctx, start, offset, value):
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


def _symbol_address(name: str) -> Callable:
    """Return an intrinsic that gives the address of a registered object."""

    @intrinsic
    def symbol_address(typingctx):
        def generate(context, builder, signature, arguments):
            return _symbol(context, builder, name)

        return types.intp(), generate

    return symbol_address


@intrinsic
def dtype_address(typingctx, dtype):
    """Return the address of NumPy's object for a dtype."""
    from numba.np import numpy_support

    name = f"dtype_{numpy_support.as_dtype(dtype.dtype).name}"

    def generate(context, builder, signature, arguments):
        return _symbol(context, builder, name)

    return types.intp(dtype), generate


array_kind, box_kind, float_kind, int_kind = map(_symbol_address, ("array", "box", "float", "int"))
none = _symbol_address("none")


@intrinsic
def put_number(typingctx, start, value, width):
    """Write a number as a float of 8 bytes, or of 4."""

    def generate(context, builder, signature, arguments):
        start, value, width = arguments
        for kind, size in ((ir.DoubleType(), 8), (ir.FloatType(), 4)):
            with builder.if_then(builder.icmp_signed("==", width, width.type(size))):
                stored = value if size == 8 else builder.fptrunc(value, kind)
                builder.store(stored, builder.inttoptr(start, kind.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.intp, types.float64, types.intp), generate


def declare_function(builder, name: str, result, *arguments):
    return declare(builder, PREFIX + name, result, *arguments)


@intrinsic
def new_array(typingctx, model, ndim, dtype):
    """Return a new array of the first sizes of another, uninitialised; 0 if there is no memory
    for it.
    """

    def generate(context, builder, signature, arguments):
        api = context.get_python_api(builder)
        word_type, count, pointer = ir.IntType(64), ir.IntType(32), api.pyobj
        kinds = (pointer, pointer, count, pointer, pointer, pointer, count, pointer)
        function = declare_function(builder, "new_array", pointer, *kinds)
        model, ndim, dtype = arguments

        def field(offset):
            where = builder.inttoptr(builder.add(model, word_type(offset)), word_type.as_pointer())
            return builder.inttoptr(builder.load(where), pointer)

        descriptor = builder.inttoptr(dtype, pointer)
        api.incref(descriptor)  # the function takes it
        null, axes = ir.Constant(pointer, None), builder.trunc(ndim, count)
        rest = [axes, field(SHAPE), null, null, count(0), null]
        made = builder.call(function, [field(KIND), descriptor, *rest])
        return builder.ptrtoint(made, word_type)

    return types.intp(types.intp, types.intp, types.intp), generate


@intrinsic
def new_box(typingctx, kind):
    """Return a new box, all fields 0; 0 if there is no memory for it."""

    def generate(context, builder, signature, arguments):
        api = context.get_python_api(builder)
        word_type = ir.IntType(64)
        function = declare_function(builder, "new_box", api.pyobj, api.pyobj, word_type)
        made = builder.call(function, [builder.inttoptr(arguments[0], api.pyobj), word_type(0)])
        return builder.ptrtoint(made, word_type)

    return types.intp(types.intp), generate


@intrinsic
def integer_value(typingctx, start):
    """Return the value of an exact int; -2**63 for one that is too large."""

    def generate(context, builder, signature, arguments):
        api = context.get_python_api(builder)
        word_type, count = ir.IntType(64), ir.IntType(32)
        function = declare_function(builder, "integer", word_type, api.pyobj, count.as_pointer())
        overflow = cgutils.alloca_once(builder, count)
        value = builder.call(function, [builder.inttoptr(arguments[0], api.pyobj), overflow])
        fits = builder.icmp_signed("==", builder.load(overflow), count(0))
        return builder.select(fits, value, word_type(-(2**63)))

    return types.intp(types.intp), generate


# --- what kernels are made of -----------------------------------------------------------


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
def tuple_size(group):
    """Return how many items a tuple has."""
    return word(group, LENGTH)


@jitable
def tuple_item(group, k):
    """Return the address of an item of a tuple."""
    return word(group, ITEMS + 8 * k)


@jitable
def is_contiguous(array, dtype):
    """Return whether an array is C-contiguous and aligned, and of this dtype."""
    return word(array, DTYPE) == dtype and (half(array, FLAGS) & CONTIGUOUS) == CONTIGUOUS


@jitable
def count(array):
    """Return the number of elements of an array."""
    size, shape = 1, word(array, SHAPE)
    for axis in range(half(array, NDIM)):
        size *= word(shape, 8 * axis)
    return size


@jitable
def same_shape(x, y):
    """Return whether two arrays have one shape."""
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
    """Return whether an object is a Python number that floats of a width can represent, and its
    value.
    """
    most, largest = (DOUBLE, 2**53) if width == 8 else (SINGLE, 2**24)
    kind = word(thing, KIND)
    if kind == float_kind():
        value = double(thing, VALUE)
        return abs(value) <= most, value
    if kind == int_kind():
        exact = integer_value(thing)
        return -largest <= exact <= largest, float(exact)
    return False, 0.0
