"""Fields of Python objects, read and written in compiled code.

An object is known in compiled code by its address, an integer; 0 is none.
"""

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.extending import NativeValue, box, intrinsic, models, register_model, unbox

from tinygrad_cg_kernels.runtime import objects
from tinygrad_cg_kernels.runtime.intrinsics import emitted


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


@emitted(OBJECT(types.intp))
def as_object(context, builder, start):
    """Return the object at an address, to be returned: the caller gets our reference to it."""
    return builder.inttoptr(start, context.get_value_type(OBJECT))


@emitted(OBJECT())
def nothing(context, builder):
    return context.get_python_api(builder).make_none()


@emitted(types.intp(types.intp))
def incref(context, builder, start):
    """Count one more reference to the object at an address, which is returned."""
    api = context.get_python_api(builder)
    api.incref(builder.inttoptr(start, api.pyobj))
    return start


@emitted(types.void(types.intp))
def decref(context, builder, start):
    """Count one reference less."""
    api = context.get_python_api(builder)
    api.decref(builder.inttoptr(start, api.pyobj))


def peek(kind: types.Type, result: types.Type) -> Callable:
    """Return what reads a field of an object: at an address and an offset from it."""

    @emitted(result(types.intp, types.intp))
    def read(context, builder, start, offset):
        source = context.get_value_type(kind)
        where = builder.inttoptr(builder.add(start, offset), source.as_pointer())
        return context.cast(builder, builder.load(where), kind, result)

    return read


word = peek(types.intp, types.intp)
"""A field of an object, or 0-terminated: the integer at an address and an offset from it."""
half = peek(types.int32, types.intp)
double = peek(types.float64, types.float64)


@emitted(types.void(types.intp, types.intp, types.intp))
def store(context, builder, start, offset, value):
    """Write a field of an object."""
    builder.store(value, builder.inttoptr(builder.add(start, offset), value.type.as_pointer()))


def symbol(context, builder, name: str):
    """Return the address of a registered object."""
    known = builder.module.globals.get(objects.PREFIX + name)
    if known is None:
        known = ir.GlobalVariable(builder.module, ir.IntType(8), objects.PREFIX + name)
    return builder.ptrtoint(known, context.get_value_type(types.intp))


@intrinsic
def dtype_address(typingctx, dtype):
    """Return the address of NumPy's object for a dtype."""
    from numba.np import numpy_support

    name = f"dtype_{numpy_support.as_dtype(dtype.dtype).name}"

    def generate(context, builder, signature, arguments):
        return symbol(context, builder, name)

    return types.intp(dtype), generate
