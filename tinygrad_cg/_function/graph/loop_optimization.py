"""Loops of a finished graph: move work out of the rounds.

Passes (`loop_passes`) rewrite drafts of the loops. Besides, the loop of a gradient computes again
the body of its primal loop: it reads the primal loop's results instead, unless they are cheap to
compute. Small results of functions such as `exp`, and of their derivatives, are stored, too: the
rounds of a gradient wait for one another, so they take less time. Finally rows, loop variables and
operands that nothing reads are removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .components import by_components
from .loop_drafts import Draft, Row
from .loop_passes import COUNTING, MOVING, OF_ANY_LOOP, counts_or_writes
from .partition import is_cheap, most_stored
from .simplify import simplify
from .values import FuncGraph, OutputItem, Value, identity_of, in_turn, reach, with_operands


def optimize(graph: FuncGraph, replacements: Mapping[Value, Value] | None = None) -> FuncGraph:
    """Return the graph simplified, with its loops rewritten, and `replacements` for some values."""
    graph = by_components(simplify(graph, replacements))
    loops = [value for value in graph.values() if value.name == "loop"]
    if any(map(counts_or_writes, loops)):
        graph = _rewritten(graph, COUNTING)
    return _rewritten(graph, MOVING) if loops else graph


def _rewritten(graph: FuncGraph, passes: Sequence[Any]) -> FuncGraph:
    """Return a graph whose pure loops are rewritten by these passes, operands first."""
    read: dict[Value, set[int]] = {}
    for value in graph.values():
        if isinstance(value, OutputItem):
            read.setdefault(value.inputs[0], set()).add(value.index)
    drafts = {
        value: Draft(value, read.get(value, ()))
        for value in graph.values()
        if value.name == "loop" and value.params["loop"].body.length is not None and _is_pure(value)
    }
    ordered = list(drafts.values())
    for k, later in enumerate(ordered):
        for earlier in ordered[:k]:
            if earlier.length == later.length and not earlier.body.lean:
                _share(earlier, later, drafts)
    for draft in ordered:
        for rewrite in passes:
            if draft.has_all_rounds or rewrite in OF_ANY_LOOP:
                rewrite(draft)
    return simplify(_finished(graph, drafts))


def _is_pure(loop: Value) -> bool:
    """Return whether a loop has no side effects, so that operations may be removed or moved."""
    for value in loop.params["loop"].body.graph.values():
        is_pure_loop = value.name == "loop" and _is_pure(value)
        if value.is_code or (value.kind == "control" and not is_pure_loop):
            return False
    return True


def _share(earlier: Draft, later: Draft, drafts: Mapping[Value, Draft]) -> None:
    """Let a later loop read what an earlier one computes in the same round."""
    if earlier.body.limited:
        counts = [next(iter(draft.fixed.values())) for draft in (earlier, later)]
        if not later.body.limited or counts[0] is not counts[1]:
            return
    equivalents = _same_inputs(earlier, later, drafts)
    if not any(value in later.slices for value in equivalents):
        return
    computed = {identity_of(value, value.inputs): value for value in earlier.values()}
    for value in later.values():
        if value not in equivalents and (value.inputs or value.array is not None):
            operands = [equivalents[operand] for operand in value.inputs if operand in equivalents]
            if len(operands) < len(value.inputs):
                continue
            same = computed.get(identity_of(value, operands))
            if same is None and is_cheap(value):
                same = with_operands(value, operands)  # part of the earlier loop if it is read
            if same is not None:
                equivalents[value] = same
    substitutions: dict[Value, Value] = {}
    for value in reach(later.results, lambda value: () if value in substitutions else value.inputs):
        if value.array is not None or later.is_input(value) or value not in equivalents:
            continue
        if earlier.fits(value, most_stored(value)):
            substitutions[value] = read = Value(value.aval)
            later.slices[read] = earlier.stack(equivalents[value])
    later.replace(substitutions)


def _same_inputs(earlier: Draft, later: Draft, drafts: Mapping[Value, Draft]) -> dict[Value, Value]:
    """Return the inputs of the later loop's body that have an equal value in the earlier loop's."""
    constants = {operand: value for value, operand in earlier.fixed.items()}
    stacks = {operand: value for value, operand in earlier.slices.items()}
    equivalents = {
        value: constants[operand] for value, operand in later.fixed.items() if operand in constants
    }
    for value, operand in later.slices.items():
        draft, index = _result(operand, drafts)
        if draft is earlier and index >= len(earlier.carried):
            equivalents[value] = earlier.results[index]
        elif operand in stacks:
            equivalents[value] = stacks[operand]
    return equivalents


def _result(value: Value, drafts: Mapping[Value, Draft]) -> tuple[Draft | None, int]:
    """Return the loop that a value is a result of, and the result's index."""
    if isinstance(value, Row):
        return value.draft, value.index
    if isinstance(value, OutputItem):
        return drafts.get(value.inputs[0]), value.index
    return None, 0


def _finished(graph: FuncGraph, drafts: Mapping[Value, Draft]) -> FuncGraph:
    """Return the graph with the rewritten loops."""

    def needed(value: Value) -> Sequence[Value]:
        draft, index = _result(value, drafts)
        if draft is None:
            return value.inputs
        return [draft.outside[index]] if index in draft.outside else draft.need(index)

    for _ in reach(graph.outputs, needed):
        pass  # the drafts record what is needed of them
    built: dict[Value, Value] = {}

    def operands_of(value: Value) -> Sequence[Value]:
        draft, index = _result(value, drafts)
        if draft is not None:
            return [draft.outside.get(index, draft.value)]
        return drafts[value].operands() if value in drafts else value.inputs

    for output in graph.outputs:
        for value in in_turn(output, operands_of, built.__contains__):
            operands = [built[operand] for operand in operands_of(value)]
            draft, index = _result(value, drafts)
            if value in drafts:
                built[value] = drafts[value].finished(operands)
            elif draft is not None:
                is_outside = index in draft.outside
                built[value] = (
                    operands[0] if is_outside else OutputItem(operands[0], draft.position(index))
                )
            else:
                built[value] = with_operands(value, operands)
    return FuncGraph(graph.inputs, [built[output] for output in graph.outputs])
