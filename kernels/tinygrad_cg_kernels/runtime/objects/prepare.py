"""Checks of the operands of small kernels, and allocation of their results.

One compiled function does this for all small kernels, which call it by its symbol. Inlined, it
would triple the time to compile a kernel.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding

from tinygrad_cg_frontend import OPTIMIZED
from tinygrad_cg_kernels.runtime import memory, objects, service, signatures
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import outlined
from tinygrad_cg_kernels.runtime.objects import DATA, FLAGS, KIND, NDIM, PREFIX
from tinygrad_cg_kernels.runtime.objects.calls import (
    LINE,
    NUMBER,
    RESULT,
    SINGLE,
    SIZE,
    X,
    Y,
    Z,
    array_kind,
    box_kind,
    float_kind,
    int_kind,
    integer_value,
    new_array,
    new_box,
    none,
    put_number,
)
from tinygrad_cg_kernels.runtime.objects.fields import decref, double, half, incref, store, word


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
    outlined()
    size, shape = 1, word(array, objects.SHAPE)
    for axis in range(half(array, NDIM)):
        size *= word(shape, 8 * axis)
    return size


@jitable
def same_shape(x, y):
    """Return whether two arrays have the same shape."""
    outlined()
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
    """Return whether an object is a number that a float of this width can represent; its value."""
    outlined()
    most, largest = (objects.DOUBLE, 2**53) if width == 8 else (objects.SINGLE, 2**24)
    kind = word(thing, KIND)
    if kind == float_kind():
        value = double(thing, objects.VALUE)
        return abs(value) <= most, value
    if kind == int_kind():
        exact = integer_value(thing)
        return -largest <= exact <= largest, float(exact)
    return False, 0.0


def _make_prepare(slot: int, empty: int, most: int) -> Callable:
    def prepare(x, y, z, dtype_x, dtype_y, dtype_z, target, width, total, info):
        """Check up to three operands and make the result.

        Return 1; 0 if a small kernel does not take the operands, -1 without memory. `info` gets
        the result, the addresses of its elements and of the operands' elements, their number, and
        which operand is a single value (1 or 2; 0 for none).

        Python's numbers may be operands beside floats of the size `width`, if that is not 0. With
        `total` the result has no axes.
        """
        table, position, value = info, 0, 0.0
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
            position = 1 if a == 0 else 2
        elif not same_shape(a, b):
            if half(a, NDIM) != 0 and half(b, NDIM) != 0:
                return 0
            position = 1 if half(a, NDIM) == 0 else 2
        model = b if position == 1 else a
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
        store(table, SINGLE, position)
        return 1

    return prepare


def _wanted(most: int) -> tuple[service.KernelSource, signatures.Signature]:
    """Return the source and the signature for the compile service."""
    source = service.KernelSource(_make_prepare(*objects.boxes, most), "prepare")
    return source, signatures.words(10)


@cache
def begin(most: int) -> None:
    """Have another core compile the function that small kernels call, until `ready` is called."""
    service.begin(*_wanted(most), OPTIMIZED)


@cache
def ready(most: int) -> Any:
    """Return the function that small kernels call, for at most `most` elements, compiled."""
    memory.keep_heap()  # memory of results comes from the allocator
    source, signature = _wanted(most)
    owned = service.compile(source, signature, level=OPTIMIZED)
    llvmlite.binding.add_symbol(PREFIX + source.name, owned.run)
    return owned
