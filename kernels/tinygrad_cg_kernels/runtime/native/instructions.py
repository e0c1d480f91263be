"""What the kernels' intrinsics are in LLVM: one function each, of a body under translation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import intrinsics, objects, views
from tinygrad_cg_kernels.runtime.native.values import (
    FLOATS,
    NOTHING,
    STORED,
    Array,
    Record,
    Static,
    Untranslatable,
    Value,
    llvm_type,
)
from tinygrad_cg_kernels.runtime.objects import calls, fields, ufuncs

Emit = Callable[..., Value]
_known: dict[int, tuple[Any, Emit]] = {}


def find(target: Any) -> Emit | None:
    """Return what writes down an intrinsic; None if it is no such."""
    found = _known.get(id(target))
    return found[1] if found else None


def call_symbol(name: str) -> Emit:
    """Return what calls a compiled function of words, by its symbol; it returns a word."""

    def emit(body: Any, *words: Value) -> Value:
        given = [("i64", body.index(word).text) for word in words]
        return Value("i64", body.call(name, "i64", *given))

    return emit


def instruction(*targets: Any) -> Callable[[Emit], Emit]:
    """Let a function of a body and values write down intrinsics."""

    def register(emit: Emit) -> Emit:
        for target in targets:
            _known[id(target)] = target, emit
        return emit

    return register


# --- numbers ------------------------------------------------------------------------------


@instruction(intrinsics.like)
def _like(body: Any, value: Value, model: Value) -> Value:
    return body.cast(value, model.type)


@instruction(intrinsics.by_width)
def _by_width(body: Any, model: Value, wide: Value, narrow: Value) -> Value:
    kind = model.type
    if not model.is_number or kind[1:] not in ("64", "32"):
        raise Untranslatable(f"the width of {kind}")
    chosen = wide if kind[1:] == "64" else narrow
    if chosen.is_number:
        return body.cast(chosen, kind)
    parts = tuple(body.cast(part, kind) for part in body.parts(chosen))
    return Value((kind,) * len(parts), parts)


@instruction(intrinsics.bits)
def _bits(body: Any, value: Value) -> Value:
    kind = {"f64": "i64", "f32": "i32"}[value.type]
    source = f"{llvm_type(value.type)} {value.text}"
    return Value(kind, body.emit(f"bitcast {source} to {STORED[kind]}"))


@instruction(intrinsics.from_bits)
def _from_bits(body: Any, value: Value) -> Value:
    kind = "f64" if value.type[1:] == "64" else "f32"
    source = f"{llvm_type(value.type)} {value.text}"
    return Value(kind, body.emit(f"bitcast {source} to {STORED[kind]}"))


def _sum_of_powers(sum_up: Callable) -> Emit:
    def emit(body: Any, x: Value, coefficients: Value) -> Value:
        if x.type not in FLOATS:
            raise Untranslatable(f"a polynomial of {x.type}")
        return sum_up(body, x, [body.cast(part, x.type) for part in body.parts(coefficients)])

    return emit


def _horner(body: Any, x: Value, values: list[Value]) -> Value:
    *others, total = values
    for other in reversed(others):
        total = body.add(body.product(x, total), other)
    return total


def _estrin(body: Any, x: Value, values: list[Value]) -> Value:
    def square(one: Value) -> Value:
        text = body.emit(f"fmul {llvm_type(one.type)} {one.text}, {one.text}")
        return Value(one.type, text)

    second = square(x)
    pairs = [_horner(body, x, values[k : k + 2]) for k in range(0, len(values), 2)]
    if len(pairs) <= 3:
        return _horner(body, second, pairs)
    fours = [_horner(body, second, pairs[k : k + 2]) for k in range(0, len(pairs), 2)]
    return _horner(body, square(second), fours)


instruction(intrinsics.polynomial)(_sum_of_powers(_horner))
instruction(intrinsics.estrin)(_sum_of_powers(_estrin))


def _llvm_function(name: str, flags: str = "") -> Emit:
    def emit(body: Any, *values: Value) -> Value:
        return Value(values[0].type, body.call_intrinsic(name, *values, flags=flags))

    return emit


REORDERED = " reassoc"
"""The flag of sums whose bits depend on their order."""
ANY_ORDER = "nnan nsz reassoc "
"""The flags of extremes that vectors take in any order: of 0.0 and -0.0 either may come of it."""
for _target, _name, _flags in (
    (intrinsics.float_maximum, "maximum", ""),
    (intrinsics.float_minimum, "minimum", ""),
    (intrinsics.largest_number, "maxnum", ANY_ORDER),
    (intrinsics.smallest_number, "minnum", ANY_ORDER),
    (intrinsics.float_floor, "floor", ""),
    (intrinsics.float_ceil, "ceil", ""),
    (intrinsics.float_round, "rint", ""),
    (intrinsics.float_copysign, "copysign", ""),
    (intrinsics.float_absolute, "fabs", ""),
    (intrinsics.float_fma, "fma", ""),
    (math.exp, "exp", ""),
    (math.log, "log", ""),
    (math.sin, "sin", ""),
    (math.cos, "cos", ""),
    (math.pow, "pow", ""),
    (math.sqrt, "sqrt", ""),
    (np.sqrt, "sqrt", ""),
):
    instruction(_target)(_llvm_function(_name, _flags))


def _library_function(name: str) -> Emit:
    return lambda body, *values: body.library(name, *values)


for _name in (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "expm1"),
    *("hypot", "log1p", "sinh", "tan", "tanh"),
):
    instruction(getattr(math, _name))(_library_function(_name))


def _operation(name: str) -> Emit:
    def emit(body: Any, x: Value, y: Value) -> Value:
        if x.type not in FLOATS or x.type != y.type:
            raise Untranslatable(f"{name} of {x.type} and {y.type}")
        return Value(x.type, body.emit(f"{name} {llvm_type(x.type)} {x.text}, {y.text}"))

    return emit


instruction(intrinsics.float_remainder)(_operation("frem"))
instruction(intrinsics.reassociating_add)(_operation(f"fadd{REORDERED}"))
instruction(intrinsics.reassociating_multiply)(_operation(f"fmul{REORDERED}"))
instruction(intrinsics.nan_of_either)(_operation("fadd arcp reassoc"))


# --- arrays -------------------------------------------------------------------------------


def _pointer(body: Any, address: Value) -> str:
    return body.emit(f"inttoptr i64 {body.index(address).text} to ptr")


@instruction(views.vector)
def _vector(body: Any, address: Value, count: Value, dtype: Value) -> Value:
    return Value(Array(body.dtype(dtype)), _pointer(body, address), body.index(count).text)


@instruction(views.section)
def _section(body: Any, array: Value, start: Value, count: Value) -> Value:
    # A new name for the address: how sections lie to one another, in loops around loops, took LLVM
    # a fifth of its time, and led to no better code. What aliases what it still knows.
    at = body.address(array, body.index(start).text)
    named = body.call("llvm.launder.invariant.group.p0", "ptr", ("ptr", at))
    return Value(array.type, named, body.index(count).text)


@instruction(views.span)
def _span(body: Any, array: Value, offset: Value, count: Value) -> Value:
    # Through an integer: of pointers that LLVM knows to be apart by the same step it makes a chain
    # of sums, each of which waits for the one before (a fifth of the time of a sum of columns).
    start = body.emit(f"ptrtoint ptr {array.text} to i64")
    at = _pointer(body, body.operate("Add", Value("i64", start), body.index(offset)))
    return Value(array.type, at, body.index(count).text)


@instruction(views.address_of)
def _address_of(body: Any, array: Value) -> Value:
    if not isinstance(array.type, Array):
        raise Untranslatable(f"the address of {array.type}")
    return Value("i64", body.emit(f"ptrtoint ptr {array.text} to i64"))


@instruction(views.is_contiguous)
def _is_contiguous(body: Any, array: Value) -> Value:
    return Value("b1", "true")  # whoever calls compiled code has looked


# --- tuples of operands: see `views` ------------------------------------------------------


@instruction(views.layout)
def _layout(body: Any, table: Value, start: Value, arrays: Value, kinds: Value) -> Value:
    number = len(body.parts(kinds))
    entries = Value(Array("i64"), _pointer(body, table), "0")
    first, apart = body.index(start), body.index(arrays)
    cells = [body.operate("Add", first, Value("i64", str(k))) for k in range(number)]
    cells += [body.operate("Add", cell, apart) for cell in cells]
    values = tuple(body.load("i64", body.address(entries, cell.text)) for cell in cells)
    return Value(("i64",) * len(values), values)


@instruction(views.operands)
def _operands(body: Any, known: Value, row: Value, count: Value, kinds: Value) -> Value:
    places, found = body.parts(known), []
    wanted = body.parts(kinds)
    for k, kind in enumerate(wanted):
        base, step = places[k], places[k + len(wanted)]
        start = body.operate("Add", base, body.operate("Mult", body.index(row), step))
        if isinstance(kind.type, Static) and isinstance(kind.type.value, np.dtype):
            found.append(_vector(body, start, count, kind))
        else:
            (own,) = body.parts(kind)
            found.append(body.load(body.dtype(own), _pointer(body, start)))
    return _tuple(found)


def _tuple(parts: Iterable[Value]) -> Value:
    parts = tuple(parts)
    return Value(tuple(part.type for part in parts), parts)


class Into:
    """What stands for outputs that are the operand at some position."""

    def __init__(self, position: int):
        self.position = position


_INTO = [Into(k) for k in range(3)]


@instruction(views.into)
def _into(body: Any, position: Value) -> Value:
    return Value(Static(_INTO[position.integer or 0]))


@instruction(views.parts)
def _parts(body: Any, group: Value, start: Value, count: Value) -> Value:
    if isinstance(group.type, Static) and isinstance(group.type.value, Into):
        return group
    return _tuple(
        _section(body, part, start, count) if isinstance(part.type, Array) else part
        for part in body.parts(group)
    )


@instruction(views.take)
def _take(body: Any, group: Value, i: Value) -> Value:
    at = body.index(i).text
    return _tuple(
        body.load(part.type.element, body.address(part, at))
        if isinstance(part.type, Array)
        else part
        for part in body.parts(group)
    )


def written(body: Any, group: Value, outs: Value) -> tuple[Value, ...]:
    """Return the rows that a loop writes."""
    if isinstance(outs.type, Static) and isinstance(outs.type.value, Into):
        return (body.parts(group)[outs.type.value.position],)
    return body.parts(outs)


@instruction(views.put)
def _put(body: Any, group: Value, outs: Value, i: Value, results: Value) -> Value:
    rows = written(body, group, outs)
    values = (results,) if results.is_number else body.parts(results)
    for row, value in zip(rows, values, strict=True):
        body.store(value, row.type.element, body.address(row, body.index(i).text))
    return NOTHING


# --- Python's objects, by their addresses -------------------------------------------------


@instruction(fields.address_of, fields.as_object)
def _same_word(body: Any, thing: Value) -> Value:
    return Value("object" if thing.type == "i64" else "i64", thing.text)


def _address(body: Any, name: str) -> Value:
    name = body.module.declare_object(objects.PREFIX + name)
    return Value("i64", body.emit(f"ptrtoint ptr @{name} to i64"))


@instruction(fields.incref)
def _incref(body: Any, start: Value) -> Value:
    body.call("Py_IncRef", "void", ("ptr", _pointer(body, start)))
    return start


@instruction(fields.decref)
def _decref(body: Any, start: Value) -> Value:
    body.call("Py_DecRef", "void", ("ptr", _pointer(body, start)))
    return NOTHING


@instruction(fields.nothing)
def _nothing(body: Any) -> Value:
    return Value("object", _incref(body, _address(body, "none")).text)


@instruction(fields.dtype_address)
def _dtype_address(body: Any, dtype: Value) -> Value:
    return _address(body, f"dtype_{dtype.type.value.name}")


for _target, _name in calls.SYMBOLS.items():
    instruction(_target)(lambda body, name=_name: _address(body, name))


def _field(body: Any, start: Value, offset: Value) -> str:
    return _pointer(body, body.operate("Add", body.index(start), body.index(offset)))


def _peek(kind: str, result: str) -> Emit:
    def emit(body: Any, start: Value, offset: Value) -> Value:
        return body.cast(body.load(kind, _field(body, start, offset)), result)

    return emit


instruction(fields.word)(_peek("i64", "i64"))
instruction(fields.half)(_peek("i32", "i64"))
instruction(fields.double)(_peek("f64", "f64"))


@instruction(fields.store)
def _store(body: Any, start: Value, offset: Value, value: Value) -> Value:
    body.store(value, "i64", _field(body, start, offset))
    return NOTHING


@instruction(calls.put_number)
def _put_number(body: Any, start: Value, value: Value, width: Value) -> Value:
    at = _pointer(body, start)
    wide = body.emit(f"icmp eq i64 {width.text}, 8")
    narrow = body.emit(f"fptrunc double {value.text} to float")
    bits = body.emit(f"bitcast float {narrow} to i32")
    short = Value("i64", body.emit(f"zext i32 {bits} to i64"))
    long = body.emit(f"bitcast double {value.text} to i64")
    word = body.emit(f"select i1 {wide}, i64 {long}, i64 {short.text}")
    body.store(Value("i64", word), "i64", at)  # there is room for 8 bytes
    return NOTHING


@instruction(calls.new_array)
def _new_array(body: Any, model: Value, ndim: Value, dtype: Value) -> Value:
    kind, shape = (
        body.load("i64", _field(body, model, Value("i64", str(offset)))).text
        for offset in (objects.KIND, objects.SHAPE)
    )
    _incref(body, dtype)  # the function takes it
    axes = body.emit(f"trunc i64 {ndim.text} to i32")
    given = [("i64", kind), ("i64", dtype.text), ("i32", axes), ("i64", shape)]
    given += [("i64", "0"), ("i64", "0"), ("i32", "0"), ("i64", "0")]
    return Value("i64", body.call(f"{objects.PREFIX}new_array", "i64", *given))


@instruction(calls.new_box)
def _new_box(body: Any, kind: Value) -> Value:
    given = ("i64", kind.text), ("i64", "0")
    return Value("i64", body.call(f"{objects.PREFIX}new_box", "i64", *given))


@instruction(calls.integer_value)
def _integer_value(body: Any, start: Value) -> Value:
    overflow = body.slot("i32")
    given = ("i64", start.text), ("ptr", overflow)
    value = body.call(f"{objects.PREFIX}integer", "i64", *given)
    flag = body.emit(f"load i32, ptr {overflow}")
    fits = body.emit(f"icmp eq i32 {flag}, 0")
    return Value("i64", body.emit(f"select i1 {fits}, i64 {value}, i64 {-(2**63)}"))


def _prepare(name: str) -> Emit:
    def emit(body: Any, *operands: Value) -> Value:
        info = body.slot(f"[{calls.WORDS} x i64]")
        address = body.emit(f"ptrtoint ptr {info} to i64")
        given = [("i64", body.index(one).text) for one in operands]
        status = body.call(objects.PREFIX + name, "i64", *given, ("i64", address))
        table = Value(Array("i64"), info, str(calls.WORDS))
        words = [body.load("i64", body.address(table, str(k))) for k in range(calls.WORDS - 1)]
        kind = Record(("i64",) * calls.WORDS)
        kind.names = calls.Prepared._fields
        return Value(kind, (Value("i64", status), *words))

    return emit


instruction(calls.call_prepare)(_prepare("prepare"))
instruction(calls.call_prepare_in_place)(_prepare("prepare_in_place"))


@instruction(ufuncs.call_loop)
def _call_loop(body: Any, loop: Value, *addresses: Value) -> Value:
    given = ", ".join(f"ptr {_pointer(body, one)}" for one in addresses)
    body.lines.append(f"  call void {_pointer(body, loop)}({given})")
    return NOTHING
