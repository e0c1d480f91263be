"""Statements for values of one element, and the table of numbers that generated code reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..fusion.nodes import FusionNode, LiteralNode, base
from ..graph.values import in_turn
from .emission import emitter
from .expressions import number_text, type_name
from .statements import Code, Expression, Name, Statement


class Sizes:
    """Numbers that a function reads from an array of int64: sizes, and literals of the program.

    Floats are stored as bits. The function reads them through a float view of the same memory.
    """

    def __init__(self) -> None:
        self.in_text = False  # whether sizes are written into the text instead
        self.values: list[int] = []
        self.literals: dict[int, LiteralNode] = {}  # by position

    def add(self, value: int) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def number(self, value: int) -> Expression:
        """Return the expression of a size."""
        return Expression(str(value)) if self.in_text else self.element(value)

    def element(self, value: int) -> Expression:
        """Return the expression of a number that is never written into the text."""
        return Expression(f"sizes[{self.add(value)}]")

    def literal(self, node: LiteralNode) -> Expression:
        """Return the expression of a literal, in its dtype."""
        words = np.zeros(8 // node.dtype.itemsize, node.dtype)
        words[0] = node.number
        position = self.add(int(words.view(np.int64)[0]))
        self.literals[position] = node
        return Expression(f"literals_{node.dtype.name}[{position * words.size}]")

    def views(self, address: str) -> list[str]:
        """Return lines that define the arrays of literals, as views of the memory at an address."""
        lines, size = [], 8 * len(self.values)
        for dtype in dict.fromkeys(node.dtype for node in self.literals.values()):
            view = f"vector({address}, {size // dtype.itemsize}, {type_name(dtype)})"
            lines.append(f"    literals_{dtype.name} = {view}")
        return lines

    def shown(self) -> list[str]:
        """Return the literals as equations, for readers of the text."""
        return [
            f"literals_{node.dtype.name}[{8 // node.dtype.itemsize * position}] = {node.number}"
            for position, node in self.literals.items()
        ]

    def array(self) -> np.ndarray:
        """Return the numbers as an array."""
        return np.array(self.values, np.int64)


class Load(Expression):
    """An element of a node's array."""

    __slots__ = ("node",)

    def __init__(self, node: FusionNode, array: str, position: Any):
        self.node = node
        super().__init__(f"section({array}, {{}}, 1)[0]", position)


class Scalars:
    """Statements that compute values of one element; ``array(node)`` names a node's array."""

    def __init__(self, sizes: Sizes, array: Callable[[FusionNode], str]):
        self.sizes, self.array = sizes, array
        self.number, self.literal = sizes.number, sizes.literal
        self.names: dict[FusionNode, Name] = {}
        self._code: Code = []

    def take(self) -> Code:
        """Return the statements added since the last call."""
        code, self._code = self._code, []
        return code

    def value(self, node: FusionNode) -> Any:
        """Return the variable of a node's value, or the number itself."""
        if isinstance(node, LiteralNode) and node.in_text:
            return number_text(node.number, node.dtype)
        for operand in in_turn(node, _operands, self._is_known):
            value = emitter(operand).as_scalar(self, operand)
            self.names[operand] = name = Name(f"s{len(self.names)}")
            self._code.append(Statement(name, value))
        return self.names[node]

    def load(self, node: FusionNode, position: Any) -> Expression:
        """Return an element of a node's array."""
        return Load(node, self.array(node), position)

    def _is_known(self, node: FusionNode) -> bool:
        return node in self.names or (isinstance(node, LiteralNode) and node.in_text)


def _operands(node: FusionNode) -> Iterable[FusionNode]:
    return map(base, emitter(node).scalar_operands(node))
