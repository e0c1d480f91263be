"""The text of one pass over a row or a range, and of what is computed once a row."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tinygrad_cg_kernels import elementary as kmath

from ..fusion.fuse import ELEMENT, ROW, Place, folding
from ..fusion.lower import importable
from ..fusion.nodes import Node
from .expressions import called, expression, folded, identity, joined, label, number_text, typed

if TYPE_CHECKING:
    from .blocks import Block

CHUNK = 1024
"""Elements whose partial results are kept apart, so that rounding errors stay small."""


class Row:
    """What is computed once a row: lines to come before the next pass."""

    def __init__(self, block: Block):
        self.block = block
        self.lines: list[str] = []
        self.names: dict[Node, str] = {}
        self.cells: dict[tuple[Node, Place, str], str] = {}  # in one column

    def take(self) -> list[str]:
        lines, self.lines = self.lines, []
        return lines

    def value(self, node: Node, place: Place) -> str:
        block = self.block
        if place.per == "scalar" or node.kind == "literal":
            return block.scalar(node)
        if node in self.names:
            return self.names[node]
        if node.kind == "reduce" and block.is_local(node, ROW):
            if node.detail != "gather":
                return f"row_{block.names[node]}"
            (x, inner), (index, _) = block.operands(node, ELEMENT)
            text = self._at(x, inner, self.value(index, ROW))
        elif node.kind == "lookup" and not block.is_read(node, ROW):
            (x, _), one = block.operands(node, ROW)
            text = f"{block.array(x)}[{self.value(*one)}]"
        elif block.is_read(node, ROW):
            text = f"{block.array(node)}[i]"
        else:
            text = expression(node, [self.value(*one) for one in block.operands(node, ROW)])
        name = self.names[node] = block.fresh(label(node))
        self.lines.append(f"{name} = {text}")
        return name

    def _at(self, node: Node, place: Place, column: str) -> str:
        """The name of a value of the row in one column."""
        if place.per in ("row", "scalar") or node.kind == "literal":
            return self.value(node, place)
        key = (node, place, column)
        if key not in self.cells:
            text = self._cell(node, place, column)
            name = self.cells[key] = self.block.fresh(label(node))
            self.lines.append(f"{name} = {text}")
        return self.cells[key]

    def _cell(self, node: Node, place: Place, column: str) -> str:
        block = self.block
        if (node, place) in block.kept:
            array, start = block.kept[node, place]
            return f"{array}[{start.removesuffix('left')}{column}]"
        if block.is_read(node, place):
            return f"{block.array(node)}[{'start + ' * (place == ELEMENT)}{column}]"
        if node.kind == "turn":
            return f"{block.turn(node)}[turn + {column}]"
        operands = block.operands(node, place)
        if node.kind != "lookup":
            return expression(node, [self._at(*one, column) for one in operands])
        (x, _), (positions, inner) = operands
        index = self._at(positions, inner, column)
        return f"{block.array(x)}[{index}{f' * columns + {column}' * (inner == ROW)}]"

    def root(self, node: Node) -> None:
        block = self.block
        if node.kind == "reduce":
            value = self.value(*block.operands(node, ROW)[0])
            total = f"total_{block.names[node]}"
            self.lines.append(f"{total} = {joined(node, total, value)}")
        else:
            self.lines.append(f"{block.array(node)}[i] = {self.value(node, ROW)}")


class Loop:
    """One pass over a row, or over a range of flat data, chunk by chunk."""

    def __init__(
        self,
        block: Block,
        roots: list[Node],
        begin: str,
        end: str,
        start: str,
        saved: list[tuple[Node, Place]],
        live: set[tuple[Node, Place]],
        row: Row | None = None,
    ):
        self.block, self.roots, self.begin, self.end, self.start = block, roots, begin, end, start
        self.saved, self.live, self.row = saved, live, row
        self.sections: dict[str, str] = {}
        self.folds = [node for node in roots if node.kind == "reduce"]
        self.parts = {node: block.fresh("part") for node in self.folds if folding(node) != "column"}
        self.fast = False
        self.guarded = False

    def lines(self) -> list[str]:
        body = self._body()
        again: list[str] | None = None
        if self.guarded and len(self.parts) == len(self.folds):
            again, self.fast = body, True
            body = self._body()
        totals = [(node, self._total(node)) for node in self.parts]
        starts = [f"{name} = {identity(node)}" for node, name in totals if folding(node) == "row"]
        parts = [f"{part} = {identity(node)}" for node, part in self.parts.items()]
        chunk = [f"size = min({CHUNK}, {self.end} - left)"]
        chunk += [f"{name} = {text}" for text, name in self.sections.items()]
        counted = "for j in range(np.uintp(size)):"
        if again is not None:
            chunk += ["failed = False", *parts, counted, *indented(body), "if failed:"]
            chunk.append("    " + self._outlined([*parts, counted, *indented(again)]))
        else:
            chunk += [*parts, counted, *indented(body)]
        chunk += [f"{name} = {joined(node, name, self.parts[node])}" for node, name in totals]
        head = f"for left in range({self.begin}, {self.end}, {CHUNK}):"
        return [*starts, head, *indented(chunk)]

    def _outlined(self, lines: list[str]) -> str:
        """A call of a function of its own for lines that seldom run: beside the others they would
        take registers from them."""
        block = self.block
        words = set(re.findall(r"\w+", " ".join(lines)))
        lines = [
            f"{name} = {text}" for text, name in self.sections.items() if name in words
        ] + lines
        words = set(re.findall(r"\w+", " ".join(lines)))
        known = ["left", "size", "start", "turn", *block.parameters]
        if self.row is not None:
            known += [*self.row.names.values(), *[f"row_{name}" for name in block.names.values()]]
        given = ", ".join(name for name in dict.fromkeys(known) if name in words)
        results = "".join(f"{part}, " for part in self.parts.values())
        name = f"{block.name}_far_{len(block.helpers)}"
        head = ["@jitable", f"def {name}({given}):", "    outlined()", "    apart()"]
        tail = f"    return {results or 0}".rstrip()
        block.helpers.append("\n".join([*head, *indented(lines), tail]))
        return f"{results}= {name}({given})" if results else f"{name}({given})"

    def _total(self, node: Node) -> str:
        return f"{'row' if folding(node) == 'row' else 'total'}_{self.block.names[node]}"

    def _body(self) -> list[str]:
        self.out: list[str] = []
        self.values: dict[tuple[Node, Place], str] = {}
        block = self.block
        for node in self.roots:
            if node.kind == "reduce":
                value = self.value(*block.operands(node, ELEMENT)[0])
                if node in self.parts:
                    part = self.parts[node]
                    self.out.append(f"{part} = {folded(node, part, value)}")
                else:
                    name = self._section(f"columns_of_{block.names[node]}", "left")
                    self.out.append(f"{name}[j] = {joined(node, f'{name}[j]', value)}")
            else:
                value = self.value(node, ELEMENT)
                target = self._section(block.array(node), f"{self.start}left")
                self.out.append(f"{target}[j] = {value}")
        for node, place in self.saved:
            value = self.value(node, place)
            array, start = block._kept(node, place)
            if start == "left":
                self.out.append(f"{self._section(array, start)}[j] = {value}")
        return self.out

    def _section(self, array: str, start: str) -> str:
        text = f"section({array}, {start}, size)"
        if text not in self.sections:
            known = set(self.sections.values())
            name = f"{array}_part"
            while name in known:
                name += "_"
            self.sections[text] = name
        return self.sections[text]

    def _start(self, place: Place) -> str:
        start = f"{self.start}left" if place.per == "element" else "left"
        return f"{start} + {self.block.offset(place.shift)}" if place.shift else start

    def value(self, node: Node, place: Place) -> str:
        """The name of a value, whose line is there from then on."""
        stack = [(node, place)]
        while stack:
            key = stack[-1]
            if self._simple(*key) is not None:
                stack.pop()
                continue
            missing = [one for one in self._operands(*key) if self._simple(*one) is None]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            self._compute(*key)
        found = self._simple(node, place)
        assert found is not None
        return found

    def _operands(self, node: Node, place: Place) -> list[tuple[Node, Place]]:
        if node.kind == "pad" and (node, place) not in self.live:
            return []
        return self.block.operands(node, place)

    def _simple(self, node: Node, place: Place) -> str | None:
        """The text of a value that needs no computing here, or whose line is there."""
        block = self.block
        if place.per == "scalar" or node.kind == "literal":
            return block.scalar(node)
        if place.per == "row":
            assert self.row is not None
            return self.row.value(node, place)
        if place.per == "whole":
            return block.array(node)
        key = (node, place)
        if key not in self.values:
            if key in block.kept:
                array, start = block.kept[key]
            elif block.is_read(node, place):
                array, start = block.array(node), self._start(place)
            elif node.kind == "turn":
                array, start = block.turn(node), "turn + left"
            else:
                return None
            name = self.values[key] = block.fresh(array)
            self.out.append(f"{name} = {self._section(array, start)}[j]")
        return self.values[key]

    def _compute(self, node: Node, place: Place) -> None:
        block = self.block
        operands = [self.value(*one) for one in self._operands(node, place)]
        if node.kind == "pad" and (node, place) not in self.live:
            self.values[node, place] = number_text(0, node.dtype)
            return
        if node.kind in ("slice", "pad"):
            self.values[node, place] = operands[0]
            return
        if node.kind == "lookup":
            array, index = operands
            if self._operands(node, place)[1][1] == ROW:
                text = f"{self._section(array, f'{index} * columns + left')}[j]"
            else:
                text = f"{array}[np.uintp({index})]"
            name = self.values[node, place] = block.fresh("gather")
            self.out.append(f"{name} = {text}")
            return
        guard = kmath.GUARDED.get(node.detail) or kmath.GUARDED_PAIRS.get(node.detail)
        text = None
        if guard and all(map(importable, guard)) and node.dtype.kind == "f":
            self.guarded = True
            if self.fast:
                test, fast = guard
                self.out.append(f"failed = failed | (not {called(test, operands)})")
                text = typed(called(fast, operands), node.dtype)
        name = self.values[node, place] = block.fresh(label(node))
        self.out.append(f"{name} = {text or expression(node, operands)}")


def indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
