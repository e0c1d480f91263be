"""The instructions of a function that is being translated: numbers, memory, branches."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_frontend.values import (
    FLOATS,
    PARTS,
    STORED,
    Array,
    IRValue,
    Static,
    Unsupported,
    Untranslatable,
    constant,
    dtype_of,
    float_of,
    llvm_type,
    name_of,
    number,
)

ARITHMETIC = {"Add": "add", "Sub": "sub", "Mult": "mul"}
FLOAT_ARITHMETIC = {"Add": "fadd", "Sub": "fsub", "Mult": "fmul", "Div": "fdiv", "Mod": "frem"}
COMPARED = {"lt": operator.lt, "lte": operator.le, "gt": operator.gt, "gte": operator.ge}
COMPARED |= {"eq": operator.eq, "noteq": operator.ne}
TESTS = {"lt": "lt", "lte": "le", "gt": "gt", "gte": "ge", "eq": "eq", "noteq": "ne"}
BITWISE = {"BitOr": "or", "BitAnd": "and", "BitXor": "xor"}
_HARMFUL = ("call", "load", "store", "sdiv", "srem", "udiv", "urem", "br ", "phi", "atomicrmw")
_HARMFUL += ("cmpxchg", "fence")


class FloatProduct(NamedTuple):
    """The factors of a product of floats of one type."""

    x: IRValue
    y: IRValue


class Declarations:
    """The symbols that a module or a function declares."""

    def __init__(self):
        self.declared: dict[str, str] = {}

    def declare(self, name: str, text: str) -> None:
        """Declare a function, to be called."""
        self.declared[name] = f"declare {text}"

    def declare_object(self, name: str) -> None:
        """Declare an object by its symbol."""
        self.declared[name] = f"@{name} = external global i8"


class Writer(Declarations):
    """Writes instructions, and names their results."""

    INTERLEAVED = 4
    """Vectors that a loop computes at a time, if it asks for several. Measured over all elementary
    functions on an EPYC 9005, 4 vectors take 0.6 to 0.95 times as long as 1; more bring little and
    need too many registers. In loops that call functions, one call does not wait for the result of
    another: a gradient of 40 operations took 40 ns per element with 1, 31 with 2 and 26 with 4."""

    def __init__(self, fuses: bool, prefix: str = ""):
        super().__init__()
        self.lines: list[str] = []
        self.fuses, self._prefix = fuses, prefix
        self._slots: list[str] = []  # stack memory
        self._count = itertools.count()
        self._labels = itertools.count()
        self._label_now = "start"
        self._depth = 0  # of `apart`

    # The module ------------------------------------------------------------------------------

    def interleave(self) -> None:
        """Let the function's loops compute several vectors at a time."""
        raise NotImplementedError

    # Instructions ----------------------------------------------------------------------------

    def emit(self, text: str) -> str:
        """Write an instruction; return the name of its result."""
        name = f"%{self._prefix}t{next(self._count)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def slot(self, kind: str) -> str:
        """Return new memory on the stack."""
        name = f"%{self._prefix}s{next(self._count)}"
        self._slots.append(f"  {name} = alloca {kind}")
        return name

    def call(self, name: str, result: str, *arguments: tuple[str, str]) -> str:
        """Call a symbol; arguments are pairs of an LLVM type and an operand."""
        kinds = ", ".join(kind for kind, _ in arguments)
        self.declare(name, f"{result} @{name}({kinds})")
        passed = ", ".join(f"{kind} {text}" for kind, text in arguments)
        if result == "void":
            self.lines.append(f"  call void @{name}({passed})")
            return ""
        return self.emit(f"call {result} @{name}({passed})")

    def call_intrinsic(self, name: str, *values: IRValue, flags: str = "") -> str:
        """Call one of LLVM's functions of floats of one type."""
        kind = values[0].type
        if kind not in FLOATS or any(value.type != kind for value in values):
            raise Untranslatable(f"{name} of {[value.type for value in values]}")
        own = f"llvm.{name}.{kind}"
        text = llvm_type(kind)
        self.declare(own, f"{text} @{own}({', '.join([text] * len(values))})")
        operands = ", ".join(f"{text} {value.text}" for value in values)
        return self.emit(f"call {flags}{text} @{own}({operands})")

    @contextmanager
    def apart(self) -> Iterator[list[str]]:
        """Collect the lines that are written meanwhile, and do not add them to the function."""
        kept, self.lines = self.lines, []
        self._depth += 1
        yield self.lines
        self._depth -= 1
        self.lines = kept

    def label(self, stem: str) -> str:
        return f"{stem}{next(self._labels)}"

    def begin(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self._label_now = label

    def jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def branch(self, test: str, yes: str, no: str) -> None:
        self.lines.append(f"  br i1 {test}, label %{yes}, label %{no}")

    # Memory ----------------------------------------------------------------------------------

    def pointer(self, address: IRValue) -> str:
        return self.emit(f"inttoptr i64 {self.index(address).text} to ptr")

    def object_address(self, name: str) -> IRValue:
        """Return the address of a symbol, as an integer."""
        self.declare_object(name)
        return IRValue("i64", self.emit(f"ptrtoint ptr @{name} to i64"))

    def element(self, array: IRValue, index: IRValue) -> str:
        """Return the address of an element; negative signed indices count from the end."""
        if not isinstance(array.type, Array) or index.type not in ("i64", "u64"):
            raise Untranslatable("an index")
        text, integer = index.text, index.integer
        if index.type == "i64" and (integer is None or integer < 0):
            below = self.emit(f"icmp slt i64 {text}, 0")
            turned = self.emit(f"add i64 {text}, {array.size}")
            text = self.emit(f"select i1 {below}, i64 {turned}, i64 {text}")
        return self.address(array, text)

    def address(self, array: IRValue, index: str) -> str:
        kind = STORED[array.type.element]
        return self.emit(f"getelementptr inbounds {kind}, ptr {array.text}, i64 {index}")

    def index(self, value: IRValue) -> IRValue:
        """Return an integer as an index."""
        if value.type in ("i64", "u64"):
            return value
        if value.is_number and value.type[0] in "iu":
            return self.cast(value, "i64")
        raise Untranslatable(f"an index of type {value.type}")

    def load(self, kind: str, address: str) -> IRValue:
        """Return the number of a type at an address."""
        if kind in PARTS:
            part = PARTS[kind]
            second = self.emit(f"getelementptr {STORED[part]}, ptr {address}, i64 1")
            both = (self.emit(f"load {STORED[part]}, ptr {at}") for at in (address, second))
            return IRValue(kind, tuple(both))
        text = self.emit(f"load {STORED[kind]}, ptr {address}")
        return IRValue(kind, self.emit(f"icmp ne i8 {text}, 0") if kind == "b1" else text)

    def store(self, value: IRValue, kind: str, address: str) -> None:
        """Write a number, cast to a type, to an address."""
        if kind in PARTS:
            word = STORED[PARTS[kind]]
            second = self.emit(f"getelementptr {word}, ptr {address}, i64 1")
            for text, at in zip(self.cast(value, kind).text, (address, second), strict=True):
                self.lines.append(f"  store {word} {text}, ptr {at}")
            return
        text = self.stored(self.cast(value, kind))
        self.lines.append(f"  store {STORED[kind]} {text}, ptr {address}")

    def stored(self, value: IRValue) -> str:
        """Return a value's operand as it is stored in memory and passed to functions."""
        return self.emit(f"zext i1 {value.text} to i8") if value.type == "b1" else value.text

    # Tuples and static values ----------------------------------------------------------------

    def parts(self, value: IRValue) -> tuple[IRValue, ...]:
        """Return the entries of a tuple."""
        if is_tuple(value.type):
            return value.text
        if isinstance(value.type, Static) and isinstance(value.type.value, tuple):
            return tuple(constant(entry) for entry in value.type.value)
        raise Untranslatable(f"the parts of {value.type}")

    def tuple_value(self, value: IRValue) -> IRValue:
        """Return a tuple of constants as a tuple of values."""
        if isinstance(value.type, Static) and isinstance(value.type.value, tuple):
            parts = self.parts(value)
            return IRValue(tuple(part.type for part in parts), parts)
        return value

    def dtype(self, value: IRValue) -> str:
        """Return the front end's name of a static dtype or NumPy type."""
        if not isinstance(value.type, Static):
            raise Untranslatable("a dtype that is not known")
        return name_of(np.dtype(value.type.value))

    # Numbers ---------------------------------------------------------------------------------

    def truth(self, value: IRValue) -> str:
        """Return the operand of a value as a condition."""
        if value.type == "b1":
            return value.text
        if value.is_number and value.type[0] in "iu":
            if value.integer is not None:
                return "true" if value.integer else "false"
            return self.emit(f"icmp ne {llvm_type(value.type)} {value.text}, 0")
        raise Untranslatable("a condition")

    def cast(self, value: IRValue, kind: str) -> IRValue:
        """Return a number cast to another type, as NumPy's types and assignments to elements do."""
        own = value.type
        if own == kind:
            return value
        if not value.is_number:
            raise Untranslatable(f"a cast of {own}")
        if own in PARTS or kind in PARTS:
            return self._cast_complex(value, kind)
        x = f"{llvm_type(own)} {value.text}"
        to, integer = llvm_type(kind), value.integer
        if own in FLOATS and kind in FLOATS:
            exact = float_of(value.text)
            if exact is not None:
                return IRValue(kind, number(exact, kind))
            text = self.emit(f"{'fpext' if kind == 'f64' else 'fptrunc'} {x} to {to}")
        elif kind in FLOATS:
            if integer is not None and int(float(integer)) == integer:
                return IRValue(kind, number(float(integer), kind))
            signed = own[0] == "i"
            text = self.emit(f"{'sitofp' if signed else 'uitofp'} {x} to {to}")
        elif kind == "b1":
            if own in FLOATS:
                text = self.emit(f"fcmp une {x}, {number(0.0, own)}")
            else:
                text = self.emit(f"icmp ne {x}, 0")
        elif own in FLOATS:
            if kind not in ("i64", "i32"):
                raise Untranslatable(f"{kind} of {own}")
            text = self.emit(f"fptosi {x} to {to}")
        elif integer is not None:
            width = int(kind[1:])
            whole = integer % 2**width
            text = str(whole - 2**width if kind[0] == "i" and whole >> (width - 1) else whole)
        else:
            mine = 1 if own == "b1" else int(own[1:])
            wide = int(kind[1:])
            if mine == wide:
                text = value.text
            else:
                word = "trunc" if mine > wide else "sext" if own[0] == "i" else "zext"
                text = self.emit(f"{word} {x} to {to}")
        return IRValue(kind, text)

    def part(self, value: IRValue, k: int) -> IRValue:
        """Return the real part of a number, or the imaginary one."""
        if value.is_complex:
            return IRValue(PARTS[value.type], value.text[k])
        return value if k == 0 else IRValue("f32", number(0.0, "f32"))

    def _cast_complex(self, value: IRValue, kind: str) -> IRValue:
        if kind == "b1":
            tests = [self.cast(self.part(value, k), "b1").text for k in range(2)]
            return IRValue("b1", self.emit(f"or i1 {tests[0]}, {tests[1]}"))
        if kind not in PARTS:
            raise Unsupported(f"{dtype_of(value.type)} numbers are not cast to {dtype_of(kind)}")
        parts = (self.cast(self.part(value, k), PARTS[kind]).text for k in range(2))
        return IRValue(kind, tuple(parts))

    def _operate_complex(self, symbol: str, x: IRValue, y: IRValue) -> IRValue:
        """Return an operator applied to complex numbers. All steps are rounded, as in NumPy."""
        kind = self._common_complex(x.type, y.type)
        x, y = self.cast(x, kind), self.cast(y, kind)
        a, b, c, d = (self.part(value, k) for value in (x, y) for k in range(2))
        if symbol in ("Add", "Sub"):
            parts = self.operate(symbol, a, c), self.operate(symbol, b, d)
        elif symbol == "Mult":
            products = [self.operate("Mult", *pair) for pair in ((a, c), (b, d), (a, d), (b, c))]
            parts = self.operate("Sub", *products[:2]), self.operate("Add", *products[2:])
        elif symbol == "Div":
            parts = self._quotient(a, b, c, d)
        else:
            raise Untranslatable(f"{symbol} of {x.type} and {y.type}")
        return IRValue(kind, tuple(part.text for part in parts))

    def _quotient(self, a: IRValue, b: IRValue, c: IRValue, d: IRValue) -> tuple[IRValue, IRValue]:
        """Return the parts of (a + b i) / (c + d i) by Smith's algorithm, which scales by c or d.

        If d is larger than c, they are exchanged, and so are a and b. The imaginary part then
        changes its sign.
        """
        sizes = self.absolute(c), self.absolute(d)
        keep = self.compare("gte", *sizes)
        pairs = (a, b), (c, d)
        (a, b), (c, d) = ((self.select(keep, *xy), self.select(keep, *xy[::-1])) for xy in pairs)
        ratio = self.operate("Div", d, c)
        under = self.operate("Add", c, self.operate("Mult", d, ratio))
        real = self.operate("Add", a, self.operate("Mult", b, ratio))
        imag = self.operate("Sub", b, self.operate("Mult", a, ratio))
        opposite = IRValue(imag.type, self.emit(f"fneg {llvm_type(imag.type)} {imag.text}"))
        imag = self.select(keep, imag, opposite)
        return self.operate("Div", real, under), self.operate("Div", imag, under)

    def _common_complex(self, x: str, y: str) -> str:
        narrow = {"c64", "f32", "b1"}
        return "c64" if {x, y} <= narrow else "c128"

    def operate(self, symbol: str, x: IRValue, y: IRValue) -> IRValue:
        """Return an operator applied to two numbers."""
        if not (x.is_number and y.is_number):
            raise Untranslatable(f"{symbol} of {x.type} and {y.type}")
        if x.type == y.type == "b1" and symbol in BITWISE:
            return IRValue("b1", self.emit(f"{BITWISE[symbol]} i1 {x.text}, {y.text}"))
        if x.is_complex or y.is_complex:
            return self._operate_complex(symbol, x, y)
        if x.type in FLOATS or y.type in FLOATS or symbol == "Div":
            kind = x.type if x.type == y.type else "f64"
            name = FLOAT_ARITHMETIC.get(symbol)
            if name is None or "b1" in (x.type, y.type) or kind not in FLOATS:
                raise Untranslatable(f"{symbol} of {x.type} and {y.type}")
            x, y = self.cast(x, kind), self.cast(y, kind)
            if symbol == "Mod":
                return self._floor_remainder(x, y)
            return IRValue(kind, self.emit(f"{name} {llvm_type(kind)} {x.text}, {y.text}"))
        kind = "u64" if x.type[0] == y.type[0] == "u" else "i64"
        x, y = self.cast(x, kind), self.cast(y, kind)
        if symbol in ("FloorDiv", "Mod"):
            return self._divided(x, y, symbol, kind)
        shifts = {"LShift": "shl", "RShift": "ashr" if kind == "i64" else "lshr"}
        name = ARITHMETIC.get(symbol) or BITWISE.get(symbol) or shifts.get(symbol)
        if name is None:
            raise Untranslatable(symbol)
        if x.integer is not None and y.integer is not None and symbol in ARITHMETIC:
            a, b = x.integer, y.integer
            return IRValue(kind, str({"add": a + b, "sub": a - b, "mul": a * b}[name]))
        return IRValue(kind, self.emit(f"{name} i64 {x.text}, {y.text}"))

    def product(self, x: IRValue, y: IRValue) -> IRValue | FloatProduct:
        """Return a product; its factors if it may be contracted into a sum."""
        floats = {x.type, y.type} & {*FLOATS}
        if not (self.fuses and floats and all(factor.is_number for factor in (x, y))):
            return self.operate("Mult", x, y)
        if x.is_complex or y.is_complex or "b1" in (x.type, y.type):
            return self.operate("Mult", x, y)
        kind = x.type if x.type == y.type else "f64"
        return FloatProduct(self.cast(x, kind), self.cast(y, kind))

    def whole(self, term: IRValue | FloatProduct) -> IRValue:
        return self.operate("Mult", *term) if isinstance(term, FloatProduct) else term

    def add(
        self, x: IRValue | FloatProduct, y: IRValue | FloatProduct, symbol: str = "Add"
    ) -> IRValue:
        """Return a sum or a difference; at most one product in it becomes a fused multiply-add."""
        for term, other in ((x, y), (y, x)):
            own = other.x.type if isinstance(other, FloatProduct) else other.type
            if not isinstance(term, FloatProduct) or not isinstance(own, str):
                continue
            kind = term.x.type
            if own == kind or (kind == "f64" and own not in PARTS and own != "b1"):
                (a, b), c = term, self.cast(self.whole(other), kind)
                if symbol == "Sub":
                    b, c = (b, self.opposite(c)) if term is x else (self.opposite(b), c)
                return IRValue(kind, self.call_intrinsic("fma", a, b, c))
        return self.operate(symbol, self.whole(x), self.whole(y))

    def remainder(self, x: IRValue, y: IRValue) -> IRValue:
        """Return the remainder of floats as in C."""
        return IRValue(x.type, self.emit(f"frem {llvm_type(x.type)} {x.text}, {y.text}"))

    def _floor_remainder(self, x: IRValue, y: IRValue) -> IRValue:
        """Return the remainder of floats as in Python, with the sign of the divisor."""
        word, zero = llvm_type(x.type), number(0.0, x.type)
        rest = self.remainder(x, y).text
        exact = self.emit(f"fcmp oeq {word} {rest}, {zero}")
        none = self.call_intrinsic("copysign", IRValue(x.type, zero), y)
        below = [self.emit(f"fcmp olt {word} {text}, {zero}") for text in (rest, y.text)]
        differ = self.emit(f"xor i1 {below[0]}, {below[1]}")
        more = self.emit(f"fadd {word} {rest}, {y.text}")
        other = self.emit(f"select i1 {differ}, {word} {more}, {word} {rest}")
        return IRValue(x.type, self.emit(f"select i1 {exact}, {word} {none}, {word} {other}"))

    def _divided(self, x: IRValue, y: IRValue, symbol: str, kind: str) -> IRValue:
        """Return a quotient rounded down, or its remainder; the divisor is not 0."""
        if kind == "u64":
            name = "urem" if symbol == "Mod" else "udiv"
            return IRValue(kind, self.emit(f"{name} i64 {x.text}, {y.text}"))
        rest = self.emit(f"srem i64 {x.text}, {y.text}")
        signs = self.emit(f"xor i64 {rest}, {y.text}")
        differ = self.emit(f"icmp slt i64 {signs}, 0")
        inexact = self.emit(f"icmp ne i64 {rest}, 0")
        below = self.emit(f"and i1 {differ}, {inexact}")
        if symbol == "Mod":
            more = self.emit(f"add i64 {rest}, {y.text}")
            return IRValue("i64", self.emit(f"select i1 {below}, i64 {more}, i64 {rest}"))
        quotient = self.emit(f"sdiv i64 {x.text}, {y.text}")
        less = self.emit(f"sub i64 {quotient}, 1")
        return IRValue("i64", self.emit(f"select i1 {below}, i64 {less}, i64 {quotient}"))

    def select(self, test: str, x: IRValue, y: IRValue) -> IRValue:
        """Return the first of two numbers of one type if a condition holds, else the second."""
        word = llvm_type(x.type)
        return IRValue(x.type, self.emit(f"select i1 {test}, {word} {x.text}, {word} {y.text}"))

    def compare(self, symbol: str, x: IRValue, y: IRValue) -> str:
        if symbol not in COMPARED:
            raise Untranslatable(symbol)
        if not (x.is_number and y.is_number) or "object" in (x.type, y.type):
            raise Untranslatable(f"{symbol} of {x.type} and {y.type}")
        if x.is_complex or y.is_complex:
            if symbol not in ("eq", "noteq"):
                raise Unsupported("complex numbers have no order")
            parts = [self.compare(symbol, self.part(x, k), self.part(y, k)) for k in range(2)]
            return self.emit(f"{'and' if symbol == 'eq' else 'or'} i1 {parts[0]}, {parts[1]}")
        if x.type in FLOATS or y.type in FLOATS:
            constants = [v for v in (x, y) if v.integer is not None]
            others = [v for v in (x, y) if v.type in FLOATS]
            kind = x.type if x.type == y.type else "f64"
            if constants and len(others) == 1:
                kind = others[0].type
            if "b1" in (x.type, y.type):
                raise Untranslatable(f"{symbol} of {x.type} and {y.type}")
            x, y = self.cast(x, kind), self.cast(y, kind)
            a, b = float_of(x.text), float_of(y.text)
            if a is not None and b is not None:
                return str(COMPARED[symbol](a, b)).lower()
            test = f"{'u' if symbol == 'noteq' else 'o'}{TESTS[symbol]}"
            return self.emit(f"fcmp {test} {llvm_type(kind)} {x.text}, {y.text}")
        if x.integer is not None and y.integer is not None:
            return str(COMPARED[symbol](x.integer, y.integer)).lower()
        if x.type[0] == "u" and y.integer is not None and y.integer < 0:
            return "true" if symbol in ("noteq", "gt", "gte") else "false"
        if x.type != y.type:
            x, y = self._alike(x, y)
        sign = "" if symbol in ("eq", "noteq") else "u" if x.type[0] in "ub" else "s"
        return self.emit(f"icmp {sign}{TESTS[symbol]} {llvm_type(x.type)} {x.text}, {y.text}")

    def _alike(self, x: IRValue, y: IRValue) -> tuple[IRValue, IRValue]:
        """Return two integers of different types, cast to one type that can hold both."""
        if x.type[0] == y.type[0] == "i":
            return self.cast(x, "i64"), self.cast(y, "i64")
        for a, b in ((x, y), (y, x)):
            if b.integer is not None and b.integer >= 0 and a.type[0] in "ub":
                if a.type == "b1" and b.integer > 1:
                    break
                other = IRValue("b1", str(bool(b.integer)).lower()) if a.type == "b1" else None
                other = other or self.cast(b, a.type)
                return (a, other) if a is x else (other, a)
        raise Untranslatable(f"a comparison of {x.type} and {y.type}")

    def extremum(self, target: Callable, values: list[IRValue]) -> IRValue:
        if len(values) == 2 and values[0].type == values[1].type in FLOATS:
            first, other = values  # as in Python: the first one if they do not compare
            test = self.compare("lt" if target is min else "gt", other, first)
            return self.select(test, other, first)
        if any(not value.is_number or value.type[0] != "i" for value in values):
            raise Untranslatable(f"the extremum of {[value.type for value in values]}")
        kind = values[0].type if len({value.type for value in values}) == 1 else "i64"
        total, *others = (self.cast(value, kind) for value in values)
        order, word = "slt" if target is min else "sgt", llvm_type(kind)
        for other in others:
            test = self.emit(f"icmp {order} {word} {total.text}, {other.text}")
            total = self.select(test, total, other)
        return total

    def library(self, name: str, *values: IRValue) -> IRValue:
        """Call a function of C's math library, with floats of one type."""
        kind = values[0].type
        if kind not in FLOATS or any(value.type != kind for value in values):
            raise Untranslatable(f"{name} of {[value.type for value in values]}")
        word, symbol = STORED[kind], name if kind == "f64" else f"{name}f"
        return IRValue(kind, self.call(symbol, word, *[(word, value.text) for value in values]))

    def opposite(self, value: IRValue) -> IRValue:
        kind = value.type
        if not value.is_number or kind[0] not in "iufc":
            raise Untranslatable("a sign")
        if value.is_complex:
            word = llvm_type(PARTS[kind])
            return IRValue(kind, tuple(self.emit(f"fneg {word} {x}") for x in value.text))
        if kind in FLOATS:
            literal = float_of(value.text)
            if literal is not None:
                return IRValue(kind, number(-literal, kind))
            return IRValue(kind, self.emit(f"fneg {llvm_type(kind)} {value.text}"))
        kind = f"{kind[0]}64"
        value = self.cast(value, kind)
        if value.integer is not None:
            return IRValue(kind, str(-value.integer))
        return IRValue(kind, self.emit(f"sub i64 0, {value.text}"))

    def absolute(self, value: IRValue) -> IRValue:
        if value.is_complex:
            return self.library("hypot", self.part(value, 0), self.part(value, 1))
        if value.type in FLOATS:
            return IRValue(value.type, self.call_intrinsic("fabs", value))
        value = self.cast(value, "i64")
        opposite = self.emit(f"sub i64 0, {value.text}")
        below = self.emit(f"icmp slt i64 {value.text}, 0")
        both = f"select i1 {below}, i64 {opposite}, i64 {value.text}"
        return IRValue("i64", self.emit(both))

    def common(self, x: Any, y: Any) -> Any:
        """Return the type of a value that has one of two types."""
        if x == y:
            return x
        if isinstance(x, str) and isinstance(y, str):
            if x in FLOATS and y in FLOATS:
                return "f64"
            if x[0] == y[0] and x[0] in "iu":
                return f"{x[0]}64"
            if {x[0], y[0]} == {"f", "i"}:
                return "f64"
            if x in PARTS or y in PARTS:
                return self._common_complex(x, y)
        elif is_tuple(x) and is_tuple(y) and len(x) == len(y):
            return tuple(self.common(a, b) for a, b in zip(x, y, strict=True))
        raise Untranslatable(f"either {x} or {y}")

    def converted(self, value: IRValue, kind: Any) -> IRValue:
        if value.type == kind:
            return value
        if isinstance(kind, str):
            return self.cast(value, kind)
        parts = tuple(self.converted(part, to) for part, to in zip(value.text, kind, strict=True))
        return IRValue(kind, parts)


def is_tuple(kind: Any) -> bool:
    return isinstance(kind, tuple) and not isinstance(kind, Array)


def holds(kind: str, value: IRValue) -> bool:
    """Return whether a result type can hold another value, as Numba unifies types."""
    own = value.type
    if kind == "f64":
        return own == "f32" or own[0] == "i"
    return kind == "i64" and own[0] == "i"


def is_harmless(lines: list[str], reads: int) -> bool:
    """Return whether lines are few, and may run although their condition is false.

    `reads` is the number of variables they read without loading them.
    """
    if len(lines) + reads > 8:
        return False
    for line in lines:
        operation = line.partition(" = ")[2] or line.strip()
        if operation.startswith("load") and "ptr %s" in operation:  # a variable
            continue
        if line.endswith(":") or operation.startswith(_HARMFUL):
            return False
    return True
