"""Bodies of loops, and drafts: loops of a finished graph that passes rewrite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from ..._core.tensor import Aval
from .partition import MAX_STACK_BYTES
from .values import FuncGraph, Value, in_order, with_operands


class Body(NamedTuple):
    """The body of a loop: the computation of one round.

    The inputs of `graph` are the constants, the loop variables and a slice of each stack. Its
    outputs are the loop variables and a row of each output. If the body is `limited`, the first
    constant is the number of rounds, at most `length`. Without a length the loop runs while its
    last loop variable is True, and the number of rounds is a result. A `lean` loop saves memory
    rather than time.
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

    def count(self, arrays: Sequence[np.ndarray]) -> int:
        """Return the number of rounds of a call with these arrays."""
        assert self.length is not None
        return int(arrays[0]) if self.limited else self.length

    def avals(self) -> list[Aval]:
        """Return the shapes and dtypes of the results: the last loop variables, then the stacks."""
        ends = [value.aval for value in self.graph.inputs[self.constants :][: self.carries]]
        if self.length is None:
            return [*ends, Aval((), np.dtype(np.int64))]
        return [*ends, *[Aval((self.length, *row.shape), row.dtype) for row in self.rows]]


class Draft:
    """A loop that passes rewrite.

    `fixed` and `slices` map inputs of the body to the loop's operands. `results` has the values of
    the body that are the last loop variables and the rows, by index. `outside` has the results that
    are computed outside of the loop. `read` are the indices of results that something reads.
    """

    def __init__(self, value: Value, read: Collection[int]):
        self.value, self.program = value, value.params["loop"]
        self.body: Body = self.program.body
        assert self.body.length is not None
        self.length = self.body.length
        self.has_all_rounds = not (self.body.limited or self.body.lean)
        inputs, first, count = self.body.graph.inputs, self.body.constants, self.body.carries
        self.fixed = dict(zip(inputs[:first], value.inputs, strict=False))
        self.carried = list(inputs[first : first + count])
        self.starts = list(value.inputs[first : first + count])
        self.slices = dict(zip(inputs[first + count :], value.inputs[first + count :], strict=True))
        self.results = [  # without rows that nothing reads
            output if k < count or k in read else Value(output.aval)
            for k, output in enumerate(self.body.graph.outputs)
        ]
        self.outside: dict[int, Value] = {}
        self.wanted: set[int] = set()  # of the results
        self.needed: set[Value] = set()  # of the body

    def values(self) -> list[Value]:
        return in_order(self.results)

    def uses(self) -> Counter[Value]:
        """Return how often each value is read in a round."""
        counts = Counter(operand for value in self.values() for operand in value.inputs)
        counts.update(self.results)
        return counts

    def is_input(self, value: Value) -> bool:
        return value in self.fixed or value in self.slices or value in self.carried

    def fits(self, value: Value, limit: int = MAX_STACK_BYTES) -> bool:
        """Return whether the rows of this value for all rounds fit into so many bytes."""
        if isinstance(value.aval, list) or not limit:
            return False
        return self.length * prod(value.shape) * value.dtype.itemsize <= limit

    def stack(self, value: Value) -> Value:
        """Return the stack of a value of the body: that of a slice, or a new row of the loop."""
        if value in self.slices:
            return self.slices[value]
        count = len(self.carried)
        if value not in self.results[count:]:
            self.results.append(value)
        return Row(self, self.results.index(value, count))

    def replace(self, substitutions: Mapping[Value, Value]) -> None:
        """Substitute values in the body."""
        if substitutions:
            self.results = replaced(self.results, substitutions)

    def need(self, index: int) -> list[Value]:
        """Mark everything that a result depends on; return the loop's operands among it."""
        operands = {**self.fixed, **self.slices}
        pending, reached = [index], list[Value]()
        values = [*self.fixed][: self.body.limited]  # the number of rounds
        while pending or values:
            if not values:
                k = pending.pop()
                if k not in self.wanted:
                    self.wanted.add(k)
                    values += [self.results[k], *self.carried[k : k + 1]]
                continue
            value = values.pop()
            if value in self.needed:
                continue
            self.needed.add(value)
            values += value.inputs
            if value in operands:
                reached.append(operands[value])
            elif value in self.carried:
                position = self.carried.index(value)
                pending.append(position)
                reached.append(self.starts[position])
        return reached

    def operands(self) -> list[Value]:
        """Return the operands that are needed."""
        starts = zip(self.carried, self.starts, strict=True)
        pairs = [*self.fixed.items(), *starts, *self.slices.items()]
        return [operand for value, operand in pairs if value in self.needed]

    def position(self, index: int) -> int:
        """Return the position of a result among those that remain."""
        return sorted(self.wanted).index(index)

    def finished(self, operands: Sequence[Value]) -> Value:
        """Return the loop with the needed part of its body."""
        inputs = [x for x in (*self.fixed, *self.carried, *self.slices) if x in self.needed]
        body = self.body._replace(
            graph=FuncGraph(inputs, [self.results[k] for k in sorted(self.wanted)]),
            constants=sum(value in self.needed for value in self.fixed),
            carries=sum(value in self.needed for value in self.carried),
        )
        params = {"loop": self.program.with_body(body)}
        return Value(body.avals(), self.value.primitive, operands, params)


class Row(Value):
    """The stack of one row of a loop."""

    __slots__ = ("draft", "index")

    def __init__(self, draft: Draft, index: int):
        row = draft.results[index]
        super().__init__(Aval((draft.length, *row.shape), row.dtype))
        self.draft, self.index = draft, index


def replaced(outputs: Sequence[Value], substitutions: Mapping[Value, Value]) -> list[Value]:
    """Return values with `substitutions` applied to everything that they depend on."""
    built = dict(substitutions)
    for value in in_order(outputs):
        if value not in built:
            built[value] = with_operands(value, [built[operand] for operand in value.inputs])
    return [built[output] for output in outputs]
