"""Memory as arrays in compiled code: the one set of views at addresses.

Kernels know memory by its address, an integer. None of these views checks bounds or keeps memory
alive: slicing does the latter by counting references, which costs more than the work on a short
row.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import emitted


def make_array(kind: types.Array):
    """Return Numba's builder of arrays, imported late: that takes a tenth of our start."""
    from numba.np import arrayobj

    return arrayobj.make_array(kind)


def populate_array(*arguments: Any) -> None:
    from numba.np import arrayobj

    arrayobj.populate_array(*arguments)


def row_at(context: Any, builder: Any, kind: types.Array, address: Any, count: Any) -> Any:
    """Return the array of `count` contiguous elements at an address."""
    view = make_array(kind)(context, builder)
    data = builder.inttoptr(address, view.data.type)
    itemsize = context.get_constant(types.intp, context.get_abi_sizeof(data.type.pointee))
    populate_array(view, data, [count], [itemsize], itemsize, None)
    return view._getvalue()


def _data(context: Any, builder: Any, kind: types.Array, array: Any) -> Any:
    return make_array(kind)(context, builder, array).data


@intrinsic
def vector(typingctx, address, count, dtype):
    """Return the array of `count` elements at an address."""
    result = types.Array(dtype.dtype, 1, "C")

    def generate(context, builder, signature, arguments):
        return row_at(context, builder, result, arguments[0], arguments[1])

    return result(types.intp, types.intp, dtype), generate


@intrinsic
def span(typingctx, array, offset, count):
    """Return the array of `count` elements of another from a byte offset on."""
    result = types.Array(array.dtype, 1, "C")

    def generate(context, builder, signature, arguments):
        data = _data(context, builder, signature.args[0], arguments[0])
        address = builder.add(builder.ptrtoint(data, arguments[1].type), arguments[1])
        return row_at(context, builder, result, address, arguments[2])

    return result(array, types.intp, types.intp), generate


@intrinsic
def section(typingctx, array, start, count):
    """Return the array of `count` elements of a contiguous array, from the one at `start` on."""
    result = types.Array(array.dtype, 1, "C")

    def generate(context, builder, signature, arguments):
        source = make_array(signature.args[0])(context, builder, arguments[0])
        view = make_array(signature.return_type)(context, builder)
        data = builder.gep(source.data, [arguments[1]])
        populate_array(view, data, [arguments[2]], [source.itemsize], source.itemsize, None)
        return view._getvalue()

    return result(array, types.intp, types.intp), generate


@intrinsic
def address_of(typingctx, array):
    """Return the address of an array's first element."""

    def generate(context, builder, signature, arguments):
        data = _data(context, builder, signature.args[0], arguments[0])
        return builder.ptrtoint(data, context.get_value_type(types.intp))

    return types.intp(array), generate


@emitted(types.void())
def noalias(context, builder):
    """Declare that the array arguments of the calling function do not overlap where one is written.

    LLVM checks at run time otherwise, and gives up where there are many arrays.
    """
    for argument in builder.function.args:
        if isinstance(argument.type, ir.PointerType):
            argument.add_attribute("noalias")


# --- what generated code calls ------------------------------------------------------------


@intrinsic
def is_contiguous(typingctx, array):
    """Return whether an array is aligned, and its elements are next to each other in order."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        source = make_array(kind)(context, builder, arguments[0])
        word = source.itemsize.type
        alignment = context.get_abi_alignment(context.get_data_type(kind.dtype))
        skew = builder.and_(builder.ptrtoint(source.data, word), word(alignment - 1))
        result = builder.icmp_signed("==", skew, word(0))
        step = source.itemsize
        for axis in reversed(range(kind.ndim)):
            size = builder.extract_value(source.shape, axis)
            stride = builder.extract_value(source.strides, axis)
            follows = builder.or_(
                builder.icmp_signed("==", stride, step), builder.icmp_signed("<=", size, word(1))
            )
            result = builder.and_(result, follows)
            step = builder.mul(step, size)
        return result

    return types.boolean(array), generate


@jitable
def gather_columns(total, part, first):
    """Add a block's columns to the total, or begin it with those of the first block."""
    if first == 0:
        for j in range(np.uintp(part.size)):
            total[j] = part[j]
    else:
        for j in range(np.uintp(part.size)):
            total[j] = total[j] + part[j]


# --- tuples of operands -------------------------------------------------------------------
# The operands of an elementwise loop are a tuple of rows and, for an operand that is one value
# throughout, of numbers. Its outputs are a tuple of rows, or `Into`: the operand that is written.


class Into(types.Type):
    """The type of outputs that are the operand at some position."""

    def __init__(self, position: int) -> None:
        self.position = position
        super().__init__(f"Into({position})")


register_model(Into)(models.OpaqueModel)


@intrinsic
def into(typingctx, position):
    """Return the outputs of a loop that writes the operand at a position, which has to be a
    literal.

    One variable is then both input and output: two that alias fail LLVM's overlap check, and its
    scalar loop runs.
    """
    if not isinstance(position, types.IntegerLiteral):
        return None  # Numba then tries the literal type

    def generate(context, builder, signature, arguments):
        return context.get_dummy_value()

    return Into(position.literal_value)(position), generate


@intrinsic
def layout(typingctx, table, start, arrays, kinds):
    """Return the layout of operands from a table: their addresses, then their steps between rows.

    The table holds the addresses of so many `arrays`, then their steps in bytes; the operands are
    those from `start` on, as many as there are `kinds`.
    """
    number = len(kinds)

    def generate(context, builder, signature, arguments):
        table, start, arrays, _ = arguments
        entries = builder.inttoptr(table, table.type.as_pointer())
        cells = [builder.add(start, table.type(k)) for k in range(number)]
        cells += [builder.add(cell, arrays) for cell in cells]
        values = [builder.load(builder.gep(entries, [cell])) for cell in cells]
        return context.make_tuple(builder, signature.return_type, values)

    return types.UniTuple(types.intp, 2 * number)(*[types.intp] * 3, kinds), generate


@intrinsic
def operands(typingctx, layout, row, count, kinds):
    """Return operands in row number `row` of a layout: `count` elements of each, or one value.

    Of what is one value, the dtype is in a tuple of its own.
    """
    found = [
        types.Array(kind.dtype, 1, "C") if isinstance(kind, types.DType) else kind[0].dtype
        for kind in kinds
    ]
    result: Any = types.BaseTuple.from_types(found)

    def generate(context, builder, signature, arguments):
        known, row, count, _ = arguments
        values = []
        for k, kind in enumerate(found):
            base, step = (builder.extract_value(known, n) for n in (k, k + len(found)))
            at = builder.add(base, builder.mul(row, step))
            if isinstance(kind, types.Array):
                values.append(row_at(context, builder, kind, at, count))
            else:
                stored = context.get_data_type(kind).as_pointer()
                pointer = builder.inttoptr(at, stored)
                values.append(context.unpack_value(builder, kind, pointer))
        return context.make_tuple(builder, result, values)

    return result(layout, types.intp, types.intp, kinds), generate


def _map_rows(context: Any, builder: Any, signature: Any, group: Any, change: Callable) -> Any:
    """Return a group of operands whose rows are changed, and whose values are not."""
    found = []
    for k, kind in enumerate(signature.args[0]):
        one = builder.extract_value(group, k)
        found.append(change(kind, one) if isinstance(kind, types.Array) else one)
    return context.make_tuple(builder, signature.return_type, found)


@intrinsic
def parts(typingctx, group, start, count):
    """Return `count` elements of each operand from `start` on; of one value, the value."""
    if isinstance(group, Into):
        return group(group, types.intp, types.intp), lambda c, b, s, arguments: arguments[0]

    def generate(context, builder, signature, arguments):
        _, start, count = arguments

        def part(kind, row):
            data = builder.gep(_data(context, builder, kind, row), [start])
            return row_at(context, builder, kind, builder.ptrtoint(data, start.type), count)

        return _map_rows(context, builder, signature, arguments[0], part)

    return group(group, types.intp, types.intp), generate


@intrinsic
def take(typingctx, group, i):
    """Return the elements of operands at position i."""
    kinds = [kind.dtype if isinstance(kind, types.Array) else kind for kind in group]
    result: Any = types.BaseTuple.from_types(kinds)

    def generate(context, builder, signature, arguments):
        def element(kind, row):
            pointer = builder.gep(_data(context, builder, kind, row), [arguments[1]])
            return context.unpack_value(builder, kind.dtype, pointer)

        return _map_rows(context, builder, signature, arguments[0], element)

    return result(group, types.intp), generate


@intrinsic
def put(typingctx, group, outs, i, results):
    """Write results, one or a tuple of them, to position i of the outputs."""

    def generate(context, builder, signature, arguments):
        kinds, written = signature.args[:2]
        given: Any = signature.args[3]
        rows: list[Any]
        if isinstance(written, Into):
            rows = [(kinds[written.position], arguments[0], written.position)]
        else:
            rows = [(kind, arguments[1], k) for k, kind in enumerate(written)]
        for k, (kind, source, cell) in enumerate(rows):
            value, own = arguments[3], given
            if isinstance(given, types.BaseTuple):
                value, own = builder.extract_value(value, k), signature.args[3][k]
            data = _data(context, builder, kind, builder.extract_value(source, cell))
            pointer = builder.gep(data, [arguments[2]])
            value = context.cast(builder, value, own, kind.dtype)
            context.pack_value(builder, kind.dtype, value, pointer)
        return context.get_dummy_value()

    return types.void(group, outs, types.intp, results), generate


def declare(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Return a function that compiled code knows by a symbol, see `symbols`."""
    kind = ir.FunctionType(result, arguments)
    return cgutils.get_or_insert_function(builder.module, kind, name)
