"""Loops of Python's that a trace has unrolled, as loops of the program again.

A long program is searched for spans that do the same again and again: operations in the order in
which they were traced, of which each round has the same kinds, shapes and parameters. In such a
span each operand is one of

* a value of the same round, or of one of the rounds before: a loop variable,
* the same value in all rounds: a constant of the loop,
* another value in each round, from outside of the span: a slice of a stack, which may be the rows
  of an earlier loop, such as the forward pass is for the backward pass.

``x[i]`` of many numbers i is a gather first (`graph.reads`), whose number is an operand. What does
not fit stays unrolled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

import numpy as np

from ..._core.primitive import OPS
from ..graph.loop_drafts import Body
from ..graph.loop_passes import move_axis
from ..graph.reads import as_gathers
from ..graph.simplify import simplify
from ..graph.values import (
    FuncGraph,
    OutputItem,
    Value,
    constant,
    frozen,
    in_order,
    operation,
    with_operands,
)
from .choices import CHOICE
from .loops import LOOP, LoopProgram
from .trace import Build

ROUNDS = 16
"""The fewest rounds of a loop: fewer are quicker as one program, if it can be compiled."""
_CANDIDATES = 12  # lengths of a round that are looked at


class _UnfitError(Exception):
    """A span is no loop."""


def roll(
    graph: FuncGraph, known: Mapping[Value, Value], build: Build, least: int = ROUNDS
) -> FuncGraph:
    """Return a graph with loops for what is repeated at least so often.

    `known` has constants for some inputs.
    """
    sequence = _Sequence(as_gathers(graph, least), known, least)
    spans: dict[int, _RepeatedSpan] = {}
    pending = [(0, len(sequence.ops))]
    while pending:
        first, last = pending.pop()
        span = next(sequence.spans(first, last), None)
        if span is not None:
            pending += [(first, span.start), (span.end, last)]
            spans[span.start] = span
    return _Rolled(sequence, spans, build).graph if spans else graph


class _Sequence:
    """Operations in the order of the trace, and the positions of their operands in it."""

    def __init__(self, graph: FuncGraph, known: Mapping[Value, Value], least: int):
        self.graph, self.known, self.least = graph, known, least
        ops = [one for one in graph.values() if one.inputs or one.primitive is not None]
        self.ops = sorted(ops, key=lambda value: value.serial)
        self.positions = {value: i for i, value in enumerate(self.ops)}
        numbers: dict[Any, int] = {}
        kinds = [numbers.setdefault(_kind(value), len(numbers)) for value in self.ops]
        self.kinds = np.array(kinds)
        self.last_read = np.full(len(ops) + 1, -1)  # at which position; at the end of no operation
        for i, value in enumerate(self.ops):
            self.last_read[[self.position(one) for one in value.inputs]] = i
        self.last_read[[self.position(one) for one in graph.outputs]] = len(ops)

    def position(self, value: Value) -> int:
        """Return the position of an operation; -1 of an input or a constant."""
        return self.positions.get(value, -1)

    def spans(self, first: int, last: int) -> Iterator[_RepeatedSpan]:
        """Yield what is repeated between two positions, and is a loop; the longest first."""
        kinds = self.kinds[first:last]
        found = []
        for period in _periods(kinds, self.least):
            same = np.flatnonzero(kinds[period:] != kinds[:-period])
            bounds = np.concatenate([[-1], same, [len(kinds) - period]])
            lengths = np.diff(bounds) - 1
            k = int(lengths.argmax())
            rounds = int(lengths[k] + period) // period
            if rounds >= self.least:
                found.append((rounds * period, -period, int(bounds[k]) + 1))
        for covered, minus, start in sorted(found, reverse=True):
            for more, fewer in product((0, 1), (0, 1)):  # the first or last round may differ
                rounds = covered // -minus - more - fewer
                with contextlib.suppress(_UnfitError):
                    yield _RepeatedSpan(self, first + start - minus * more, -minus, rounds)

    def array(self, value: Value) -> np.ndarray | None:
        """Return the array of a constant."""
        value = self.known.get(value, value)
        array = value.inputs[0].array if value.primitive is OPS["broadcast_to"] else value.array
        return None if array is None else np.broadcast_to(array, value.shape)


def _periods(kinds: np.ndarray, least: int) -> list[int]:
    """Return likely lengths of a round: distances between equal operations, and rows of them.

    Rows of 2, 4, 8, ... operations find rounds that repeat some of their own operations.
    """
    most, length = len(kinds) // least, 1
    periods: set[int] = set()
    while length <= max(most, 1):
        order = np.argsort(kinds, kind="stable")
        gaps = np.diff(order)[np.diff(kinds[order]) == 0]
        values, counts = np.unique(gaps, return_counts=True)
        periods.update(values[np.argsort(-counts, kind="stable")][:_CANDIDATES].tolist())
        pairs = kinds[:-length].astype(np.int64) * len(kinds) + kinds[length:]
        kinds = np.unique(pairs, return_inverse=True)[1]
        length *= 2
    return sorted(period for period in periods if period <= most)


def _kind(value: Value) -> Any:
    """Return what operations of all rounds have in common."""
    operands = tuple([_type(one) for one in value.inputs])
    if isinstance(value, OutputItem):
        return value.index, operands
    if value.primitive is CHOICE:
        graphs = tuple([_structure(one) for one in value.params["choice"].graphs])
        return value.primitive, _type(value), graphs, operands
    return value.primitive, _type(value), frozen(value.params) if value.params else (), operands


def _structure(graph: FuncGraph) -> Any:
    """Return what graphs have in common that compute the same."""
    values = in_order([*graph.inputs, *graph.outputs])
    numbers = {value: i for i, value in enumerate(values)}
    arrays = [None if value.array is None else frozen(value.array) for value in values]
    operands = [tuple([numbers[one] for one in value.inputs]) for value in values]
    parts = zip(map(_kind, values), arrays, operands, strict=True)
    return tuple(parts), tuple([numbers[one] for one in graph.outputs])


def _type(value: Value) -> Any:
    aval = value.aval
    return len(aval) if isinstance(aval, list) else (tuple(aval.shape), aval.dtype)


class _RepeatedSpan:
    """Operations that are repeated, and the body of the loop that they are.

    `same` and `stacks` have the inputs of the body for constants of the loop and for its slices,
    `carries` those for what an operation of a round gave so many rounds before.
    """

    def __init__(self, sequence: _Sequence, start: int, period: int, rounds: int):
        if rounds < sequence.least:
            raise _UnfitError
        self.sequence, self.start, self.period, self.rounds = sequence, start, period, rounds
        self.end = start + period * rounds
        self.template = sequence.ops[start + (rounds // 2) * period :][:period]
        primitives = {one.primitive for one in self.template} - {None, CHOICE}
        if {getattr(one, "kind", "") for one in primitives} & {"impure", "user", "control"}:
            raise _UnfitError
        read = np.flatnonzero(sequence.last_read[start : self.end] >= self.end) % period
        self.read = list(map(int, np.unique(read)))  # outside, of what a round computes
        self.columns = [
            list(zip(*[one.inputs for one in self.values(t)], strict=True)) for t in range(period)
        ]
        self.reverse = self._goes_back()
        self.same: dict[Value, Value] = {}
        self.stacks: dict[tuple[Value, ...], Value] = {}
        self.carries: dict[tuple[int, int], Value] = {}
        self.starts: dict[tuple[int, int], Value] = {}
        self.inside: list[Value] = []
        for t, columns in enumerate(self.columns):
            operands = [self._operand(t, values) for values in columns]
            self.inside.append(with_operands(self.template[t], operands))
        self.ends = [self.carries.get((t, k - 1)) or self.inside[t] for t, k in self.carries]

    def values(self, t: int) -> list[Value]:
        return list(self.sequence.ops[self.start + t : self.end : self.period])

    def _goes_back(self) -> bool:
        """Return whether most operands go from the last row of earlier loops to the first."""
        votes = 0
        for values in chain.from_iterable(self.columns):
            first, last = map(self.sequence.position, (values[0], values[-1]))
            if 0 <= first != last < self.start:
                votes += 1 if last > first else -1
        return votes < 0

    def _operand(self, t: int, values: Sequence[Value]) -> Value:
        """Return an operand in the body; `values` are those of all rounds."""
        positions = np.array(list(map(self.sequence.position, values)))
        is_outside = positions < self.start
        if all(one is values[0] for one in values) and is_outside[0]:
            return self.same.setdefault(values[0], Value(values[0].aval))
        if is_outside.all():
            stack = tuple(values[::-1] if self.reverse else values)
            return self.stacks.setdefault(stack, Value(values[0].aval))
        far = positions - self.start - np.arange(self.rounds) * self.period
        shift = int(far[-1])
        which, back = shift % self.period, -(shift // self.period)
        if is_outside[-1] or not 0 <= back < self.rounds // 2 or (not back and which >= t):
            raise _UnfitError
        if (far[back:] != shift).any() or not is_outside[:back].all():
            raise _UnfitError
        for k in range(1, back + 1):
            value = values[back - k]
            is_known = self.starts.setdefault((which, k), value) is value
            if not is_known or _type(value) != _type(self.template[which]):
                raise _UnfitError
            self.carries.setdefault((which, k), Value(value.aval))
        return self.carries[which, back] if back else self.inside[which]


class _Rolled:
    """The graph with loops."""

    def __init__(self, sequence: _Sequence, spans: Mapping[int, _RepeatedSpan], build: Build):
        self.sequence, self.build = sequence, build
        self.made: dict[Value, Value] = {}
        self.rows: dict[Value, dict[Value, int]] = {}  # by a value, stacks that have it in a row
        end = 0
        for i, value in enumerate(sequence.ops):
            if i in spans:
                self._add(spans[i])
                end = spans[i].end
            elif i >= end:
                self._of(value)
        outputs = [self._of(value) for value in sequence.graph.outputs]
        self.graph = FuncGraph(sequence.graph.inputs, outputs)

    def _of(self, value: Value) -> Value:
        """Return what stands for a value: for one of a loop a row."""
        if value not in self.made:
            self.made[value] = self._again(value)
        return self.made[value]

    def _again(self, value: Value) -> Value:
        if value in self.rows:
            stack, row = next(iter(self.rows[value].items()))
            return operation(OPS["getitem"], [stack], {"key": (row,)})
        if value.primitive is OPS["stack"] and len(value.inputs) >= self.sequence.least:
            stack = self._rows_of(value.inputs)
            if stack is not None:
                return move_axis(stack, 0, value.params["axis"])
        operands = [self._of(one) for one in value.inputs]
        same = all(new is old for new, old in zip(operands, value.inputs, strict=True))
        return value if same else with_operands(value, operands)

    def _stack(self, values: Sequence[Value]) -> Value:
        """Return values as a stack."""
        arrays = [self.sequence.array(one) for one in values]
        known = [one for one in arrays if one is not None]
        if len(known) == len(values):
            return constant(np.stack(known))
        stack = self._rows_of(values)
        return stack or operation(OPS["stack"], list(map(self._of, values)), {"axis": 0})

    def _rows_of(self, values: Sequence[Value]) -> Value | None:
        """Return a stack of what are rows of a loop; None for others."""
        for stack in self.rows.get(values[len(values) // 2], ()):
            rows = [self.rows.get(one, {}).get(stack) for one in values]
            numbers = [one for one in rows if one is not None]
            if len(numbers) == len(rows):
                index = constant(np.array(numbers))
                return operation(OPS["gather"], [stack, index], {"axis": 0, "batch_dims": 0})
        return None

    def _add(self, span: _RepeatedSpan) -> None:
        """Add a loop, and note what stands for the values that are read outside of it."""
        wanted = [t for t in span.read if not isinstance(span.template[t].aval, list)]
        carried = [t for t in wanted if (t, 1) in span.carries]
        rows = [*[span.inside[t] for t in wanted], *[span.carries[t, 1] for t in carried]]
        inputs = [*span.same.values(), *span.carries.values(), *span.stacks.values()]
        graph = simplify(FuncGraph(inputs, [*span.ends, *rows]))
        counts = len(span.same), len(span.carries), span.rounds
        body = Body("loop", graph, *counts, span.reverse, False, False)
        operands = [*span.same, *[span.starts[one] for one in span.carries]]
        operands = [*map(self._of, operands), *map(self._stack, span.stacks)]
        loop = Value(body.avals(), LOOP, operands, {"loop": LoopProgram(body, self.build)})
        items = iter([OutputItem(loop, k) for k in range(len(loop.aval))])
        for t, back in span.carries:
            end = next(items)
            if back == 1:
                self.made[span.values(t)[-1]] = end
        columns = list(map(span.values, wanted))
        columns += [[span.starts[t, 1], *span.values(t)[:-1]] for t in carried]
        for values in columns:
            stack = next(items)
            for r, value in enumerate(values):
                row = span.rounds - 1 - r if span.reverse else r
                self.rows.setdefault(value, {})[stack] = row
