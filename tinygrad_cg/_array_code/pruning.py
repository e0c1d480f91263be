"""Programs without what no output needs."""

from __future__ import annotations

from dataclasses import replace

from . import program as ir
from .program import Thing


def prune(program: ir.ArrayProgram) -> ir.ArrayProgram:
    """Return a program that gives the same outputs, and computes nothing else."""
    needed = _needed(program)
    body = _without_dead_ends(_block(program.body, needed), program)
    used = ir.arrays_of(body, ir.LoadElement, ir.Store, ir.Fill)
    scratch = [x for x in program.scratch if x in used or x in program.outputs]
    return replace(program, scratch=scratch, body=body)


def _without_dead_ends(block: ir.Block, program: ir.ArrayProgram) -> ir.Block:
    """Return the statements of a program but those that change only what nothing reads later."""
    live = {x for x in program.outputs if isinstance(x, ir.Array)}
    used = {x for x in program.outputs if isinstance(x, ir.Number)}
    kept: ir.Block = []
    for statement in reversed(block):
        parts = [*ir.walk([statement])]
        changed = ir.arrays_of([statement], ir.Store, ir.Fill)
        is_pure = not any(isinstance(x, (ir.Push, ir.Pop, ir.Require)) for x in parts)
        if is_pure and live.isdisjoint(changed) and used.isdisjoint(ir.defined([statement])):
            continue
        if isinstance(statement, ir.Fill):
            live.discard(statement.array)
        live.update(ir.arrays_of([statement], ir.LoadElement))
        used.update(value for x in parts for value in ir.operands(x))
        kept.append(statement)
    return kept[::-1]


def _needed(program: ir.ArrayProgram) -> set[Thing]:
    """Return the values and arrays that outputs, or the course of the program, depend on."""
    sources: dict[Thing | None, list[Thing]] = {}
    for statement in ir.walk(program.body):
        for thing, on in ir.dependences(statement):
            sources.setdefault(thing, []).extend(on)
    roots = [*program.outputs, *sources.get(None, ())]
    return ir.reachable(roots, lambda thing: sources.get(thing, ()))


def _block(block: ir.Block, needed: set[Thing]) -> ir.Block:
    result: ir.Block = []
    for statement in block:
        statement = ir.with_blocks(statement, lambda inner: _block(inner, needed))
        match statement:
            case ir.If() | ir.For() | ir.While():
                parts = [
                    x
                    for x in ir.parts_of(statement)
                    if not needed.isdisjoint((*ir.results(x), *ir.bound(x)))
                ]
                statement = replace(statement, **{statement.parts: parts})
                is_kept = bool(parts) or any(ir.blocks_of(statement))
                is_kept |= isinstance(statement, ir.While)
            case ir.Op(thing) | ir.LoadElement(thing) | ir.Store(thing) | ir.Fill(thing):
                is_kept = thing in needed
            case _:
                is_kept = True
        if is_kept:
            result.append(statement)
    return result
