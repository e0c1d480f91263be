"""Corrected forms of the user's own source."""

from __future__ import annotations

import ast
import inspect
import linecache
import re
import textwrap
from collections.abc import Callable
from typing import Any


class SourceCode:
    """The source of a function, as a tree."""

    def __init__(self, tree: ast.Module, first: int):
        self.tree = tree
        self.first = first  # the line of the file that is the tree's first

    @classmethod
    def of(cls, function: Any) -> SourceCode | None:
        function = inspect.unwrap(getattr(function, "_function", function))
        try:
            lines, first = inspect.getsourcelines(function)
            return cls(ast.parse(textwrap.dedent("".join(lines))), first)
        except (OSError, TypeError, SyntaxError):
            return None

    def text(self) -> str:
        """Return the tree as code."""
        text = ast.unparse(ast.fix_missing_locations(self.tree))
        text = re.sub(r":\n\n", ":\n", text).replace(" ** ", "**")
        return "\n".join(_space_lines([_without_parentheses(line) for line in text.splitlines()]))

    @property
    def prefix(self) -> str:
        """Return the user's name for the library, with a dot."""
        found = re.search(r"(\w+\.)(?:\w+\.)*custom_gradient", ast.unparse(self.tree))
        return found.group(1) if found else "tf."


def _space_lines(lines: list[str]) -> list[str]:
    """Return lines of code with an empty one after each function inside another."""
    found: list[str] = []
    inside: list[int] = []  # the indents of the functions that a line stands in
    for line in lines:
        indent = len(line) - len(line.lstrip())
        while line and inside and indent <= inside[-1]:
            inside.pop()
            if found[-1]:
                found.append("")
        if line.lstrip().startswith("def "):
            inside.append(indent)
        found.append(line)
    return found


def _without_parentheses(line: str) -> str:
    """Return `return (a, b)` and `c = (a, b)` as people write them."""
    found = re.fullmatch(r"(\s*(?:return|[\w, ]+ =) )\((.*)\)", line)
    if found is None:
        return line
    depth = 0
    for character in found.group(2):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return line
    return found.group(1) + found.group(2)


def returns(function: ast.FunctionDef) -> list[ast.Return]:
    """Return the return statements of a function, without those of functions inside it."""
    found = []
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.Return):
            found.append(node)
        elif not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            pending += ast.iter_child_nodes(node)
    return found


def undecorated_rule(function: Any, inner: str) -> str | None:
    """Return `function` without the rule of its gradient function `inner`."""
    source = SourceCode.of(function)
    target = _find_function(source.tree, inner) if source else None
    if source is None or target is None:
        return None
    target.decorator_list = [
        one for one in target.decorator_list if "custom_gradient" not in ast.unparse(one)
    ]
    for one in returns(target):
        if not (isinstance(one.value, ast.Tuple) and len(one.value.elts) == 2):
            return None
        one.value, rule = one.value.elts
        if isinstance(rule, ast.Name):
            own = [one for one in target.body if isinstance(one, ast.FunctionDef)]
            gone = [one for one in own if one.name == rule.id]
            target.body = [one for one in target.body if one not in gone]
    return source.text()


class Returned:
    """The gradients in one return statement of a rule."""

    def __init__(self, node: ast.Return | ast.Lambda):
        self.node = node
        value = node.body if isinstance(node, ast.Lambda) else node.value
        is_tuple = isinstance(value, (ast.Tuple, ast.List))
        self.gradients = value.elts if is_tuple else [value or ast.Constant(None)]

    def replace(self, gradients: list[ast.expr]) -> None:
        value = gradients[0] if len(gradients) == 1 else ast.Tuple(gradients, ast.Load())
        if isinstance(self.node, ast.Lambda):
            self.node.body = value
        else:
            self.node.value = value


def fewer_gradients(function: Any, inner: str, count: int) -> str | None:
    """Return `function` with a rule of `inner` that returns only the first `count` gradients."""
    return _change_returned(function, inner, count, lambda gradients, _: gradients[:count])


def wrapped_gradient(function: Any, name: str, index: int, call: str) -> str | None:
    """Return `function` with gradient number `index` of `name` put into `call`."""

    def wrap(gradients: list[ast.expr], prefix: str) -> list[ast.expr]:
        named = re.sub(r"\b(reduce_sum|reshape)\(", lambda match: prefix + match.group(), call)
        text = ast.unparse(gradients[index]).replace("\\", r"\\")
        wrapped = ast.parse(re.sub(r"\bgradient\b", text, named), mode="eval").body
        return [*gradients[:index], wrapped, *gradients[index + 1 :]]

    return _change_returned(function, name, index, wrap)


def _change_returned(function: Any, name: str, index: int, change: Callable) -> str | None:
    """Return `function` with ``change(gradients, prefix)`` in each return of the rule of `name`.

    None if one of them has no gradient number `index`.
    """
    source = SourceCode.of(function)
    found = _find_returned(source, name)
    if source is None or not found or any(len(one.gradients) <= index for one in found):
        return None
    for one in found:
        one.replace(change(one.gradients, source.prefix))
    return source.text()


def with_argument(function: Any, name: str, captured: str) -> str | None:
    """Return `function`, where `name` takes what it captured as one more argument."""
    source = SourceCode.of(function)
    target = _find_function(source.tree, name) if source else None
    rule = _rule_of(source, name)
    if source is None or target is None or rule is None:
        return None
    target.args.args.append(ast.arg(captured))
    gradient = f"gradient_by_{captured}"
    for one in _find_returned(source, name):
        one.replace([*one.gradients, ast.Name(gradient)])
    if isinstance(rule, ast.FunctionDef):
        rule.body.insert(0, ast.parse(f"{gradient} = ...").body[0])
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            node.args.append(ast.Name(captured))
    return source.text()


def attached(function: Any, line: int) -> str | None:
    """Return `function`, where a line no longer takes values out of tensors."""
    source = SourceCode.of(function)
    if source is None:
        return None
    before = source.text()
    Attach(line - source.first + 1).visit(source.tree)
    after = source.text()
    return after if after != before else None


class Attach(ast.NodeTransformer):
    """A transformer that drops numpy(), float(), np.asarray(), stop_gradient() on one line."""

    def __init__(self, line: int):
        self.line = line

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not node.lineno <= self.line <= (node.end_lineno or node.lineno):
            return node
        name = _called_name(node)
        if name in ("numpy", "item") and not node.args and isinstance(node.func, ast.Attribute):
            return node.func.value
        ignored = name in ("float", "asarray", "array", "stop_gradient") and len(node.args) == 1
        return node.args[0] if ignored else node


def stable(function: Any) -> str | None:
    """Return `function` with sigmoid and softplus instead of formulas that overflow."""
    source = SourceCode.of(function)
    if source is None:
        return None
    before = source.text()
    exponents = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and _exponent(node.value, {}) is not None:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    exponents[target.id] = _exponent(node.value, {})
    Stabilise(exponents, source.prefix).visit(source.tree)
    if source.text() == before:
        return None
    for name in exponents:
        uses = [n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and n.id == name]
        if all(isinstance(use.ctx, ast.Store) for use in uses):
            _Remove(name).visit(source.tree)
    return source.text()


class Stabilise(ast.NodeTransformer):
    """A transformer that writes 1 - 1 / (1 + e^x) as sigmoid(x), log(1 + e^x) as softplus(x)."""

    def __init__(self, exponents: dict, prefix: str):
        self.exponents = exponents
        self.prefix = prefix

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Sub) and _is_one(node.left):
            inner = self._one_over(node.right)
            if inner is not None:
                return self._call("sigmoid", inner)
        if isinstance(node.op, ast.Div):
            inner = self._one_plus(node.right)
            above = _exponent(node.left, self.exponents)
            if inner is not None and above is not None and ast.dump(inner) == ast.dump(above):
                return self._call("sigmoid", inner)
            if inner is not None and _is_one(node.left) and isinstance(inner, ast.UnaryOp):
                return self._call("sigmoid", inner.operand)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name, inner = node.func.attr if isinstance(node.func, ast.Attribute) else "", None
        if len(node.args) == 1 and name == "log":
            inner = self._one_plus(node.args[0])
        elif len(node.args) == 1 and name == "log1p":
            inner = _exponent(node.args[0], self.exponents)
        return node if inner is None else self._call("nn.softplus", inner)

    def _one_over(self, node: ast.AST) -> ast.expr | None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _is_one(node.left):
            return self._one_plus(node.right)
        return None

    def _one_plus(self, node: ast.AST) -> ast.expr | None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if _is_one(one):
                    return _exponent(other, self.exponents)
        return None

    def _call(self, name: str, argument: ast.expr) -> ast.expr:
        call = ast.parse(f"{self.prefix}{name}(0)", mode="eval").body
        assert isinstance(call, ast.Call)
        call.args = [argument]
        return call


class _Remove(ast.NodeTransformer):
    def __init__(self, name: str):
        self.name = name

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        names = [t.id for t in node.targets if isinstance(t, ast.Name)]
        return None if names == [self.name] else node


def _is_one(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _exponent(node: ast.AST, known: dict) -> ast.expr | None:
    """Return x, where the node is exp(x), or a name for it."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Call) and len(node.args) == 1 and _called_name(node) == "exp":
        return node.args[0]
    return None


def _called_name(call: ast.Call) -> str:
    """Return the last name in what is called."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _rule_of(source: SourceCode | None, name: str) -> ast.FunctionDef | ast.Lambda | None:
    """Return the gradient function that the function `name` returns."""
    target = _find_function(source.tree, name) if source else None
    if target is None:
        return None
    for one in returns(target):
        if not (isinstance(one.value, ast.Tuple) and len(one.value.elts) == 2):
            continue
        rule = one.value.elts[1]
        if isinstance(rule, ast.Lambda):
            return rule
        found = _find_function(target, rule.id) if isinstance(rule, ast.Name) else None
        if found is not None:
            return found
    return None


def _find_function(tree: ast.AST, name: str) -> ast.FunctionDef | None:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return next((node for node in functions if node.name == name), None)


def _find_returned(source: SourceCode | None, name: str) -> list[Returned]:
    """Return the gradients in each return statement of the rule of `name`."""
    rule = _rule_of(source, name)
    if rule is None:
        return []
    return [Returned(one) for one in ([rule] if isinstance(rule, ast.Lambda) else returns(rule))]


def line_of(file: str, line: int) -> str:
    """Return the text of a line, if the file can be read."""
    text = linecache.getline(file, line).strip()
    return text if len(text) < 80 else f"{text[:76]} ..."
