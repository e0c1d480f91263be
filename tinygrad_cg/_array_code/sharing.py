"""Common subexpressions: what was computed, loaded or stored before is not computed again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .program import (
    Array,
    ArrayProgram,
    Block,
    Fill,
    FixedNumber,
    For,
    If,
    LoadElement,
    Number,
    Op,
    PopArray,
    Statement,
    Store,
    While,
    blocks_of,
    rebuilt,
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

    def block(self, block: Block, available: Available) -> Block:
        result: Block = []
        for statement in block:
            self.statement(statement, available, result)
        return result

    def statement(self, statement: Statement, available: Available, block: Block) -> None:
        blocks: list[Block] = []
        if isinstance(statement, (If, For, While)):
            written = set().union(*map(_written, blocks_of(statement)))
            if isinstance(statement, If):  # whose branches begin with what is available
                blocks = [self.block(side, dict(available)) for side in blocks_of(statement)]
            _forget(available, written)
            if not isinstance(statement, If):  # a loop's body sees nothing of its test
                blocks = [self.block(part, dict(available)) for part in blocks_of(statement)]
        new = rebuilt(statement, self.now, lambda value: value, blocks)
        match new:
            case Op(out, function, args):
                if self.is_available(out, (function, *map(_key, args), out.type), available):
                    return
            case LoadElement(out, array, index):
                if self.is_available(out, (array, *map(_key, index)), available):
                    return
            case Store(array, index, value, adds):
                _forget(available, {array})
                if not adds and value.type == array.element:
                    available[(array, *map(_key, index))] = value
            case Fill(array) | PopArray(array):
                _forget(available, {array})
        block.append(new)

    def is_available(self, out: Number, key: tuple, available: Available) -> bool:
        """Return whether there is a value for a key, which `out` is from now on."""
        found = available.setdefault(key, out)
        if found is not out:
            self.replaced[out] = found
        return found is not out


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
