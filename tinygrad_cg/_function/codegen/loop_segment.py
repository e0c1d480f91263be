"""A loop as one function: its body has kernels, and operations on arrays between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..fusion.nodes import ArrayNode, FusionNode, LiteralNode, base
from ..graph.loop_drafts import Body
from .blocks import Block
from .scalars import Load, Scalars
from .segment import Segment
from .statements import Code, Expression, Name, Statement, Suite, modules, render

MAX_SMALL_SIZE = 64
"""If the kernels of a loop have at most this many elements, its sizes are numbers in its text."""


class Place(NamedTuple):
    """Where an array of one round lies: in a row of one of the loop's arrays.

    In round i it is row ``start + ((i + shift) & mask) * step``.
    """

    array: tuple[str, int]
    start: int = 0
    shift: int = 0
    mask: int = 0
    step: int = 0


class LoopLayout:
    """The arrays of a compiled loop.

    A carry has two rows. Rounds read one and write the other in turn. If an output is the carry
    that each round began with, the carry has one row per round and one more. In a loop on numbers,
    other carries have one row, since a round reads them all before it writes any.
    """

    def __init__(
        self,
        body: Body,
        outputs: Mapping[int, FusionNode],
        kept: dict[int, int],
        carried: Sequence[tuple[FusionNode, FusionNode]],
    ):
        self.body, self.kept, self.carried = body, kept, carried
        n, count = body.length or 0, body.carries
        self._along = (n - 1, 0, -1, -1) if body.reverse else (0, 0, -1, 1)
        self._first = body.constants
        self.parts = {
            base(node): self._carry(k, 1) if k < count else Place(("row", k - count), *self._along)
            for k, node in outputs.items()
        }
        self.constants: list[np.ndarray] = []
        self.chosen: list[Place] = []  # for each of the segment's arrays

    def _carry(self, k: int, shift: int) -> Place:
        if k not in self.kept:
            return Place(("carry", k)) if self.carried else Place(("carry", k), 0, shift, 1, 1)
        if self.body.reverse:
            return Place(("carry", k), self.body.length or 0, shift, -1, -1)
        return Place(("carry", k), 0, shift, -1, 1)

    def _input(self, position: int) -> Place:
        k = position - self._first
        if 0 <= k < self.body.carries:
            return self._carry(k, 0)
        return Place(("input", position)) if k < 0 else Place(("input", position), *self._along)

    def _constant(self, array: np.ndarray) -> Place:
        self.constants.append(np.require(array, None, ("C", "A")).reshape(-1))
        return Place(("constant", len(self.constants) - 1))

    @property
    def flag(self) -> Place | None:
        """Return the place of a `while` loop's flag: the rounds end when the flag is False."""
        return None if self.body.length is not None else self._carry(self.body.carries - 1, 1)

    def part(self, node: FusionNode) -> Place:
        """Return the place of the segment's next array."""
        if isinstance(node, ArrayNode):
            source = node.source
            part = self._input(source) if isinstance(source, int) else self._constant(source)
        elif isinstance(node, LiteralNode):  # a size
            part = self._constant(np.array(node.number, node.dtype))
        else:
            part = self.parts.get(node) or Place(("work", len(self.chosen)))
        self.chosen.append(part)
        return part


class RoundOperation(Protocol):
    """An operation on arrays that runs in each round."""

    def write(self, segment: LoopSegment) -> Code:
        """Return the statements that run the operation."""
        ...


class Stage(NamedTuple):
    """Operations on arrays, then kernels, then values of one element.

    If one of the numbers in `stops` is True, the round is given up and the loop ends.
    """

    operations: Sequence[RoundOperation]
    blocks: Sequence[Block]
    finals: Sequence[FusionNode]
    stops: Sequence[FusionNode] = ()


class LoopSegment(Segment):
    """The stages of a loop's body, and the rounds around them."""

    def __init__(self, stages: Sequence[Stage]):
        super().__init__([block for stage in stages for block in stage.blocks], [])
        self._stages = stages
        self._calls = any(stage.operations for stage in stages)
        self._on_numbers = not (self.blocks or self._calls)
        self._scalars = Scalars(self.sizes, self.array)
        self.work: dict[str, None] = {}  # lines before the rounds
        self.ufuncs: dict[int, tuple[Any, np.dtype]] = {}  # whose loops' addresses are in sizes
        self.own_starts: list[tuple[int, int, int]] = []  # a start's position, elements and step

    def write_rounds(self, layout: LoopLayout) -> None:
        """Write the source, with the function `rounds`.

        If there are few elements, sizes are in the text, and block functions are inlined.
        """
        few = all(block.kernel.domain.size <= MAX_SMALL_SIZE for block in self.blocks)
        few = few and not self._calls
        self.sizes.in_text = few
        rounds = self._rounds(layout)
        if few:
            self._texts = {
                text.replace("    outlined()", "    inlined()"): name
                for text, name in self._texts.items()
            }
        self._join(rounds)

    def _code(self) -> tuple[Code, Code]:
        """Return the statements that make work arrays, and the statements of a round."""
        work: Code = []
        code: Code = []
        for stage in self._stages:
            for operation in stage.operations:
                code += operation.write(self)
            own, more = self._stage(stage.blocks, stage.finals, self._scalars)
            work += own
            code += more
            for node in stage.stops:
                test = Expression("if {}", self._scalars.value(node))
                stop: Code = [Statement(Expression("plan[0]"), "-1"), Statement(None, "break")]
                code += [*self._scalars.take(), Suite(test, stop)]
        return work, code

    def _span(self, part: Place, elements: int) -> tuple[str, Expression]:
        """Return the expressions of where a round's array starts, and of its size."""
        self.own_starts.append((len(self.sizes.values), elements, part.step))
        first, size = self.sizes.element(part.start * elements), self.sizes.number(elements)
        if not part.mask:
            return f"{first}", size
        shift = part.shift if part.shift < 2 else self.sizes.number(part.shift)
        moved = f"(i + {shift})" if part.shift else "i"
        row = moved if part.mask == -1 else f"({moved} & {part.mask})"
        return f"{first} {'-' if part.step < 0 else '+'} {row} * {size}", size

    def _rounds(self, layout: LoopLayout) -> str:
        """Return the text of a function that runs the rounds from plan[0] to plan[1].

        In each round, an array of the segment is a part of one of the loop's arrays.
        """
        work, code = self._code()
        parts = {node: layout.part(node) for node in self.arrays}
        first: list[Statement] = []
        if self._on_numbers:
            first, code = self._in_registers(code, parts, layout.carried)
        self._imported |= modules(first) | modules(code)
        names = [self.names[node] for node in parts]
        lines = [f"def rounds({', '.join([*names, 'plan', 'sizes'])}):", "    wide_vectors()"]
        moving, fixed = {}, []
        for name, (node, part) in zip(names, parts.items(), strict=True):
            start, size = self._span(part, node.size)
            line = f"    {name}_ = section({name}, {start}, {size})"
            if part.mask:
                moving[name] = line
            else:
                fixed.append(line)
        lines += self.sizes.views("address_of(sizes)")
        lines += [*fixed, *self.work, *render(work), "    i = plan[0]"]
        numbers = [statement.expression for statement in first]
        read = {self.names[load.node] for load in numbers if isinstance(load, Load)}
        lines += [line for name, line in moving.items() if name in read]
        lines += [*render(first), "    for i in range(plan[0], plan[1]):"]
        lines += [f"    {line}" for line in (*moving.values(), *render(code))]
        if layout.flag is not None:
            pairs = zip(names, parts.values(), strict=True)
            flag = [name for name, part in pairs if part == layout.flag][-1]
            lines += [
                f"        if not {flag}_[0]:",
                "            plan[1] = i + 1",
                "            break",
            ]
        return "\n".join([*lines, "    return True"])

    def _in_registers(
        self,
        code: Code,
        parts: Mapping[FusionNode, Place],
        carried: Sequence[tuple[FusionNode, FusionNode]],
    ) -> tuple[list[Statement], Code]:
        """Return the statements before the rounds, and those of a round, of a loop on numbers.

        Numbers that are the same in all rounds are loaded before the rounds. So are loop variables,
        which stay in registers from round to round.
        """
        variables: dict[tuple[FusionNode, str], Any] = {}
        first: list[Statement] = []
        rest: Code = []
        before = {node for node, _ in carried}
        for statement in code:
            if not (isinstance(statement, Statement) and isinstance(statement.target, Name)):
                rest.append(statement)
                continue
            number = statement.expression
            is_first = not number.reads
            if isinstance(number, Load) and is_first:
                is_first = number.node in before or not parts[number.node].mask
                variables[number.node, str(number.operands[0])] = statement.target
            (first if is_first else rest).append(statement)
        moves = {}
        for node, after in carried:
            for k, operand in enumerate(after.operands):
                name = variables.get((node, str(k)))
                if name is not None:
                    moves[name] = self._scalars.value(base(operand))
        for k, (name, new) in enumerate(moves.items()):
            if new in moves and new != name:
                rest.append(Statement(Name(f"next_{k}"), new))
                moves[name] = Name(f"next_{k}")
        rest += [Statement(name, new) for name, new in moves.items() if name != new]
        return first, rest
