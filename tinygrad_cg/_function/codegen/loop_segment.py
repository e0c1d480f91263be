"""A loop around kernels, and around operations on arrays between them, as one function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..fusion.nodes import FusionNode, base
from .blocks import Block
from .scalars import Literal, Load, Scalars
from .segment import Segment
from .statements import Code, Expression, Name, Statement, Suite, modules, render

FEW_ELEMENTS = 64  # in a loop's arrays: its sizes are numbers in its text


class Layout(Protocol):
    """The positions of the arrays of a round: start, shift, mask, step, and size, in elements.

    In round i that is ``section(array, start + ((i + shift) & mask) * step, size)``.
    """

    flag: Sequence[int] | None  # of an array of one bool: rounds end when it is False
    own_starts: list[
        tuple[int, int]
    ]  # to be filled: the elements of `sizes` with starts, and sizes

    carried: Sequence[tuple[FusionNode, FusionNode]]  # of loops on numbers: before a round, after

    def part(self, node: FusionNode) -> Sequence[int]: ...


class Operation(Protocol):
    """An operation on arrays that runs in each round."""

    def write(self, segment: LoopSegment) -> Code:
        """Return the statements that run it."""
        ...


class Stage(NamedTuple):
    """A sequence of operations on arrays, then kernels, and then values of one element.

    The round is the last, unfinished, if one of the numbers in `stops` is True.
    """

    operations: Sequence[Operation]
    blocks: Sequence[Block]
    finals: Sequence[FusionNode]
    stops: Sequence[FusionNode] = ()


class LoopSegment(Segment):
    """Stages of a loop's body, the rounds around them."""

    def __init__(self, stages: Sequence[Stage]):
        super().__init__([block for stage in stages for block in stage.blocks], [])
        self._stages = stages
        self._calls = any(stage.operations for stage in stages)
        self._on_numbers = not (self.blocks or self._calls)
        self._scalars = Scalars(self.sizes, self.array)
        self.work: dict[str, None] = {}  # lines before the rounds
        self.calls: dict[Any, int] = {}  # where their words begin, among the sizes

    def write_rounds(self, layout: Layout) -> None:
        """Write the source of a small segment, with the function `rounds`.

        If there are few elements, sizes are in the text, and functions become part of the loop.
        """
        few = all(block.kernel.domain.size <= FEW_ELEMENTS for block in self.blocks)
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
        """Return statements that make arrays to work in, and those of a round."""
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

    def _span(self, part: Sequence[int], layout: Layout) -> tuple[str, Expression]:
        """Return where an array of a round starts, and its size, with few numbers to be loaded."""
        start, shift, mask, step, elements = part
        layout.own_starts.append((len(self.sizes.values), elements))
        first, size = self.sizes.element(start), self.sizes.number(elements)
        if not mask:
            return f"{first}", size
        moved = "i" if not shift else f"(i + {shift if shift == 1 else self.sizes.number(shift)})"
        row = moved if mask == -1 else f"({moved} & {mask})"
        assert abs(step) == elements
        return f"{first} {'-' if step < 0 else '+'} {row} * {size}", size

    def _rounds(self, layout: Layout) -> str:
        """Return a function that runs the segment in rounds from plan[0] to plan[1].

        In each round an array is a part of one of the loop's.
        """
        work, code = self._code()
        parts = {node: layout.part(node) for node in self.arrays}
        first: list[Statement] = []
        if self._on_numbers:
            first, code = self._in_registers(code, parts, layout.carried)
        self._imported |= modules(first) | modules(code)
        arrays: dict[str, Sequence[int]] = {self.names[node]: part for node, part in parts.items()}
        lines = [f"def rounds({', '.join([*arrays, 'plan', 'sizes'])}):", "    wide_vectors()"]
        moving, fixed = {}, []
        for name, part in arrays.items():
            start, size = self._span(part, layout)
            line = f"    {name}_ = section({name}, {start}, {size})"
            if part[2]:
                moving[name] = line
            else:
                fixed.append(line)
        if self.sizes.literals:
            lines += self.sizes.views(self.sizes.own_address())
        lines += [*fixed, *self.work, *render(work), "    i = plan[0]"]
        numbers = [one.expression for one in first]
        read = {self.names[one.node] for one in numbers if isinstance(one, Load)}
        lines += [line for name, line in moving.items() if name in read]
        lines += [*render(first), "    for i in range(plan[0], plan[1]):"]
        lines += [f"    {line}" for line in (*moving.values(), *render(code))]
        if layout.flag is not None:
            flag = next(name for name, part in arrays.items() if part is layout.flag)
            lines += [
                f"        if not {flag}_[0]:",
                "            plan[1] = i + 1",
                "            break",
            ]
        return "\n".join([*lines, "    return True"])

    def _in_registers(
        self,
        code: Code,
        parts: Mapping[FusionNode, Sequence[int]],
        carried: Sequence[tuple[FusionNode, FusionNode]],
    ) -> tuple[list[Statement], Code]:
        """Return statements before the rounds, and those of a round, of a loop on numbers.

        Numbers that are the same in all rounds are loaded before them, and so are loop variables:
        each round leaves them for the next.
        """
        variables: dict[tuple[FusionNode, str], Any] = {}
        first: list[Statement] = []
        rest: Code = []
        before = {node for node, _ in carried}
        for one in code:
            number = one.expression if isinstance(one, Statement) else None
            is_first = isinstance(number, Literal)
            if isinstance(one, Statement) and isinstance(number, Load) and not number.reads:
                is_first = number.node in before or not parts[number.node][2]
                variables[number.node, str(number.operands[0])] = one.target
            if isinstance(one, Statement) and is_first:
                first.append(one)
            else:
                rest.append(one)
        moves = {}
        for node, after in carried:
            for k, one in enumerate(after.operands):
                name = variables.get((node, str(k)))
                if name is not None:
                    moves[name] = self._scalars.value(base(one))
        for k, (name, new) in enumerate(moves.items()):
            if new in moves and new != name:
                rest.append(Statement(Name(f"next_{k}"), new))
                moves[name] = Name(f"next_{k}")
        rest += [Statement(name, new) for name, new in moves.items() if name != new]
        return first, rest
