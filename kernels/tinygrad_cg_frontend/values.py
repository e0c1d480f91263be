"""Types and values of functions that are being translated."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

FLOATS = ("f64", "f32")
PARTS = {"c128": "f64", "c64": "f32"}
"""The types of the parts of complex numbers."""
INTEGERS = tuple(f"{sign}{width}" for sign in "iu" for width in (8, 16, 32, 64))
NUMBERS = (*FLOATS, "b1", *PARTS, *INTEGERS)
"""The types of numbers."""
STORED = {"f64": "double", "f32": "float", "b1": "i8", "object": "i64"}
STORED |= {name: f"{{ {STORED[part]}, {STORED[part]} }}" for name, part in PARTS.items()}
STORED |= {name: f"i{name[1:]}" for name in INTEGERS}
"""LLVM's types of numbers in memory, and as arguments of scalar functions."""


class Untranslatable(Exception):
    """A function uses something that cannot be translated."""


class Unsupported(Untranslatable):
    """A function does not take such numbers, so Numba could not compile it either."""


class Array(NamedTuple):
    """The type of a contiguous array of one dimension."""

    element: str


class Static:
    """The type of a value that is known during translation: a function, a dtype, a tuple.

    Tuples are compared by their texts, because 0.0 equals -0.0, and 1.0 equals 1.
    """

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and (
            self.value is other.value
            or (type(self.value) is type(other.value) is tuple and repr(self) == repr(other))
            or (isinstance(self.value, np.dtype) and self.value == other.value)
        )

    def __hash__(self) -> int:
        return hash(self.value) if isinstance(self.value, np.dtype) else hash(type(self.value))

    def __repr__(self) -> str:
        return f"Static({self.value!r})"


class Record(tuple[Any, ...]):
    """The type of a named tuple, of the class `cls`."""

    cls: Any = None


class IRValue(NamedTuple):
    """A value of a function that is being translated.

    `type` is "i64", "f64", ..., an `Array`, a tuple of types, or `Static`. `text` is the operand: a
    pair for complex numbers, the address for arrays, a tuple of values for tuples. `size` is the
    operand of an array's size.
    """

    type: Any
    text: Any = None
    size: str = ""

    @property
    def is_number(self) -> bool:
        return isinstance(self.type, str)

    @property
    def is_complex(self) -> bool:
        return isinstance(self.type, str) and self.type in PARTS

    @property
    def integer(self) -> int | None:
        """The value if it is a constant integer, else None."""
        if self.is_number and self.type[0] in "iu" and self.text.lstrip("-").isdigit():
            return int(self.text)
        return None


class Formula(NamedTuple):
    """The text of a scalar function, and the widths of its vector functions (`lanes`).

    If it is guarded, `guard` has the symbols of the test and of the fast version.
    """

    text: str
    lanes: tuple[int, ...] = ()
    guard: tuple[str, ...] = ()


class ScalarFunction:
    """A scalar function: its symbol and types. ``formula()`` waits until it is optimised."""

    def __init__(
        self,
        symbol: str,
        result: str,
        arguments: tuple[str, ...],
        formula: Callable[[], Formula],
    ):
        self.symbol, self.result, self.arguments = symbol, result, arguments
        self.formula = formula
        self.by_value = False
        """Whether it is a derivative that takes the function's value, and shares work with it."""

    @property
    def declaration(self) -> str:
        """Return LLVM's declaration, without the word `declare`."""
        parameters = ", ".join(STORED[kind] for kind in self.arguments)
        return f"{STORED[self.result]} @{self.symbol}({parameters})"

    @property
    def text(self) -> str:
        return self.formula().text

    @property
    def lanes(self) -> tuple[int, ...]:
        return self.formula().lanes

    @property
    def is_long(self) -> bool:
        return bool(self.lanes)


NOTHING = IRValue(Static(None))


def name_of(dtype: np.dtype) -> str:
    """Return the name of a dtype's type."""
    name = "b1" if dtype.kind == "b" else f"{dtype.kind}{8 * dtype.itemsize}"
    if name not in NUMBERS:
        raise Untranslatable(f"dtype {dtype}")
    return name


def dtype_of(kind: str) -> np.dtype:
    """Return the dtype of a type of numbers."""
    return np.dtype("?" if kind == "b1" else f"{kind[0]}{int(kind[1:]) // 8}")


def llvm_type(kind: str) -> str:
    """Return LLVM's type of values of a type. (In memory, a bool is a byte.)"""
    return "i1" if kind == "b1" else STORED[kind]


def itemsize(kind: str) -> int:
    return 1 if kind == "b1" else int(kind[1:]) // 8  # of complex numbers both parts count


def leaves(value: IRValue) -> list[tuple[str, str]]:
    """Return the LLVM types and operands that a value consists of."""
    kind = value.type
    if isinstance(kind, str):
        if kind not in PARTS:
            return [(llvm_type(kind), value.text)]
        kind = llvm_type(PARTS[kind])
        return [(kind, part) for part in value.text]
    if isinstance(kind, Array):
        return [("ptr", value.text), ("i64", value.size)]
    if isinstance(kind, tuple):
        return [leaf for part in value.text for leaf in leaves(part)]
    return []


def rebuilt(kind: Any, operands: list[str]) -> IRValue:
    """Return a value of a type from its operands, which are removed from the list."""
    if isinstance(kind, str):
        if kind in PARTS:
            return IRValue(kind, (operands.pop(0), operands.pop(0)))
        return IRValue(kind, operands.pop(0))
    if isinstance(kind, Array):
        return IRValue(kind, operands.pop(0), operands.pop(0))
    if isinstance(kind, tuple):
        return IRValue(kind, tuple(rebuilt(entry, operands) for entry in kind))
    return IRValue(kind)


def leaf_types(kind: Any) -> list[str]:
    """Return the LLVM types of `leaves`."""
    if isinstance(kind, str):
        return [llvm_type(PARTS[kind])] * 2 if kind in PARTS else [llvm_type(kind)]
    if isinstance(kind, Array):
        return ["ptr", "i64"]
    if isinstance(kind, tuple):
        return [leaf for part in kind for leaf in leaf_types(part)]
    return []


def constant(thing: Any) -> IRValue:
    """Return a Python object as a constant value."""
    if callable(thing):
        return IRValue(Static(thing))
    if isinstance(thing, (bool, np.bool_)):
        return IRValue("b1", "true" if thing else "false")
    if isinstance(thing, int):
        return IRValue("i64", str(thing))
    if isinstance(thing, np.integer):
        return IRValue(name_of(thing.dtype), str(int(thing)))
    if isinstance(thing, (float, np.floating)):
        kind = name_of(thing.dtype) if isinstance(thing, np.floating) else "f64"
        return IRValue(kind, number(float(thing), kind))
    if isinstance(thing, (complex, np.complexfloating)):
        kind = name_of(thing.dtype) if isinstance(thing, np.complexfloating) else "c128"
        return IRValue(
            kind, tuple(number(float(part), PARTS[kind]) for part in (thing.real, thing.imag))
        )
    if isinstance(thing, list):
        thing = tuple(thing)
    return IRValue(Static(thing))


def number(value: float, kind: str) -> str:
    """Return a float as LLVM writes it: the bits of the double with its value."""
    if kind == "f32":
        with np.errstate(all="ignore"):
            value = float(np.float32(value))
    return "0x" + struct.pack(">d", value).hex().upper()


def float_of(text: str) -> float | None:
    """Return the value of a constant float's operand, else None."""
    if not text.startswith("0x"):
        return None
    return struct.unpack(">d", bytes.fromhex(text[2:]))[0]
