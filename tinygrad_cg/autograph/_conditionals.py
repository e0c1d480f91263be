"""Rewriting of expressions that a tensor may decide: conditionals, `and`, `or`, `not`."""

from __future__ import annotations

import ast
import copy
from typing import Any

from ._units import Unit, constant, helper, located, name, parameters, question

_MAX_DEPTH = 5  # nested conditional expressions: each level doubles the text


class Expressions(ast.NodeTransformer):
    """Rewrites expressions: calls, `and`, `or`, `not`, chained comparisons and conditionals."""

    def __init__(self, unit: Unit, lifted: bool):
        self.unit, self.lifted = unit, lifted
        self.depth = 0
        self.iterables = 0  # the iterable of a comprehension cannot assign

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        called = node.func
        if isinstance(called, ast.Name) and called.id == "super":
            if self.lifted and not node.args and self.unit.first is not None:
                node.args = [name("__class__", node), name(self.unit.first, node)]
            return node
        self.generic_visit(node)
        node.func = helper("call", [node.func], called)
        return node

    def _visit_comprehension(self, node: Any) -> Any:
        for generator in node.generators:
            self.iterables += 1
            generator.iter = self.visit(generator.iter)
            self.iterables -= 1
            generator.ifs = [self.visit(test) for test in generator.ifs]
        for part in ("elt", "key", "value"):
            if hasattr(node, part):
                setattr(node, part, self.visit(getattr(node, part)))
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if not isinstance(node.op, ast.Not):
            return self.generic_visit(node)
        return helper("not_", [self.test(node.operand)], node)

    def _is_plain(self, *later: ast.AST) -> bool:
        """Return whether an expression stays as it is: a later operand assigns or awaits."""
        special = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
        return (
            bool(self.iterables)
            or self.depth >= _MAX_DEPTH
            or any(
                isinstance(node, special) for expression in later for node in ast.walk(expression)
            )
        )

    def test(self, node: Any) -> Any:
        """Rewrite an expression that is used only for its truth value."""
        if isinstance(node, ast.BoolOp):
            return self.visit_BoolOp(node, test=True)
        return self.visit(node)

    def visit_BoolOp(self, node: ast.BoolOp, test: bool = False) -> Any:
        if self._is_plain(*node.values[1:]):
            return self.generic_visit(node)
        method = "sequence"
        if test:
            method = "combine" if all(map(_is_comparison, node.values)) else "test"
        self.depth += 1
        values = [self.test(operand) if test else self.visit(operand) for operand in node.values]
        self.depth -= 1
        return self._choice(method, node, values)

    def _choice(self, method: str, node: Any, values: list[Any]) -> Any:
        first, *rest = values
        if not rest:
            return first
        mark = self.unit.temporary()
        later = [thunk(copy.deepcopy(operand)) for operand in rest]
        others = self._choice(method, node, rest)
        native = ast.BoolOp(copy.copy(node.op), [name(mark, first), others])
        is_and = constant(isinstance(node.op, ast.And), node)
        traced = helper(method, [is_and, name(mark, node), *later], node)
        return self._asked(mark, first, traced, native)

    def _asked(self, mark: str, value: Any, traced: Any, native: Any) -> Any:
        return located(ast.IfExp(question(mark, value, value), traced, native), value)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        if self._is_plain(node.body, node.orelse):
            return self.generic_visit(node)
        self.depth += 1
        test, body, other = self.test(node.test), self.visit(node.body), self.visit(node.orelse)
        self.depth -= 1
        mark = self.unit.temporary()
        later = [thunk(copy.deepcopy(body)), thunk(copy.deepcopy(other))]
        line = constant(node.lineno, node)
        traced = helper("choose", [name(mark, node), *later, line], node)
        native = located(ast.IfExp(name(mark, test), body, other), node)
        return self._asked(mark, test, traced, native)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 2 or self._is_plain(*node.comparators):
            return self.generic_visit(node)
        left, middle, right = map(self.visit, (node.left, *node.comparators))
        mark, shared = self.unit.temporary(), self.unit.temporary()
        kept = located(ast.NamedExpr(name(shared, middle, store=True), middle), middle)
        first = located(ast.Compare(left, [node.ops[0]], [kept]), node)
        second = located(ast.Compare(name(shared, middle), [node.ops[1]], [right]), node)
        later = thunk(copy.deepcopy(second))
        traced = helper("sequence", [constant(True, node), name(mark, node), later], node)
        native = located(ast.BoolOp(ast.And(), [name(mark, node), second]), node)
        return self._asked(mark, first, traced, native)


def _is_comparison(node: ast.AST) -> bool:
    """Return whether an expression compares sums and products of names and constants."""
    arithmetic = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    parts = (*arithmetic, ast.cmpop, ast.expr_context, ast.Compare)
    divides = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult, ast.In, ast.NotIn, ast.Not)
    return isinstance(node, ast.Compare) and all(
        isinstance(part, parts) and not isinstance(part, divides) for part in ast.walk(node)
    )


def thunk(value: Any) -> ast.Lambda:
    return located(ast.Lambda(parameters(), value), value)
