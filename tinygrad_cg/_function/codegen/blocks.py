"""The source text of fused kernels, in Python that Numba compiles.

A block function goes over a range of a kernel's rows (of elements, where it is flat) and returns
its totals. Long rows go by chunks whose partial sums are kept apart, as `reduce` does. In a text,
sizes and whatever else comes from shapes are parameters.
"""

from __future__ import annotations

from itertools import pairwise

from ..fusion.fuse import ELEMENT, ROW, Fusion, Kernel, Place, folding, is_cheap
from ..fusion.nodes import TILE, Count, Node, behind
from .expressions import identity, number_text
from .loop import Loop, Row


class Names(dict[Node, str]):
    """Names of values by the order in which a text needs them: what is alike has one text."""

    def __missing__(self, node: Node) -> str:
        name = self[node] = f"v{len(self)}"
        return name


class Block:
    """The text of one kernel's block function, and what it is called with."""

    name = "NAME"  # until the text of its segment is made

    def __init__(self, fusion: Fusion, kernel: Kernel):
        self.fusion, self.kernel = fusion, kernel
        self.names = Names()
        self.flat = not kernel.domain.columns
        self.arrays: dict[Node, str] = {}  # read or written
        self.scalars: dict[Node, str] = {}
        self.numbers: dict[int, str] = {}  # offsets, which depend on shapes
        self.scratch: dict[tuple[Node, Place], str] = {}  # a row that a later pass reads
        self.turned: dict[Node, str] = {}  # rows of transposes, some at a time
        self.columns = [node for node in kernel.roots if self._folds(node, "column")]
        self.totals = [node for node in kernel.roots if self._folds(node, "total")]
        self.kept: dict[tuple[Node, Place], tuple[str, str]] = {}  # array and start, once written
        self.helpers: list[str] = []
        self._passes: dict[tuple[Node, Place], int] = {}
        self._count = 0
        self.body = self._flat_body() if self.flat else self._rows_body()

    def _folds(self, node: Node, what: str) -> bool:
        return node.kind == "reduce" and folding(node) == what

    @property
    def parameters(self) -> list[str]:
        return [
            "first",
            "last",
            "columns",
            *self.numbers.values(),
            *self.arrays.values(),
            *[f"columns_of_{self.names[node]}" for node in self.columns],
            *self.scratch.values(),
            *self.turned.values(),
            *self.scalars.values(),
        ]

    def text(self) -> str:
        totals = [f"total_{self.names[node]}" for node in self.totals]
        starts = [
            f"    {name} = {identity(node)}" for name, node in zip(totals, self.totals, strict=True)
        ]
        result = f"    return {''.join(f'{name}, ' for name in totals)}".rstrip()
        for node in self.columns:
            columns = f"columns_of_{self.names[node]}"
            starts.append("    for j in range(np.uintp(columns)):")
            starts.append(f"        {columns}[j] = {identity(node)}")
        lines = [
            "@jitable",
            f"def {self.name}({', '.join(self.parameters)}):",
            "    outlined()",
            "    apart()",
            *starts,
            *[f"    {line}" for line in self.body],
            result if totals else "    return 0",
        ]
        return "\n\n\n".join([*self.helpers, "\n".join(lines)])

    # what is computed where

    def operands(self, node: Node, place: Place) -> list[tuple[Node, Place]]:
        found = self.fusion.operand_places(node, place, self.kernel.domain)
        return [(one, inner) for one, inner in found if inner is not None]

    def is_local(self, node: Node, place: Place) -> bool:
        return self.fusion.is_local(node, place, self.kernel.stage, self.kernel.domain)

    def is_read(self, node: Node, place: Place) -> bool:
        """Whether a value comes from an array."""
        if self.is_local(node, place) or node.kind == "literal" or place.per == "scalar":
            return False
        return node.kind in ("array", "host") or node in self.kernel.read

    def pass_of(self, node: Node, place: Place) -> int:
        """The pass over the row in which a value is there, or before which, per row."""
        stack = [(node, place)]
        while stack:
            key = stack[-1]
            if key in self._passes:
                stack.pop()
                continue
            below = self._below(*key)
            missing = [one for one in below if one not in self._passes]
            if missing:
                stack.extend(missing)
                continue
            found = max([self._passes[one] for one in below], default=0)
            folds = key[0].kind == "reduce" and self.is_local(*key)
            self._passes[key] = found + folds
        return self._passes[node, place]

    def _below(self, node: Node, place: Place) -> list[tuple[Node, Place]]:
        if place.per == "scalar" or node.kind == "literal" or self.is_read(node, place):
            return []
        if node.kind == "reduce":
            place = self.fusion.homes[node].place
        return self.operands(node, place)

    # names

    def fresh(self, stem: str) -> str:
        self._count += 1
        return f"{stem.lstrip('_')}_{self._count}"

    def scalar(self, node: Node) -> str:
        if node.kind == "literal" and not isinstance(node.detail, Count):
            return number_text(node.detail, node.dtype)
        return self.scalars.setdefault(node, f"s{len(self.scalars)}")

    def array(self, node: Node) -> str:
        return self.arrays.setdefault(node, self.names[node])

    def turn(self, node: Node) -> str:
        """The rows of a transpose, of which the row begins at `turn`."""
        return self.turned.setdefault(node, f"turned{len(self.turned)}")

    def offset(self, value: int) -> str:
        return self.numbers.setdefault(value, f"n{len(self.numbers)}")

    # bodies

    def _element_roots(self, number: int) -> list[Node]:
        """What a pass is for: reductions over elements, and elements that are stored."""
        result = []
        for node in self.kernel.roots:
            home = self.fusion.homes[node]
            if home.place == ELEMENT and node.detail != "gather":
                inner = (
                    self.operands(node, ELEMENT)[0] if node.kind == "reduce" else (node, ELEMENT)
                )
                if self.pass_of(*inner) == number:
                    result.append(node)
        return result

    def _row_roots(self) -> list[Node]:
        return [node for node in self.kernel.roots if self.fusion.homes[node].place == ROW]

    def _flat_body(self) -> list[str]:
        roots = self._element_roots(0)
        size = self.kernel.domain.size
        pads = self._pads(roots)
        cuts = sorted({0, size, *[end for pad in pads.values() for end in pad if 0 < end < size]})
        lines = []
        for low, high in pairwise(cuts):
            begin, end = "first", "last"
            if len(cuts) > 2:
                begin = f"max(first, {self.offset(low)})" if low else "first"
                end = f"min(last, {self.offset(high)})" if high < size else "last"
            live = {pad for pad, (start, stop) in pads.items() if start <= low and high <= stop}
            lines += Loop(self, roots, begin, end, "", [], live).lines()
        return lines

    def _pads(self, roots: list[Node]) -> dict[tuple[Node, Place], tuple[int, int]]:
        """The paddings that are computed, and the ranges in which they are not zero."""
        found: dict[tuple[Node, Place], tuple[int, int]] = {}
        seen: set[tuple[Node, Place]] = set()
        stack = [(root, ELEMENT) for root in roots]
        while stack:
            key = stack.pop()
            if key in seen:
                continue
            seen.add(key)
            node, place = key
            if node.kind == "pad" and not self.is_read(node, place):
                start = node.detail - place.shift
                found[key] = (start, start + node.operands[0].size)
            stack.extend(self._below(*key))
        return found

    def _rows_body(self) -> list[str]:
        """Passes over a row, each after what it needs of the row as a whole."""
        top = self._last_pass()
        saves = self._saves(top)
        row = Row(self)
        lines: list[str] = []
        loops = 0
        for number in range(top + 1):
            roots = self._element_roots(number)
            saved = [key for key in saves if self.pass_of(*key) == number]
            if roots or saved:
                body = Loop(self, roots, "0", "columns", "start + ", saved, set(), row).lines()
                lines += row.take() + body
                loops += 1
                self.kept.update((key, self._kept(*key)) for key in saved)
        for node in self._row_roots():
            row.root(node)
        for node in self.kernel.roots:
            if node.kind == "reduce" and folding(node) == "row" and node in self.fusion.stored:
                row.lines.append(f"{self.array(node)}[i] = {row.value(node, ROW)}")
        lines += row.take()
        reads = any(node.detail == "gather" for node in self.kernel.roots)
        inner = ["start = i * columns", *lines] if loops or reads else lines
        if self.turned:
            inner = [*self._turning(), *inner]
        return ["for i in range(first, last):", *[f"    {line}" for line in inner]]

    def _turning(self) -> list[str]:
        """Every few rows, as many rows of each transpose."""
        calls = [
            f"    turned({self.array(behind(node.operands[0]))}, {name}, i, "
            f"min({TILE}, last - i), columns, {self.offset(node.detail[0])})"
            for node, name in self.turned.items()
        ]
        return [f"turn = (i - first) % {TILE} * columns", "if not turn:", *calls]

    def _kept(self, node: Node, place: Place) -> tuple[str, str]:
        """Where a saved row is: in the array it is stored in, or in one for the purpose."""
        if node in self.fusion.stored and self.is_local(node, place):
            return self.array(node), "start + left"
        return self.scratch.setdefault((node, place), f"scratch{len(self.scratch)}"), "left"

    def _last_pass(self) -> int:
        result = 0
        for node in self.kernel.roots:
            place = self.fusion.homes[node].place
            inner = self.operands(node, place)[0] if node.kind == "reduce" else (node, place)
            result = max(result, self.pass_of(*inner))
        return result

    def _saves(self, top: int) -> list[tuple[Node, Place]]:
        """Elements that are dear to compute, needed in a later pass than the one they are first
        computed in: a row of them is kept."""
        saves: list[tuple[Node, Place]] = []
        for number in range(top, -1, -1):
            roots: list[tuple[Node, Place]] = []
            for node in self._element_roots(number):
                roots.append((node, ELEMENT))
            roots += [key for key in saves if self.pass_of(*key) == number]
            seen: set[tuple[Node, Place]] = set()
            stack = [below for key in roots for below in self._below(*key)]
            while stack:
                key = stack.pop()
                node, place = key
                if key in seen or place.per in ("row", "scalar"):
                    continue
                seen.add(key)
                computed = node.kind not in ("literal", "array") and not self.is_read(node, place)
                late = computed and self.pass_of(*key) < number
                if late and place == ELEMENT and not is_cheap(node) and node.kind != "turn":
                    saves += [key] if key not in saves else []
                else:
                    stack.extend(self._below(*key))
        return saves
