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
            case ir.If() | ir.For():
                statement = _live_nested(statement, live)
                is_kept = any(statement.inner_blocks()) or bool(statement.own_parts())
            case ir.Op(thing) | ir.LoadElement(thing) | ir.Store(thing) | ir.Fill(thing):
                is_kept = thing in live
            case _:
                is_kept = True
        if is_kept:
            kept.append(statement)
            live.update(statement.operands())
        if isinstance(statement, ir.Fill):
            live.discard(statement.array)
        elif is_kept and isinstance(statement, ir.LoadElement):
            live.add(statement.array)
    return kept[::-1]


def _live_nested(statement: Any, live: set[Thing]) -> Any:
    """Return what matters of a branch or a loop, whose rounds need what later ones read."""
    while True:
        count = len(live)
        own = [(x, x.results() + x.bound()) for x in statement.own_parts()]
        parts = [x for x, values in own if not live.isdisjoint(values)]
        live.update(value for x in parts for value in x.operands())
        ends = [{*live} for _ in statement.blocks]
        blocks = map(_live_part, statement.inner_blocks(), ends)
        fields = dict(zip(statement.blocks, blocks, strict=True))
        result = replace(statement, **{statement.parts: parts}, **fields)
        if parts or any(fields.values()):
            live.update(*ends, result.operands())
        if isinstance(statement, ir.If) or len(live) == count:
            return result


def share(program: ir.ArrayProgram) -> ir.ArrayProgram:
    """Return a program that does the same, with each value computed once in a block."""
    replaced: dict[Any, ir.Number] = {}
    body = _shared(program.body, {}, replaced)
    return replace(program, outputs=[replaced.get(x, x) for x in program.outputs], body=body)


def _shared(block: ir.Block, available: Available, replaced: dict[Any, ir.Number]) -> ir.Block:
    """Return a block without what is `available`, which is added to `replaced`."""
    result: ir.Block = []
    for statement in block:
        written = ir.arrays_of([statement], ir.Store, ir.Fill)
        if isinstance(statement, ir.For):  # whose rounds see what earlier ones have written
            _forget(available, written)
        blocks = [_shared(x, dict(available), replaced) for x in statement.inner_blocks()]
        new = statement.rebuilt(lambda x: replaced.get(x, x), lambda x: x, blocks)
        _forget(available, written)
        out = same = None
        match new:
            case ir.Op(out, function, args):
                same = available.setdefault((function, *args, out.type), out)
            case ir.LoadElement(out, array, index):
                same = available.setdefault((array, *index), out)
            case ir.Store(array, index, value, False) if value.type == array.element:
                available[(array, *index)] = value
        if same is None or same is out:
            result.append(new)
        else:
            replaced[out] = same
    return result


def _forget(available: Available, arrays: Collection[ir.Array]) -> None:
    for key in [x for x in available if x[0] in arrays] if arrays else ():
        del available[key]
