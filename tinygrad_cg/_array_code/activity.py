"""Which numbers and arrays of a program depend on its inputs, and which of its outputs on them."""

from __future__ import annotations

from collections.abc import Iterable

from . import program as ir
from .program import Thing


def varied(program: ir.ArrayProgram, sources: Iterable[Thing]) -> set[Thing]:
    """Return the floats, and arrays of floats, that depend on sources."""
    return _closure(program.body, sources, forward=True)


def active(
    program: ir.ArrayProgram, sources: Iterable[Thing], targets: Iterable[Thing]
) -> set[Thing]:
    """Return what depends on sources and matters to targets."""
    return varied(program, sources) & _closure(program.body, targets, forward=False)


def _closure(body: ir.Block, roots: Iterable[Thing], forward: bool) -> set[Thing]:
    edges: list[tuple[Thing, Thing]] = [
        (source, target)
        for x in ir.walk(body)
        for target, sources in ir.dependences(x)
        for source in sources
        if target is not None
    ]
    pushed: list[Thing] = [v for x in ir.walk(body) if isinstance(x, ir.Push) for v in x.values]
    popped: list[Thing] = [v for x in ir.walk(body) if isinstance(x, ir.Pop) for v in x.outs]
    pushed, popped = ([x for x in things if x.is_float] for things in (pushed, popped))
    if popped:  # which number was pushed is not known
        edges += [(x, popped[0]) for x in (*pushed, *popped)]
        edges += [(popped[0], y) for y in popped]
    following: dict[Thing, list[Thing]] = {}
    for source, target in edges:
        if source.is_float and target.is_float:
            pair = (source, target) if forward else (target, source)
            following.setdefault(pair[0], []).append(pair[1])
    return ir.reachable(roots, lambda thing: following.get(thing, ()))
