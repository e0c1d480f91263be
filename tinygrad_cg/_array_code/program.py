"""Programs: numbers that are assigned once, arrays in memory, loops and branches.

A block is a list of statements. Each number (`Number`) is defined by one statement, or is an input;
a statement sees the values of its own block and of the blocks around it. What changes from round to
round of a loop is a `Carry`; what depends on a branch is a `Merge`. Arrays are allocated before a
program begins. Different arrays never share memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np

from .._function.graph.values import reach

FLOATS = ("f32", "f64")
DTYPES = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "b1": np.dtype(np.bool_),
    **{f"i{n}": np.dtype(f"int{n}") for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"uint{n}") for n in (8, 16, 32, 64)},
}
"""Dtypes by their names in the kernels' language."""


@dataclass(eq=False, slots=True)
class Number:
    """A number: `low` is a lower bound of an integer, `number` the value, where they are known."""

    type: str
    hint: str = "t"
    low: int | None = None
    number: Any = None

    @property
    def is_float(self) -> bool:
        return self.type in FLOATS


@dataclass(eq=False, slots=True)
class FixedNumber(Number):
    """A number that is known. Those of one type and value, also of zero's sign, are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FixedNumber) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, str]:
        return self.type, repr(self.number)


@dataclass(eq=False, slots=True)
class Array:
    """Memory for elements of one type; `element` is the dtype's name in the kernels' language."""

    element: str
    shape: tuple[Number, ...]
    hint: str = "a"

    @property
    def type(self) -> str:
        """The type of a number that is an element."""
        return self.element if self.element in (*FLOATS, "b1") else "i64"

    @property
    def is_float(self) -> bool:
        return self.element in FLOATS


Index = tuple[Number, ...]
Numbers = Sequence[Number]
Thing = Number | Array
Bounds = tuple[Number, Number, Number]  # start, stop and step of a loop's index


class ProgramPart:
    """A statement, a merge or a carry: the names of its fields by what they are.

    Numbers that it `reads`; that it `defines` for what follows; that it `binds` for its blocks; its
    `blocks`, in the order in which they run; and its merges or carries, which are `parts`.
    """

    __slots__ = ()
    reads: ClassVar[tuple[str, ...]] = ()
    defines: ClassVar[tuple[str, ...]] = ()
    binds: ClassVar[tuple[str, ...]] = ()
    blocks: ClassVar[tuple[str, ...]] = ()
    parts: ClassVar[str] = ""

    def inner_blocks(self) -> list[Block]:
        """Return the blocks, in the order in which they run."""
        return [getattr(self, name) for name in self.blocks]

    def with_blocks(self: Any, change: Callable[[Block], Block]) -> Any:
        """Return the statement with its blocks changed."""
        blocks = {name: change(getattr(self, name)) for name in self.blocks}
        return replace(self, **blocks) if blocks else self

    def own_parts(self) -> list[Any]:
        """Return the merges of a branch, or the carries of a loop."""
        return getattr(self, self.parts) if self.parts else []

    def numbers(self, names: Iterable[str]) -> list[Number]:
        """Return the numbers in some fields."""
        numbers: list[Number] = []
        for name in names:
            value = getattr(self, name)
            numbers += value if isinstance(value, tuple) else [value] * (value is not None)
        return numbers

    def _with_parts(self, role: str) -> list[Number]:
        numbers = self.numbers(getattr(self, role))
        for part in self.own_parts():
            numbers += part.numbers(getattr(part, role))
        return numbers

    def operands(self) -> list[Number]:
        """Return the values that a statement reads itself; those of its blocks not among them."""
        return self._with_parts("reads")

    def results(self) -> list[Number]:
        """Return the values that a statement defines for what follows it."""
        return self._with_parts("defines")

    def bound(self) -> list[Number]:
        """Return the values that a loop gives its rounds: its index, and what it carries."""
        return self._with_parts("binds")

    def rebuilt(self: Any, now: Callable, fresh: Callable, blocks: Sequence[Block] = ()) -> Any:
        """Return a statement of other values, `now`, and other blocks, with `fresh` results."""

        def changed(value: Any, change: Callable) -> Any:
            if isinstance(value, tuple):
                return tuple(map(change, value))
            return None if value is None else change(value)

        fields = dict(zip(self.blocks, blocks, strict=True))
        for name in (*self.reads, *self.binds):
            fields[name] = changed(getattr(self, name), now)
        if self.parts:
            fields[self.parts] = [part.rebuilt(now, fresh) for part in self.own_parts()]
        for name in self.defines:
            fields[name] = changed(getattr(self, name), fresh)
        return replace(self, **fields)


@dataclass(eq=False, slots=True)
class Op(ProgramPart):
    """A pure function of numbers: one of the kernels', or a name in `scalar_operations.TEXTS`."""

    reads, defines = ("args",), ("out",)
    out: Number
    function: Callable | str
    args: tuple[Number, ...]


@dataclass(eq=False, slots=True)
class LoadElement(ProgramPart):
    reads, defines = ("index",), ("out",)
    out: Number
    array: Array
    index: Index


@dataclass(eq=False, slots=True)
class Store(ProgramPart):
    """``array[index] = value``, or ``array[index] += value``."""

    reads = ("index", "value")
    array: Array
    index: Index
    value: Number
    adds: bool = False


@dataclass(eq=False, slots=True)
class Fill(ProgramPart):
    """All elements become `value`; without one they are undefined from here on."""

    reads = ("value",)
    array: Array
    value: Number | None


@dataclass(eq=False, slots=True)
class Require(ProgramPart):
    """Stop, with an error of the program's, unless `test` is true."""

    reads = ("test",)
    test: Number
    error: int


@dataclass(eq=False, slots=True)
class Push(ProgramPart):
    """Save numbers; `Pop` in reverse order gives them back."""

    reads = ("values",)
    values: tuple[Number, ...]


@dataclass(eq=False, slots=True)
class Pop(ProgramPart):
    defines = ("outs",)
    outs: tuple[Number, ...]


@dataclass(eq=False, slots=True)
class Merge(ProgramPart):
    """A value after a branch: `then` or `otherwise`."""

    reads, defines = ("then", "otherwise"), ("out",)
    out: Number
    then: Number
    otherwise: Number


@dataclass(eq=False, slots=True)
class If(ProgramPart):
    reads, blocks, parts = ("test",), ("then", "otherwise"), "merges"
    test: Number
    then: Block
    otherwise: Block
    merges: list[Merge] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Carry(ProgramPart):
    """A value that a loop changes: `inside` a round, `result` at its end, `out` after the loop."""

    reads, defines, binds = ("init", "result"), ("out",), ("inside",)
    inside: Number
    init: Number
    result: Number
    out: Number


@dataclass(eq=False, slots=True)
class For(ProgramPart):
    """``for index in range(start, stop, step)``; left after a round in which `leaves` is true.

    Where there is a `test`, which `before` computes, a round begins only if that is true.
    """

    reads, binds = ("start", "stop", "step", "test", "leaves"), ("index",)
    blocks, parts = ("before", "body"), "carries"
    index: Number
    start: Number
    stop: Number
    step: Number
    body: Block
    carries: list[Carry]
    leaves: Number | None = None
    before: Block = field(default_factory=list)
    test: Number | None = None

    @property
    def is_counted(self) -> bool:
        """Whether all rounds of the range run."""
        return self.test is None and self.leaves is None


Statement = Op | LoadElement | Store | Fill | Require | Push | Pop | If | For
Block = list[Statement]


@dataclass(eq=False, slots=True)
class ArrayProgram:
    """What a function does: from inputs, numbers and arrays, to outputs.

    `inputs` that are arrays may be written to: they are copies. `scratch` arrays are allocated
    first; their shapes are made of `sizes`, statements that depend on inputs alone. `constants` are
    arrays that the function finds by name. `errors` are the exceptions of `Require`.
    """

    name: str
    inputs: list[Number | Array] = field(default_factory=list)
    outputs: list[Number | Array] = field(default_factory=list)
    sizes: list[Op] = field(default_factory=list)
    scratch: list[Array] = field(default_factory=list)
    body: Block = field(default_factory=list)
    constants: list[tuple[Array, Any]] = field(default_factory=list)
    errors: list[tuple[type[Exception], str]] = field(default_factory=list)

    @property
    def written(self) -> KeysView[Array]:
        """The arrays that the program writes to."""
        return arrays_of(self.body, Store, Fill)

    def zeros(self, like: Thing, mark: str) -> Thing:
        """Return the number 0, or a new array of zeros, which are written next."""
        if isinstance(like, Number):
            return zero(like)
        zeros = replace(like, hint=f"{like.hint}_{mark}")
        self.scratch.append(zeros)
        self.body.append(Fill(zeros, zero(like)))
        return zeros


def walk(block: Block) -> Iterator[Statement]:
    """Yield all statements of a block and of the blocks in it."""
    for statement in block:
        yield statement
        for inner in statement.inner_blocks():
            yield from walk(inner)


def arrays_of(block: Block, *kinds: type) -> KeysView[Array]:
    """Return the arrays that statements of some kinds access, in the order of the statements."""
    statements: Iterator[Any] = walk(block)
    return dict.fromkeys(x.array for x in statements if isinstance(x, kinds)).keys()


def defined(block: Block) -> set[Number]:
    """Return all values that have a definition in a block, or in a block of it."""
    return {value for x in walk(block) for value in (*x.results(), *x.bound())}


def definitions(block: Block) -> dict[Number, Op]:
    """Return the operations of a block, and of the blocks in it, by their results."""
    return {x.out: x for x in walk(block) if isinstance(x, Op)}


def varied(program: ArrayProgram, roots: Iterable[Thing], backward: bool = False) -> set[Thing]:
    """Return the floats, and arrays of floats, that depend on roots; `backward`, those they need.

    Which number was pushed is not known where one is popped: None stands for all of them.
    """
    following: dict[Any, list[Any]] = {}
    for statement in walk(program.body):
        array = getattr(statement, "array", None)
        for part in (statement, *statement.own_parts()):
            targets = part.numbers((*part.defines, *part.binds)) or [array]
            sources = [*part.numbers(part.reads), *[array] * isinstance(part, (LoadElement, Pop))]
            for pair in product(targets, sources):
                if all(thing is None or thing.is_float for thing in pair):
                    start, end = pair if backward else pair[::-1]
                    following.setdefault(start, []).append(end)
    return set(reach(roots, lambda thing: following.get(thing, ())))


def fixed(kind: str, number: float) -> FixedNumber:
    """Return a constant of an element type; that of all integers is i64."""
    if kind in FLOATS:
        return FixedNumber(kind, "c", None, float(number))
    if kind == "b1":
        return FixedNumber(kind, "c", None, bool(number))
    return FixedNumber("i64", "c", int(number), int(number))


def constant(number: float | int | bool) -> FixedNumber:
    """Return a constant of Python's type: f64, i64 or b1."""
    return fixed({bool: "b1", int: "i64"}.get(type(number), "f64"), number)


def like(value: Number, hint: str | None = None) -> Number:
    """Return another number of the same type and lower bound."""
    return Number(value.type, value.hint if hint is None else hint, value.low)


def counting(index: Number, size: Number, body: Block, carries: Sequence[Carry] = ()) -> For:
    """Return the loop over the numbers from 0 to a size."""
    return For(index, constant(0), size, constant(1), body, [*carries])


def term_of(value: Number, definitions: Mapping[Number, Statement]) -> tuple[Number | None, int]:
    """Return the number, or None, and the constant whose sum an integer is."""
    if value.number is not None:
        return None, int(value.number)
    match definitions.get(value):
        case Op(_, "add", (FixedNumber() as y, x)) | Op(_, "add", (x, FixedNumber() as y)):
            base, constant = term_of(x, definitions)
            return base, constant + y.number
        case Op(_, "subtract", (x, FixedNumber() as y)):
            base, constant = term_of(x, definitions)
            return base, constant - y.number
    return value, 0


def zero(thing: Number | Array) -> FixedNumber:
    """Return the zero of a number's type, or of an array's elements."""
    return fixed(thing.element if isinstance(thing, Array) else thing.type, 0)


def copied(block: Block, values: dict[Number, Number]) -> Block:
    """Return a block of other values, with results of its own, which are added to `values`."""

    def now(value: Number) -> Number:
        return values.get(value, value)

    def fresh(value: Number) -> Number:
        values[value] = like(value)
        return values[value]

    result: Block = []
    for statement in block:
        for value in statement.bound():
            fresh(value)
        blocks = [copied(inner, values) for inner in statement.inner_blocks()]
        result.append(statement.rebuilt(now, fresh, blocks))
    return result
