"""Intrinsics: functions of compiled code that are one or a few instructions each.

A row defines an intrinsic: its meaning in Python, its types, and its text in LLVM. The front end
writes that text. Numba's intrinsics are made from the same rows. Marks, by which a function says
how it is compiled, are intrinsics, too.
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
"""``emit(body, *values)`` writes an intrinsic into a function body, and returns its value."""


class Intrinsic:
    """A row of the table of intrinsics. Called from Python, it runs its meaning.

    ``emit(body, *values)`` returns the value. The result's type follows from the arguments' types.
    It raises Untranslatable for types that the intrinsic does not take.
    """

    rows: ClassVar[list[Intrinsic]] = []
    """All intrinsics."""

    def __init__(self, meaning: Callable, emit: Emit):
        functools.update_wrapper(self, meaning)
        self.meaning, self.emit = meaning, emit
        self.rows.append(self)

    def __call__(self, *arguments: Any) -> Any:
        return self.meaning(*arguments)


class Mark(Intrinsic):
    """A statement by which a function sets its own LLVM attributes. It is no instruction."""

    def __init__(self, name: str, *attributes: str):
        def meaning() -> None:
            pass

        meaning.__name__ = name
        super().__init__(meaning, lambda body: NOTHING)
        self.attributes = attributes


def intrinsic(rule: str | None, text: str | Emit) -> Callable[[Callable], Intrinsic]:
    """Return a decorator for an intrinsic's meaning in Python.

    A type rule is, for example, ``"f, f -> f"``. In it, ``f`` stands for a float type, the same one
    throughout; ``word`` is an integer (64 bits in results and addresses); the others are
    ``double``, ``object`` and ``any``. The result may be missing. Without a rule, the types follow
    from what `text` does. `text` is an instruction, with ``{0}`` and so on for operands and ``{f}``
    for LLVM's name of the float type, or a function that writes instructions, and returns a value
    or an operand.
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
    """Return the `Emit` of one of LLVM's functions of floats."""
    return lambda body, *values: body.call_intrinsic(name, *values, flags=flags)


def symbol_call(name: str, result: str = "i64") -> Emit:
    """Return the `Emit` of a call by symbol, of compiled code or a C function, with words.

    The function returns a word, a C int ("i32"), which becomes a word, or nothing ("void").
    """

    def emit(body: Any, *words: IRValue) -> str:
        text = body.call(name, result, *[("i64", word.text) for word in words])
        return body.emit(f"sext i32 {text} to i64") if result == "i32" else text

    return emit


def address_call(body: Any, address: IRValue, *words: IRValue) -> None:
    """Call a function by its address, with words as arguments."""
    arguments = ", ".join(f"i64 {word.text}" for word in words)
    body.lines.append(f"  call void {body.pointer(address)}({arguments})")


ANY_ORDER = "nnan nsz reassoc "
"""Flags of extremes that vectors compute in any order: of 0.0 and -0.0 either may result."""

WIDE, INLINE = '"prefer-vector-width"="512"', "alwaysinline"

# All kernels use 512 bits. On one core of an EPYC 9005, 256 bits took 1.7 to 2.0 times as long for
# elementary functions, 1.1 to 1.9 times for reductions and normalisations of data in the cache,
# and 0.8 to 1 times where memory is the limit (additions and negation of 10^4 to 4 * 10^6 elements,
# long sums, transposed operands).
wide_vectors = Mark("wide_vectors", WIDE)
"""Sets the vector width of the function that calls it to 512 bits."""

inlined = Mark("inlined", INLINE)
"""Inlines the function that calls it, everywhere. LLVM does not vectorise a loop that contains a
call, and it would not inline a formula with several helpers, because of its limit on size."""

vectorised = Mark("vectorised", WIDE, INLINE)
"""Both, for a helper that has a loop: it is optimised by itself before it is inlined."""

outlined = Mark("outlined", WIDE, "noinline")
"""Prevents inlining of the function that calls it."""

drives = Mark("drives", WIDE)
"""Marks a function of a text that calls outlined functions and has no other loops. LLVM compiles it
at the baseline level, which takes a fifth of the time: its own code runs once per call."""

noalias = Mark("noalias", "noalias")
"""Declares that no array argument of the calling function overlaps one that it writes.

Otherwise LLVM checks this at run time, and does not vectorise if there are many arrays. The
arguments get the attribute."""

short_rows = Mark("short_rows")
"""Loops of the function that calls it have few rounds: each round is one vector, not several."""

number_by_number = Mark("number_by_number")
"""Called in a function of numbers that has many branches. Kernel loops over it are not vectorised:
LLVM would compute all branches for all elements."""
