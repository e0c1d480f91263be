"""Operands of kernels that take objects: looked at, and the result made.

One compiled function does this for all kernels, which know it by its address: they would take three
times as long to compile with it inside.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tinygrad_cg_kernels.runtime import objects
from tinygrad_cg_kernels.runtime.compile import block_address
from tinygrad_cg_kernels.runtime.objects import DATA, FLAGS, KIND, NDIM, PREFIX, WRITEABLE
from tinygrad_cg_kernels.runtime.objects.fields import (
    array_kind,
    array_of,
    box_kind,
    count,
    declare_function,
    decref,
    half,
    incref,
    is_contiguous,
    new_array,
    new_box,
    none,
    number,
    put_number,
    same_shape,
    store_word,
    word,
)

WORDS = 8
RESULT, LINE, X, Y, Z, SIZE, ONE, NUMBER = range(0, 8 * WORDS, 8)


def _make_prepare(slot: int, empty: int, most: int) -> Callable:
    def prepare(x, y, z, dtype_x, dtype_y, dtype_z, target, width, total, info):
        """Look at up to three operands and make the result: 1; 0 where they are not for a
        direct kernel, -1 where memory is short. The rest is written to `info`:
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
            store_word(result, slot, out)
            store_word(result, empty, incref(none()))
        store_word(table, RESULT, result)
        store_word(table, LINE, word(out, DATA))
        store_word(table, X, word(a, DATA) if a != 0 else table + NUMBER)
        store_word(table, Y, word(b, DATA) if b != 0 else table + NUMBER)
        store_word(table, Z, word(c, DATA) if c != 0 else 0)
        store_word(table, SIZE, size)
        store_word(table, ONE, one)
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
        store_word(info, X, first)
        store_word(info, Y, second)
        store_word(info, SIZE, size)
        store_word(info, ONE, 2 if one else 0)
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


@intrinsic
def call_prepare(typingctx, x, y, z, dtype_x, dtype_y, dtype_z, target, width, total):
    """Call `prepare` and return its results."""

    return PREPARED(*[types.intp] * 9), _call_to_prepare("prepare")


@intrinsic
def call_prepare_in_place(typingctx, x, y, dtype_x, dtype_y, itemsize):
    """Call `prepare_in_place`, for what it says."""
    return PREPARED(*[types.intp] * 5), _call_to_prepare("prepare_in_place")


PREPARED = types.NamedUniTuple(types.intp, WORDS, Prepared)


def _call_to_prepare(name: str) -> Callable:
    def generate(context, builder, signature, arguments):
        word_type = context.get_value_type(types.intp)
        function = declare_function(builder, name, word_type, *[word_type] * (len(arguments) + 1))
        info = cgutils.alloca_once(builder, word_type, size=WORDS)
        status = builder.call(function, [*arguments, builder.ptrtoint(info, word_type)])
        words = [builder.load(builder.gep(info, [word_type(k)])) for k in range(WORDS - 1)]
        return context.make_tuple(builder, signature.return_type, [status, *words])

    return generate


_prepared: dict[str, Any] = {}


def ready(most: int, in_place: bool = False) -> bool:
    """Compile what direct kernels call; False if there are none here. They do `most` elements."""
    name = "prepare_in_place" if in_place else "prepare"
    if objects.supported and name not in _prepared:
        made = _make_prepare_in_place(most) if in_place else _make_prepare(*objects.boxes, most)
        signature = types.intp(*[types.intp] * (6 if in_place else 10))
        owned = block_address(made, name, True, signature)
        llvmlite.binding.add_symbol(PREFIX + name, owned[0])
        _prepared[name] = owned
    return objects.supported
