"""How compiled code is entered: signatures, and the text of the entry functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_frontend import Array, IRModule, Untranslatable, Writer, name_of
from tinygrad_cg_kernels.runtime import machine, objects
from tinygrad_cg_kernels.runtime.callables import NativeFunction


class Signature(NamedTuple):
    """A way to enter compiled code, with the types of the function's arguments.

    Functions of ``words`` and ``blocks`` are entered by address, with integers. All others are
    Python functions: of ``objects``; of ``arrays`` (contiguous arrays, integers and tuples of
    integers, without a result); or of the arrays of a ``program``, which have `ranks`.
    """

    way: str
    types: tuple[Any, ...]
    ranks: tuple[int, ...] = ()

    @property
    def is_callable(self) -> bool:
        """Whether Python calls the code."""
        return self.way in ("objects", "arrays", "program")

    def entry_text(self, module: IRModule, function: Any) -> str:
        """Return LLVM's text of the function `entry`, which calls a function of a module."""
        return _TEXTS[self.way](self, module, function)


def words(count: int) -> Signature:
    """Return the signature of `count` integers, with an integer as the result."""
    return Signature("words", ("i64",) * count)


BLOCKS = Signature("blocks", ("i64",) * 3)
"""The signature of block kernels: the address of a table, the first unit of work, and the number of
units. The pool of threads knows no more of a kernel, so one compiled pool serves all of them."""


def objects_signature(count: int) -> Signature:
    """Return the signature of `count` Python objects, with an object as the result."""
    return Signature("objects", ("object",) * count)


def arrays(*types: Any) -> Signature:
    """Return the signature of contiguous 1-D arrays, integers and tuples of integers."""
    return Signature("arrays", types)


def program(kinds: list[tuple[np.dtype, int]]) -> Signature:
    """Return the signature of a program: arrays of dtypes and ranks, and an int64 array of sizes.

    The result is True. If an array is not contiguous, it is False, and nothing was done.
    """
    types = [Array(name_of(dtype)) for dtype, _ in kinds]
    return Signature("program", (*types, Array("i64")), (*[rank for _, rank in kinds], 1))


class PythonFunction:
    """A compiled function that Python can call, and its machine code.

    Python calls ``entry(self, arguments, count)`` of the code.
    """

    def __init__(self, code: machine.MachineCode, name: str):
        self.code = code
        self._method = NativeFunction(name, code.address("entry"))

    def callable(self) -> Callable:
        """Return the Python function, which keeps the code alive."""
        return self._method.bound(self)


class _EntryText(Writer):
    """The text of a function `entry`, which reads Python objects and calls compiled code."""

    def __init__(self, module: IRModule) -> None:
        super().__init__(False, "e")
        self.declared = module.declared

    def argument(self, k: int) -> str:
        return self.field("%args", 8 * k, "ptr")

    def field(self, start: str, offset: int, kind: str) -> str:
        """Return the operand of a field of an object."""
        place = self.emit(f"getelementptr i8, ptr {start}, i64 {offset}")
        return self.emit(f"load {kind}, ptr {place}")

    def integer(self, thing: str) -> str:
        return "i64 " + self.call("PyLong_AsLongLong", "i64", ("ptr", thing))

    def array(self, array: str, rank: int) -> list[str]:
        """Return the address and the number of an array's elements, as arguments."""
        size = "1"
        if rank:
            shape = self.field(array, objects.SHAPE, "ptr")
            sizes = [self.field(shape, 8 * axis, "i64") for axis in range(rank)]
            for extent in sizes:
                size = self.emit(f"mul i64 {size}, {extent}") if size != "1" else extent
        return [f"ptr {self.field(array, objects.DATA, 'ptr')}", f"i64 {size}"]

    def run(self, call: str) -> str:
        """Call a function without the interpreter's lock; return the operand of the result."""
        thread = self.call("PyEval_SaveThread", "ptr")
        result = self.emit(call)
        self.call("PyEval_RestoreThread", "void", ("ptr", thread))
        return result

    def return_none(self) -> None:
        """Return None to Python."""
        self.declare_object("_Py_NoneStruct")
        self.call("Py_IncRef", "void", ("ptr", "@_Py_NoneStruct"))
        self.lines.append("  ret ptr @_Py_NoneStruct")

    def text(self) -> str:
        head = f"define ptr @entry(ptr %self, ptr %args, i64 %count) {machine.processor().wide} {{"
        return "\n".join([head, *self.lines, "}"])


def _result_type(function: Any) -> str:
    kind = {"b1": "i1", "i64": "i64"}.get(function.result)
    if kind is None:
        raise Untranslatable(f"a kernel that returns {function.result}")
    return kind


def _words_text(signature: Signature, module: IRModule, function: Any) -> str:
    parameters = ", ".join(f"i64 %x{k}" for k in range(len(signature.types)))
    kind = _result_type(function)
    word = "zext i1 %result to i64" if kind == "i1" else "add i64 0, %result"
    return "\n".join(
        [
            f"define i64 @entry({parameters}) {machine.processor().wide} {{",
            f"  %result = call {kind} @{function.name}({parameters})",
            f"  %word = {word}",
            "  ret i64 %word",
            "}",
        ]
    )


def _objects_text(signature: Signature, module: IRModule, function: Any) -> str:
    """Return an entry that takes objects. If their number is wrong, it returns None."""
    entry, count = _EntryText(module), len(signature.types)
    right = entry.emit(f"icmp eq i64 %count, {count}")
    entry.lines += [f"  br i1 {right}, label %run, label %no", "run:"]
    arguments = ", ".join(f"i64 {entry.field('%args', 8 * k, 'i64')}" for k in range(count))
    word = entry.emit(f"call i64 @{function.name}({arguments})")
    entry.lines.append(f"  ret ptr {entry.emit(f'inttoptr i64 {word} to ptr')}")
    entry.begin("no")
    entry.return_none()
    return entry.text()


def _arrays_text(signature: Signature, module: IRModule, function: Any) -> str:
    entry, arguments = _EntryText(module), []
    for k, kind in enumerate(signature.types):
        thing = entry.argument(k)
        if isinstance(kind, Array):
            arguments += entry.array(thing, 1)
        elif isinstance(kind, tuple):
            items = (entry.field(thing, objects.ITEMS + 8 * j, "ptr") for j in range(len(kind)))
            arguments += [entry.integer(item) for item in items]
        else:
            arguments.append(entry.integer(thing))
    entry.run(f"call {_result_type(function)} @{function.name}({', '.join(arguments)})")
    entry.return_none()
    return entry.text()


def _program_text(signature: Signature, module: IRModule, function: Any) -> str:
    """Return an entry that takes arrays. If one is not contiguous, it returns False."""
    entry = _EntryText(module)
    arguments, flags = [], f"{objects.CONTIGUOUS}"
    for k, rank in enumerate(signature.ranks):
        array = entry.argument(k)
        flags = entry.emit(f"and i32 {flags}, {entry.field(array, objects.FLAGS, 'i32')}")
        arguments += entry.array(array, rank)
    good = entry.emit(f"icmp eq i32 {flags}, {objects.CONTIGUOUS}")
    entry.lines += [f"  br i1 {good}, label %run, label %no", "run:"]
    result = entry.run(f"call i1 @{function.name}({', '.join(arguments)})")
    word = entry.emit(f"zext i1 {result} to i64")
    yes = entry.call("PyBool_FromLong", "ptr", ("i64", word))
    entry.lines += [f"  ret ptr {yes}", "no:"]
    no = entry.call("PyBool_FromLong", "ptr", ("i64", "0"))
    entry.lines.append(f"  ret ptr {no}")
    return entry.text()


_TEXTS = {
    "words": _words_text,
    "blocks": _words_text,
    "objects": _objects_text,
    "arrays": _arrays_text,
    "program": _program_text,
}
