"""Views of memory as arrays, in compiled code.

Kernels know memory by its address, an integer. These views do not check bounds, and do not keep
memory alive: counting references costs more than the work on a short row.
"""

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np

from tinygrad_cg_frontend import (
    FLOATS,
    NOTHING,
    Array,
    IRValue,
    Static,
    Untranslatable,
    intrinsic,
    outlined,
)
from tinygrad_cg_kernels.runtime.compile import jitable


def _vector(body: Any, address: IRValue, count: IRValue, dtype: IRValue) -> IRValue:
    return IRValue(Array(body.dtype(dtype)), body.pointer(address), body.index(count).text)


@intrinsic(None, _vector)
def vector(address, count, dtype):
    """Return the array of `count` elements at an address."""
    dtype = np.dtype(dtype)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype)


def _span(body: Any, array: IRValue, offset: IRValue, count: IRValue) -> IRValue:
    # The address goes through an integer. If LLVM knows that pointers have one step, it computes
    # each from the one before, in a chain (a fifth of the time of a sum of columns).
    start = IRValue("i64", body.emit(f"ptrtoint ptr {array.text} to i64"))
    at = body.pointer(body.operate("Add", start, body.index(offset)))
    return IRValue(array.type, at, body.index(count).text)


@intrinsic(None, _span)
def span(array, offset, count):
    """Return `count` elements of an array, from a byte offset on, as an array."""
    return section(array, offset // array.itemsize, count)


def _section(body: Any, array: IRValue, start: IRValue, count: IRValue) -> IRValue:
    # The address gets a new name. Otherwise LLVM analyses how sections in nested loops lie to one
    # another, which took a fifth of its time and gave no better code. It still knows what aliases.
    at = body.address(array, body.index(start).text)
    named = body.call("llvm.launder.invariant.group.p0", "ptr", ("ptr", at))
    return IRValue(array.type, named, body.index(count).text)


@intrinsic(None, _section)
def section(array, start, count):
    """Return `count` elements of a contiguous array, from position `start` on, as an array."""
    return array.reshape(-1)[start : start + count]


def _address_of(body: Any, array: IRValue) -> IRValue:
    if not isinstance(array.type, Array):
        raise Untranslatable(f"the address of {array.type}")
    return IRValue("i64", body.emit(f"ptrtoint ptr {array.text} to i64"))


@intrinsic(None, _address_of)
def address_of(array):
    """Return the address of an array's first element."""
    return array.ctypes.data


@jitable
def gather_columns(total, part, first):
    """Add a block's column sums to the total. The first block's sums are the initial total."""
    outlined()
    if first == 0:
        for j in range(np.uintp(part.size)):
            total[j] = part[j]
    else:
        for j in range(np.uintp(part.size)):
            total[j] = total[j] + part[j]


# --- tuples of operands -------------------------------------------------------------------
# The operands of an elementwise loop are a tuple of rows, and of numbers for operands that have one
# value. Its outputs are a tuple of rows, or `Into`, if it writes one of the operands.


class Into:
    """Stands for the outputs of a loop that writes the operand at a position."""

    def __init__(self, position: int) -> None:
        self.position = position


_INTO = [Into(k) for k in range(3)]


def _into(body: Any, position: IRValue) -> IRValue:
    if position.integer is None:
        raise Untranslatable("a position that is not known")
    return IRValue(Static(_INTO[position.integer]))


@intrinsic(None, _into)
def into(position):
    """Return the outputs of a loop that writes the operand at a position, which is a literal.

    Input and output are then one variable. Two variables for the same memory would fail LLVM's
    check for overlaps, so its scalar loop would run.
    """
    return _INTO[position]


def _is_into(group: IRValue) -> bool:
    return isinstance(group.type, Static) and isinstance(group.type.value, Into)


def _tuple(parts: Iterable[IRValue]) -> IRValue:
    parts = tuple(parts)
    return IRValue(tuple(part.type for part in parts), parts)


def _layout(body: Any, table: IRValue, start: IRValue, arrays: IRValue, kinds: IRValue) -> IRValue:
    entries = IRValue(Array("i64"), body.pointer(table), "0")
    first, apart = body.index(start), body.index(arrays)
    cells = [
        body.operate("Add", first, IRValue("i64", str(k))) for k in range(len(body.parts(kinds)))
    ]
    cells += [body.operate("Add", cell, apart) for cell in cells]
    return _tuple(body.load("i64", body.address(entries, cell.text)) for cell in cells)


@intrinsic(None, _layout)
def layout(table, start, arrays, kinds):
    """Return the layout of operands from a table: their addresses, then their steps between rows.

    The table has the addresses of `arrays` arrays, then their steps in bytes. The operands are
    arrays from `start` on, one for each of the `kinds`.
    """
    words = vector(table, 2 * arrays, np.int64)
    chosen = range(start, start + len(kinds))
    return tuple(int(words[k]) for k in (*chosen, *(k + arrays for k in chosen)))


def _operands(body: Any, layout: IRValue, row: IRValue, count: IRValue, kinds: IRValue) -> IRValue:
    places, operands = body.parts(layout), []
    wanted = body.parts(kinds)
    for k, kind in enumerate(wanted):
        base, step = places[k], places[k + len(wanted)]
        start = body.operate("Add", base, body.operate("Mult", body.index(row), step))
        if isinstance(kind.type, Static) and isinstance(kind.type.value, np.dtype):
            operands.append(_vector(body, start, count, kind))
        else:
            (own,) = body.parts(kind)
            operands.append(body.load(body.dtype(own), body.pointer(start)))
    return _tuple(operands)


@intrinsic(None, _operands)
def operands(layout, row, count, kinds):
    """Return the operands in row `row` of a layout: `count` elements of each, or one value.

    `kinds` are dtypes. The dtype of an operand that is one value is in a tuple of its own.
    """
    starts = [layout[k] + row * layout[k + len(kinds)] for k in range(len(kinds))]
    return tuple(
        vector(at, 1, kind[0])[0] if isinstance(kind, tuple) else vector(at, count, kind)
        for at, kind in zip(starts, kinds, strict=True)
    )


def _parts(body: Any, group: IRValue, start: IRValue, count: IRValue) -> IRValue:
    if _is_into(group):
        return group
    return _tuple(
        _section(body, part, start, count) if isinstance(part.type, Array) else part
        for part in body.parts(group)
    )


@intrinsic(None, _parts)
def parts(group, start, count):
    """Return `count` elements of each operand from `start` on. Single values stay."""
    if isinstance(group, Into):
        return group
    return tuple(item[start : start + count] if np.ndim(item) else item for item in group)


def _take(body: Any, group: IRValue, i: IRValue) -> IRValue:
    at = body.index(i).text
    return _tuple(
        body.load(part.type.element, body.address(part, at))
        if isinstance(part.type, Array)
        else part
        for part in body.parts(group)
    )


@intrinsic(None, _take)
def take(group, i):
    """Return the elements of operands at position i."""
    return tuple(item[i] if np.ndim(item) else item for item in group)


def _written(body: Any, group: IRValue, outs: IRValue) -> tuple[IRValue, ...]:
    """Return the rows that a loop writes to."""
    if _is_into(outs):
        return (body.parts(group)[outs.type.value.position],)
    return body.parts(outs)


def _put(body: Any, group: IRValue, outs: IRValue, i: IRValue, results: IRValue) -> IRValue:
    values = (results,) if results.is_number else body.parts(results)
    for row, value in zip(_written(body, group, outs), values, strict=True):
        body.store(value, row.type.element, body.address(row, body.index(i).text))
    return NOTHING


@intrinsic(None, _put)
def put(group, outs, i, results):
    """Write a result, or a tuple of results, to position i of the outputs."""
    rows = (group[outs.position],) if isinstance(outs, Into) else outs
    for row, value in zip(rows, results if isinstance(results, tuple) else (results,), strict=True):
        row[i] = value


def _interleave(body: Any, group: IRValue, outs: IRValue) -> IRValue:
    if _written(body, group, outs)[0].type.element in FLOATS:
        body.interleave()
    return NOTHING


@intrinsic(None, _interleave)
def interleave(group, outs):
    """Let the loops before this call compute several vectors at a time, if results are floats.

    An elementary function is a long chain of steps, each of which waits for the one before. A
    processor looks ahead by three or four such chains only. It is busy if a loop does each step for
    several vectors before the next step. LLVM does this by itself for short loops only.
    """
