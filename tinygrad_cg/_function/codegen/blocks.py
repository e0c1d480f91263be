"""Block functions of kernels, as source text in the kernel language.

A block function processes a range of a kernel's rows, or of its elements if the kernel is flat, and
returns the totals of that range. Long rows are processed in chunks, each with its own partial sum,
as in `reduce`. Sizes and other numbers that follow from shapes are parameters of the function.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ..fusion.domains import ELEMENT, ROW, Access
from ..fusion.fuse import Fusion, Kernel
from ..fusion.nodes import TILE, FusionNode, PadNode, ReduceNode, RowGatherNode, TransposeNode, base
from ..graph.values import reach
from .emission import COLUMNS, INDEX, TILE_ROW, identity
from .loop import START, LoopCode, RowCode
from .scope import BlockScope
from .statements import Code, Expression, Name, Statement, Suite, modules, render

FIRST, LAST = Name("first"), Name("last")
VECTOR_BYTES = 64  # of the widest vectors
LOOP_VECTORS = 4
"""Vectors that LLVM takes in a round of a loop. What is left of a row is done number by number."""


class Block(BlockScope):
    """The block function of one kernel, and its arguments."""

    def __init__(self, fusion: Fusion, kernel: Kernel):
        super().__init__(fusion, kernel)
        self.body = self._flat_body() if self.flat else self._rows_body()
        self.imported |= modules(self.body)

    def text(self) -> str:
        """Return the source of the block function and of its helpers."""
        totals = [f"total_{self.names[node]}" for node in self.totals]
        pairs = zip(totals, self.totals, strict=True)
        starts = [f"    {name} = {identity(node)}" for name, node in pairs]
        result = f"    return {''.join(f'{name}, ' for name in totals)}".rstrip()
        for node in self.columns:
            starts.append("    for j in range(np.uintp(columns)):")
            starts.append(f"        {self.column_total(node)}[j] = {identity(node)}")
        head = ["@jitable", f"def {self.name}({', '.join(self.parameters)}):"]
        head += ["    outlined()", "    noalias()"]
        head += ["    short_rows()"] * self._has_short_rows()
        lines = [*head, *starts, *render(self.body), result if totals else "    return 0"]
        return "\n\n\n".join([*self.helpers, "\n".join(lines)])

    def _has_short_rows(self) -> bool:
        """Return whether rows fill few vectors, and not the rounds of a loop.

        A softmax of 32 columns takes .5 of the time with a vector a round, one of 24 takes 1.2.
        """
        width = max(node.dtype.itemsize for node in self.kernel.roots)
        vectors, rest = divmod(self.kernel.domain.columns * width, VECTOR_BYTES)
        return not rest and 1 < vectors < 2 * LOOP_VECTORS and vectors != LOOP_VECTORS

    def _element_roots(self, number: int) -> list[FusionNode]:
        """Return the roots of a pass: its reductions over elements, and the elements it stores."""
        roots = [node for node in self.kernel.roots if not isinstance(node, RowGatherNode)]
        roots = [node for node in roots if self.fusion.homes[node].access == ELEMENT]
        return [node for node in roots if self.pass_of(*self._find_computed(node)) == number]

    def _find_computed(self, node: FusionNode) -> tuple[FusionNode, Access]:
        """Return what the pass computes for a root: the root itself, or the operand it reduces."""
        access = self.fusion.homes[node].access
        return self.operands(node, access)[0] if isinstance(node, ReduceNode) else (node, access)

    def _flat_body(self) -> Code:
        """Return a loop for each range between the ends of paddings."""
        roots = self._element_roots(0)
        size = self.kernel.domain.size
        pads = self._pads(roots)
        cuts = sorted({0, size, *[end for pad in pads.values() for end in pad if 0 < end < size]})
        code: Code = []
        for low, high in pairwise(cuts):
            live = {pad for pad, (start, stop) in pads.items() if start <= low and high <= stop}
            code += self._flat_loop(roots, low, high, live)
        return code

    def _flat_loop(
        self, roots: list[FusionNode], low: int, high: int, live: set[tuple[FusionNode, Access]]
    ) -> Code:
        """Return a loop over elements `low` to `high`; paddings in `live` are not zero there."""
        begin: Any = Expression("max({}, {})", FIRST, self.offset(low)) if low else FIRST
        inside = high < self.kernel.domain.size
        end: Any = Expression("min({}, {})", LAST, self.offset(high)) if inside else LAST
        return LoopCode(self, roots, begin, end, [], live).code()

    def _pads(self, roots: list[FusionNode]) -> dict[tuple[FusionNode, Access], tuple[int, int]]:
        """Return the paddings that the kernel computes, and the range where each is not zero."""
        ranges: dict[tuple[FusionNode, Access], tuple[int, int]] = {}
        for key in reach([(root, ELEMENT) for root in roots], lambda key: self.below(*key)):
            node, access = key
            if isinstance(node, PadNode) and not self.is_read(node, access):
                start = node.start - access.shift
                ranges[key] = (start, start + node.operands[0].size)
        return ranges

    def _rows_body(self) -> Code:
        """Return a loop over rows."""
        code = self._row_code(RowCode(self))
        loops = any(isinstance(statement, Suite) for statement in code)
        if loops or any(isinstance(node, RowGatherNode) for node in self.kernel.roots):
            code.insert(0, Statement(START, Expression("{} * {}", INDEX, COLUMNS)))
        return [Suite(Expression("for i in range({}, {})", FIRST, LAST), [*self._tiles(), *code])]

    def _row_code(self, row: RowCode) -> Code:
        """Return the passes over one row. A pass follows those whose results it needs.

        In a softmax, for example, the first pass computes the row's maximum and the second the sum
        of exp(x - maximum). If a later pass needs elements that are costly, the earlier one saves
        them.
        """
        needed = map(self._find_computed, self.kernel.roots)
        last = max([self.pass_of(*key) for key in needed], default=0)
        saves = self._saves(last)
        code: Code = []
        for number in range(last + 1):
            roots = self._element_roots(number)
            saved = [key for key in saves if self.pass_of(*key) == number]
            if roots or saved:
                loop = self._row_loop(roots, saved, row)
                code += row.take() + loop
                self.saved.update((key, self.storage_of(*key)) for key in saved)
        for node in self.kernel.roots:
            if self.fusion.homes[node].access == ROW:
                row.store(node)
        for node in self.kernel.roots:
            if node.result == "row" and node in self.fusion.stored:
                row.store_in(node)
        return code + row.take()

    def _row_loop(
        self, roots: list[FusionNode], saved: list[tuple[FusionNode, Access]], row: RowCode
    ) -> Code:
        return LoopCode(self, roots, "0", COLUMNS, saved, set(), row).code()

    def _tiles(self) -> Code:
        """Return code that computes the next `TILE` rows of each transpose when it needs them."""
        if not self.transposes:
            return []
        calls: Code = []
        text = f"transposed_rows({{}}, {{}}, {{}}, min({TILE}, {{}} - {{}}), {{}}, {{}})"
        for node, name in self.transposes.items():
            arguments = self.array(base(node.operands[0])), name, INDEX, LAST, INDEX, COLUMNS
            calls.append(Statement(None, Expression(text, *arguments, self.offset(node.rows))))
        row = Expression(f"({{}} - {{}}) % {TILE} * {{}}", INDEX, FIRST, COLUMNS)
        return [Statement(TILE_ROW, row), Suite(Expression("if not {}", TILE_ROW), calls)]

    def _saves(self, last: int) -> list[tuple[FusionNode, Access]]:
        """Return costly elements that a pass computes and a later pass needs."""
        saves: list[tuple[FusionNode, Access]] = []

        def inside(key: tuple[FusionNode, Access]) -> list[tuple[FusionNode, Access]]:
            return [key for key in self.below(*key) if key[1].per not in ("row", "scalar")]

        for number in range(last, -1, -1):  # backwards: saved elements need operands, too
            roots = [(node, ELEMENT) for node in self._element_roots(number)]
            roots += [key for key in saves if self.pass_of(*key) == number]
            starts = [below for key in roots for below in inside(key)]
            for key in reach(starts, lambda key: () if key in saves else inside(key)):
                node, access = key
                computed = not node.is_input and not self.is_read(node, access)
                earlier = computed and self.pass_of(*key) < number
                costly = not node.is_cheap and not isinstance(node, TransposeNode)
                if earlier and access == ELEMENT and costly and key not in saves:
                    saves.append(key)
        return saves
