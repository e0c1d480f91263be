"""Programs without what no output needs."""

from __future__ import annotations

from dataclasses import replace

from . import program as ir

Thing = ir.Number | ir.Array


def prune(program: ir.ArrayProgram) -> ir.ArrayProgram:
    """Return a program that gives the same outputs, and computes nothing else."""
    needed = _needed(program)
    body = _without_dead_ends(_block(program.body, needed), program)
    memory = (ir.LoadElement, ir.Store, ir.Fill, ir.PushArray, ir.PopArray)
    used = {x.array for x in ir.walk(body) if isinstance(x, memory)}
    scratch = [x for x in program.scratch if x in used or x in program.outputs]
    return replace(program, scratch=scratch, body=body)


def _without_dead_ends(block: ir.Block, program: ir.ArrayProgram) -> ir.Block:
    """Return the statements of a program but those that change only what nothing reads later."""
    live = {x for x in program.outputs if isinstance(x, ir.Array)}
    used = {x for x in program.outputs if isinstance(x, ir.Number)}
    kept: ir.Block = []
    for statement in reversed(block):
        parts = [*ir.walk([statement])]
        changed = {x.array for x in parts if isinstance(x, (ir.Store, ir.Fill))}
        is_pure = not any(
            isinstance(x, (ir.Push, ir.PushArray, ir.Pop, ir.PopArray, ir.Require)) for x in parts
        )
        defined = [
            value for x in parts for value in ir.results(x)
        ]  # a branch may be read from later
        if is_pure and live.isdisjoint(changed) and used.isdisjoint(defined):
            continue
        if isinstance(statement, ir.Fill):
            live.discard(statement.array)
        live.update(x.array for x in parts if isinstance(x, (ir.LoadElement, ir.PushArray)))
        used.update(value for x in parts for value in ir.operands(x))
        kept.append(statement)
    return kept[::-1]


def _needed(program: ir.ArrayProgram) -> set[Thing]:
    """Return the values and arrays that outputs, or the course of the program, depend on."""
    sources: dict[Thing, list[Thing]] = {}

    def depends(thing: Thing, *on: Thing) -> None:
        sources.setdefault(thing, []).extend(on)

    roots: list[Thing] = [*program.outputs]
    for statement in ir.walk(program.body):
        match statement:
            case ir.Op(out, _, args):
                depends(out, *args)
            case ir.LoadElement(out, array, index):
                depends(out, array, *index)
            case ir.Store(array, index, value, _):
                depends(array, value, *index)
            case ir.Push() | ir.Require():
                roots += ir.operands(statement)
            case ir.PushArray(array):
                roots.append(array)
            case ir.If():
                roots.append(statement.test)
                for merge in statement.merges:
                    depends(merge.out, merge.then, merge.otherwise)
            case ir.For() | ir.While():
                if isinstance(statement, ir.For):
                    roots += [statement.start, statement.stop]
                else:
                    roots.append(statement.test)
                if statement.leaves is not None:
                    roots.append(statement.leaves)
                for c in statement.carries:
                    depends(c.inside, c.init, c.result)
                    depends(c.out, c.inside)
    needed: set[Thing] = set()
    while roots:
        thing = roots.pop()
        if thing not in needed:
            needed.add(thing)
            roots += sources.get(thing, ())
    return needed


def _block(block: ir.Block, needed: set[Thing]) -> ir.Block:
    result: ir.Block = []
    for statement in block:
        result += _statement(statement, needed)
    return result


def _statement(statement: ir.Statement, needed: set[Thing]) -> ir.Block:
    match statement:
        case ir.Op(out) | ir.LoadElement(out):
            return [statement] if out in needed else []
        case ir.Store(array) | ir.Fill(array):
            return [statement] if array in needed else []
        case ir.If():
            sides = _block(statement.then, needed), _block(statement.otherwise, needed)
            merges = [m for m in statement.merges if m.out in needed]
            if not (sides[0] or sides[1] or merges):
                return []
            return [replace(statement, then=sides[0], otherwise=sides[1], merges=merges)]
        case ir.For() | ir.While():
            carries = [c for c in statement.carries if c.inside in needed]
            body = _block(statement.body, needed)
            if isinstance(statement, ir.For) and not (body or carries):
                return []
            result = replace(statement, body=body, carries=carries)
            if isinstance(result, ir.While):
                result.before = _block(result.before, needed)
            return [result]
    return [statement]
