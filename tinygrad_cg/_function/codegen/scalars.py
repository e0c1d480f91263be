"""Lines that compute values of one element, and functions of their own for long runs of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby

import numpy as np

from ..fusion.nodes import Count, Node, behind
from .expressions import expression, number_text, type_name, typed

LONG = 100
"""Lines that stay together: what a function takes to compile grows faster than its length."""
PART = 16
"""Lines in each function, where there are more."""


class Sizes:
    """Numbers that follow from shapes, which a text finds by their places in an array."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def size(self, value: int) -> int:
        self.values.append(value)
        return len(self.values) - 1


class Scalars:
    """The lines of a function that compute values of one element."""

    def __init__(self, sizes: Sizes, array: Callable[[Node], str]):
        self.sizes, self.array = sizes, array
        self.names: dict[Node, str] = {}
        self.kinds: dict[str, np.dtype] = {}
        self._lines: list[str] = []

    def take(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def name(self, node: Node) -> str:
        if node.kind == "literal" and not isinstance(node.detail, Count):
            return number_text(node.detail, node.dtype)
        stack = [node]
        while stack:
            top = stack[-1]
            missing = [one for one in map(behind, self._operands(top)) if not self._known(one)]
            if top in self.names or not missing:
                stack.pop()
                self._compute(top)
            else:
                stack.extend(missing)
        return self.names[node]

    def _operands(self, node: Node) -> tuple[Node, ...]:
        if node.kind == "lookup":
            return node.operands[1:]
        return node.operands if node.kind == "apply" else ()

    def _known(self, node: Node) -> bool:
        return node in self.names or (node.kind == "literal" and not isinstance(node.detail, Count))

    def _compute(self, node: Node) -> None:
        if node in self.names:
            return
        if node.kind == "apply":
            text = expression(node, [self.name(behind(one)) for one in node.operands])
        elif node.kind == "literal":
            text = typed(f"sizes[{self.sizes.size(int(node.detail))}]", node.dtype)
            if node.dtype == np.float64:
                text = f"np.float64({text})"
        elif node.kind == "slice":
            source, place = behind(node.operands[0]), self.sizes.size(node.detail)
            text = f"section({self.array(source)}, sizes[{place}], 1)[0]"
        elif node.kind == "lookup":
            source, place = map(behind, node.operands)
            text = f"section({self.array(source)}, {self.name(place)}, 1)[0]"
        else:
            text = f"section({self.array(node)}, 0, 1)[0]"
        name = self.names[node] = f"s{len(self.names)}"
        self.kinds[name] = node.dtype
        self._lines.append(f"{name} = {text}")


# Long runs of lines --------------------------------------------------------------------------

_LINE = re.compile(r"s\d+ = (?!section\(\w+, s\d)")
_SCALAR = re.compile(r"\b(?:s\d+|total_v\d+)\b")


def in_parts(lines: list[str], scalars: Scalars, define: Callable[[str, str], str]) -> list[str]:
    """A function's lines, with calls in place of long runs of those that compute scalars.

    ``define(text, stem)`` gives the name of the function that has a text, in which it is NAME. The
    functions find scalars in arrays, by places that are among the sizes: so a program that does
    the same again and again is compiled once.
    """
    pieces: list[list[str]] = []
    runs: list[bool] = []
    for is_run, piece in groupby(lines, lambda line: bool(_LINE.match(line))):
        pieces.append(list(piece))
        runs.append(is_run and len(pieces[-1]) > LONG)
    return _Parts(pieces, runs, scalars, define).lines if any(runs) else lines


Line = tuple[str, str, list[str]]
"""A line, the scalar that it computes, and those that it uses."""


class _Parts:
    """Pieces of a function, with those that are runs of scalars as calls."""

    def __init__(
        self, pieces: list[list[str]], runs: list[bool], scalars: Scalars, define: Callable
    ):
        self.sizes, self.kinds, self.define = scalars.sizes, scalars.kinds, define
        self.places: dict[str, int] = {}  # in the array of their dtype
        self.lengths: dict[np.dtype, int] = {}
        used = [line for piece, run in zip(pieces, runs, strict=True) if not run for line in piece]
        self.outside = set(_SCALAR.findall("\n".join(used)))
        self.later = set(self.outside)  # what is used after the place where we are
        self.read: set[str] = set()  # by functions after it
        body: list[str] = []
        for piece, run in zip(reversed(pieces), reversed(runs), strict=True):
            body = [*(self._run(piece) if run else self._straight(piece)), *body]
        works = [
            f"{_work(kind)} = np.empty({length}, {type_name(kind)})"
            for kind, length in self.lengths.items()
        ]
        self.lines = [*works, *body]

    def _straight(self, lines: list[str]) -> list[str]:
        """Lines as they are, and what later functions want of them."""
        names = [line.partition(" = ")[0] for line in lines]
        return lines + [f"{self._slot(name)} = {name}" for name in names if name in self.read]

    def _run(self, lines: list[str]) -> list[str]:
        found = [_line(line) for line in lines]
        loads = [line for line, _, words in found if not words]
        rest = [one for one in found if one[2]]
        ends = [f"{name} = {self._slot(name)}" for _, name, _ in rest if name in self.outside]
        calls: list[str] = []
        for start in reversed(range(0, len(rest), PART)):
            part = rest[start : start + PART]
            calls.insert(0, self._call(part))
            self.later.update(*[words for *_, words in part])
        return [*self._straight(loads), *calls, *ends]

    def _place(self, name: str) -> int:
        if name not in self.places:
            kind = self.kinds[name]
            self.places[name] = self.lengths.get(kind, 0)
            self.lengths[kind] = self.places[name] + 1
        return self.places[name]

    def _slot(self, name: str) -> str:
        return f"{_work(self.kinds[name])}[{self._place(name)}]"

    def _call(self, part: list[Line]) -> str:
        """A call of the function with these lines, which is there already if one is alike."""
        names: dict[str, str] = {}
        works: dict[str, None] = {}
        body: list[str] = []
        first = len(self.sizes.values)
        made = {name for _, name, _ in part}

        def slot(name: str) -> str:
            work = _work(self.kinds[name])
            works.setdefault(work)
            place = self.sizes.size(self._place(name)) - first
            return f"{work}[sizes[first + {place}]]"

        for line, name, words in part:
            for word in words:
                if word not in names and word not in made:
                    names[word] = f"s{len(names)}"
                    body.append(f"    {names[word]} = {slot(word)}")
                    self.read.add(word)
            names[name] = f"s{len(names)}"
            body.append(f"    {_SCALAR.sub(lambda found: names[found[0]], line)}")
        body += [f"    {slot(name)} = {names[name]}" for _, name, _ in part if name in self.later]
        head = ["@jitable", f"def NAME({', '.join([*works, 'sizes', 'first'])}):", "    outlined()"]
        name = self.define("\n".join([*head, *body, "    return 0"]), "part")
        return f"{name}({', '.join([*works, 'sizes', str(first)])})"


def _line(text: str) -> Line:
    name, _, value = text.partition(" = ")
    return text, name, _SCALAR.findall(value)


def _work(kind: np.dtype) -> str:
    return f"scalars_{kind.name}"
