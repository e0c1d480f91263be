"""Memory as arrays in compiled code: the one set of views at addresses.

Kernels know memory by its address, an integer. None of these views checks bounds or keeps memory
alive: slicing does the latter by counting references, which costs more than the work on a short
row.
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
    # Through an integer: of pointers that LLVM knows to be apart by the same step it makes a chain
    # of sums, each of which waits for the one before (a fifth of the time of a sum of columns).
    start = IRValue("i64", body.emit(f"ptrtoint ptr {array.text} to i64"))
    at = body.pointer(body.operate("Add", start, body.index(offset)))
    return IRValue(array.type, at, body.index(count).text)


@intrinsic(None, _span)
def span(array, offset, count):
    """Return the array of `count` elements of another from a byte offset on."""
    return section(array, offset // array.itemsize, count)


def _section(body: Any, array: IRValue, start: IRValue, count: IRValue) -> IRValue:
    # A new name for the address: how sections lie to one another, in loops around loops, took LLVM
    # a fifth of its time, and led to no better code. What aliases what it still knows.
    at = body.address(array, body.index(start).text)
    named = body.call("llvm.launder.invariant.group.p0", "ptr", ("ptr", at))
    return IRValue(array.type, named, body.index(count).text)


@intrinsic(None, _section)
def section(array, start, count):
    """Return the array of `count` elements of a contiguous array, from the one at `start` on."""
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


class Into:
    """What stands for outputs that are the operand at some position."""

    def __init__(self, position: int) -> None:
        self.position = position


_INTO = [Into(k) for k in range(3)]


def _into(body: Any, position: IRValue) -> IRValue:
    if position.integer is None:
        raise Untranslatable("a position that is not known")
    return IRValue(Static(_INTO[position.integer]))


@intrinsic(None, _into)
def into(position):
    """Return the outputs of a loop that writes the operand at a position, which has to be a
    literal.

    One variable is then both input and output: two that alias fail LLVM's overlap check, and its
    scalar loop runs.
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

    The table holds the addresses of so many `arrays`, then their steps in bytes; the operands are
    those from `start` on, as many as there are `kinds`.
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
    """Return operands in row number `row` of a layout: `count` elements of each, or one value.

    Of what is one value, the dtype is in a tuple of its own.
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
    """Return `count` elements of each operand from `start` on; of one value, the value."""
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
    """Return the rows that a loop writes."""
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
    """Write results, one or a tuple of them, to position i of the outputs."""
    rows = (group[outs.position],) if isinstance(outs, Into) else outs
    for row, value in zip(rows, results if isinstance(results, tuple) else (results,), strict=True):
        row[i] = value


def _interleave(body: Any, group: IRValue, outs: IRValue) -> IRValue:
    if _written(body, group, outs)[0].type.element in FLOATS:
        body.interleave()
    return NOTHING


@intrinsic(None, _interleave)
def interleave(group, outs):
    """Ask, after a function's loops, for several vectors at a time if the results are floats.

    An elementary function is a long chain of steps, each of which waits for the one before, and a
    processor looks ahead no farther than three or four such chains. What fills it is the same step
    of several vectors, one after the other, before the next step of any. LLVM does so by itself for
    short loops alone.
    """
