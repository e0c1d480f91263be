"""Statements of generated functions, as objects that know what they read and write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class Name(str):
    """A variable of a generated function. Numbers are plain strings."""

    __slots__ = ()


class Expression:
    """A template with a slot for each operand, which is an expression, a name or a number.

    `modules` are the modules whose functions the template calls.
    """

    __slots__ = ("_modules", "operands", "template")

    def __init__(self, template: str, *operands: Any, modules: tuple[str, ...] = ()):
        self.template, self.operands, self._modules = template, operands, modules

    def __str__(self) -> str:
        return self.template.format(*self.operands)

    def replaced(self, name: Name, value: Any) -> Expression:
        """Return the expression with a value in place of a variable."""
        operands = [
            value if x == name else x.replaced(name, value) if isinstance(x, Expression) else x
            for x in self.operands
        ]
        return Expression(self.template, *operands, modules=self._modules)

    @property
    def reads(self) -> list[Name]:
        """Return the variables in the expression, each as often as it occurs."""
        names: list[Name] = []
        for operand in self.operands:
            if isinstance(operand, Expression):
                names += operand.reads
            elif isinstance(operand, Name):
                names.append(operand)
        return names

    @property
    def modules(self) -> Iterator[str]:
        """Yield the full names of the modules whose functions it calls."""
        yield from self._modules
        for operand in self.operands:
            if isinstance(operand, Expression):
                yield from operand.modules


class Statement:
    """``target = expression``, where the target is a variable or an element; or an expression."""

    __slots__ = ("expression", "target")

    def __init__(self, target: Name | Expression | None, expression: Any):
        is_expression = isinstance(expression, Expression)
        self.target = target
        self.expression = expression if is_expression else Expression("{}", expression)

    def __str__(self) -> str:
        return f"{self.expression}" if self.target is None else f"{self.target} = {self.expression}"

    def parts(self) -> Iterator[Expression]:
        """Yield the expressions in it."""
        if isinstance(self.target, Expression):
            yield self.target
        yield self.expression


class Suite:
    """A loop or a condition: a head line and the statements below it."""

    __slots__ = ("body", "head")

    def __init__(self, head: Expression, body: list[Statement | Suite]):
        self.head, self.body = head, body

    def parts(self) -> Iterator[Expression]:
        """Yield the expressions in it."""
        yield self.head
        for statement in self.body:
            yield from statement.parts()


Code = list[Statement | Suite]


def render(code: Iterable[Statement | Suite], indent: str = "    ") -> list[str]:
    """Return the lines of a function's body."""
    lines: list[str] = []
    for statement in code:
        if isinstance(statement, Suite):
            lines += [f"{indent}{statement.head}:", *render(statement.body, f"{indent}    ")]
        else:
            lines.append(f"{indent}{statement}")
    return lines


def reads(code: Iterable[Statement | Suite]) -> set[Name]:
    """Return the variables that statements read, and the arrays in which they store elements."""
    return {name for statement in code for part in statement.parts() for name in part.reads}


def modules(code: Iterable[Statement | Suite]) -> set[str]:
    """Return the full names of the modules whose functions statements call."""
    return {module for statement in code for part in statement.parts() for module in part.modules}
