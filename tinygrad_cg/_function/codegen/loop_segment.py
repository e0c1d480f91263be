"""A loop around kernels, and around operations on arrays between them, as one function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from ..fusion.nodes import FusionNode
from .blocks import Block
from .scalars import Scalars
from .segment import Segment
from .statements import Code, Expression, render

FEW_ELEMENTS = 64  # in a loop's arrays: its sizes are numbers in its text


class Layout(Protocol):
    """The positions of the arrays of a round: start, shift, mask, step, and size, in elements.

    In round i that is ``section(array, start + ((i + shift) & mask) * step, size)``.
    """

    copies: list[tuple[Sequence[int], Sequence[int]]]
    flag: Sequence[int] | None  # of an array of one bool: rounds end when it is False
    own_starts: list[
        tuple[int, int]
    ]  # to be filled: the elements of `sizes` with starts, and sizes

    def part(self, node: FusionNode) -> Sequence[int]: ...


class Operation(Protocol):
    """An operation on arrays that runs in each round."""

    def write(self, segment: LoopSegment) -> Code:
        """Return the statements that run it."""
        ...


class Stage(NamedTuple):
    """A sequence of operations on arrays, then kernels, and then values of one element."""

    operations: Sequence[Operation]
    blocks: Sequence[Block]
    finals: Sequence[FusionNode]


class LoopSegment(Segment):
    """Stages of a loop's body, the rounds around them."""

    def __init__(self, stages: Sequence[Stage]):
        super().__init__([block for stage in stages for block in stage.blocks], [])
        self._stages = stages
        self._calls = any(stage.operations for stage in stages)
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

    def _body(self) -> tuple[list[str], list[str]]:
        work: Code = []
        code: Code = []
        scalars = Scalars(self.sizes, self.array)
        for stage in self._stages:
            for operation in stage.operations:
                code += operation.write(self)
            own, more = self._stage(stage.blocks, stage.finals, scalars)
            work += own
            code += more
        return [*self.work, *render(work)], self._finish(code, scalars)

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

        In each round an array is a part of one of the loop's. After the segment's arrays come pairs
        of which the first is copied to the second in each round.
        """
        work, body = self._body()
        parts: dict[str, Sequence[int]] = {
            self.names[node]: layout.part(node) for node in self.arrays
        }
        pairs = [(f"source_{k}", f"target_{k}") for k in range(len(layout.copies))]
        for names, copied in zip(pairs, layout.copies, strict=True):
            parts.update(zip(names, copied, strict=True))
        lines = [f"def rounds({', '.join([*parts, 'plan', 'sizes'])}):", "    wide_vectors()"]
        moving, fixed = [], []
        for name, part in parts.items():
            start, size = self._span(part, layout)
            line = f"    {name}_ = section({name}, {start}, {size})"
            (moving if part[2] else fixed).append(line)
        if self.sizes.literals:
            lines += self.sizes.views(self.sizes.own_address())
        lines += [*fixed, *work, "    for i in range(plan[0], plan[1]):"]
        lines += [f"    {line}" for line in moving]
        lines += [f"    {line}" for line in body]
        for source, target in pairs:
            lines.append(f"        for j in range(np.uintp({source}_.size)):")
            lines.append(f"            {target}_[j] = {source}_[j]")
        if layout.flag is not None:
            flag = next(name for name, part in parts.items() if part is layout.flag)
            lines += [
                f"        if not {flag}_[0]:",
                "            plan[1] = i + 1",
                "            break",
            ]
        return "\n".join([*lines, "    return True"])
