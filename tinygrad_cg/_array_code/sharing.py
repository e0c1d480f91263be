"""Common subexpressions: what was computed, loaded or stored before is not computed again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .program import (
    Array,
    ArrayProgram,
    Block,
    Carry,
    Fill,
    FixedNumber,
    For,
    If,
    LoadElement,
    Merge,
    Number,
    Op,
    PopArray,
    Push,
    Require,
    Statement,
    Store,
    While,
    walk,
)

Available = dict[Any, Number]
"""Values by what they are: an operation and its arguments, or an element of an array."""


def share(program: ArrayProgram) -> ArrayProgram:
    """Return a program that does the same, with each value computed once in a block."""
    sharing = _Sharing()
    body = sharing.block(program.body, {})
    outputs = [x if isinstance(x, Array) else sharing.now(x) for x in program.outputs]
    return replace(program, outputs=outputs, body=body)


class _Sharing:
    def __init__(self) -> None:
        self.replaced: dict[Number, Number] = {}

    def now(self, value: Number) -> Number:
        return self.replaced.get(value, value)

    def all(self, values: tuple[Number, ...]) -> tuple[Number, ...]:
        return tuple(map(self.now, values))

    def block(self, block: Block, available: Available) -> Block:
        result: Block = []
        for statement in block:
            self.statement(statement, available, result)
        return result

    def statement(self, statement: Statement, available: Available, block: Block) -> None:
        match statement:
            case Op(out, function, args):
                args = self.all(args)
                key = function, *map(_key, args), out.type
                if key in available:
                    self.replaced[out] = available[key]
                    return
                available[key] = out
                block.append(Op(out, function, args))
            case LoadElement(out, array, index):
                index = self.all(index)
                key = array, *map(_key, index)
                if key in available:
                    self.replaced[out] = available[key]
                    return
                available[key] = out
                block.append(LoadElement(out, array, index))
            case Store(array, index, value, adds):
                index, value = self.all(index), self.now(value)
                _forget(available, {array})
                if not adds and value.type == array.element:
                    available[(array, *map(_key, index))] = value
                block.append(Store(array, index, value, adds))
            case Fill(array, value):
                _forget(available, {array})
                block.append(Fill(array, None if value is None else self.now(value)))
            case PopArray(array):
                _forget(available, {array})
                block.append(statement)
            case Require(test, error):
                block.append(Require(self.now(test), error))
            case Push(values):
                block.append(Push(self.all(values)))
            case If():
                self.branch(statement, available, block)
            case For() | While():
                self.loop(statement, available, block)
            case _:
                block.append(statement)

    def branch(self, statement: If, available: Available, block: Block) -> None:
        then = self.block(statement.then, dict(available))
        otherwise = self.block(statement.otherwise, dict(available))
        merges = [Merge(m.out, self.now(m.then), self.now(m.otherwise)) for m in statement.merges]
        _forget(available, _written(then) | _written(otherwise))
        block.append(If(self.now(statement.test), then, otherwise, merges))

    def loop(self, statement: For | While, available: Available, block: Block) -> None:
        written = _written(statement.body)
        if isinstance(statement, While):
            written |= _written(statement.before)
        _forget(available, written)
        is_while = isinstance(statement, While)
        before = self.block(statement.before, dict(available)) if is_while else []
        body = self.block(statement.body, dict(available))  # which sees nothing of the test
        carries = [
            Carry(c.inside, self.now(c.init), self.now(c.result), c.out) for c in statement.carries
        ]
        leaves = None if statement.leaves is None else self.now(statement.leaves)
        if isinstance(statement, While):
            block.append(While(before, self.now(statement.test), body, carries, leaves))
        else:
            bounds = self.now(statement.start), self.now(statement.stop), statement.step
            block.append(For(statement.index, *bounds, body, carries, leaves))


def _key(value: Number) -> Any:
    if isinstance(value, FixedNumber):
        return value.type, repr(value.number)
    return value


def _written(block: Block) -> set[Array]:
    return {x.array for x in walk(block) if isinstance(x, (Store, Fill, PopArray))}


def _forget(available: Available, arrays: set[Array]) -> None:
    """Forget the elements of arrays."""
    for key in [key for key in available if isinstance(key[0], Array) and key[0] in arrays]:
        del available[key]
