"""Loops of a finished graph: what need not be done in each round is done outside of them.

1. A gradient's loop runs again the body of the loop that it is the gradient of. The results of
   that one's operations are read instead, unless they are cheap.
2. What is the same in all rounds is computed once, before the loop. Products of slices of a stack
   are one product of the stack.
3. A sum over rounds of products, such as the gradient of a matrix, is one product after the loop.
   So is an output whose rows are products.
4. What nothing reads is left out: rows, loop variables, operands.
5. An array of which each round writes a row of its own, known before the loop, is put together
   after it, of rows that the loop gives. Its gradient, of which each round reads such a row and
   makes it zero, is read before the loop.

The first and the last two keep all bits; products of stacks add in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..._core.kinds import is_inexact, is_integer
from ..._core.primitive import OPS, Primitive
from ..._core.tensor import Aval
from .partition import is_cheap
from .simplify import simplify
from .values import (
    FuncGraph,
    OutputItem,
    Value,
    constant,
    frozen,
    in_order,
    in_turn,
    operation,
    with_operands,
)

_MOST_COUNTED = 10_000_000
_MOST_BYTES = 2**28
"""A stack that is made before a loop, or kept for after it, is at most as large."""


class Body(NamedTuple):
    """The body of a loop: what it does in a round.

    The inputs of `graph` are constants of the loop, loop variables, and a slice of each stack; its
    outputs are the loop variables, and a row of each output. If it is `limited`, the first constant
    is the number of rounds, `length` at most. Without a length rounds go on while the last loop
    variable is True, and the number of them is a result. If it is `lean`, it spares memory rather
    than time.
    """

    name: str
    graph: FuncGraph
    constants: int
    carries: int
    length: int | None
    reverse: bool
    limited: bool
    lean: bool

    @property
    def rows(self) -> list[Aval]:
        """Return the shapes and dtypes of the rows of the outputs."""
        return [value.aval for value in self.graph.outputs[self.carries :]]

    def avals(self) -> list[Aval]:
        """Return those of the results: the last loop variables, and the stacks of outputs."""
        ends = [value.aval for value in self.graph.inputs[self.constants :][: self.carries]]
        if self.length is None:
            return [*ends, Aval((), np.dtype(np.int64))]
        return [*ends, *[Aval((self.length, *one.shape), one.dtype) for one in self.rows]]


def optimize(graph: FuncGraph, known: Mapping[Value, Value] | None = None) -> FuncGraph:
    """Return the graph simplified, and its loops rewritten; `known` replaces some values."""
    graph = simplify(graph, known)
    if not any(_is_loop(value) for value in graph.values()):
        return graph
    if any(_is_loop(value) and _counts_or_writes(value) for value in graph.values()):
        graph = simplify(_Loops(graph).counted())
    return simplify(_Loops(graph).rewritten())


def _counts_or_writes(value: Value) -> bool:
    body: Body = value.params["loop"].body
    if body.length is None or body.limited or body.lean:
        return False
    return any(one.primitive is OPS["set_row"] for one in body.graph.values()) or any(
        _step(body.graph.outputs[k], body.graph.inputs[body.constants + k]) is not None
        for k in range(body.carries)
    )


def _step(end: Value, carried: Value) -> Any:
    """Return the integer that a round adds to a loop variable; None if it does something else."""
    if end.primitive is not OPS["add"] or carried.shape or not is_integer(carried.dtype):
        return None
    steps = [one for one in end.inputs if one is not carried]
    if len(steps) != 1 or steps[0].array is None or steps[0].shape:
        return None
    return steps[0].array[()]


def known_rounds(graph: FuncGraph, constants: int, starts: Sequence[np.ndarray | None]) -> Any:
    """Return how many rounds a loop has whose last loop variable is the condition; None if unknown.

    That is known where it compares a loop variable that counts with a number. `starts` are the loop
    variables before the first round, as far as they are known.
    """
    carried, ends = graph.inputs[constants:], graph.outputs

    def count(value: Value) -> int | None:
        name = "" if value.primitive is None else value.primitive.name
        if name == "reshape":
            return count(value.inputs[0])
        if name == "logical_and":
            counts = [count(one) for one in value.inputs]
            known = [one for one in counts if one is not None]
            return min(known) if len(known) == len(counts) else None
        if name not in ("less", "less_equal", "greater", "greater_equal"):
            return None
        left, right = value.inputs
        if right.array is None:
            return None
        for k, start in enumerate(starts[:-1]):
            step = _step(ends[k], carried[k])
            if ends[k] is left and step is not None and start is not None:
                return _rounds(name, int(start), int(step), right.array)
        return None

    return count(ends[len(starts) - 1])


def _rounds(name: str, start: int, step: int, limit: np.ndarray) -> int | None:
    if limit.size != 1 or not is_integer(limit.dtype):
        return None
    distance = int(limit.reshape(-1)[0]) - start
    if name.startswith("greater"):
        distance, step = -distance, -step
    if step <= 0:
        return None
    if name.endswith("equal"):
        distance += 1
    found = max(-(-distance // step), 0)
    return found if found <= _MOST_COUNTED else None


def _is_loop(value: Value) -> bool:
    return value.primitive is not None and value.primitive.name == "loop"


class _Draft:
    """A loop that is being rewritten.

    `fixed` and `slices` have the loop's operand for each input of the body. `outside` has the
    results, by index, that are computed outside of the loop.
    """

    def __init__(self, value: Value):
        self.value, self.program = value, value.params["loop"]
        self.body: Body = self.program.body
        assert self.body.length is not None
        self.length = self.body.length
        inputs, outputs = self.body.graph.inputs, self.body.graph.outputs
        first, count = self.body.constants, self.body.carries
        self.fixed = dict(zip(inputs[:first], value.inputs, strict=False))
        self.carried = list(inputs[first : first + count])
        self.starts = list(value.inputs[first : first + count])
        self.slices = dict(zip(inputs[first + count :], value.inputs[first + count :], strict=True))
        self.ends, self.rows = list(outputs[:count]), list(outputs[count:])
        self.outside: dict[int, Value] = {}
        self.wanted: dict[int, None] = {}
        self.needed: set[Value] = set()  # of the body

    def values(self) -> list[Value]:
        return in_order([*self.ends, *self.rows])

    def is_input(self, value: Value) -> bool:
        return value in self.fixed or value in self.slices or value in self.carried

    def fits(self, value: Value) -> bool:
        """Return whether there is room for a row of the value for each round."""
        if isinstance(value.aval, list):
            return False
        return self.length * prod(value.shape) * value.dtype.itemsize <= _MOST_BYTES

    def keep(self, value: Value) -> Value:
        """Return the stack of a value of the body, which is a row of the loop."""
        if value not in self.rows:
            self.rows.append(value)
        return _Row(self, self.rows.index(value))

    def replace(self, substitutions: dict[Value, Value]) -> None:
        """Put other values in place of some of the body's."""
        found = _with([*self.ends, *self.rows], substitutions)
        count = len(self.ends)
        self.ends, self.rows = found[:count], found[count:]


class _Row(Value):
    """The stack of one of a loop's rows."""

    __slots__ = ("draft", "index")

    def __init__(self, draft: _Draft, index: int):
        row = draft.rows[index]
        super().__init__(Aval((draft.length, *row.shape), row.dtype))
        self.draft, self.index = draft, draft.body.carries + index


def _is_pure(graph: FuncGraph) -> bool:
    """Return whether operations may be left out, or done outside of the loop."""
    for value in graph.values():
        kind = "" if value.primitive is None else value.primitive.kind
        if kind in ("impure", "user"):
            return False
        if kind == "control" and not (
            _is_loop(value) and _is_pure(value.params["loop"].body.graph)
        ):
            return False
    return True


class _Loops:
    """The loops of a graph that can be rewritten, operands first."""

    def __init__(self, graph: FuncGraph):
        self.graph = graph
        self.drafts: dict[Value, _Draft] = {}
        for value in filter(_is_loop, graph.values()):
            body = value.params["loop"].body
            if body.length is not None and _is_pure(body.graph):
                self.drafts[value] = _Draft(value)

    def counted(self) -> FuncGraph:
        """Return the graph without what nothing reads, and with slices for variables that count."""
        self._share_all()
        for draft in self.drafts.values():
            _join_writes(draft)
            _fix_what_stays(draft)
            if not (draft.body.limited or draft.body.lean):
                _make_slices_of_counters(draft)
                self._take_rows(draft)
        self._find_needed()
        return FuncGraph(self.graph.inputs, self._built())

    def _share_all(self) -> None:
        drafts = list(self.drafts.values())
        for k, later in enumerate(drafts):
            for earlier in drafts[:k]:
                if earlier.length == later.length and not earlier.body.lean:
                    self._share(earlier, later)

    def rewritten(self) -> FuncGraph:
        self._share_all()
        for draft in self.drafts.values():
            if not (draft.body.limited or draft.body.lean):
                _Writes(draft).put_outside()
            _hoist(draft)
            if not (draft.body.limited or draft.body.lean):  # a limited loop has rows of zeros
                _Sums(draft).put_outside()
                self._take_rows(draft)
        self._find_needed()
        return FuncGraph(self.graph.inputs, self._built())

    @staticmethod
    def _take_rows(draft: _Draft) -> None:
        """Take rows that are slices from the stack that these are of."""
        for k, row in enumerate(draft.rows):
            if row in draft.slices:
                draft.outside[draft.body.carries + k] = draft.slices[row]

    def _result(self, value: Value) -> tuple[_Draft, int] | None:
        """Return of which loop a value is a result, and which."""
        if isinstance(value, _Row):
            return value.draft, value.index
        if isinstance(value, OutputItem) and value.inputs[0] in self.drafts:
            return self.drafts[value.inputs[0]], value.index
        return None

    # 1. what an earlier loop has computed

    def _share(self, earlier: _Draft, later: _Draft) -> None:
        """Have a later loop read what an earlier one computes in the same round."""
        if earlier.body.limited:
            counts = [next(iter(draft.fixed.values())) for draft in (earlier, later)]
            if not later.body.limited or counts[0] is not counts[1]:
                return
        known = self._same_inputs(earlier, later)
        if not any(value in later.slices for value in known):
            return
        computed = {_key(one, one.inputs): one for one in earlier.values()}
        for value in later.values():
            if value not in known and (value.inputs or value.array is not None):
                operands = [known.get(one) for one in value.inputs]
                found = None if None in operands else computed.get(_key(value, operands))
                if found is not None:
                    known[value] = found
        substitutions: dict[Value, Value] = {}
        pending = [*later.ends, *later.rows]
        seen = set(pending)
        while pending:
            value = pending.pop()
            dear = value.array is None and not (later.is_input(value) or is_cheap(value))
            if dear and value in known and earlier.fits(value):
                substitutions[value] = read = Value(value.aval)
                later.slices[read] = earlier.keep(known[value])
                continue
            new = [one for one in value.inputs if one not in seen]
            seen.update(new)
            pending += new
        later.replace(substitutions)

    def _same_inputs(self, earlier: _Draft, later: _Draft) -> dict[Value, Value]:
        """Return for inputs of the later loop's body what has the same value in the earlier's."""
        constants = {operand: value for value, operand in earlier.fixed.items()}
        stacks = {operand: value for value, operand in earlier.slices.items()}
        known = {
            value: constants[operand]
            for value, operand in later.fixed.items()
            if operand in constants
        }
        for value, operand in later.slices.items():
            made = self._result(operand)
            if made is not None and made[0] is earlier and made[1] >= earlier.body.carries:
                known[value] = earlier.rows[made[1] - earlier.body.carries]
            elif operand in stacks:
                known[value] = stacks[operand]
        return known

    # 4. what is left

    def _find_needed(self) -> None:
        """Note which results of loops, and values of their bodies, the outputs depend on."""
        pending, seen = list(self.graph.outputs), set(self.graph.outputs)
        while pending:
            value = pending.pop()
            made = self._result(value)
            if made is None:
                operands = list(value.inputs)
            elif made[1] in made[0].outside:
                operands = [made[0].outside[made[1]]]
            else:
                operands = _find_needed_by(*made)
            new = [one for one in operands if one not in seen]
            seen.update(new)
            pending += new

    def _built(self) -> list[Value]:
        built: dict[Value, Value] = {}

        def operands(value: Value) -> Sequence[Value]:
            made = self._result(value)
            if made is not None:
                return [made[0].outside.get(made[1], made[0].value)]
            draft = self.drafts.get(value)
            return value.inputs if draft is None else _operands(draft)

        for output in self.graph.outputs:
            for value in in_turn(output, operands, built.__contains__):
                given = [built[one] for one in operands(value)]
                made, draft = self._result(value), self.drafts.get(value)
                if made is not None:
                    draft, index = made
                    if index not in draft.outside:
                        given = [OutputItem(given[0], _results(draft).index(index))]
                    built[value] = given[0]
                elif draft is not None:
                    built[value] = _finished(draft, given)
                else:
                    same = all(new is old for new, old in zip(given, value.inputs, strict=True))
                    built[value] = value if same else with_operands(value, given)
        return [built[output] for output in self.graph.outputs]


def _find_needed_by(draft: _Draft, index: int) -> list[Value]:
    """Note what a result of a loop depends on, and return the operands among that."""
    found: list[Value] = []
    count = draft.body.carries
    wanted = [index]
    if draft.body.limited:
        first = next(iter(draft.fixed))
        draft.needed.add(first)
        found.append(draft.fixed[first])
    while wanted:
        k = wanted.pop()
        if k in draft.wanted:
            continue
        draft.wanted[k] = None
        pending = [draft.ends[k] if k < count else draft.rows[k - count]]
        if k < count:
            pending.append(draft.carried[k])
        while pending:
            value = pending.pop()
            if value in draft.needed:
                continue
            draft.needed.add(value)
            pending += value.inputs
            if value in draft.fixed:
                found.append(draft.fixed[value])
            elif value in draft.slices:
                found.append(draft.slices[value])
            elif value in draft.carried:
                position = draft.carried.index(value)
                wanted.append(position)
                found.append(draft.starts[position])
    return found


def _results(draft: _Draft) -> list[int]:
    """Return which results are left, in order."""
    return sorted(draft.wanted)


def _operands(draft: _Draft) -> list[Value]:
    starts = zip(draft.carried, draft.starts, strict=True)
    pairs = [*draft.fixed.items(), *starts, *draft.slices.items()]
    return [operand for value, operand in pairs if value in draft.needed]


def _finished(draft: _Draft, operands: Sequence[Value]) -> Value:
    """Return the loop with what is needed of its body."""
    inputs = (*draft.fixed, *draft.carried, *draft.slices)
    results = [*draft.ends, *draft.rows]
    body = draft.body._replace(
        graph=FuncGraph(
            [value for value in inputs if value in draft.needed],
            [results[k] for k in _results(draft)],
        ),
        constants=sum(value in draft.needed for value in draft.fixed),
        carries=sum(value in draft.needed for value in draft.carried),
    )
    params = {"loop": draft.program.with_body(body)}
    return Value(body.avals(), draft.value.primitive, operands, params)


def _key(value: Value, operands: Sequence[Any]) -> Any:
    if value.array is not None:
        return "array", frozen(value.array)
    if isinstance(value, OutputItem):
        return "item", operands[0], value.index
    return value.primitive, tuple(operands), frozen(value.params)


# 2. what need not be in the loop -----------------------------------------------------------------


def _is_product(value: Value) -> bool:
    return value.primitive is not None and value.primitive.name in ("matmul", "matvec")


def _is_gather(value: Value) -> bool:
    """Return whether a value is the part of an array that an integer tells."""
    return (
        value.primitive is OPS["gather"]
        and not value.params["batch_dims"]
        and not value.inputs[1].shape
    )


def _is_row(value: Value) -> bool:
    return _is_gather(value) and not value.params["axis"]


def move_axis(x: Value, source: int, to: int) -> Value:
    """Return an array with an axis moved to another position."""
    perm = [axis for axis in range(len(x.shape)) if axis != source]
    perm.insert(to, source)
    return x if source == to else _transpose(x, tuple(perm))


def _is_elementwise(value: Value) -> bool:
    return value.primitive is not None and value.primitive.kind == "elementwise"


def _invariant(draft: _Draft) -> dict[Value, Value]:
    """Return the values of the body that are the same in all rounds, and these outside of it."""
    found = dict(draft.fixed)
    for value in draft.values():
        if value.array is not None:
            found[value] = value
            continue
        known = all(one in found for one in value.inputs) and bool(value.inputs)
        if known and (is_cheap(value) or _is_product(value)):
            found[value] = with_operands(value, [found[one] for one in value.inputs])
    return found


def _of_stacks(draft: _Draft, same: dict[Value, Value]) -> dict[Value, Value]:
    """Return products, and elementwise operations, of slices, and the stacks of all of them."""
    found = dict(draft.slices)
    for value in draft.values():
        if _is_gather(value) and value.inputs[0] in same and value.inputs[1] in found:
            if draft.fits(value):
                operands = [same[value.inputs[0]], found[value.inputs[1]]]
                parts = operation(OPS["gather"], operands, value.params)
                found[value] = move_axis(parts, value.params["axis"], 0)
            continue
        if not (_is_product(value) or _is_elementwise(value)) or not draft.fits(value):
            continue
        if not all(one in found or one in same for one in value.inputs):
            continue
        if not any(one in found for one in value.inputs) or not _axes_align(value, found):
            continue
        assert value.primitive is not None
        operands = [found.get(one) or same[one] for one in value.inputs]
        stack = operation(value.primitive, operands, value.params)
        if stack.aval == Aval((draft.length, *value.shape), value.dtype):
            found[value] = stack
    return found


def _axes_align(value: Value, stacks: dict[Value, Value]) -> bool:
    """Return whether one more axis in front, of all stacks among the operands, is theirs alone."""
    core = (2, 1) if value.primitive is OPS["matvec"] else (2, 2)
    if _is_elementwise(value):
        core = (0,) * len(value.inputs)
    rest = [len(one.shape) - k for one, k in zip(value.inputs, core, strict=True)]
    most = max(rest)
    return all(
        size == most if one in stacks else size <= most
        for one, size in zip(value.inputs, rest, strict=True)
    )


def _hoist(draft: _Draft) -> None:
    """Compute before the loop what is the same in all rounds, and products of slices."""
    same = _invariant(draft)
    stacks = {} if draft.body.limited or draft.body.lean else _of_stacks(draft, same)
    substitutions: dict[Value, Value] = {}
    pending = [*draft.ends, *draft.rows]
    seen = set(pending)
    while pending:
        value = pending.pop()
        if value in same and (_is_elementwise(value) or _is_product(value)):
            substitutions[value] = new = Value(value.aval)
            draft.fixed[new] = same[value]
            continue
        if value in stacks and (_is_product(value) or _is_gather(value)):
            substitutions[value] = new = Value(value.aval)
            draft.slices[new] = stacks[value]
            continue
        more = [one for one in value.inputs if one not in seen]
        seen.update(more)
        pending += more
    draft.replace(substitutions)


# 5. arrays that are written row by row ------------------------------------------------------------


class _Writes:
    """The loop variables of one loop of which each round writes another row."""

    def __init__(self, draft: _Draft):
        self.draft = draft
        self.stacks = _of_stacks(draft, _invariant(draft))

    def put_outside(self) -> None:
        for k in range(len(self.draft.carried)):
            indices = self._written_indices(k)
            if indices is not None:
                self._put_outside(k, indices)

    def _written_indices(self, k: int) -> np.ndarray | None:
        """Return the rows that rounds write, by slice; None if that is not what they do."""
        carried, end = self.draft.carried[k], self.draft.ends[k]
        if end.primitive is not OPS["set_row"] or end.params["batch_dims"]:
            return None
        array, value, index = end.inputs
        if array is not carried or index not in self.stacks or not self.draft.fits(value):
            return None
        values = self.draft.values()
        uses = Counter(one for other in values for one in other.inputs)
        uses.update([*self.draft.ends, *self.draft.rows])
        if uses[end] != 1 or uses[carried] != 1 + len(self._reads(k)):
            return None
        indices = _known(self.stacks[index])
        if indices is None or len(np.unique(indices)) < len(indices):
            return None
        if indices.size and not 0 <= indices.min() <= indices.max() < len_of(carried):
            return None
        return indices

    def _reads(self, k: int) -> list[Value]:
        """Return what reads the row that the round writes after it."""
        carried, index = self.draft.carried[k], self.draft.ends[k].inputs[2]
        return [
            value
            for value in self.draft.values()
            if _is_row(value) and value.inputs[0] is carried and value.inputs[1] is index
        ]

    def _put_outside(self, k: int, indices: np.ndarray) -> None:
        draft, start = self.draft, self.draft.starts[k]
        stack = operation(OPS["gather"], [start, constant(indices)], {"axis": 0, "batch_dims": 0})
        substitutions = {}
        for read in self._reads(k):
            substitutions[read] = new = Value(read.aval)
            draft.slices[new] = stack
        draft.replace(substitutions)
        value = draft.ends[k].inputs[1]
        rows = draft.slices[value] if value in draft.slices else draft.keep(value)
        size = len_of(start)
        draft.outside[k] = rows
        if np.array_equal(indices, np.arange(size)):
            return
        sources, written = np.zeros(size, np.int64), np.zeros(size, bool)
        sources[indices], written[indices] = np.arange(len(indices)), True
        found = operation(OPS["gather"], [rows, constant(sources)], {"axis": 0, "batch_dims": 0})
        if not written.all():
            mask = constant(written.reshape(-1, *[1] * len(value.shape)))
            found = operation(OPS["where"], [mask, found, start], {})
        draft.outside[k] = found


def _join_writes(draft: _Draft) -> None:
    """Have a row that is made zero, and to which something is added, be written once."""
    substitutions = {}
    for value in draft.values():
        if value.primitive is not OPS["add"]:
            continue
        for put, added in (value.inputs, value.inputs[::-1]):
            if (
                put.primitive is OPS["set_row"]
                and added.primitive is OPS["gather_adjoint"]
                and not (put.params["batch_dims"] or added.params["axis"] or put.inputs[2].shape)
                and put.inputs[2] is added.inputs[1]
                and _is_zero(put.inputs[1])
                and put.aval == added.aval == value.aval
            ):
                operands = [put.inputs[0], added.inputs[0], put.inputs[2]]
                substitutions[value] = operation(OPS["set_row"], operands, put.params)
    if substitutions:
        draft.replace(substitutions)


def _is_zero(value: Value) -> bool:
    if value.primitive is OPS["broadcast_to"]:
        value = value.inputs[0]
    return value.array is not None and not value.array.any()


def _fix_what_stays(draft: _Draft) -> None:
    """Put constants of the loop in place of loop variables that no round changes."""
    substitutions: dict[Value, Value] = {}
    for k, carried in enumerate(draft.carried):
        if draft.ends[k] is carried:
            substitutions[carried] = new = Value(carried.aval)
            draft.fixed[new] = draft.outside[k] = draft.starts[k]
    if substitutions:
        draft.replace(substitutions)


def _make_slices_of_counters(draft: _Draft) -> None:
    """Put slices in place of integers to which each round adds the same."""
    substitutions: dict[Value, Value] = {}
    for k, carried in enumerate(draft.carried):
        step, start = _step(draft.ends[k], carried), draft.starts[k].array
        if step is None or start is None:
            continue
        numbers = int(start) + int(step) * np.arange(draft.length + 1)
        if not np.array_equal(numbers.astype(carried.dtype), numbers):
            continue  # they overflow
        numbers = numbers.astype(carried.dtype)
        rounds = numbers[:-1][::-1] if draft.body.reverse else numbers[:-1]
        substitutions[carried] = new = Value(carried.aval)
        draft.slices[new] = constant(np.ascontiguousarray(rounds))
        draft.outside[k] = constant(numbers[-1:].reshape(()))
    if substitutions:
        draft.replace(substitutions)


def len_of(value: Value) -> int:
    return value.shape[0]


def _exchange(x: np.ndarray, value: np.ndarray, index: np.ndarray) -> np.ndarray:
    position = int(index)
    if not 0 <= position < len(x):
        raise IndexError(f"set_row: index {position} is outside of {len(x)} rows")
    before = np.array(x[position])
    x[position] = value
    return before


EXCHANGE = Primitive(
    "exchange_row",
    _exchange,
    ("x", "value", "index"),
    lambda x, value, index: value,
)
"""Not an operation for tensors: it changes a loop variable that nobody else reads.

It gives what the row was before.
"""


def _add_in_place(x: np.ndarray, part: np.ndarray, *index: np.ndarray, key: Any) -> np.ndarray:
    x[key if key is not None else int(index[0])] += part
    return np.array(part)


ADD_IN_PLACE = Primitive(
    "add_in_place",
    _add_in_place,
    ("x", "part", "index"),
    lambda x, part, *index, key: part,
)
"""The same of a sum to which a part is added."""


def in_place(body: Body) -> FuncGraph:
    """Return what the body computes, with parts of loop variables changed where they stand.

    These are results as they were given, and further outputs, after all others, see to it that they
    are changed. The loop has to have loop variables of its own in the first round.
    """
    graph = body.graph
    for k in range(body.carries):
        carried, end = graph.inputs[body.constants + k], graph.outputs[k]
        uses = Counter(one for other in graph.values() for one in other.inputs)
        uses.update(graph.outputs)
        if uses[end] == 1:
            found = _exchanged(graph, carried, end, uses) or _added(carried, end, uses)
            if found is not None:
                made, reads = found
                substitutions = {end: carried, **dict.fromkeys(reads, made)}
                outputs = _with([*graph.outputs, made], substitutions)
                graph = FuncGraph(graph.inputs, outputs)
    return graph


def _exchanged(
    graph: FuncGraph, carried: Value, end: Value, uses: Counter[Value]
) -> tuple[Value, list[Value]] | None:
    """Return the replacement of a row, and the reads of what it was before, which it gives."""
    if end.primitive is not OPS["set_row"] or end.params["batch_dims"]:
        return None
    index = end.inputs[2]
    reads = [one for one in graph.values() if _is_row(one) and [*one.inputs] == [carried, index]]
    if end.inputs[0] is not carried or uses[carried] != 1 + len(reads):
        return None
    if {carried, *reads} & set(in_order(end.inputs[1:])):
        return None
    return operation(EXCHANGE, end.inputs, {}), reads


def _added(carried: Value, end: Value, uses: Counter[Value]) -> tuple[Value, list[Value]] | None:
    """Return the addition of a part to a loop variable."""
    if end.primitive is not OPS["add"] or uses[carried] != 1 or carried not in end.inputs:
        return None
    term = end.inputs[end.inputs[0] is carried]
    if uses[term] != 1 or term.aval != carried.aval or end.aval != carried.aval:
        return None
    if term.primitive is OPS["gather_adjoint"]:
        params = term.params
        if term.inputs[1].shape or params["axis"] or params["batch_dims"]:
            return None
        key = None
    elif term.primitive is OPS["getitem_adjoint"]:
        key = term.params["key"]
        if any(isinstance(one, np.ndarray) for one in key):
            return None
    else:
        return None
    return operation(ADD_IN_PLACE, [carried, *term.inputs], {"key": key}), []


def _with(outputs: Sequence[Value], substitutions: Mapping[Value, Value]) -> list[Value]:
    """Return values with others in place of some that they depend on."""
    built = dict(substitutions)
    for value in in_order(outputs):
        if value not in built:
            operands = [built[one] for one in value.inputs]
            same = all(new is old for new, old in zip(operands, value.inputs, strict=True))
            built[value] = value if same else with_operands(value, operands)
    return [built[one] for one in outputs]


def _known(value: Value) -> np.ndarray | None:
    """Return the numbers of a value that elementwise operations make of constants."""
    if value.array is not None:
        return value.array
    if value.primitive is None or not (_is_elementwise(value) or value.primitive.kind == "move"):
        return None
    operands = [_known(one) for one in value.inputs]
    if not operands or any(one is None for one in operands):
        return None
    return np.asarray(value.primitive.run(*operands, **value.params))


# 3. what need not be summed in the loop ----------------------------------------------------------


class _Sums:
    """The sums over rounds of one loop that are computed after it."""

    def __init__(self, draft: _Draft):
        self.draft, self.same = draft, _invariant(draft)
        self.stacks = _of_stacks(draft, self.same)
        self.uses = Counter(one for value in draft.values() for one in value.inputs)
        self.uses.update([*draft.ends, *draft.rows])

    def put_outside(self) -> None:
        draft, left = self.draft, []
        for k, carried in enumerate(draft.carried):
            terms = self._terms(k, carried)
            if terms and all(self._is_product(one) or self._is_scattered(one) for one in terms):
                self._put_outside(k, terms)
            elif terms:
                left.append((k, terms))
        for k, terms in left:  # of what is kept anyway
            kinds = (self._is_product, self._is_scattered, self._is_sum_of_kept)
            if all(any(kind(one) for kind in kinds) for one in terms):
                self._put_outside(k, terms)
        for k, row in enumerate(draft.rows):
            if self._is_product_after(row):
                stack = self._stack(row.inputs[0])
                draft.outside[draft.body.carries + k] = operation(
                    OPS["matmul"], [stack, self.same[row.inputs[1]]], {}
                )

    def _terms(self, k: int, carried: Value) -> list[Value]:
        """Return what is added to a loop variable in each round; none if it is no such sum."""
        if not is_inexact(carried.dtype) or self.uses[carried] != 1:
            return []
        leaves, pending = [], [self.draft.ends[k]]
        while pending:
            value = pending.pop()
            if value.primitive is OPS["add"] and self.uses[value] == 1:
                pending += value.inputs
            else:
                leaves.append(value)
        if leaves.count(carried) != 1 or any(one.aval != carried.aval for one in leaves):
            return []
        leaves.remove(carried)
        return leaves

    def _put_outside(self, k: int, terms: Sequence[Value]) -> None:
        total = self.draft.starts[k]
        for one in terms:
            if self._is_scattered(one):
                term = self._scattered(one)
            else:
                term = self._product(one) if self._is_product(one) else self._sum(one)
            total = operation(OPS["add"], [total, term], {})
        self.draft.outside[k] = total

    def _is_product(self, value: Value) -> bool:
        """Return whether a term is a product of two matrices, of which rows can be kept."""
        if value.primitive is not OPS["matmul"]:
            return False
        return all(
            len(one.shape) == 2 and one not in self.same and self.draft.fits(one)
            for one in value.inputs
        )

    def _is_scattered(self, value: Value) -> bool:
        """Return whether a term is zeros but for a part, that of the gradient of a read."""
        if value.primitive is OPS["gather_adjoint"]:
            index, params = value.inputs[1], value.params
            if index.shape or params["batch_dims"]:
                return False
            if index not in self.stacks and index not in self.same:
                return False
        elif value.primitive is not OPS["getitem_adjoint"]:
            return False
        part = value.inputs[0]
        return part not in self.same and self.draft.fits(part)

    def _scattered(self, value: Value) -> Value:
        """Return the sum of such a term over all rounds."""
        assert value.primitive is not None
        stack, rest = self._stack(value.inputs[0]), value.inputs[1:]
        if rest and rest[0] in self.stacks:
            parts = move_axis(stack, 0, value.params["axis"])
            return operation(value.primitive, [parts, self.stacks[rest[0]]], value.params)
        total = operation(OPS["sum"], [stack], {"axis": (0,), "keepdims": False})
        return operation(value.primitive, [total, *[self.same[one] for one in rest]], value.params)

    def _is_product_after(self, row: Value) -> bool:
        """Return whether nothing but a row of the output is a product by a constant matrix."""
        if row.primitive is not OPS["matmul"] or self.uses[row] != 1:
            return False
        left, right = row.inputs
        return right in self.same and len(right.shape) == 2 and self.draft.fits(left)

    def _stack(self, value: Value) -> Value:
        """Return the stack of a value of the body."""
        if value in self.draft.slices:
            return self.draft.slices[value]
        if value.primitive is OPS["reshape"]:
            stack = self._stack(value.inputs[0])
            return _reshape(stack, (self.draft.length, *value.shape))
        return self.draft.keep(value)

    def _product(self, value: Value) -> Value:
        """Return the sum of a product over all rounds."""
        left, right = value.inputs
        inner = self.draft.length * left.shape[1]
        if left.primitive is OPS["transpose"]:
            a = _reshape(self._stack(left.inputs[0]), (inner, left.shape[0]))
            a = _transpose(a, (1, 0))
        else:
            a = _reshape(_transpose(self._stack(left), (1, 0, 2)), (left.shape[0], inner))
        if right.primitive is OPS["transpose"]:
            b = _transpose(self._stack(right.inputs[0]), (0, 2, 1))
        else:
            b = self._stack(right)
        b = _reshape(b, (inner, right.shape[1]))
        return operation(OPS["matmul"], [a, b], {})

    def _is_sum_of_kept(self, value: Value) -> bool:
        if value.primitive is not OPS["sum"] or value.params["keepdims"]:
            return False
        of = value.inputs[0]
        return of in self.draft.rows or of in self.draft.slices

    def _sum(self, value: Value) -> Value:
        axes = (0, *[axis + 1 for axis in value.params["axis"]])
        stack = self._stack(value.inputs[0])
        return operation(OPS["sum"], [stack], {"axis": axes, "keepdims": False})


def _reshape(value: Value, shape: tuple[int, ...]) -> Value:
    return operation(OPS["reshape"], [value], {"shape": shape})


def _transpose(value: Value, perm: tuple[int, ...]) -> Value:
    return operation(OPS["transpose"], [value], {"perm": perm})
