"""Intrinsics: functions that compiled code has for itself, of one or a few instructions each.

A row says all of one: what it means in Python, what types it is for, and what it is in LLVM. The
translation writes that down, and Numba's intrinsics are made of the same rows (`numba_rows`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from tinygrad_cg_kernels.runtime.native.values import (
    FLOATS,
    NOTHING,
    Untranslatable,
    Value,
    llvm_type,
)

Emit = Callable[..., Any]
"""Writes down an intrinsic, from a body under translation and the arguments' values."""


class Intrinsic:
    """A row. Called from Python it is its meaning.

    `emit` returns its value: of the types of the arguments follows that of the result. It raises
    Untranslatable where they are not for it.
    """

    rows: ClassVar[list[Intrinsic]] = []
    """All that there are."""

    def __init__(self, meaning: Callable, emit: Emit):
        functools.update_wrapper(self, meaning)
        self.meaning, self.emit = meaning, emit
        self.rows.append(self)

    def __call__(self, *arguments: Any) -> Any:
        return self.meaning(*arguments)


class Mark(Intrinsic):
    """What a function says of itself: LLVM's attributes of it, and no instruction."""

    def __init__(self, name: str, *attributes: str):
        def meaning() -> None:
            pass

        meaning.__name__ = name
        super().__init__(meaning, lambda body: NOTHING)
        self.attributes = attributes


def intrinsic(rule: str | None, text: str | Emit) -> Callable[[Callable], Intrinsic]:
    """Return a decorator of an intrinsic's meaning in Python.

    The type rule, ``"f, f -> f"`` say, has ``f`` for a float, the same one throughout, ``word`` for
    an integer (the result's, and an address's, has 64 bits), ``double``, ``object``, and ``any``; a
    result may be wanting. Without a rule the types follow from what `text` does. This is the
    instruction, with ``{0}`` and so on for operands and ``{f}`` for LLVM's name of the float, or a
    function that writes down instructions, and returns a value or an operand.
    """
    emit: Any = text if rule is None else _by_rule(rule, text)
    return lambda meaning: Intrinsic(meaning, emit)


_RESULTS = {"word": "i64", "double": "f64", "object": "object"}


def _by_rule(rule: str, text: str | Emit) -> Emit:
    left, _, result = (part.strip() for part in rule.partition("->"))
    names = left.split(", ") if left else []

    def emit(body: Any, *values: Value) -> Value:
        floats = {value.type for value, name in zip(values, names, strict=False) if name == "f"}
        if len(values) != len(names) or len(floats) > 1 or not floats <= {*FLOATS}:
            raise Untranslatable(f"{rule} of {[value.type for value in values]}")
        kind = "".join(floats)
        given = [_argument(body, value, name) for value, name in zip(values, names, strict=True)]
        if isinstance(text, str):
            operands = [value.text for value in given]
            written: Any = body.emit(text.format(*operands, f=kind and llvm_type(kind)))
        else:
            written = text(body, *given)
        if not result:
            return NOTHING
        if isinstance(written, Value):
            return written
        return Value(kind if result == "f" else _RESULTS[result], written)

    return emit


def _argument(body: Any, value: Value, name: str) -> Value:
    if name == "word":
        return body.index(value)
    return body.cast(value, "f64") if name == "double" else value


def llvm_function(name: str, flags: str = "") -> Emit:
    """Return what calls one of LLVM's functions of floats of one type."""
    return lambda body, *values: body.call_intrinsic(name, *values, flags=flags)


def symbol_call(name: str) -> Emit:
    """Return what calls a compiled function of words, by its symbol; it returns a word."""
    return lambda body, *words: body.call(name, "i64", *[("i64", word.text) for word in words])
