"""Intrinsics: functions that compiled code has for itself, of one or a few instructions each.

A row says all of one: what it means in Python, what types it is for, and what it is in LLVM. The
translation writes that down, and Numba's intrinsics are made of the same rows. Marks, which a
function puts on itself, are intrinsics too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from tinygrad_cg_frontend.values import (
    FLOATS,
    NOTHING,
    IRValue,
    Untranslatable,
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

    def emit(body: Any, *values: IRValue) -> IRValue:
        floats = {value.type for value, name in zip(values, names, strict=False) if name == "f"}
        if len(values) != len(names) or len(floats) > 1 or not floats <= {*FLOATS}:
            raise Untranslatable(f"{rule} of {[value.type for value in values]}")
        kind = "".join(floats)
        pairs = zip(values, names, strict=True)
        arguments = [_argument(body, value, name) for value, name in pairs]
        if isinstance(text, str):
            operands = [value.text for value in arguments]
            written: Any = body.emit(text.format(*operands, f=kind and llvm_type(kind)))
        else:
            written = text(body, *arguments)
        if not result:
            return NOTHING
        if isinstance(written, IRValue):
            return written
        return IRValue(kind if result == "f" else _RESULTS[result], written)

    return emit


def _argument(body: Any, value: IRValue, name: str) -> IRValue:
    if name == "word":
        return body.index(value)
    return body.cast(value, "f64") if name == "double" else value


def llvm_function(name: str, flags: str = "") -> Emit:
    """Return what calls one of LLVM's functions of floats of one type."""
    return lambda body, *values: body.call_intrinsic(name, *values, flags=flags)


def symbol_call(name: str, result: str = "i64") -> Emit:
    """Return what calls a function of words by its symbol: compiled code, or C's.

    It returns a word, C's int ("i32"), which becomes a word, or nothing ("void").
    """

    def emit(body: Any, *words: IRValue) -> str:
        text = body.call(name, result, *[("i64", word.text) for word in words])
        return body.emit(f"sext i32 {text} to i64") if result == "i32" else text

    return emit


def address_call(body: Any, address: IRValue, *words: IRValue) -> None:
    """Call a function of words by its address."""
    arguments = ", ".join(f"i64 {word.text}" for word in words)
    body.lines.append(f"  call void {body.pointer(address)}({arguments})")


ANY_ORDER = "nnan nsz reassoc "
"""The flags of extremes that vectors take in any order: of 0.0 and -0.0 either may come of it."""

WIDE, INLINE = '"prefer-vector-width"="512"', "alwaysinline"

# Asked for everywhere: on one core of an EPYC 9005, 256 bits took 1.7 to 2.0 times as long for
# elementary functions, 1.1 to 1.9 for reductions and normalisations of what is in the cache,
# and 0.8 to 1 where memory sets the pace (additions and negation of 10^4 to 4 * 10^6 elements, long
# sums, transposed operands).
wide_vectors = Mark("wide_vectors", WIDE)
"""Called in a kernel, asks LLVM for 512-bit vectors there; Numba's own functions keep theirs."""

inlined = Mark("inlined", INLINE)
"""Called in a helper, has it inlined wherever it is used. LLVM vectorises no loop with a call
left in it, and its own limit on size leaves one where a formula uses several helpers."""

vectorised = Mark("vectorised", WIDE, INLINE)
"""Both, for a helper that holds a loop: it is optimised by itself before it is inlined."""

outlined = Mark("outlined", WIDE, "noinline")
"""Called in a function, keeps its code out of its callers."""

noalias = Mark("noalias", "noalias")
"""Declares that the array arguments of the calling function do not overlap where one is written.

LLVM checks at run time otherwise, and gives up where there are many arrays. The attribute is that
of the arguments."""

number_by_number = Mark("number_by_number")
"""Called in a function of numbers with many branches, keeps loops of it in a library's kernel from
being vectorised: LLVM would compute all branches for all elements."""
