"""Calls of Python, NumPy and `prepare` in compiled code, by their symbols."""

import ctypes
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_frontend import Array, Intrinsic, IRValue, Record, intrinsic
from tinygrad_cg_kernels.runtime import objects
from tinygrad_cg_kernels.runtime.objects import KIND, PREFIX
from tinygrad_cg_kernels.runtime.objects.fields import field, incref


def _address_of(name: str, thing: Any) -> Intrinsic:
    """Return an intrinsic for the address of a registered object."""
    return intrinsic("-> word", lambda body: body.object_address(PREFIX + name))(lambda: id(thing))


array_kind, float_kind = _address_of("array", np.ndarray), _address_of("float", float)
int_kind, none = _address_of("int", int), _address_of("none", None)


@intrinsic("-> word", lambda body: body.object_address(f"{PREFIX}box"))
def box_kind():
    """Return the address of the class of boxes."""
    raise NotImplementedError("only compiled code has its symbol")


def _put_number(body: Any, start: IRValue, value: IRValue, width: IRValue) -> None:
    at = body.pointer(start)
    wide = body.emit(f"icmp eq i64 {width.text}, 8")
    narrow = body.emit(f"fptrunc double {value.text} to float")
    bits = body.emit(f"bitcast float {narrow} to i32")
    short = body.emit(f"zext i32 {bits} to i64")
    long = body.emit(f"bitcast double {value.text} to i64")
    word = body.emit(f"select i1 {wide}, i64 {long}, i64 {short}")
    body.store(IRValue("i64", word), "i64", at)  # there is room for 8 bytes


@intrinsic("word, double, word ->", _put_number)
def put_number(start, value, width):
    """Write a number as a float of 8 or 4 bytes."""
    kind = ctypes.c_double if width == 8 else ctypes.c_float
    kind.from_address(start).value = value


def _new_array(body: Any, model: IRValue, ndim: IRValue, dtype: IRValue) -> str:
    kind, shape = (
        body.load("i64", field(body, model, IRValue("i64", str(offset)))).text
        for offset in (KIND, objects.SHAPE)
    )
    incref.emit(body, dtype)  # the function steals this reference
    axes = body.emit(f"trunc i64 {ndim.text} to i32")
    arguments = [("i64", kind), ("i64", dtype.text), ("i32", axes), ("i64", shape)]
    arguments += [("i64", "0"), ("i64", "0"), ("i32", "0"), ("i64", "0")]
    return body.call(f"{PREFIX}new_array", "i64", *arguments)


@intrinsic("word, word, word -> word", _new_array)
def new_array(model, ndim, dtype):
    """Return a new array with the first sizes of another, uninitialised; 0 without memory."""
    raise NotImplementedError("only compiled code can call NumPy's function")


@intrinsic(
    "word -> word",
    lambda body, kind: body.call(f"{PREFIX}new_box", "i64", ("i64", kind.text), ("i64", "0")),
)
def new_box(kind):
    """Return a new box with all fields 0; 0 without memory."""
    raise NotImplementedError("only compiled code can call Python's function")


def _integer_value(body: Any, start: IRValue) -> str:
    overflow = body.slot("i32")
    value = body.call(f"{PREFIX}integer", "i64", ("i64", start.text), ("ptr", overflow))
    flag = body.emit(f"load i32, ptr {overflow}")
    fits = body.emit(f"icmp eq i32 {flag}, 0")
    return body.emit(f"select i1 {fits}, i64 {value}, i64 {-(2**63)}")


@intrinsic("word -> word", _integer_value)
def integer_value(start):
    """Return the value of an exact int; -2**63 if it is too large."""
    raise NotImplementedError("only compiled code can call Python's function")


WORDS = 8
RESULT, LINE, X, Y, Z, SIZE, SINGLE, NUMBER = range(0, 8 * WORDS, 8)


class Prepared(NamedTuple):
    """The results of `prepare` (see there)."""

    status: int
    result: int
    line: int
    x: int
    y: int
    z: int
    size: int
    single: int


def _prepare(body: Any, *operands: IRValue) -> IRValue:
    info = body.slot(f"[{WORDS} x i64]")
    address = body.emit(f"ptrtoint ptr {info} to i64")
    arguments = [("i64", operand.text) for operand in operands]
    status = body.call(f"{PREFIX}prepare", "i64", *arguments, ("i64", address))
    table = IRValue(Array("i64"), info, str(WORDS))
    words = [body.load("i64", body.address(table, str(k))) for k in range(WORDS - 1)]
    kind = Record(("i64",) * WORDS)
    kind.cls = Prepared
    return IRValue(kind, (IRValue("i64", status), *words))


@intrinsic(", ".join(["word"] * 9) + " -> words", _prepare)
def call_prepare(x, y, z, dtype_x, dtype_y, dtype_z, target, width, total):
    """Call `prepare` and return its results."""
    raise NotImplementedError("`prepare` is compiled code")
