"""Calls that compiled code makes of Python, of NumPy and of `prepare`, by their symbols."""

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils

from tinygrad_cg_kernels.runtime import objects
from tinygrad_cg_kernels.runtime.intrinsics import emitted
from tinygrad_cg_kernels.runtime.objects import KIND, PREFIX
from tinygrad_cg_kernels.runtime.objects.fields import symbol
from tinygrad_cg_kernels.runtime.views import declare


def _symbol_address(name: str) -> Callable:
    @emitted(types.intp())
    def symbol_address(context, builder):
        return symbol(context, builder, name)

    SYMBOLS[symbol_address] = name
    return symbol_address


SYMBOLS: dict[Any, str] = {}
"""The names of registered objects, by the functions of compiled code that return their addresses.
"""


array_kind, box_kind, float_kind, int_kind = map(_symbol_address, ("array", "box", "float", "int"))
none = _symbol_address("none")


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


WORDS = 8
RESULT, LINE, X, Y, Z, SIZE, ONE, NUMBER = range(0, 8 * WORDS, 8)


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
