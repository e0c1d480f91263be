"""Corrected forms of the user's source."""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import linecache
import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from tinygrad_cg_kernels.runtime.texts import define

from .._core.record import nodes_of
from .._rules.custom_gradient import custom_gradient
from .._rules.user_source import returns
from ..errors import location_of
from .recorder import SourceLine

MAX_QUOTED = 40  # characters of a line to quote
DETACHING_CALLS = ("float", "asarray", "array", "stop_gradient")  # functions of one tensor


@dataclass
class SourceCode:
    """The source of a function, as a syntax tree.

    `first` is the line of the file where the tree begins, `space` has the names that the code sees.
    """

    tree: ast.Module
    first: int
    space: Mapping[str, Any]
    output: int | None = None  # the index of the upstream gradient whose term changes

    def text(self) -> str:
        text = ast.unparse(ast.fix_missing_locations(self.tree))
        text = re.sub(r":\n\n", ":\n", text).replace(" ** ", "**")
        text = re.sub(r"(?<=\de)([+-])0(?=\d\b)", r"\1", text)  # 1e-06
        return "\n".join(_space_lines([_without_parentheses(line) for line in text.splitlines()]))

    @property
    def prefix(self) -> str:
        """Return the user's name for the library, with a dot."""
        match = re.search(r"(\w+\.)(?:\w+\.)*custom_gradient", ast.unparse(self.tree))
        if match:
            return match.group(1)
        package = __name__.partition(".")[0]
        names = (name for name, value in self.space.items() if inspect.ismodule(value))
        aliases = (name for name in names if self.space[name].__name__ == package)
        return f"{next(aliases, 'tf')}."


def is_custom_gradient(decorator: ast.expr, space: Mapping[str, Any]) -> bool:
    """Return whether a decorator is `custom_gradient`, by its name or by what it stands for."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = last_name(function)
    return name == "custom_gradient" or (
        isinstance(function, ast.Name) and space.get(name) is custom_gradient
    )


def captured(function: Any) -> dict[str, Any]:
    """Return the values that a function takes from outside, by their names."""
    try:
        space = inspect.getclosurevars(inspect.unwrap(getattr(function, "_function", function)))
    except TypeError:  # an object that can be called
        return {}
    return {**space.globals, **space.nonlocals}


class OtherForm(Exception):
    """The source of a function is not there, or has another form than a change is for."""


def _source_of(function: Any) -> SourceCode:
    function = inspect.unwrap(getattr(function, "_function", function))
    try:
        lines, first = inspect.getsourcelines(function)
        names = {**captured(function), **function.__globals__}
        return SourceCode(ast.parse(textwrap.dedent("".join(lines))), first, names)
    except (OSError, TypeError, SyntaxError):
        raise OtherForm from None


def literals(function: Any) -> list[float]:
    """Return the positive floats that are written in a function."""
    try:
        nodes = ast.walk(_source_of(function).tree)
    except OtherForm:
        return []
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return [value for value in values if isinstance(value, float) and value > 0.0]


def is_estimator(function: Any) -> bool:
    """Return whether a function has ``z + stop_gradient(y - z)``, or ``z - stop_gradient(z)``.

    The first has the value of y and the derivative of z, the second is 0 with the derivative of z
    (J. Foerster et al., "DiCE", 2018).
    """
    return any(map(_is_estimator, ast.walk(_source_of(function).tree)))


def _is_estimator(node: ast.AST) -> bool:
    match node:
        case (
            ast.BinOp(z, ast.Sub(), ast.Call(function, [other]))
            | ast.BinOp(z, ast.Add(), ast.Call(function, [ast.BinOp(_, ast.Sub(), other)]))
            | ast.BinOp(ast.Call(function, [ast.BinOp(_, ast.Sub(), other)]), ast.Add(), z)
        ):
            return last_name(function) == "stop_gradient" and ast.dump(z) == ast.dump(other)
    return False


def corrected(function: Any, change: Callable[..., None], *facts: Any) -> str | None:
    """Return `function` as ``change(source, *facts)`` alters it; None if that changes nothing."""
    try:
        source = _source_of(function)
        before, read = source.text(), _loaded(source.tree)
        change(source, *facts)
    except (OtherForm, SyntaxError):  # an argument's name that is not an expression, for example
        return None
    if source.text() == before:
        return None
    _drop_unread(source.tree, read)
    return source.text()


def _loaded(tree: ast.Module) -> dict[str, set[str]]:
    """Return the names that each function reads."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {function.name: _names_in(function, ast.Load) for function in functions}


def _drop_unread(tree: ast.Module, read: dict[str, set[str]]) -> None:
    """Remove `x = x`, and assignments to names that were `read` before a change, not after."""
    for node in reversed([*ast.walk(tree)]):  # inner functions first
        if isinstance(node, ast.FunctionDef):
            node.body = [n for n in node.body if not re.fullmatch(r"(\w+) = \1", ast.unparse(n))]
            own = read.get(node.name, set())
            while unread := own - _names_in(node, ast.Load):
                own = own - unread
                node.body = [
                    n for n in node.body if not {*_assigned(n)} <= unread or not _assigned(n)
                ]


class Written(NamedTuple):
    """Numbers that a function's code has: scalar factors, divisors and exponents, as written.

    `used` are those that the gradient of the rule has, too. `names_sizes` says whether it names the
    size of an axis, `gradient_names_sizes` whether the gradient of the rule does. `value` is the
    function's value, in terms of its arguments.
    """

    numbers: dict[str, float]
    used: Sequence[float] = ()
    names_sizes: bool = False
    gradient_names_sizes: bool = False
    value: str = ""


SIZES = re.compile(r"\.shape\b|\.size\b|\bsize\(|\blen\(|\b(?:reduce_)?mean\(")


def read_numbers(function: Any, index: int, args: Sequence, kwargs: dict) -> Written:
    """Return the numbers in the code of a rule for gradient number `index`.

    Plain numbers are left out, and so are tensors that a tape records. Raises OtherForm without a
    rule.
    """
    source, name = _source_of(function), function.__name__
    rule, target = _rule_of(source, name), _find_function(source.tree, name)
    local = {ast.unparse(t): n.value for n in ast.walk(rule) if isinstance(n, ast.Assign)
             for t in n.targets}  # fmt: skip
    own = [g.gradients[index] for g in _find_returned(rule) if index < len(g.gradients)]
    for _ in local:
        own = [_substituted(gradient, local) for gradient in own]
    gradient = " ".join(map(ast.unparse, own))
    parts = {ast.unparse(node) for tree in own for node in ast.walk(tree)}
    codes = dict.fromkeys(map(ast.unparse, _operands(source.tree)))
    text, value = source.text(), ""
    with contextlib.suppress(OtherForm):
        value = _value_of(target)
    nodes = (node for node in ast.walk(ast.parse(value)) if isinstance(node, ast.BinOp))
    powers = (node.right for node in nodes if isinstance(node.op, ast.Pow))
    # exponents are factors of the gradient
    exponents = [ast.unparse(x) for x in powers if not isinstance(x, ast.Constant)]
    codes |= dict.fromkeys(exponents)
    for statement in returns(target):
        values = ", ".join(f"lambda: {code}" for code in codes)
        statement.value = _expression(f"[{values}]")
    target.decorator_list.clear()
    values = execute(source.text(), function)(*args, **kwargs)
    numbers: dict[str, float] = {}
    used: list[float] = []
    for code, compute in zip(codes, values, strict=True):
        with contextlib.suppress(Exception):  # a name of the rule, for example
            number = compute()
            if not any(nodes_of(getattr(number, "_rec", None))) and np.size(number) == 1:
                if code in parts and code not in exponents:
                    used.append(float(number))
                else:
                    numbers[code.replace(" ** ", "**")] = float(number)
    return Written(numbers, used, bool(SIZES.search(text)), bool(SIZES.search(gradient)), value)


def names_more_sizes(code: str, function: Any) -> bool:
    """Return whether code names sizes of axes more often than a function does, outside a vjp."""
    before, after = (re.split(r"\bvjp\(", text) for text in (_source_of(function).text(), code))
    is_written = len(before) == len(after)
    return is_written and len(SIZES.findall(code)) > len(SIZES.findall(" ".join(before)))


def partner(value: str, x: str) -> tuple[str, str] | None:
    """Return "divisor" or "factor", and that which a value divides or multiplies `x` by."""
    match _expression(value or "None"):
        case ast.BinOp(ast.Name(name), ast.Div(), other) if name == x:
            return "divisor", ast.unparse(other)
        case ast.BinOp(ast.Name(name), ast.Mult(), other) | ast.BinOp(
            other, ast.Mult(), ast.Name(name)
        ) if name == x:
            return "factor", ast.unparse(other)
    return None


def _operands(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield the factors, divisors, and bases and exponents that are not plain numbers."""
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(left, ast.Mult() | ast.Div() | ast.MatMult() | ast.Pow() as kind, right):
                operands = [right, left] if isinstance(kind, (ast.Mult, ast.Pow)) else [right]
                yield from (x for x in operands if not isinstance(x, ast.Constant))


def execute(code: str, function: Any) -> Any:
    """Execute the definition of a function, and return it; None for anything but a definition."""
    function = inspect.unwrap(getattr(function, "_function", function))
    space = dict(function.__globals__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    space |= {free: cell.cell_contents for free, cell in cells}
    match ast.parse(code).body:
        case [ast.FunctionDef(name, decorator_list=decorators)]:
            pass
        case [ast.Assign([ast.Name(name)], ast.Lambda())]:
            decorators = []
        case [ast.Assign([ast.Name(name)], ast.Call(decorator, [ast.Lambda()]))]:
            decorators = [decorator]
        case _:
            return None
    if not all(is_custom_gradient(decorator, space) for decorator in decorators):
        return None  # executing other decorators again may have an effect
    space.pop(name, None)
    altered = define(code, "corrected code", space, name, is_ours=False)
    instance = getattr(function, "__self__", None)
    return altered if instance is None else altered.__get__(instance)


def _expression(code: str) -> Any:
    return ast.parse(code, mode="eval").body


def _space_lines(lines: list[str]) -> list[str]:
    """Return lines of code, with an empty line after each nested function."""
    spaced: list[str] = []
    inside: list[int] = []  # the indents of the functions that a line stands in
    for line in lines:
        indent = len(line) - len(line.lstrip())
        while line and inside and indent <= inside[-1]:
            inside.pop()
            if spaced[-1]:
                spaced.append("")
        if line.lstrip().startswith("def "):
            inside.append(indent)
        spaced.append(line)
    return spaced


def _without_parentheses(line: str) -> str:
    """Return `return (a, b)` and `c = (a, b)` without the parentheses."""
    match = re.fullmatch(r"(\s*(?:return|[\w, ]+ =) )\((.*)\)", line)
    bare = match.group(1) + match.group(2) if match else line
    with contextlib.suppress(SyntaxError):
        if ast.dump(ast.parse(bare.strip())) == ast.dump(ast.parse(line.strip())):
            return bare
    return line


# Changes -------------------------------------------------------------------------------------


def undecorate(source: SourceCode, inner: str) -> None:
    """Remove the rule of the gradient function `inner`."""
    target = _find_function(source.tree, inner)
    rules = set()
    for statement in returns(target):
        match statement.value:
            case ast.Tuple([value, rule]):
                statement.value = value
                rules.add(ast.unparse(rule))
            case _:
                raise OtherForm
    decorators = target.decorator_list
    target.decorator_list = [d for d in decorators if not is_custom_gradient(d, source.space)]
    target.body = [node for node in target.body if getattr(node, "name", None) not in rules]


class Returned:
    """The gradients in one return statement of a rule."""

    def __init__(self, node: ast.Return | ast.Lambda):
        self.node = node
        self.field = "body" if isinstance(node, ast.Lambda) else "value"
        self.value = getattr(node, self.field) or ast.Constant(None)
        self.gradients = list(_leaves(self.value))

    def replace(self, gradients: list[ast.expr]) -> None:
        """Return these gradients, in the structure of the old ones if there are as many."""
        value = gradients[0] if len(gradients) == 1 else ast.Tuple(gradients, ast.Load())
        if len(gradients) == len(self.gradients):
            value = _packed(self.value, iter(gradients))
        setattr(self.node, self.field, value)


def _leaves(value: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions in nested tuples and lists."""
    if not isinstance(value, (ast.Tuple, ast.List)):
        yield value
        return
    for element in value.elts:
        yield from _leaves(element)


def _packed(value: ast.expr, leaves: Iterator[ast.expr]) -> ast.expr:
    if not isinstance(value, (ast.Tuple, ast.List)):
        return next(leaves)
    return type(value)([_packed(element, leaves) for element in value.elts], ast.Load())


def drop_gradients(source: SourceCode, inner: str, count: int) -> None:
    """Make the rule of `inner` return only the first `count` gradients."""
    _change_returned(source, inner, count, lambda gradients: gradients[:count])


def wrap_gradient(source: SourceCode, name: str, index: int, call: str) -> None:
    """Put gradient number `index` of `name` into `call`."""
    pattern = re.sub(r"\b(reduce_sum|reshape|transpose)\(", r"tf.\1(", call)
    rewrite_gradient(source, name, index, pattern)


def scale_gradient(source: SourceCode, name: str, index: int, ratio: float) -> None:
    """Divide gradient number `index` of `name` by a ratio of small integers, if it is one."""
    near = Fraction(ratio).limit_denominator(1000)
    tolerance = 1e-5 if abs(near.numerator) <= 12 else 1e-9
    if not near or not math.isclose(near, ratio, rel_tol=tolerance):
        return

    def scale(gradient: ast.expr) -> ast.expr:
        size = abs(near)
        scaled = gradient if size == 1 else _scaled(gradient, float(1 / size))
        if scaled is None:
            scaled = _times(size.denominator, gradient) if size.denominator > 1 else gradient
            if size.numerator > 1:
                scaled = ast.BinOp(scaled, ast.Div(), ast.Constant(float(size.numerator)))
        if near > 0:
            return scaled
        return _without_sign(scaled) or ast.UnaryOp(ast.USub(), scaled)

    change_gradient(source, name, index, scale)


def _scaled(gradient: ast.expr, factor: float) -> ast.expr | None:
    """Return a product with its first constant factor multiplied; None without such a factor."""
    match gradient:
        case ast.Constant(int() | float() as value):
            product = float(f"{value * factor:.9g}")
            return ast.Constant(product) if len(str(product)) <= 6 else None
        case ast.UnaryOp(operator, operand):
            scaled = _scaled(operand, factor)
            return scaled and ast.UnaryOp(operator, scaled)
        case ast.BinOp(left, ast.Div() as operator, ast.Constant() as right):
            scaled = _scaled(left, factor)
            if scaled is not None:
                return ast.BinOp(scaled, operator, right)
            below = _scaled(right, 1.0 / factor)
            return left if _is_one(below) else below and ast.BinOp(left, operator, below)
        case ast.BinOp(left, ast.Mult() | ast.MatMult() | ast.Div() as operator, right):
            scaled = _scaled(left, factor)
            if scaled is not None:
                is_dropped = isinstance(operator, ast.Mult) and _is_one(scaled)
                return right if is_dropped else ast.BinOp(scaled, operator, right)
            scaled = None if isinstance(operator, ast.Div) else _scaled(right, factor)
            return left if _is_one(scaled) else scaled and ast.BinOp(left, operator, scaled)
    return None


def _is_one(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1.0


def _times(factor: int, gradient: ast.expr) -> ast.expr:
    """Return a number times an expression: before its first factor."""
    match gradient:
        case ast.BinOp(left, ast.Mult() | ast.Div() | ast.MatMult() as operator, right):
            return ast.BinOp(_times(factor, left), operator, right)
        case ast.UnaryOp():
            return ast.BinOp(gradient, ast.Mult(), ast.Constant(float(factor)))
    return ast.BinOp(ast.Constant(float(factor)), ast.Mult(), gradient)


def _without_sign(gradient: ast.expr) -> ast.expr | None:
    """Return minus an expression if its first factor has a sign, which is left out."""
    match gradient:
        case ast.UnaryOp(ast.USub(), operand):
            return operand
        case ast.BinOp(left, ast.Mult() | ast.Div() | ast.MatMult() as operator, right):
            first = _without_sign(left)
            return first and ast.BinOp(first, operator, right)
    return None


def rewrite_gradient(source: SourceCode, name: str, index: int, pattern: str) -> None:
    """Replace gradient number `index` of `name` by an expression of it.

    In the `pattern`, `gradient` stands for it, `dy` for the upstream gradient, `output` for the
    function's value and `tf.` for the library.
    """
    target, rule = _find_function(source.tree, name), _rule_of(source, name)
    outputs = [node.value.elts[0] for node in returns(target) if isinstance(node.value, ast.Tuple)]
    if not rule.args.args or ("output" in pattern and len(outputs) != 1):
        raise OtherForm
    text = pattern.replace("tf.", source.prefix)
    names = {"output": outputs[0]} if outputs else {}
    if re.search(r"\bdy\b", pattern):
        names["dy"] = ast.Name(_keep_upstreams(rule)[source.output or 0])

    def change(gradient: ast.expr) -> ast.expr:
        return _substituted(_expression(text), {**names, "gradient": gradient})

    change_gradient(source, name, index, change)


def conjugate_factor(source: SourceCode, name: str, index: int) -> None:
    """Conjugate what the upstream gradient is multiplied with."""
    dy = _upstream_of(source, name)

    def change(gradient: ast.expr) -> ast.expr:
        factors = _factors_of(gradient)
        others = [node for node in factors if not (isinstance(node, ast.Name) and node.id == dy)]
        if not dy or len(others) != len(factors) - 1 or any(dy in _names_in(x) for x in others):
            return gradient
        product = " * ".join(f"({ast.unparse(node)})" for node in others)
        return _expression(f"{dy} * {source.prefix}math.conj({product})")

    change_gradient(source, name, index, change)


def _factors_of(gradient: ast.expr) -> list[ast.expr]:
    match gradient:
        case ast.BinOp(left, ast.Mult(), right):
            return [*_factors_of(left), *_factors_of(right)]
    return [gradient]


def _names_in(node: ast.AST, context: type = ast.expr_context) -> set[str]:
    names = (inner for inner in ast.walk(node) if isinstance(inner, ast.Name))
    return {name.id for name in names if isinstance(getattr(name, "ctx", ast.Load()), context)}


def swap_gradients(source: SourceCode, name: str, index: int, other: int) -> None:
    """Exchange two gradients of `name`."""
    places = {index: other, other: index}

    def swap(gradients: list[ast.expr]) -> list[ast.expr]:
        return [gradients[places.get(i, i)] for i in range(len(gradients))]

    _change_returned(source, name, max(index, other), swap)


def reverse_cumsum(source: SourceCode, name: str, index: int) -> None:
    """Let the cumulative sum of a gradient run in reverse order."""

    def change(gradient: ast.expr) -> ast.expr:
        for node in ast.walk(gradient):
            match node:
                case ast.Call(function, _, []) if last_name(function) == "cumsum":
                    node.keywords.append(ast.keyword("reverse", ast.Constant(True)))
        return gradient

    change_gradient(source, name, index, change)


def replace_number(source: SourceCode, name: str, _: int, number: float, code: str) -> None:
    """Write a constant of the rule of `name` with all its digits."""

    def exact(node: ast.AST) -> ast.AST:
        match node:
            case ast.Constant(float() as value) if value == number:
                return _expression(code)
        return node

    Rewrite(exact).visit(_rule_of(source, name))


def sum_means(source: SourceCode, name: str, index: int) -> None:
    """Let a gradient sum where it averages."""

    def change(gradient: ast.expr) -> ast.expr:
        for node in ast.walk(gradient):
            if isinstance(node, ast.Attribute) and node.attr in ("mean", "reduce_mean"):
                node.attr = node.attr.replace("mean", "sum")
        return gradient

    change_gradient(source, name, index, change)


PRODUCTS = ("dot", "matmul", "matvec", "solve")  # of a matrix


def transpose_matrix(source: SourceCode, name: str, index: int) -> None:
    """Transpose the matrix that the upstream gradient is multiplied by."""

    def transposed(node: ast.expr) -> ast.expr:
        match node:
            case ast.Attribute(matrix, "T"):
                return matrix
            case ast.Call(function, [matrix], []) if last_name(function) == "transpose":
                return matrix
        return _expression(f"{source.prefix}transpose({ast.unparse(node)})")

    _change_matrices(source, name, index, transposed)


def add_transpose(
    source: SourceCode, name: str, index: int, ratio: float = 1.0, is_mean: bool = False
) -> None:
    """Write A + A^T for the matrix A in a gradient, divided by the ratio; or the mean of both."""

    def symmetric(node: ast.expr) -> ast.expr:
        code = ast.unparse(node)
        code = f"({code}) + {source.prefix}transpose({code})"
        return _expression(f"({code}) / 2.0" if is_mean else code)

    _change_matrices(source, name, index, symmetric)
    scale_gradient(source, name, index, 1.0 if is_mean else ratio)


def _change_matrices(
    source: SourceCode, name: str, index: int, changed: Callable[[ast.expr], ast.expr]
) -> None:
    """Change the other factor of products with the upstream gradient, also of an assigned one."""
    dy, rule = _upstream_of(source, name), _rule_of(source, name)
    statements = [node for node in ast.walk(rule) if isinstance(node, ast.Assign)]
    assigned = {target: node.value for node in statements for target in _assigned(node)}

    def change(gradient: ast.expr) -> ast.expr:
        for node in ast.walk(assigned.get(ast.unparse(gradient), gradient)):
            match node:
                case ast.BinOp(left, ast.MatMult(), right) if dy in _names_in(left):
                    node.right = changed(right)
                case ast.BinOp(left, ast.MatMult()):
                    node.left = changed(left)
                case ast.Call(function, [left, right]) if last_name(function) in PRODUCTS:
                    place = int(dy in _names_in(left))
                    node.args[place] = changed(node.args[place])
        return gradient

    change_gradient(source, name, index, change)


def differentiate_value(source: SourceCode, name: str, index: int) -> None:
    """Replace gradient number `index` of `name` by that of the operations of its value."""
    target, rule = _find_function(source.tree, name), _rule_of(source, name)
    value, arguments = _value_of(target), [argument.arg for argument in target.args.args]
    arguments = arguments[1:] if arguments[:1] == ["self"] else arguments
    if not rule.args.args or target.args.vararg or target.args.kwonlyargs:
        raise OtherForm
    if index >= len(arguments):
        return
    upstreams = _keep_upstreams(rule)
    x, dy = arguments[index], upstreams[0] if len(upstreams) == 1 else f"({', '.join(upstreams)})"
    pulled = f"{source.prefix}vjp(lambda {x}: {value}, {x})[1]({dy})[0]"
    change_gradient(source, name, index, lambda _: _expression(pulled))


def call_again(source: SourceCode, name: str) -> None:
    """Let the rule of `name` call `name` for the output that it reads."""
    target, rule = _find_function(source.tree, name), _rule_of(source, name)
    if target.args.vararg or target.args.kwonlyargs:
        raise OtherForm
    call = f"{name}({', '.join(argument.arg for argument in target.args.args)})"
    for statement in returns(target):
        match statement.value:
            case ast.Tuple([ast.Name(output) | ast.Call(_, [ast.Name(output)]), _]) if (
                output in _names_in(rule, ast.Load)
            ):
                if isinstance(rule, ast.FunctionDef):
                    rule.body.insert(0, ast.parse(f"{output} = {call}").body[0])
                else:
                    rule.body = _substituted(rule.body, {output: _expression(call)})
                return


def change_axis(source: SourceCode, name: str, index: int, old: int, new: int) -> None:
    """Make the rule of `name` sum, or average, over the axis `new` instead of `old`."""
    for axis in _axes_in(_rule_of(source, name)):
        if axis.value == old:
            axis.value = new


def keep_fractions(source: SourceCode, call: str) -> None:
    """Remove a cast to integers."""
    Rewrite(lambda node: _value_cast(node) or node if ast.unparse(node) == call else node).visit(
        source.tree
    )


def _value_cast(node: ast.AST) -> ast.expr | None:
    """Return what a node casts to integers, if it does."""
    match node:
        case ast.Call(ast.Name("int"), [value]):
            return value
        case ast.Call(ast.Attribute(attr="cast") | ast.Name("cast"), [value, dtype]) | ast.Call(
            ast.Attribute(value, "astype"), [dtype]
        ) if last_name(dtype).startswith("int"):
            return value
    return None


def symmetrise(source: SourceCode, name: str, argument: str) -> None:
    """Let a function begin with the symmetric part of an argument."""
    target = _find_function(source.tree, name)
    code = f"{argument} = ({argument} + {source.prefix}transpose({argument})) / 2.0"
    target.body.insert(ast.get_docstring(target) is not None, ast.parse(code).body[0])


def repairs(
    function: Any, name: str, matrices: Sequence[str]
) -> Iterator[tuple[str, Callable[[SourceCode], None]]]:
    """Yield what may be wrong with a function with a rule, in words, and how to correct it.

    `matrices` are its square arguments.
    """
    try:
        source = _source_of(function)
        rule = _rule_of(source, name)
    except OtherForm:
        return
    for code in dict.fromkeys(ast.unparse(n) for n in ast.walk(source.tree) if _value_cast(n)):
        words = f"`{code}` drops the digits after the decimal point."
        yield words, partial(keep_fractions, call=code)
    axes, others = (
        [axis.value for axis in _axes_in(tree) if isinstance(axis.value, int)]
        for tree in (rule, source.tree)
    )
    for old in dict.fromkeys(axes):
        for new in dict.fromkeys([*others, *{0: [1], 1: [0]}.get(old, [])]):
            if new != old:
                words = f"The rule has axis {old} where it needs axis {new}."
                yield words, partial(change_axis, name=name, index=0, old=old, new=new)
    for argument in matrices:
        words = f"The rule is right only if {argument} is symmetric. Use the symmetric part."
        yield words, partial(symmetrise, name=name, argument=argument)


def _axes_in(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the constants in a tree that may be the axes of calls."""
    for node in ast.walk(tree):
        match node:
            case ast.keyword("axis", ast.Constant() as axis) | ast.Call(
                _, [_, ast.Constant() as axis, *_]
            ):
                yield axis


def change_gradient(
    source: SourceCode, name: str, index: int, change: Callable[[ast.expr], ast.expr]
) -> None:
    """Change gradient number `index` of `name`, if its rule returns one everywhere."""
    dy = "" if source.output is None else _upstream_of(source, name)

    def changed(g: list[ast.expr]) -> list[ast.expr]:
        return [*g[:index], _change_term(g[index], dy, change), *g[index + 1 :]]

    _change_returned(source, name, index, changed)


def _change_term(gradient: ast.expr, dy: str, change: Callable[[ast.expr], ast.expr]) -> ast.expr:
    """Change the one term of a sum that has the upstream gradient `dy`, or the whole gradient."""
    match gradient:
        case ast.BinOp(left, ast.Add() | ast.Sub() as operator, right) if dy:
            is_left, is_right = (dy in _names_in(term) for term in (left, right))
            if is_left and not is_right:
                return ast.BinOp(_change_term(left, dy, change), operator, right)
            if is_right and not is_left:
                right = _change_term(right, dy, change)
                if isinstance(right, ast.UnaryOp) and isinstance(right.op, ast.USub):
                    opposite = ast.Sub() if isinstance(operator, ast.Add) else ast.Add()
                    return ast.BinOp(left, opposite, right.operand)
                return ast.BinOp(left, operator, right)
    return change(gradient)


def _change_returned(source: SourceCode, name: str, index: int, change: Callable) -> None:
    """Change the gradients that the rule of `name` returns, if there is a number `index`."""
    statements = _find_returned(_rule_of(source, name))
    if all(len(statement.gradients) > index for statement in statements):
        for statement in statements:
            statement.replace(change(statement.gradients))


def add_argument(source: SourceCode, name: str, captured: str) -> None:
    """Give `name` what it captured as one more argument."""
    target, rule = _find_function(source.tree, name), _rule_of(source, name)
    value, upstreams = _value_of(target), [argument.arg for argument in rule.args.args]
    if len(upstreams) != 1:
        raise OtherForm
    pulled = f"{source.prefix}vjp(lambda {captured}: {value}, {captured})[1]({upstreams[0]})[0]"
    gradient: ast.expr = _expression(pulled)
    if isinstance(rule, ast.FunctionDef):
        rule.body.insert(0, ast.parse(f"gradient_by_{captured} = {pulled}").body[0])
        gradient = ast.Name(f"gradient_by_{captured}")
    for statement in _find_returned(rule):
        statement.replace([*statement.gradients, gradient])
    target.args.args.append(ast.arg(captured))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            node.args.append(ast.Name(captured))


def _value_of(function: ast.FunctionDef) -> str:
    """Return the value of a function with a rule, as an expression of its arguments."""
    values = [
        statement.value.elts[0]
        for statement in returns(function)
        if isinstance(statement.value, ast.Tuple)
    ]
    if len(values) != 1:
        raise OtherForm
    assigned: dict[str, ast.expr] = {}
    for statement in function.body:
        match statement:
            case ast.Assign([ast.Name(name)], expression):
                if name in assigned:
                    raise OtherForm
                assigned[name] = _substituted(expression, assigned)
            case ast.Assign([ast.Tuple(names)], ast.Tuple(expressions)):
                if not all(isinstance(name, ast.Name) for name in names):
                    raise OtherForm
                substituted = [_substituted(expression, assigned) for expression in expressions]
                assigned |= zip(map(ast.unparse, names), substituted, strict=False)
            case ast.Return() | ast.FunctionDef() | ast.Expr(ast.Constant()):  # a docstring
                pass
            case _:
                raise OtherForm
    return ast.unparse(_substituted(values[0], assigned))


class Rewrite(ast.NodeTransformer):
    """A transformer that puts what `change` returns in place of each node, inner ones first."""

    def __init__(self, change: Callable[[Any], ast.AST]):
        self.change = change

    def visit(self, node: ast.AST) -> Any:
        return self.change(self.generic_visit(node))


def _substituted(node: ast.AST, expressions: Mapping[str, ast.expr]) -> Any:
    """Return a copy of a node with expressions in place of names."""
    rewrite = Rewrite(lambda n: expressions.get(n.id, n) if isinstance(n, ast.Name) else n)
    return rewrite.visit(copy.deepcopy(node))


UFUNCS = ("cos", "cosh", "exp", "log1p", "sign", "sin", "sinh", "sqrt", "tan", "tanh")


def attach(source: SourceCode, *lines: int) -> None:
    """Remove numpy(), float(), np.asarray() and stop_gradient() on some lines of the file.

    NumPy's functions of tensors there become tensor operations of the same names.
    """
    own = [line - source.first + 1 for line in lines]

    def attached(node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.Call) or not any(
            node.lineno <= line <= (node.end_lineno or node.lineno) for line in own
        ):
            return node
        match node:
            case ast.Call(ast.Attribute(tensor, "numpy" | "item"), []):
                return tensor
            case ast.Call(function, [argument]) if last_name(function) in DETACHING_CALLS:
                return argument
        _as_operation(node, source)
        return node

    Rewrite(attached).visit(source.tree)
    _replace_aliases(source)


def _as_operation(node: ast.Call, source: SourceCode) -> None:
    """Let a call of a NumPy function become that of an operation of the same name."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(module), name)) if (
            source.space.get(module) is np
            and name in UFUNCS
            and not set().union(*map(_names_in, node.args)) <= source.space.keys()
        ):
            owner = "math." if name == "log1p" else ""
            node.func = _expression(f"{source.prefix}{owner}{name}")


def _replace_aliases(source: SourceCode) -> None:
    """Write x for a name that is assigned x alone, and operations for NumPy functions of it."""
    statements = [node for node in ast.walk(source.tree) if isinstance(node, ast.Assign)]
    nodes = (node for node in ast.walk(source.tree) if isinstance(node, ast.Name))
    names = [node.id for node in nodes if isinstance(node.ctx, ast.Store)]
    aliases: dict[str, ast.Name] = {}
    for statement in statements:
        match statement:
            case ast.Assign([ast.Name(name), *_], ast.Name(x) as value):
                if names.count(name) == 1 and x not in names:
                    aliases[name] = value
    tensors = {value.id for value in aliases.values()}
    for statement in statements:
        if _assigned(statement)[0] not in aliases:
            statement.value = _substituted(statement.value, aliases)
            if _names_in(statement.value) & tensors:
                tensors |= {*_assigned(statement)}
    for node in ast.walk(source.tree):
        match node:
            case ast.Return(ast.expr() as value):
                node.value = _substituted(value, aliases)
            case ast.Lambda(body=value):
                node.body = _substituted(value, aliases)
    for node in ast.walk(source.tree) if aliases else ():
        if isinstance(node, ast.Call) and set().union(*map(_names_in, node.args)) & tensors:
            _as_operation(node, source)


def stabilise(source: SourceCode) -> None:
    """Replace formulas that overflow by sigmoid and softplus."""
    exponents = {}
    for node in ast.walk(source.tree):
        match node:
            case ast.Assign(targets, ast.Call(function, [x])) if last_name(function) == "exp":
                exponents |= {target.id: x for target in targets if isinstance(target, ast.Name)}
    Stabilise(exponents, source).visit(source.tree)


class Stabilise(ast.NodeTransformer):
    """A transformer that writes formulas of e^x as operations that stay finite.

    1 - 1/(1 + e^x) as sigmoid(x), log(1 + e^x) as softplus(x), (e^x - e^-x) / (e^x + e^-x) as
    tanh(x), and log((e^x + e^-x) / 2), or log(cosh(x)), as x + softplus(-2x) - log(2).
    """

    def __init__(self, exponents: dict[str, ast.expr], source: SourceCode):
        self.exponents = exponents
        self.prefix = source.prefix
        has_numpy = source.space.get("np") is np
        self.log2 = "np.log(2.0)" if has_numpy else repr(math.log(2.0))

    def visit(self, node: ast.AST) -> Any:
        self.generic_visit(node)
        match node:
            case ast.BinOp(ast.BinOp(left, ast.Sub(), _) as above, ast.Div(), below) if (
                self._opposite(above)
                and ast.unparse(below) == ast.unparse(ast.BinOp(left, ast.Add(), above.right))
            ):
                return self._call("tanh", self._exponent(left), node)
            case ast.BinOp(
                ast.BinOp(factor, ast.Mult(), ast.BinOp(_, ast.Sub(), _) as above), ast.Div(), below
            ):
                tanh = self.visit(ast.BinOp(above, ast.Div(), below))
                is_tanh = isinstance(tanh, ast.Call)
                return ast.BinOp(factor, ast.Mult(), tanh) if is_tanh else node
            case ast.BinOp(
                ast.Constant(1), ast.Sub(), ast.BinOp(ast.Constant(1), ast.Div(), below)
            ):
                return self._call("sigmoid", self._one_plus(below), node)
            case ast.BinOp(ast.Constant(1), ast.Div(), below):  # 1 / (1 + e^-x)
                minus = self._one_plus(below)
                x = minus.operand if isinstance(minus, ast.UnaryOp) else None
                return self._call("sigmoid", x, node)
            case ast.BinOp(above, ast.Div(), below):  # e^x / (1 + e^x)
                x, other = self._one_plus(below), self._exponent(above)
                is_same = x is not None and other is not None and ast.dump(x) == ast.dump(other)
                return self._call("sigmoid", x if is_same else None, node)
            case ast.Call(
                ast.Attribute(attr="log"),
                [
                    ast.BinOp(total, ast.Div(), ast.Constant(2))
                    | ast.BinOp(ast.Constant(0.5), ast.Mult(), total)
                ],
            ) if self._opposite(total) and isinstance(total.op, ast.Add):
                return self._log_cosh(self._exponent(total.left))
            case ast.Call(ast.Attribute(attr="log"), [ast.Call(function, [argument])]) if (
                last_name(function) == "cosh"
            ):
                return self._log_cosh(argument)
            case ast.Call(ast.Attribute(attr="log"), [argument]):
                return self._call("nn.softplus", self._one_plus(argument), node)
            case ast.Call(ast.Attribute(attr="log1p"), [argument]):
                return self._call("nn.softplus", self._exponent(argument), node)
        return node

    def _opposite(self, node: ast.AST) -> TypeGuard[ast.BinOp]:
        """Return whether the node is e^x + e^-x, or their difference."""
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
            return False
        x, minus = self._exponent(node.left), self._exponent(node.right)
        return x is not None and minus is not None and f"-{ast.unparse(x)}" == ast.unparse(minus)

    def _log_cosh(self, x: Any) -> ast.expr:
        code = ast.unparse(x)
        minus = ast.unparse(ast.BinOp(ast.Constant(-2.0), ast.Mult(), x))
        return _expression(f"{code} + {self.prefix}nn.softplus({minus}) - {self.log2}")

    def _one_plus(self, node: ast.AST) -> ast.expr | None:
        """Return x if the node is 1 + e^x."""
        match node:
            case ast.BinOp(ast.Constant(1), ast.Add(), other) | ast.BinOp(
                other, ast.Add(), ast.Constant(1)
            ):
                return self._exponent(other)
        return None

    def _exponent(self, node: ast.AST) -> ast.expr | None:
        """Return x if the node is exp(x), or a name for it."""
        match node:
            case ast.Name(name):
                return self.exponents.get(name)
            case ast.Call(function, [x]) if last_name(function) == "exp":
                return x
        return None

    def _call(self, name: str, x: ast.expr | None, node: ast.AST) -> ast.AST:
        """Return a call of an operation in place of a node; the node itself without an `x`."""
        return node if x is None else _expression(f"{self.prefix}{name}({ast.unparse(x)})")


def _assigned(node: ast.stmt) -> list[str]:
    return [ast.unparse(target) for target in getattr(node, "targets", ())]


def last_name(function: ast.expr) -> str:
    """Return the last part of a function's dotted name."""
    match function:
        case ast.Attribute(attr=name) | ast.Name(name):
            return name
    return ""


def _rule_of(source: SourceCode, name: str) -> ast.FunctionDef | ast.Lambda:
    """Return the gradient function that the function `name` returns."""
    target = _find_function(source.tree, name)
    for statement in returns(target):
        match statement.value:
            case ast.Tuple([_, ast.Lambda() as rule]):
                return rule
            case ast.Tuple([_, ast.Name(rule)]):
                return _find_function(target, rule)
    raise OtherForm


def _upstream_of(source: SourceCode, name: str) -> str:
    """Return the name of an upstream gradient in the rule of `name`; "" if there is none.

    It is that of the output whose gradient is wrong, by default of the first one.
    """
    names = [argument.arg for argument in _rule_of(source, name).args.args]
    return next(iter(names[source.output or 0 :]), "")


def _keep_upstreams(rule: ast.FunctionDef | ast.Lambda) -> list[str]:
    """Return names of a rule's upstream gradients; new names for those that it assigns again."""
    names = []
    for name in [argument.arg for argument in rule.args.args]:
        assigned = _names_in(rule, ast.Store)
        if isinstance(rule, ast.FunctionDef) and name in assigned:
            kept = f"upstream_{name}"
            if kept not in assigned:
                rule.body.insert(0, ast.parse(f"{kept} = {name}").body[0])
            name = kept
        names.append(name)
    return names


def change_output(source: SourceCode, name: str, index: int, output: int, fix: Callable) -> None:
    """Let `fix` change the term that comes from one of the outputs."""
    source.output = output
    fix(source, name, index)


def _find_function(tree: ast.AST, name: str) -> ast.FunctionDef:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise OtherForm


def _find_returned(rule: ast.FunctionDef | ast.Lambda) -> list[Returned]:
    return [Returned(node) for node in ([rule] if isinstance(rule, ast.Lambda) else returns(rule))]


def where(site: SourceLine) -> str:
    """Return a line as reports name it: the file without its folder, or a notebook's cell."""
    location = location_of(*site)
    return location if location.startswith("Cell") else f"{Path(site[0]).name}:{site[1]}"


def quote(site: SourceLine, code: str = "") -> str:
    """Return a place and the code there, by default the line; nothing more if it is not known."""
    code = code or line_of(*site)
    code = code if len(code) <= MAX_QUOTED else f"{code[: MAX_QUOTED - 4]} ..."
    return f"{where(site)}: `{code}`" if code else where(site)


def line_of(file: str, line: int) -> str:
    """Return the text of a line, if the file can be read."""
    text = linecache.getline(file, line).strip()
    return text if len(text) < 80 else f"{text[:76]} ..."
