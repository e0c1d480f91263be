"""Rerolling: unrolled Python loops in a trace become loops of the program again.

A long program is searched for repeated spans: operations, in the order of the trace, that have the
same kinds, shapes and parameters in each round. In such a span an operand must be one of

* a value of the same round or of a previous one: a loop variable,
* the same value in all rounds: a constant of the loop,
* a different value from outside in each round: a slice of a stack, which may be the rows of an
  earlier loop, as the forward pass is for the backward pass.

The index of a read ``x[i]`` is treated as an operand, as that of a gather. A span that does not fit
stays unrolled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

import numpy as np

from ..graph.loop_drafts import Body
from ..graph.loop_passes import move_axis
from ..graph.simplify import simplify
from ..graph.values import (
    FuncGraph,
    OutputItem,
    Value,
    constant,
    frozen,
    operation,
    rows_at,
    unrepeated,
    with_operands,
)
from .choices import CHOICE
from .loops import LOOP, LoopProgram
from .trace import Build

MIN_ROUNDS = 16
"""The fewest rounds of a loop: fewer run faster unrolled, if that can be compiled."""
_MAX_TRIED = 12  # spans that are tried


class _NotALoopError(Exception):
    """A span cannot become a loop."""


def roll(
    graph: FuncGraph, constants: Mapping[Value, Value], build: Build, least: int = MIN_ROUNDS
) -> FuncGraph:
    """Return a graph in which what is repeated at least `least` times is a loop.

    `constants` replaces some inputs.
    """
    sequence = _Sequence(graph, constants, least)
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
    """Operations in the order of the trace, and the positions of their operands."""

    def __init__(self, graph: FuncGraph, constants: Mapping[Value, Value], least: int):
        self.inputs, self.least = graph.inputs, least
        self.ops: list[Value] = []
        built = dict(constants)
        for value in sorted(graph.values(), key=lambda value: value.serial):
            if value.inputs or value.name:
                steps = _as_gather(value, [built[operand] for operand in value.inputs])
                built[value] = steps[-1]
                self.ops += steps
            else:
                built.setdefault(value, value)
        self.outputs = [built[output] for output in graph.outputs]
        self.positions = {value: i for i, value in enumerate(self.ops)}
        numbers: dict[Any, int] = {}
        kinds = [numbers.setdefault(_kind(value), len(numbers)) for value in self.ops]
        self.kinds = np.array(kinds, np.int32)
        self.last_read = np.full(len(kinds) + 1, -1)  # where; outputs: at the end
        for i, value in enumerate(self.ops):
            self.last_read[[self.position(operand) for operand in value.inputs]] = i
        self.last_read[[self.position(output) for output in self.outputs]] = len(kinds)

    def position(self, value: Value) -> int:
        return self.positions.get(value, -1)  # -1 of an input or a constant

    def spans(self, first: int, last: int) -> Iterator[_RepeatedSpan]:
        """Yield the repeated spans between two positions that can be loops, the longest first."""
        kinds = self.kinds[first:last]
        candidates = []
        for period in range(1, len(kinds) // self.least + 1):
            same = kinds[period:] == kinds[:-period]
            if np.count_nonzero(same) < period * (self.least - 1):
                continue
            bounds = np.concatenate([[-1], np.flatnonzero(~same), [len(kinds) - period]])
            lengths = np.diff(bounds) - 1
            k = int(lengths.argmax())
            rounds = int(lengths[k] + period) // period
            if rounds >= self.least:
                candidates.append((rounds * period, -period, int(bounds[k]) + 1))
        for covered, minus, start in sorted(candidates, reverse=True)[:_MAX_TRIED]:
            for more, fewer in product((0, 1), (0, 1)):  # the first or last round may differ
                rounds = covered // -minus - more - fewer
                with contextlib.suppress(_NotALoopError):
                    yield _RepeatedSpan(self, first + start - minus * more, -minus, rounds)


def _as_gather(value: Value, operands: Sequence[Value]) -> list[Value]:
    """Return a read at one index, or its gradient, as a gather; other operations unchanged."""
    is_read = value.name == "getitem"
    key = value.params["key"] if value.name in ("getitem", "getitem_adjoint") else ()
    parts = (k for k, part in enumerate(key) if type(part) is not slice or part != slice(None))
    axis = next(parts, len(key))
    if type(key[axis] if axis < len(key) else None) is not int:
        return [with_operands(value, operands)]
    shape = operands[0].shape if is_read else value.params["shape"]
    number = constant(np.array(key[axis] % shape[axis]))
    rest: Any = {"key": (*key[:axis], *key[axis + 1 :])} if key[axis + 1 :] else None
    params = {"axis": axis, "batch_dims": 0}
    if is_read:
        steps = [operation("gather", [operands[0], number], params)]
        return [*steps, operation("getitem", steps, rest)] if rest else steps
    steps = []
    if rest:
        whole = (*shape[:axis], *shape[axis + 1 :])
        steps = [operation("getitem_adjoint", operands, rest | {"shape": whole})]
    inputs = [*(steps or operands), number]
    return [*steps, operation("gather_adjoint", inputs, params | {"shape": shape})]


def _kind(value: Value) -> Any:
    """Return a key that is equal for corresponding operations of all rounds."""
    operands = tuple([_type(operand) for operand in value.inputs])
    if isinstance(value, OutputItem):
        return value.index, operands
    if value.primitive is CHOICE:
        graphs = tuple([_structure(graph) for graph in value.params["choice"].graphs])
        return value.primitive, _type(value), graphs, operands
    return value.primitive, _type(value), frozen(value.params) if value.params else (), operands


def _structure(graph: FuncGraph) -> Any:
    """Return a key that is equal for graphs that compute the same."""
    values = list(dict.fromkeys([*graph.inputs, *graph.values()]))
    numbers = {value: i for i, value in enumerate(values)}
    arrays = [None if value.array is None else frozen(value.array) for value in values]
    operands = [tuple([numbers[operand] for operand in value.inputs]) for value in values]
    parts = zip(map(_kind, values), arrays, operands, strict=True)
    return tuple(parts), tuple([numbers[output] for output in graph.outputs])


def _type(value: Value) -> Any:
    aval = value.aval
    return len(aval) if isinstance(aval, list) else (tuple(aval.shape), aval.dtype)


class _RepeatedSpan:
    """A repeated span of operations, and the body of its loop.

    `same` and `stacks` have the body's inputs for constants and for slices; `carries` has those for
    the value of an operation a number of rounds before.
    """

    def __init__(self, sequence: _Sequence, start: int, period: int, rounds: int):
        if rounds < sequence.least:
            raise _NotALoopError
        self.sequence, self.start, self.period, self.rounds = sequence, start, period, rounds
        self.end = start + period * rounds
        self.template = sequence.ops[start + (rounds // 2) * period :][:period]
        kinds = {value.kind for value in self.template if value.primitive is not CHOICE}
        if kinds & {"impure", "user", "control"}:
            raise _NotALoopError
        read = np.flatnonzero(sequence.last_read[start : self.end] >= self.end) % period
        self.read = list(map(int, np.unique(read)))  # values of a round that are read outside
        self.columns = [
            list(zip(*[value.inputs for value in self.values(t)], strict=True))
            for t in range(period)
        ]
        ends = [map(sequence.position, (column[0], column[-1])) for column in chain(*self.columns)]
        rises = [last > first for first, last in ends if 0 <= first != last < start]
        self.reverse = 2 * sum(rises) < len(rises)  # as most rows of earlier loops are
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

    def _operand(self, t: int, values: Sequence[Value]) -> Value:
        """Return an operand in the body; `values` has its values in all rounds."""
        numbers = {
            None if value.array is None or value.shape else frozen(value.array) for value in values
        }
        if len(numbers) == 1 and None not in numbers:
            return values[0]
        positions = np.array(list(map(self.sequence.position, values)))
        is_outside = positions < self.start
        if all(value is values[0] for value in values) and is_outside[0]:
            return self.same.setdefault(values[0], Value(values[0].aval))
        if is_outside.all():
            stack = tuple(values[::-1] if self.reverse else values)
            return self.stacks.setdefault(stack, Value(values[0].aval))
        far = positions - self.start - np.arange(self.rounds) * self.period
        shift = int(far[-1])
        which, back = shift % self.period, -(shift // self.period)
        if is_outside[-1] or not 0 <= back < self.rounds // 2 or (not back and which >= t):
            raise _NotALoopError
        if (far[back:] != shift).any() or not is_outside[:back].all():
            raise _NotALoopError
        for k in range(1, back + 1):
            value = values[back - k]
            is_known = self.starts.setdefault((which, k), value) is value
            if not is_known or _type(value) != _type(self.template[which]):
                raise _NotALoopError
            self.carries.setdefault((which, k), Value(value.aval))
        return self.carries[which, back] if back else self.inside[which]


class _Rolled:
    """The graph with loops."""

    def __init__(self, sequence: _Sequence, spans: Mapping[int, _RepeatedSpan], build: Build):
        self.least, self.build = sequence.least, build
        self.replacements: dict[Value, Value] = {}
        self.rows: dict[Value, dict[Value, int]] = {}  # for a value, its row in each stack
        end = 0
        for i, value in enumerate(sequence.ops):
            if i in spans:
                self._add(spans[i])
                end = spans[i].end
            elif i >= end:
                self._of(value)
        self.graph = FuncGraph(sequence.inputs, list(map(self._of, sequence.outputs)))

    def _of(self, value: Value) -> Value:
        """Return the replacement of a value; for a value inside a loop it is a row."""
        if value not in self.replacements:
            self.replacements[value] = self._again(value)
        return self.replacements[value]

    def _again(self, value: Value) -> Value:
        if value in self.rows:
            stack, row = next(iter(self.rows[value].items()))
            return operation("getitem", [stack], {"key": (row,)})
        if value.name == "stack" and len(value.inputs) >= self.least:
            stack = self._rows_of(value.inputs)
            if stack is not None:
                return move_axis(stack, 0, value.params["axis"])
        return with_operands(value, [self._of(operand) for operand in value.inputs])

    def _stack(self, values: Sequence[Value]) -> Value:
        """Return values as a stack."""
        arrays = [unrepeated(value).array for value in values]
        shape = values[0].shape
        rows = [np.broadcast_to(array, shape) for array in arrays if array is not None]
        if len(rows) == len(values):
            return constant(np.stack(rows))
        stack = self._rows_of(values)
        return stack or operation("stack", list(map(self._of, values)), {"axis": 0})

    def _rows_of(self, values: Sequence[Value]) -> Value | None:
        """Return a stack of values that are rows of a loop; None for other values."""
        for stack in self.rows.get(values[len(values) // 2], ()):
            rows = [self.rows.get(value, {}).get(stack) for value in values]
            numbers = [row for row in rows if row is not None]
            if len(numbers) == len(rows):
                return rows_at(stack, np.array(numbers))
        return None

    def _add(self, span: _RepeatedSpan) -> None:
        """Add a loop, and the replacements of the values that are read outside of it."""
        wanted = [t for t in span.read if not isinstance(span.template[t].aval, list)]
        carried = [t for t in wanted if (t, 1) in span.carries]
        rows = [*[span.inside[t] for t in wanted], *[span.carries[t, 1] for t in carried]]
        inputs = [*span.same.values(), *span.carries.values(), *span.stacks.values()]
        graph = simplify(FuncGraph(inputs, [*span.ends, *rows]))
        counts = len(span.same), len(span.carries), span.rounds
        body = Body("loop", graph, *counts, span.reverse, False, False)
        operands = [*span.same, *[span.starts[carry] for carry in span.carries]]
        operands = [*map(self._of, operands), *map(self._stack, span.stacks)]
        loop = Value(body.avals(), LOOP, operands, {"loop": LoopProgram(body, self.build)})
        items = iter([OutputItem(loop, k) for k in range(len(loop.aval))])
        for t, back in span.carries:
            end = next(items)
            if back == 1:
                self.replacements[span.values(t)[-1]] = end
        columns = list(map(span.values, wanted))
        columns += [[span.starts[t, 1], *span.values(t)[:-1]] for t in carried]
        for values in columns:
            stack = next(items)
            for row, value in enumerate(values[::-1] if span.reverse else values):
                self.rows.setdefault(value, {})[stack] = row
