"""Loops of Python's that a trace has unrolled, as loops of the program again.

A long program is searched for stretches that do the same again and again: operations in the order
in which they were traced, of which each round has the same kinds, shapes and parameters. In such a
stretch each operand is one of

* a value of the same round, or of one of the rounds before: a loop variable,
* the same value in all rounds: a constant of the loop,
* another value in each round, from outside of the stretch: a slice of a stack, which may be the
  rows of an earlier loop, such as the forward pass is for the backward pass.

``x[i]`` by the number of the round is a slice of x, and the sum of its gradients is put together
after the loop. A choice between branches is one operation, and the same in all rounds if its graphs
are. Whatever does not fit stays unrolled.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..._core.primitive import OPS
from ..._core.tensor import Aval
from ..codegen.executable import build as fused
from ..graph.loops import Body
from ..graph.partition import is_cheap
from ..graph.simplify import simplify
from ..graph.values import FuncGraph, OutputItem, Value, constant, frozen, in_order, operation
from .choices import CHOICE
from .loops import LOOP, LoopProgram
from .trace import Build

MOST_FUSED = 5000
"""Elementwise operations in stretches that are fused rather than made a loop, if all is fused."""
ROUNDS = 16
"""The fewest rounds of a loop: fewer are quicker as one program, if it can be compiled."""
_CANDIDATES = 12  # lengths of a round that are looked at
_MOST_OPERANDS = 16  # of an operation in a loop


class _UnfitError(Exception):
    """A stretch is no loop."""


def roll(
    graph: FuncGraph, known: Mapping[Value, Value], build: Build, least: int = ROUNDS
) -> FuncGraph:
    """Return a graph with loops for what is repeated at least so often.

    `known` has constants for some inputs.
    """
    ops = [value for value in graph.values() if value.inputs or value.primitive is not None]
    ops.sort(key=lambda value: value.serial)
    sequence = _Sequence(graph, ops, known, least)
    loops: list[_Stretch] = []
    pending = [(0, len(ops))]
    while pending:
        first, last = pending.pop()
        found = next(sequence.stretches(first, last), None)
        if found is not None:
            loops.append(found)
            pending += [(first, found.start), (found.end, last)]
    if build is fused and len(ops) <= MOST_FUSED:
        loops = [one for one in loops if not one.is_elementwise]
    if not loops:
        return graph
    return _Rolled(sequence, sorted(loops, key=lambda one: one.start), build).graph


class _Sequence:
    """Operations in the order of the trace, and the positions of their operands in it."""

    def __init__(
        self, graph: FuncGraph, ops: Sequence[Value], known: Mapping[Value, Value], least: int
    ):
        self.graph, self.ops, self.known, self.least = graph, ops, known, least
        self.positions = {value: i for i, value in enumerate(ops)}
        numbers: dict[Any, int] = {}
        self.kinds = np.array([numbers.setdefault(_kind(value), len(numbers)) for value in ops])
        self.operands = np.full((len(ops), _MOST_OPERANDS), -1)
        self.read = {self.positions.get(one, -1) for one in graph.outputs}
        """Positions that are read by no operation of a loop."""
        for i, value in enumerate(ops):
            positions = [self.positions.get(one, -1) for one in value.inputs]
            if len(positions) > _MOST_OPERANDS:
                self.read.update(positions)
            else:
                self.operands[i, : len(positions)] = positions

    def stretches(self, first: int, last: int) -> Iterator[_Stretch]:
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
            for more in (0, 1):  # the first round may differ from the others
                for fewer in (0, 1):
                    begin = first + start - minus * more
                    rounds = covered // -minus - more - fewer
                    try:
                        yield _Stretch(self, begin, -minus, rounds)
                    except _UnfitError:
                        continue

    def array(self, value: Value) -> np.ndarray | None:
        """Return the array of a constant."""
        value = self.known.get(value, value)
        if value.primitive is OPS["broadcast_to"] and value.inputs[0].array is not None:
            return np.broadcast_to(value.inputs[0].array, value.shape)
        return value.array


def _periods(kinds: np.ndarray, least: int) -> list[int]:
    """Return likely lengths of a round: distances between equal operations, and rows of them.

    Rows of 2, 4, 8, ... operations find rounds that repeat some of their own operations.
    """
    most = len(kinds) // least
    found = {gap * k for gap in _gaps(kinds) for k in (1, 2, 3, 4)}
    length = 1
    while 2 * length <= most:
        pairs = kinds[:-length].astype(np.int64) * len(kinds) + kinds[length:]
        kinds = np.unique(pairs, return_inverse=True)[1]
        found.update(_gaps(kinds))
        length *= 2
    return sorted(period for period in found if period <= most)


def _gaps(kinds: np.ndarray) -> list[int]:
    """Return the commonest distances between equal numbers."""
    order = np.argsort(kinds, kind="stable")
    gaps = np.diff(order)[np.diff(kinds[order]) == 0]
    values, counts = np.unique(gaps, return_counts=True)
    return values[np.argsort(-counts, kind="stable")][:_CANDIDATES].tolist()


def _kind(value: Value) -> Any:
    """Return what operations of all rounds have in common."""
    operands = tuple([_type(one) for one in value.inputs])
    if isinstance(value, OutputItem):
        return value.index, operands
    params = value.params
    if value.primitive is CHOICE:
        graphs = tuple([_structure(one) for one in params["choice"].graphs])
        return value.primitive, _type(value), graphs, operands
    if params and value.primitive in (OPS["getitem"], OPS["getitem_adjoint"]):
        params = dict(params)
        params["key"] = tuple([None if type(one) is int else one for one in params["key"]])
    return value.primitive, _type(value), frozen(params) if params else (), operands


def _structure(graph: FuncGraph) -> Any:
    """Return what graphs have in common that compute the same."""
    values = in_order([*graph.inputs, *graph.outputs])
    numbers = {value: i for i, value in enumerate(values)}
    parts = [
        (
            _kind(value),
            None if value.array is None else frozen(value.array),
            _key(value),
            tuple([numbers[one] for one in value.inputs]),
        )
        for value in values
    ]
    return tuple(parts), tuple([numbers[one] for one in graph.outputs])


def _key(value: Value) -> Any:
    """Return the key of an operation that takes a part of an array, which its kind leaves out."""
    return frozen(value.params["key"]) if "key" in value.params else None


def _type(value: Value) -> Any:
    aval = value.aval
    return len(aval) if isinstance(aval, list) else (tuple(aval.shape), aval.dtype)


class _Stretch:
    """Operations that are repeated, and what their operands are.

    `operands` has for each operation of a round, and each of its operands, one of ("here", which),
    ("before", which, how many rounds), ("same", value) and ("slice", number of a stack). `parts`
    are the operations that take a part of an array by the number of the round, or put a gradient
    of one into zeros. `sums` has the last of the additions of these, and which they add, which is
    done after the loop: all of that is `left_out`.
    """

    def __init__(self, sequence: _Sequence, start: int, period: int, rounds: int):
        if rounds < sequence.least:
            raise _UnfitError
        self.sequence, self.start, self.period, self.rounds = sequence, start, period, rounds
        self.end = start + period * rounds
        self.template = sequence.ops[start + (rounds // 2) * period :][:period]
        self.starts: dict[tuple[int, int], Value] = {}  # of values, by rounds before the first
        self.stacks: list[tuple[Any, ...]] = []
        self._numbers: dict[Any, int] = {}
        self.parts: dict[int, _Part] = {}
        self.sums: dict[int, list[int]] = {}
        self.left_out: set[int] = set()
        self.reverse = False
        for value in self.template:
            kind = "" if value.primitive in (None, CHOICE) else value.primitive.kind
            if kind in ("impure", "user", "control"):
                raise _UnfitError
            if len(value.inputs) > _MOST_OPERANDS:
                raise _UnfitError
        used = np.full(sequence.operands.shape, False)
        used[:] = (sequence.operands >= start) & (sequence.operands < self.end)
        used[start : self.end] = False
        outside = set(sequence.operands[used].tolist())
        outside |= {one for one in sequence.read if start <= one < self.end}
        self.outside: dict[int, set[int]] = {}  # rounds whose values are read outside, by which
        for one in outside:
            r, t = divmod(one - start, period)
            self.outside.setdefault(t, set()).add(r)
        self._varying = [t for t in range(period) if self._keys_differ(t)]
        self._find_direction()
        self.operands: list[list[tuple]] = []
        for t in range(period):
            self.operands.append([] if t in self._varying else self._find_operands(t))
        for t in self._varying:
            self._find_part(t)
        self._find_sums()
        self.carried = sorted(
            {
                (one[1], k + 1)
                for found in self.operands
                for one in found
                if one[0] == "before"
                for k in range(one[2])
            }
        )
        if any(one not in self.starts for one in self.carried):
            raise _UnfitError

    def round_of(self, position: int) -> tuple[int, int]:
        """Return which operation of which round is at a position."""
        r, t = divmod(position - self.start, self.period)
        return t, r

    @property
    def is_elementwise(self) -> bool:
        """Return whether one kernel could do all of it."""
        return all(map(is_cheap, self.template))

    def values(self, t: int) -> list[Value]:
        return list(self.sequence.ops[self.start + t : self.end : self.period])

    def _keys_differ(self, t: int) -> bool:
        if self.template[t].primitive not in (OPS["getitem"], OPS["getitem_adjoint"]):
            return False
        if isinstance(self.template[t], OutputItem):
            return False
        numbers = [
            [one for one in value.params["key"] if type(one) is int] for value in self.values(t)
        ]
        return any(one != numbers[0] for one in numbers)

    def _find_direction(self) -> None:
        """Go from the last row of earlier loops to the first, if most operands do."""
        votes = 0
        for t in range(self.period):
            for column in self.sequence.operands[self.start + t : self.end : self.period].T:
                if column[0] < 0 or column[-1] >= self.start or column[0] == column[-1]:
                    continue
                votes += 1 if column[-1] > column[0] else -1
        self.reverse = votes < 0

    def _find_operands(self, t: int) -> list[tuple]:
        return [self._find_operand(t, k) for k in range(len(self.template[t].inputs))]

    def _find_operand(self, t: int, k: int) -> tuple:
        positions = self.sequence.operands[self.start + t : self.end : self.period, k]
        values = [value.inputs[k] for value in self.values(t)]
        if all(one is values[0] for one in values):
            if positions[0] >= self.start:
                raise _UnfitError
            return "same", values[0]
        far = positions - self.start - np.arange(self.rounds) * self.period
        shift = int(far[-1])
        if positions[-1] >= self.start:
            which, back = shift % self.period, -(shift // self.period)
            if back < 0 or (back == 0 and which >= t) or back >= self.rounds // 2:
                raise _UnfitError
            if not (far[back:] == shift).all() or (positions[:back] >= self.start).any():
                raise _UnfitError
            for r in range(back):
                known = self.starts.setdefault((which, back - r), values[r])
                if known is not values[r] or _type(known) != _type(self.template[which]):
                    raise _UnfitError
            return ("before", which, back) if back else ("here", which)
        if (positions >= self.start).any():
            raise _UnfitError
        return "slice", self._stack(values)

    def _stack(self, values: Sequence[Value]) -> int:
        """Return the number of the stack that has a value for each round."""
        key = tuple(map(id, values))
        if key not in self._numbers:
            self._numbers[key] = len(self.stacks)
            self.stacks.append(tuple(values[::-1] if self.reverse else values))
        return self._numbers[key]

    def _find_part(self, t: int) -> None:
        """Find which slice of an array an operation takes, or puts a gradient of into zeros."""
        found = self._find_operand(t, 0)
        keys = [value.params["key"] for value in self.values(t)]
        axis = next(k for k, parts in enumerate(zip(*keys, strict=True)) if parts[1:] != parts[:-1])
        before, after = keys[0][:axis], keys[0][axis + 1 :]
        numbers = [key[axis] for key in keys]
        step = numbers[1] - numbers[0]
        regular = min(numbers) >= 0 and all(b - a == step for a, b in pairwise(numbers))
        if not regular or any(one != slice(None) for one in before):
            raise _UnfitError
        if any((*key[:axis], *key[axis + 1 :]) != (*before, *after) for key in keys):
            raise _UnfitError
        if self.reverse:
            numbers, step = numbers[::-1], -step
        self.operands[t] = [found]
        self.parts[t] = _Part(axis, _range(numbers[0], step, self.rounds), after)
        if (found[0] == "same") != (self.template[t].primitive is OPS["getitem"]):
            raise _UnfitError

    def _find_sums(self) -> None:
        """Find chains of additions by which the gradients of slices are added up."""
        adjoints = [t for t in self.parts if self.template[t].primitive is not OPS["getitem"]]
        uses: dict[int, list[tuple[int, int]]] = {}
        for u, operands in enumerate(self.operands):
            for k, one in enumerate(operands):
                if one[0] in ("here", "before"):
                    uses.setdefault(one[1], []).append((u, k))
        added = {}  # by an addition, the gradient that it adds and what it adds it to
        for t in adjoints:
            if t in self.outside or len(uses.get(t, ())) != 1:
                raise _UnfitError
            ((u, k),) = uses[t]
            if self.template[u].primitive is not OPS["add"] or self.operands[u][k] != ("here", t):
                raise _UnfitError
            added[u] = t, self.operands[u][1 - k]
        for u, (_, other) in added.items():
            if other[0] not in ("here", "before") or other[1] not in added:
                raise _UnfitError
            if len(uses[u]) != 1 or (other[0] == "before" and other[2] != 1):
                raise _UnfitError
        for u, (_, other) in added.items():
            if other[0] != "before":
                continue
            chain = [u]  # from the first addition of a round to the last
            while (after := uses[chain[-1]][0][0]) != u:
                chain.append(after)
            if chain[-1] != other[1] or self.outside.get(chain[-1], set()) - {self.rounds - 1}:
                raise _UnfitError
            if any(one in self.outside for one in chain[:-1]):
                raise _UnfitError
            self.sums[chain[-1]] = [added[one][0] for one in chain]
            self.left_out |= {*chain, *self.sums[chain[-1]]}
        if len(self.left_out) != 2 * len(added):
            raise _UnfitError
        for u in added:
            self.operands[u] = []


class _Part(NamedTuple):
    """A part of an array that a round takes: one of a range along an axis, and a key after it."""

    axis: int
    range: slice
    after: tuple

    @property
    def key(self) -> tuple:
        """Return the key of the parts of all rounds."""
        return (*[slice(None)] * self.axis, self.range, *self.after)

    @property
    def rest(self) -> tuple:
        """Return what is left of the key of a round."""
        return (*[slice(None)] * self.axis, *self.after) if self.after else ()


def _range(begin: int, step: int, count: int) -> slice:
    stop = begin + step * count
    return slice(begin, stop if stop >= 0 else None, step)


class _Rolled:
    """The graph with loops."""

    def __init__(self, sequence: _Sequence, loops: Sequence[_Stretch], build: Build):
        self.sequence, self.loops, self.build = sequence, loops, build
        self.made: dict[Value, Value] = {}
        self.rows: dict[tuple[int, int, int], Value] = {}  # by a loop's start, which, and shift
        self.begins = [loop.start for loop in loops]
        self.sources = {
            (loop.start, number): self._source(values)
            for loop in loops
            for number, values in enumerate(loop.stacks)
        }
        self.stacks = {
            value: source
            for value in sequence.ops
            if value.primitive is OPS["stack"] and len(value.inputs) >= sequence.least
            for source in [self._source(value.inputs)]
            if source is not None
        }
        self.wanted = self._find_rows()
        i = 0
        while i < len(sequence.ops):
            loop = self._loop_at(i)
            if loop is not None:
                self._add(loop)
                i = loop.end
                continue
            self.made[sequence.ops[i]] = self._again(sequence.ops[i])
            i += 1
        outputs = [self._of(value) for value in sequence.graph.outputs]
        self.graph = FuncGraph(sequence.graph.inputs, outputs)

    def _loop_at(self, position: int) -> _Stretch | None:
        k = bisect_right(self.begins, position) - 1
        return self.loops[k] if k >= 0 and position < self.loops[k].end else None

    def _of(self, value: Value) -> Value:
        """Return what stands for a value: for one of a loop an element of its rows."""
        if value not in self.made:
            position = self.sequence.positions.get(value, -1)
            loop = self._loop_at(position)
            if loop is None:
                return value
            t, r = loop.round_of(position)
            stack = self.rows[loop.start, t, 0]
            index = loop.rounds - 1 - r if loop.reverse else r
            self.made[value] = operation(OPS["getitem"], [stack], {"key": (index,)})
        return self.made[value]

    def _again(self, value: Value) -> Value:
        if value in self.stacks:
            axis = value.params["axis"]
            return _moved(self._rows(self.stacks[value], len(value.inputs)), 0, axis)
        operands = [self._of(one) for one in value.inputs]
        if all(new is old for new, old in zip(operands, value.inputs, strict=True)):
            return value
        if isinstance(value, OutputItem):
            return OutputItem(operands[0], value.index)
        return Value(value.aval, value.primitive, operands, value.params)

    def _source(self, values: Sequence[Value]) -> tuple[_Stretch, int, int, int, int] | None:
        """Return the rows of a loop that a stack consists of: whose, which, and from where on.

        They may be of what rounds began with: then the rows are shifted by one.
        """
        positions = [self.sequence.positions.get(one, -1) for one in values]
        loop = self._loop_at(positions[len(positions) // 2])
        if loop is None:
            return None
        t, _ = loop.round_of(positions[len(positions) // 2])
        first = loop.starts.get((t, 1))
        rounds = []
        for value, position in zip(values, positions, strict=True):
            if value is first:
                rounds.append(-1)
            elif loop.start <= position < loop.end and loop.round_of(position)[0] == t:
                rounds.append(loop.round_of(position)[1])
            else:
                return None
        shift = int(-1 in rounds)
        indices = [loop.rounds - 1 - r - shift if loop.reverse else r + shift for r in rounds]
        step = indices[1] - indices[0]
        regular = step in (1, -1) and all(b - a == step for a, b in pairwise(indices))
        if not regular or not all(0 <= one < loop.rounds for one in indices):
            return None
        return loop, t, shift, indices[0], step

    def _find_rows(self) -> dict[int, list[tuple[int, int]]]:
        """Return of which values of each loop there are rows."""
        found: dict[int, set[tuple[int, int]]] = {}
        for loop in self.loops:
            carried = {t for t, k in loop.carried if k == 1}
            found[loop.start] = {
                (t, 0)
                for t, rounds in loop.outside.items()
                if t not in loop.left_out and (t not in carried or rounds != {loop.rounds - 1})
            }
        for source in (*self.sources.values(), *self.stacks.values()):
            if source is not None:
                found[source[0].start].add(source[1:3])
        return {start: sorted(rows) for start, rows in found.items()}

    def _rows(self, source: tuple[_Stretch, int, int, int, int], count: int) -> Value:
        loop, t, shift, begin, step = source
        return _part(self.rows[loop.start, t, shift], begin, step, count)

    def _stack(self, loop: _Stretch, number: int) -> Value:
        """Return the stack of a value for each round, by index."""
        values, source = loop.stacks[number], self.sources[loop.start, number]
        if source is not None:
            return self._rows(source, len(values))
        arrays = [self.sequence.array(one) for one in values]
        known = [one for one in arrays if one is not None]
        if len(known) == len(values):
            return constant(np.stack(known))
        return operation(OPS["stack"], [self._of(one) for one in values], {"axis": 0})

    def _add(self, loop: _Stretch) -> None:
        """Add a loop, and note what stands for the values that are read outside of it."""
        same: dict[Value, Value] = {}
        slices: dict[Any, Value] = {}
        operands: dict[Any, Value] = {}
        carries = {
            (t, k): Value(loop.template[t].aval) for t, k in loop.carried if t not in loop.left_out
        }
        inside: list[Value | None] = [None] * loop.period

        def operand(found: tuple) -> Value:
            if found[0] == "here":
                made = inside[found[1]]
                assert made is not None
                return made
            if found[0] == "before":
                return carries[found[1:]]
            if found[0] == "same":
                return same.setdefault(found[1], Value(found[1].aval))
            number = found[1]
            if number not in slices:
                operands[number] = self._stack(loop, number)
                slices[number] = Value(loop.stacks[number][0].aval)
            return slices[number]

        for t, value in enumerate(loop.template):
            if t in loop.left_out:
                continue
            if t in loop.parts:
                inside[t] = self._slice(loop, t, slices, operands)
            else:
                given = [operand(one) for one in loop.operands[t]]
                if isinstance(value, OutputItem):
                    inside[t] = OutputItem(given[0], value.index)
                else:
                    inside[t] = Value(value.aval, value.primitive, given, value.params)
        ends = [inside[t] if k == 1 else carries[t, k - 1] for t, k in carries]
        rows = [carries[t, 1] if shift else inside[t] for t, shift in self.wanted[loop.start]]
        gradients = {t: operand(loop.operands[t][0]) for ts in loop.sums.values() for t in ts}
        outputs = [one for one in (*ends, *rows, *gradients.values()) if one is not None]
        graph = simplify(FuncGraph([*same.values(), *carries.values(), *slices.values()], outputs))
        counts = len(same), len(carries), loop.rounds
        body = Body("loop", graph, *counts, loop.reverse, False, False)
        starts = [self._of(loop.starts[one]) for one in carries]
        given = [*[self._of(one) for one in same], *starts, *[operands[one] for one in slices]]
        program = LoopProgram(body, self.build)
        made = Value(body.avals(), LOOP, given, {"loop": program})
        items = [OutputItem(made, k) for k in range(len(outputs))]
        last = loop.rounds - 1
        for k, (t, back) in enumerate(carries):
            if back == 1:
                self.made[loop.values(t)[last]] = items[k]
        for k, (t, shift) in enumerate(self.wanted[loop.start]):
            self.rows[loop.start, t, shift] = items[len(carries) + k]
        parts = dict(zip(gradients, items[len(carries) + len(rows) :], strict=True))
        for u, adjoints in loop.sums.items():
            total = self._of(loop.starts[u, 1])
            for t in adjoints:
                part, shape = loop.parts[t], loop.template[u].shape
                stack = _moved(parts[t], 0, part.axis)
                params = {"shape": shape, "key": part.key}
                term = operation(OPS["getitem_adjoint"], [stack], params)
                total = operation(OPS["add"], [total, term], {})
            self.made[loop.values(u)[last]] = total

    def _slice(self, loop: _Stretch, t: int, slices: dict, operands: dict) -> Value:
        """Return the part of an array that a round takes."""
        x, part = loop.operands[t][0][1], loop.parts[t]
        number = x, part.axis, part.range.start, part.range.step
        if number not in slices:
            stack = operation(OPS["getitem"], [self._of(x)], {"key": part._replace(after=()).key})
            operands[number] = stack = _moved(stack, part.axis, 0)
            slices[number] = Value(Aval(tuple(stack.shape[1:]), x.dtype))
        if not part.after:
            return slices[number]
        return operation(OPS["getitem"], [slices[number]], {"key": part.rest})


def _moved(x: Value, source: int, to: int) -> Value:
    """Return an array with an axis moved to another position."""
    perm = [axis for axis in range(len(x.shape)) if axis != source]
    perm.insert(to, source)
    return x if source == to else operation(OPS["transpose"], [x], {"perm": tuple(perm)})


def _part(x: Value, begin: int, step: int, count: int) -> Value:
    """Return some parts of an array along its first axis."""
    if begin == 0 and step == 1 and count == x.shape[0]:
        return x
    return operation(OPS["getitem"], [x], {"key": (_range(begin, step, count),)})
