"""Programs without what no output needs, and without what was computed, loaded or stored before."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from . import program as ir
from .program import Thing

Available = dict[Any, ir.Number]
"""Values by what they are: an operation and its arguments, or an element of an array."""


def prune(program: ir.ArrayProgram) -> ir.ArrayProgram:
    """Return a program that gives the same outputs, and computes nothing else."""
    body = _live_part(program.body, {*program.outputs})
    used = ir.arrays_of(body, ir.LoadElement, ir.Store, ir.Fill)
    scratch = [x for x in program.scratch if x in used or x in program.outputs]
    return replace(program, scratch=scratch, body=body)


def _live_part(block: ir.Block, live: set[Thing]) -> ir.Block:
    """Return what matters of a block, if that is `live` after it; `live` is then what is before."""
    kept: ir.Block = []
    for statement in reversed(block):
        match statement:
            case ir.If() | ir.For() | ir.While():
                statement = _live_nested(statement, live)
                is_kept = any(ir.blocks_of(statement)) or bool(ir.parts_of(statement))
            case ir.Op(thing) | ir.LoadElement(thing) | ir.Store(thing) | ir.Fill(thing):
                is_kept = thing in live
            case _:
                is_kept = True
        if is_kept:
            kept.append(statement)
            live.update(ir.operands(statement))
        if isinstance(statement, ir.Fill):
            live.discard(statement.array)
        elif is_kept and isinstance(statement, ir.LoadElement):
            live.add(statement.array)
    return kept[::-1]


def _live_nested(statement: Any, live: set[Thing]) -> Any:
    """Return what matters of a branch or a loop, whose rounds need what later ones read."""
    while True:
        count = len(live)
        parts = [
            x for x in ir.parts_of(statement) if not live.isdisjoint((*ir.results(x), *ir.bound(x)))
        ]
        live.update(value for x in parts for value in ir.operands(x))
        ends = [{*live} for _ in statement.blocks]
        blocks = map(_live_part, ir.blocks_of(statement), ends)
        fields = dict(zip(statement.blocks, blocks, strict=True))
        result = replace(statement, **{statement.parts: parts}, **fields)
        if parts or any(fields.values()):
            live.update(*ends, ir.operands(result))
        if isinstance(statement, ir.If) or len(live) == count:
            return result


def share(program: ir.ArrayProgram) -> ir.ArrayProgram:
    """Return a program that does the same, with each value computed once in a block."""
    sharing = _Sharing()
    body = sharing.block(program.body, {})
    outputs = [x if isinstance(x, ir.Array) else sharing.now(x) for x in program.outputs]
    return replace(program, outputs=outputs, body=body)


class _Sharing:
    def __init__(self) -> None:
        self.replaced: dict[ir.Number, ir.Number] = {}

    def now(self, value: ir.Number) -> ir.Number:
        return self.replaced.get(value, value)

    def block(self, block: ir.Block, available: Available) -> ir.Block:
        result: ir.Block = []
        for statement in block:
            self.statement(statement, available, result)
        return result

    def statement(self, statement: ir.Statement, available: Available, block: ir.Block) -> None:
        blocks: list[ir.Block] = []
        if isinstance(statement, (ir.If, ir.For, ir.While)):
            written = ir.arrays_of([statement], ir.Store, ir.Fill)
            if isinstance(statement, ir.If):  # whose branches begin with what is available
                blocks = [self.block(side, dict(available)) for side in ir.blocks_of(statement)]
            _forget(available, written)
            if not isinstance(statement, ir.If):  # a loop's body sees nothing of its test
                blocks = [self.block(part, dict(available)) for part in ir.blocks_of(statement)]
        new = ir.rebuilt(statement, self.now, lambda value: value, blocks)
        match new:
            case ir.Op(out, function, args):
                if self.is_available(out, (function, *args, out.type), available):
                    return
            case ir.LoadElement(out, array, index):
                if self.is_available(out, (array, *index), available):
                    return
            case ir.Store(array, index, value, adds):
                _forget(available, {array})
                if not adds and value.type == array.element:
                    available[(array, *index)] = value
            case ir.Fill(array):
                _forget(available, {array})
        block.append(new)

    def is_available(self, out: ir.Number, key: tuple, available: Available) -> bool:
        """Return whether there is a value for a key, which `out` is from now on."""
        found = available.setdefault(key, out)
        if found is not out:
            self.replaced[out] = found
        return found is not out


def _forget(available: Available, arrays: Collection[ir.Array]) -> None:
    for key in [key for key in available if isinstance(key[0], ir.Array) and key[0] in arrays]:
        del available[key]
