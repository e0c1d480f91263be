"""Machine code as functions that Python calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from tinygrad_cg_kernels.runtime import machine, objects
from tinygrad_cg_kernels.runtime.callables import Method


class PythonFunction:
    """What a compiled function needs: its machine code, and what Python knows of it.

    The code's function `entry` is called with an object, an array of arguments, and their number.
    """

    def __init__(self, code: machine.Code, name: str):
        self.code = code
        self._method = Method(name, code.address("entry"))

    def callable(self) -> Callable:
        """Return the function, which keeps its code."""
        return self._method.bound(self)


class EntryText:
    """The text of a function `entry` that takes what it needs of its arguments."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = itertools.count()

    def emit(self, text: str) -> str:
        name = f"%e{next(self._count)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def argument(self, k: int) -> str:
        return self.field("%args", 8 * k, "ptr")

    def field(self, start: str, offset: int, kind: str) -> str:
        """Return the operand of an object's field."""
        place = self.emit(f"getelementptr i8, ptr {start}, i64 {offset}")
        return self.emit(f"load {kind}, ptr {place}")

    def array(self, array: str, rank: int) -> list[str]:
        """Return where an array's elements are, and how many, as arguments of a function."""
        size = "1"
        if rank:
            shape = self.field(array, objects.SHAPE, "ptr")
            sizes = [self.field(shape, 8 * axis, "i64") for axis in range(rank)]
            for one in sizes:
                size = self.emit(f"mul i64 {size}, {one}") if size != "1" else one
        return [f"ptr {self.field(array, objects.DATA, 'ptr')}", f"i64 {size}"]

    def run(self, call: str) -> str:
        """Call without the interpreter's lock; return the result's operand."""
        thread = self.emit("call ptr @PyEval_SaveThread()")
        result = self.emit(call)
        self.lines.append(f"  call void @PyEval_RestoreThread(ptr {thread})")
        return result

    def text(self, *declared: str) -> str:
        return "\n".join(
            [
                "declare ptr @PyEval_SaveThread()",
                "declare void @PyEval_RestoreThread(ptr)",
                *declared,
                f"define ptr @entry(ptr %self, ptr %args, i64 %count) {machine.wide()} {{",
                *self.lines,
                "}",
            ]
        )
