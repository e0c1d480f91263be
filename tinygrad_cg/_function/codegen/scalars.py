"""Values of one element as statements, and functions of their own for long runs of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import numpy as np

from ..fusion.nodes import FusionNode, LiteralNode, base
from ..graph.values import in_turn
from .emission import emitter
from .expressions import number_text, type_name
from .statements import Code, Expression, Name, Statement, Suite, reads, render

LONG = 100  # statements that stay together: compile time grows faster than a function's length
PART = 16  # statements in each function, where there are more


class Sizes:
    """Numbers that a function reads from an array of int64: sizes, and literals of the program.

    Floats are there by their bits, and read from the same memory as an array of floats.
    """

    def __init__(self) -> None:
        self.in_text = False  # whether sizes are numbers in the text instead
        self.values: list[int] = []
        self.literals: dict[int, LiteralNode] = {}  # by position
        self._own = -1

    def add(self, value: int) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def number(self, value: int) -> Expression:
        """Return a size."""
        return Expression(str(value)) if self.in_text else self.element(value)

    def element(self, value: int) -> Expression:
        """Return a number that is never in the text."""
        return Expression(f"sizes[{self.add(value)}]")

    def literal(self, node: LiteralNode) -> Literal:
        """Return the number of a node, as its dtype."""
        words = np.zeros(8 // node.dtype.itemsize, node.dtype)
        words[0] = node.number
        position = self.add(int(words.view(np.int64)[0]))
        self.literals[position] = node
        return Literal(node.dtype, position * words.size)

    def views(self, address: str) -> list[str]:
        """Return lines that make the arrays of literals, of the memory at an address."""
        lines, size = [], 8 * len(self.values)
        for dtype in dict.fromkeys(node.dtype for node in self.literals.values()):
            view = f"vector({address}, {size // dtype.itemsize}, {type_name(dtype)})"
            lines.append(f"    {Literal(dtype, 0).array} = {view}")
        return lines

    def own_address(self) -> str:
        """Return the element that is the address of the array."""
        self._own = self.add(0)
        return f"sizes[{self._own}]"

    def shown(self) -> list[str]:
        """Return what the literals are, as equations."""
        return [
            f"{Literal(node.dtype, 8 // node.dtype.itemsize * position)} = {node.number}"
            for position, node in self.literals.items()
        ]

    def array(self) -> np.ndarray:
        """Return the array."""
        found = np.array(self.values, np.int64)
        if self._own >= 0:
            found[self._own] = found.__array_interface__["data"][0]
        return found


class Literal(Expression):
    """A literal: an element of an array that each function can read."""

    __slots__ = ("array", "index")

    def __init__(self, dtype: np.dtype, index: int):
        self.array, self.index = f"literals_{dtype.name}", index
        super().__init__(f"{self.array}[{index}]")


class Load(Expression):
    """An element of a node's array; at a computed position no other function can compute it."""

    __slots__ = ("node",)

    def __init__(self, node: FusionNode, array: str, position: Any):
        self.node = node
        super().__init__(f"section({array}, {{}}, 1)[0]", position)


class Scalars:
    """Statements that compute values of one element; `array` names the elements of an array."""

    def __init__(self, sizes: Sizes, array: Callable[[FusionNode], str]):
        self.sizes, self.array = sizes, array
        self.number, self.literal = sizes.number, sizes.literal
        self.names: dict[FusionNode, Name] = {}
        self.dtypes: dict[Name, np.dtype] = {}
        self.movable: set[Any] = set()  # names of those that another function may compute
        self._code: Code = []

    def take(self) -> Code:
        """Return the statements since the last time."""
        code, self._code = self._code, []
        return code

    def define(self, node: FusionNode, name: Name) -> None:
        """Say which variable has a node's value: one that other statements compute."""
        self.names[node] = name
        self.dtypes[name] = node.dtype

    def value(self, node: FusionNode) -> Any:
        """Return the name of a node's value, or its number."""
        if isinstance(node, LiteralNode) and node.in_text:
            return number_text(node.number, node.dtype)
        for one in in_turn(node, _operands, self._is_known):
            found = emitter(one).as_scalar(self, one)
            name = Name(f"s{len(self.names)}")
            self.define(one, name)
            self._code.append(Statement(name, found))
            if not (isinstance(found, Load) and found.reads):
                self.movable.add(name)
        return self.names[node]

    def load(self, node: FusionNode, position: Any) -> Expression:
        """Return one element of an array."""
        return Load(node, self.array(node), position)

    def _is_known(self, node: FusionNode) -> bool:
        return node in self.names or (isinstance(node, LiteralNode) and node.in_text)


def _operands(node: FusionNode) -> Iterable[FusionNode]:
    return map(base, emitter(node).scalar_operands(node))


# Long runs of statements ---------------------------------------------------------------------


def in_parts(code: Code, scalars: Scalars, define: Callable[[str, str], str]) -> Code:
    """Return a function's statements, with calls in place of long runs of scalars.

    ``define(text, stem)`` gives the name of the function that has a text, in which it is NAME. The
    functions find scalars and literals in arrays, at positions that are among the sizes: so a
    program that does the same again and again is compiled once.
    """

    def is_scalar(one: Statement | Suite) -> bool:
        return isinstance(one, Statement) and one.target in scalars.movable

    pieces = [(is_run, list(piece)) for is_run, piece in groupby(code, is_scalar)]
    runs = [is_run and len(piece) > LONG for is_run, piece in pieces]
    if not any(runs):
        return code
    return _Parts([piece for _, piece in pieces], runs, scalars, define).code


class _Parts:
    """Pieces of a function, with those that are runs of scalars as calls; from last to first."""

    def __init__(self, pieces: list[Code], runs: list[bool], scalars: Scalars, define: Callable):
        self.literals = {
            one.target: one.expression
            for piece in pieces
            for one in piece
            if isinstance(one, Statement) and isinstance(one.expression, Literal)
        }
        self.sizes, self.dtypes, self.define = scalars.sizes, scalars.dtypes, define
        self.positions: dict[Name, int] = {}  # in the array of their dtype
        self.lengths: dict[np.dtype, int] = {}
        straight = [piece for piece, run in zip(pieces, runs, strict=True) if not run]
        self.outside = {name for piece in straight for name in reads(piece)}
        self.needed_later = set(self.outside)  # what is used after the piece where we are
        self.read: set[Any] = set()  # by functions after it
        body: Code = []
        for piece, run in zip(reversed(pieces), reversed(runs), strict=True):
            body = [*(self._run(piece) if run else self._straight(piece)), *body]
        works = [
            Statement(Name(_work(dtype)), f"np.empty({length}, {type_name(dtype)})")
            for dtype, length in self.lengths.items()
        ]
        self.code: Code = [*works, *body]

    def _straight(self, code: Code) -> Code:
        """Return statements as they are, and what later functions want of them."""
        targets = [one.target for one in code if isinstance(one, Statement)]
        wanted = [name for name in targets if isinstance(name, Name) and name in self.read]
        return code + [Statement(self._slot(name), name) for name in wanted]

    def _run(self, code: Code) -> Code:
        found = [one for one in code if isinstance(one, Statement)]
        unneeded = self.literals.keys() - self.outside
        loads: Code = [
            one for one in found if not one.expression.reads and one.target not in unneeded
        ]
        rest = [one for one in found if one.expression.reads]
        names = [one.target for one in rest if isinstance(one.target, Name)]
        ends = [Statement(name, self._slot(name)) for name in names if name in self.outside]
        calls: Code = []
        for start in reversed(range(0, len(rest), PART)):
            part = rest[start : start + PART]
            calls.insert(0, self._call(part))
            self.needed_later |= reads(part)
        return [*self._straight(loads), *calls, *ends]

    def _position(self, name: Name) -> int:
        if name not in self.positions:
            dtype = self.dtypes[name]
            self.positions[name] = self.lengths.get(dtype, 0)
            self.lengths[dtype] = self.positions[name] + 1
        return self.positions[name]

    def _slot(self, name: Name) -> Expression:
        return Expression(f"{_work(self.dtypes[name])}[{self._position(name)}]")

    def _call(self, part: list[Statement]) -> Statement:
        """Return a call of the function with these statements, which may be there already."""
        names: dict[Name, Name] = {}
        works: dict[str, None] = {}
        body: Code = []
        first = len(self.sizes.values)
        made = {one.target for one in part}

        def slot(name: Name) -> Expression:
            known = self.literals.get(name)
            work = known.array if known else _work(self.dtypes[name])
            works.setdefault(work)
            index = known.index if known else self._position(name)
            position = self.sizes.add(index) - first
            return Expression(f"{work}[sizes[first + {position}]]")

        for one in part:
            name: Any = one.target
            for word in one.expression.reads:
                if word not in names and word not in made:
                    names[word] = Name(f"s{len(names)}")
                    body.append(Statement(names[word], slot(word)))
                    if word not in self.literals:
                        self.read.add(word)
            names[name] = Name(f"s{len(names)}")
            body.append(Statement(names[name], one.expression.rename(names)))
        wanted = [one.target for one in part if one.target in self.needed_later]
        body += [Statement(slot(name), names[name]) for name in wanted if isinstance(name, Name)]
        head = ["@jitable", f"def NAME({', '.join([*works, 'sizes', 'first'])}):", "    outlined()"]
        name = self.define("\n".join([*head, *render(body), "    return 0"]), "part")
        return Statement(None, f"{name}({', '.join([*works, 'sizes', str(first)])})")


def _work(dtype: np.dtype) -> str:
    return f"scalars_{dtype.name}"
