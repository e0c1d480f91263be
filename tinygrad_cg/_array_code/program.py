"""Programs: numbers that are assigned once, arrays in memory, loops and branches.

A block is a list of statements. Each number (`Number`) is defined by one statement, or is an input;
a statement sees the values of its own block and of the blocks around it. What changes from round to
round of a loop is a `Carry`; what depends on a branch is a `Merge`. Arrays are allocated before a
program begins. Different arrays never share memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

FLOATS = ("f32", "f64")


@dataclass(eq=False, slots=True)
class Number:
    """A number. `low` is a lower bound of an integer, where one is known."""

    type: str
    hint: str = "t"
    low: int | None = None

    @property
    def is_float(self) -> bool:
        return self.type in FLOATS


@dataclass(eq=False, slots=True)
class FixedNumber(Number):
    """A number that is known."""

    number: float | int | bool = 0


@dataclass(eq=False, slots=True)
class Array:
    """Memory for elements of one type; `element` is the dtype's name in the kernels' language."""

    element: str
    shape: tuple[Number, ...]
    hint: str = "a"

    @property
    def is_float(self) -> bool:
        return self.element in FLOATS


Index = tuple[Number, ...]


@dataclass(eq=False, slots=True)
class Op:
    """A pure function of numbers: one of the kernels', or a name in `scalar_operations.TEXTS`."""

    out: Number
    function: Callable | str
    args: tuple[Number, ...]


@dataclass(eq=False, slots=True)
class LoadElement:
    out: Number
    array: Array
    index: Index


@dataclass(eq=False, slots=True)
class Store:
    """``array[index] = value``, or ``array[index] += value``."""

    array: Array
    index: Index
    value: Number
    adds: bool = False


@dataclass(eq=False, slots=True)
class Fill:
    """All elements become `value`; without one they are undefined from here on."""

    array: Array
    value: Number | None


@dataclass(eq=False, slots=True)
class Require:
    """Stop, with an error of the program's, unless `test` is true."""

    test: Number
    error: int


@dataclass(eq=False, slots=True)
class Push:
    """Save numbers; `Pop` in reverse order gives them back."""

    values: tuple[Number, ...]


@dataclass(eq=False, slots=True)
class Pop:
    outs: tuple[Number, ...]


@dataclass(eq=False, slots=True)
class PushArray:
    """Save all elements of an array; `PopArray` gives them back."""

    array: Array


@dataclass(eq=False, slots=True)
class PopArray:
    array: Array


@dataclass(eq=False, slots=True)
class Merge:
    """A value after a branch: `then` or `otherwise`."""

    out: Number
    then: Number
    otherwise: Number


@dataclass(eq=False, slots=True)
class If:
    test: Number
    then: Block
    otherwise: Block
    merges: list[Merge] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Carry:
    """A value that a loop changes: `inside` a round, `result` at its end, `out` after the loop."""

    inside: Number
    init: Number
    result: Number
    out: Number


@dataclass(eq=False, slots=True)
class For:
    """``for index in range(start, stop, step)``; left after a round in which `leaves` is true."""

    index: Number
    start: Number
    stop: Number
    step: FixedNumber
    body: Block
    carries: list[Carry]
    leaves: Number | None = None


@dataclass(eq=False, slots=True)
class While:
    """`before` computes `test`; `body` follows while that is true, and `leaves` is not."""

    before: Block
    test: Number
    body: Block
    carries: list[Carry]
    leaves: Number | None = None


Statement = (
    Op | LoadElement | Store | Fill | Require | Push | Pop | PushArray | PopArray | If | For | While
)
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
    sizes: Block = field(default_factory=list)
    scratch: list[Array] = field(default_factory=list)
    body: Block = field(default_factory=list)
    constants: list[tuple[Array, Any]] = field(default_factory=list)
    errors: list[tuple[type[Exception], str]] = field(default_factory=list)

    def add_zeros(self, like: Array, hint: str) -> Array:
        """Add an array of zeros, which are written next, and return it."""
        zeros = Array(like.element, like.shape, hint)
        self.scratch.append(zeros)
        self.body.append(Fill(zeros, zero(like)))
        return zeros


def blocks_of(statement: Statement) -> tuple[Block, ...]:
    """Return the blocks inside a statement, in the order in which they run."""
    if isinstance(statement, If):
        return statement.then, statement.otherwise
    if isinstance(statement, While):
        return statement.before, statement.body
    return (statement.body,) if isinstance(statement, For) else ()


def walk(block: Block) -> Iterator[Statement]:
    """Yield all statements of a block and of the blocks in it."""
    for statement in block:
        yield statement
        for inner in blocks_of(statement):
            yield from walk(inner)


def operands(statement: Statement) -> tuple[Number, ...]:
    """Return the values that a statement reads itself; those of its blocks not among them."""
    match statement:
        case Op():
            return statement.args
        case LoadElement():
            return statement.index
        case Store():
            return *statement.index, statement.value
        case Fill():
            return () if statement.value is None else (statement.value,)
        case Require():
            return (statement.test,)
        case Push():
            return statement.values
        case If():
            merged = (
                value for merge in statement.merges for value in (merge.then, merge.otherwise)
            )
            return statement.test, *merged
        case For() | While():
            ends = () if statement.leaves is None else (statement.leaves,)
            carried = (value for carry in statement.carries for value in (carry.init, carry.result))
            if isinstance(statement, While):
                return statement.test, *ends, *carried
            return statement.start, statement.stop, statement.step, *ends, *carried
    return ()


def results(statement: Statement) -> tuple[Number, ...]:
    """Return the values that a statement defines for what follows it."""
    match statement:
        case Op() | LoadElement():
            return (statement.out,)
        case Pop():
            return statement.outs
        case If():
            return tuple(merge.out for merge in statement.merges)
        case For() | While():
            return tuple(carry.out for carry in statement.carries)
    return ()


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


def zero(thing: Number | Array) -> FixedNumber:
    """Return the zero of a number's type, or of an array's elements."""
    return fixed(thing.element if isinstance(thing, Array) else thing.type, 0)


def rebuilt(
    statement: Statement, now: Callable, fresh: Callable, blocks: Sequence[Block]
) -> Statement:
    """Return a statement of other values, `now`, and other blocks, with `fresh` results."""

    def carries(old: Sequence[Carry]) -> list[Carry]:
        return [Carry(now(c.inside), now(c.init), now(c.result), fresh(c.out)) for c in old]

    match statement:
        case Op(out, function, args):
            return Op(fresh(out), function, tuple(map(now, args)))
        case LoadElement(out, array, index):
            return LoadElement(fresh(out), array, tuple(map(now, index)))
        case Store(array, index, value, adds):
            return Store(array, tuple(map(now, index)), now(value), adds)
        case Fill(array, value):
            return Fill(array, None if value is None else now(value))
        case Require(test, error):
            return Require(now(test), error)
        case Push(values):
            return Push(tuple(map(now, values)))
        case Pop(outs):
            return Pop(tuple(map(fresh, outs)))
        case If(test, _, _, merges):
            merges = [Merge(fresh(m.out), now(m.then), now(m.otherwise)) for m in merges]
            return If(now(test), blocks[0], blocks[1], merges)
        case For(index, start, stop, step, _, old, leaves):
            ends = None if leaves is None else now(leaves)
            bounds = now(start), now(stop), step
            return For(now(index), *bounds, blocks[0], carries(old), ends)
        case While(_, test, _, old, leaves):
            ends = None if leaves is None else now(leaves)
            return While(blocks[0], now(test), blocks[1], carries(old), ends)
    return statement


def copied(block: Block, values: dict[Number, Number], without: Collection[Array] = ()) -> Block:
    """Return a block of other values, with results of its own, which are added to `values`.

    It does not write to the arrays of `without`.
    """

    def now(value: Number) -> Number:
        return values.get(value, value)

    def fresh(value: Number) -> Number:
        values[value] = Number(value.type, value.hint, value.low)
        return values[value]

    result: Block = []
    for statement in block:
        if isinstance(statement, (For, While)):
            for carry in statement.carries:
                fresh(carry.inside)
            if isinstance(statement, For):
                fresh(statement.index)
        if isinstance(statement, (Store, Fill)) and statement.array in without:
            continue
        blocks = [copied(inner, values, without) for inner in blocks_of(statement)]
        result.append(rebuilt(statement, now, fresh, blocks))
    return result
