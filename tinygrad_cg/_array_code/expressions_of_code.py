"""Expressions of Python as numbers, arrays and tuples."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import called_functions as functions
from . import program as ir
from .blocks_of_code import BlockReader, Known, tree, unwrapped
from .program import FixedNumber, Number, constant
from .scalar_operations import OPERATORS, OpBuilder
from .views import Arraylike, Index, Lazy, View

REMEDIES: dict[type, str] = {
    ast.Try: "`try` is not supported: use an `if` that excludes the error",
    ast.With: "`with` is not supported: put it around the call",
    ast.FunctionDef: "inner functions are not supported: define functions outside",
    ast.ClassDef: "inner classes are not supported: define classes outside",
    ast.Lambda: "`lambda` is not supported here: define functions outside",
    ast.ListComp: "list comprehensions are not supported: fill an array, out = np.empty(n)",
    ast.GeneratorExp: "generators are not supported: write a loop",
    ast.SetComp: "sets are not supported",
    ast.DictComp: "dictionaries are not supported",
    ast.List: "lists are not supported: use np.empty(n) or a tuple",
    ast.Dict: "dictionaries are not supported: use arrays",
    ast.Set: "sets are not supported",
    ast.JoinedStr: "strings are not supported",
    ast.Yield: "generators are not supported",
    ast.Global: "`global` is not supported: pass the variable as an argument",
    ast.Nonlocal: "`nonlocal` is not supported: pass the variable as an argument",
    ast.Delete: "`del` is not needed",
    ast.Match: "`match` is not supported: use `if` and `elif`",
}


def is_table(value: tuple) -> bool:
    """Return whether a tuple has known numbers alone, or tuples of them of equal lengths."""
    if all(isinstance(x, tuple) for x in value):
        return len({len(x) for x in value}) == 1 and all(map(is_table, value))
    return all(isinstance(x, FixedNumber) for x in value)


class ExpressionReader(BlockReader, ast.NodeVisitor):
    """Reads expressions, and gives names and elements their values."""

    def generic_visit(self, node: ast.AST) -> Any:
        raise self.refuse(REMEDIES.get(type(node), "is not supported"), node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        self.forbid(isinstance(node.value, complex), "complex numbers are not supported", node)
        return self.wrap(node.value)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        left, right = self.each_of((node.left, node.right))
        if isinstance(node.op, ast.MatMult):
            return functions.dot(self, left, right)
        return self.binary(OPERATORS[type(node.op)], left, right)

    def visit_Tuple(self, node: ast.Tuple) -> tuple:
        return tuple(self.each_of(node.elts))

    def listed(self, node: ast.expr) -> Any:
        """Return an argument of a call, where a list that nobody keeps is a tuple."""
        if isinstance(node, ast.List):
            return tuple(map(self.listed, node.elts))
        return self.visit(node)

    def each_of(self, nodes: Sequence[ast.expr], listed: bool = False) -> list[Any]:
        """Return expressions, none of which may write to what an earlier one has read."""
        count = len(self.pending)
        for node in nodes:
            self.pending.append(self.listed(node) if listed else self.visit(node))
        values = self.pending[count:]
        del self.pending[count:]
        return values

    def visit_Name(self, node: ast.Name) -> Any:
        if self.env.get(node.id) is not None:
            message = f"{node.id} has no value on this path: assign it before"
            assigned = self.env.pop(f"?{node.id}", constant(True))
            self.check(assigned, UnboundLocalError, message)
            return self.env[node.id]
        if isinstance(node.ctx, ast.Load) and node.id not in self.calls[-1].__code__.co_varnames:
            try:
                return self.wrap(self.names[node.id])
            except KeyError:
                raise self.refuse(f"the name {node.id} is not defined", node) from None
        what = f"{node.id} may have no value, or None, here: assign a value of one type before"
        raise self.refuse(what, node)

    def binary(self, name: str, left: Any, right: Any) -> Any:
        if isinstance(left, tuple) and isinstance(right, tuple) and name == "add":
            return left + right
        if isinstance(left, tuple) and isinstance(right, FixedNumber) and name == "multiply":
            return left * int(right.number)
        return self.map(lambda b, x, y: functions.arithmetic(self, b, name, x, y), left, right)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self.b.op("not", self.test(node.operand))
        value = self.visit(node.operand)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(node.op, ast.Invert):
            if not isinstance(value, Number) and value.type == "b1":
                return self.map(lambda b, x: b.op("not", x), value)
            return self.map(lambda b, x: b.op("bit_xor", x, -1), value)
        if isinstance(value, FixedNumber) and value.is_float:
            return ir.fixed(value.type, -value.number)
        return functions.negative(self, value)

    def visit_Compare(self, node: ast.Compare) -> Any:
        left, result = self.visit(node.left), None
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.visit(right_node)
            if isinstance(left, Known) or isinstance(right, Known):
                same, equal = unwrapped(left) is unwrapped(right), left == right
                truth = {ast.Is: same, ast.IsNot: not same, ast.Eq: equal, ast.NotEq: not equal}
                self.forbid(type(operator) not in truth, "is not supported", node)
                part: Any = constant(bool(truth[type(operator)]))
            elif isinstance(operator, (ast.Is, ast.IsNot)):
                raise self.refuse("`is` compares with None only", node)
            elif type(operator) not in OPERATORS:
                raise self.refuse("compare with < <= > >= == !=", node)
            else:
                part = self.binary(OPERATORS[type(operator)], left, right)
            if result is not None:
                part = self.b.op("and", self.number(result, node), self.number(part, node))
            left, result = right, part
        return result

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        """Return `and` or `or`, whose second operand is computed only where it matters."""
        is_and = isinstance(node.op, ast.And)
        value, *others = self.test(node.values[0]), *node.values[1:]
        rest = ast.BoolOp(node.op, others) if len(others) > 1 else others[0]
        if value.number is not None:
            return self.test(rest) if bool(value.number) == is_and else value
        block: ir.Block = []
        with self.into(block):
            second = self.test(rest)
        if all(map(functions.is_harmless, block)):
            self.b.block += block
            for statement in block:
                self.hidden.difference_update(statement.results())
            return self.b.op("and" if is_and else "or", value, second)
        out, shortcut = Number("b1", "test"), constant(not is_and)
        sides = (block, []) if is_and else ([], block)
        ends = (second, shortcut) if is_and else (shortcut, second)
        self.b.block.append(ir.If(value, *sides, [ir.Merge(out, *ends)]))
        return out

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        value = self.visit(node.value)
        if isinstance(value, Known):
            try:
                return self.wrap(getattr(value.value, node.attr))
            except AttributeError as error:
                raise self.refuse(str(error), node) from None
        if isinstance(value, Arraylike):
            if node.attr not in functions.ATTRIBUTES:
                raise self.refuse(f"arrays have no attribute {node.attr!r} here", node)
            return functions.ATTRIBUTES[node.attr](self, value)
        if isinstance(value, Number) and node.attr == "real":
            return value
        raise self.refuse(f"numbers and tuples have no attribute {node.attr!r} here", node)

    def visit_Call(self, node: ast.Call) -> Any:
        args: list[Any] = []
        values = [x.value if isinstance(x, ast.Starred) else x for x in node.args]
        for arg, value in zip(node.args, self.each_of(values, listed=True), strict=True):
            if isinstance(arg, ast.Starred) and not isinstance(value, tuple):
                raise self.refuse("only tuples can be unpacked in calls", node)
            args += value if isinstance(arg, ast.Starred) else (value,)
        keywords = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.refuse("name the keywords of a call", node)
            keywords[keyword.arg] = self.visit(keyword.value)
        if isinstance(node.func, ast.Attribute):
            owner = self.visit(node.func.value)
            if isinstance(owner, Arraylike):
                return functions.method(self, node.func.attr, [owner, *args], keywords, node)
        function = self.visit(node.func)
        self.forbid(not isinstance(function, Known), "is not a function", node)
        return functions.call(self, function.value, args, keywords, node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        value = self.visit(node.value)
        if isinstance(value, tuple):
            return self.part_of_tuple(value, node)
        if isinstance(value, Lazy):
            value = self.materialize(value)
        self.forbid(not isinstance(value, View), "only arrays and tuples can be indexed", node)
        parts = self.index(node.slice, node)
        if any(isinstance(part, Arraylike) for part in parts):
            return self.gathered(value, parts, node)
        return self.item(value, parts, node)

    def part_of_tuple(self, value: tuple, node: ast.Subscript) -> Any:
        """Return ``value[key]``, for a constant, a slice of constants or a variable."""
        key, *others = self.index(node.slice, node)
        bounds = key if isinstance(key, tuple) else (key,)
        if not others and all(x is None or isinstance(x, FixedNumber) for x in bounds):
            ends = [None if x is None else x.number for x in bounds]
            place: Any = slice(*ends) if isinstance(key, tuple) else ends[0]
            try:
                return value[place]
            except IndexError:
                raise self.refuse("the index is out of range for the tuple", node) from None
        if isinstance(key, Number) and value and not others:
            if is_table(value):
                table = self.constant_array(np.array(tree(lambda x: x.number, value)))
                return self.item(table, [key], node)
            if all(isinstance(x, Number) for x in value):
                return self.chosen(value, key)
        raise self.refuse("a variable can only index a tuple of numbers", node)

    def chosen(self, items: tuple[Number, ...], index: Number) -> Number:
        """Return one of some numbers, by an index that may count from the end."""
        self.check_index(index, constant(len(items)))
        index, result = self.wrapped(index, constant(len(items))), items[0]
        for k, item in enumerate(items[1:], 1):
            result = self.b.op("select", self.b.op("equal", index, k), item, result)
        return result

    def index(self, key: ast.expr, node: ast.AST) -> list[Any]:
        """Return the parts of an index: integers, slices as tuples, None, Ellipsis, arrays."""
        keys = list(key.elts) if isinstance(key, ast.Tuple) else [key]
        parts: list[Any] = []
        for item in keys:
            if isinstance(item, ast.Slice):
                bounds = (item.lower, item.upper, item.step)
                parts.append(tuple(None if x is None else self.integer(x) for x in bounds))
                continue
            value = self.visit(item)
            is_array = isinstance(value, Arraylike) and bool(value.shape)
            if isinstance(value, tuple):
                parts += value
            elif is_array or value in (Known(None), Known(...)):
                parts.append(value)
            else:
                number = self.number(value, item)
                self.forbid(number.is_float, "an index must be an integer: use int(x)", node)
                parts.append(self.b.cast(number, "i64"))
        return parts

    def gathered(self, view: View, parts: list[Any], node: ast.AST) -> Lazy:
        """Return the elements of a view at the integers of an array, with slices of other axes."""
        (place, indices), *others = [
            (k, part) for k, part in enumerate(parts) if isinstance(part, Arraylike)
        ]
        kinds = {type(part) for part in parts} - {type(indices), tuple}
        if others or kinds or indices.type == "b1" or indices.type in ir.FLOATS:
            what = "an index may have one array of integers, with slices beside it"
            what = "masks are not supported as indices" if indices.type == "b1" else what
            raise self.refuse(f"{what}: write a loop", node)
        whole = self.part(view, [*parts[:place], (None,) * 3, *parts[place + 1 :]], node)
        end, size = place + len(indices.shape), whole.shape[place]

        def at(b: OpBuilder, index: Index) -> Number:
            i = b.cast(indices.at(b, index[place:end]), "i64")
            self.check_index(i, size)
            i = self.wrapped(i, size)
            return whole.at(b, (*index[:place], i, *index[end:]))

        shape = (*whole.shape[:place], *indices.shape, *whole.shape[place + 1 :])
        return Lazy(view.type, shape, at, whole.reads | indices.reads)

    def test(self, node: ast.expr) -> Number:
        value = self.visit(node)
        if isinstance(value, Known):
            return constant(bool(value.value))
        if isinstance(value, tuple):
            return constant(bool(value))
        return self.b.cast(self.number(value, node), "b1")

    def integer(self, node: ast.expr) -> Number:
        value = self.number(self.visit(node), node)
        self.forbid(value.is_float, "an integer is expected here: use int(x)", node)
        return self.b.cast(value, "i64")

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        value = self.kept(self.visit(node.value))
        self.assign(node.target, value)
        return value

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.visit(node.value)
        if len(node.targets) > 1 or not isinstance(node.targets[0], ast.Subscript):
            value = self.kept(value)
        for target in node.targets:
            self.assign(target, value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.kept(self.visit(node.value)))

    def assign(self, target: ast.AST, value: Any) -> None:
        match target:
            case ast.Name():
                if isinstance(value, Number) and value.number is None:
                    if value.hint in ("t", "c"):
                        value.hint = target.id
                elif isinstance(value, View) and value.array.hint == "a":
                    value.array.hint = target.id
                self.env[target.id] = value
                self.env.pop(f"?{target.id}", None)
            case ast.Tuple() | ast.List():
                parts = self.unpacked(value, len(target.elts), target)
                for part, item in zip(target.elts, parts, strict=True):
                    if isinstance(part, ast.Starred):
                        raise self.refuse("name each part of the tuple", target)
                    self.assign(part, item)
            case _:
                self.store(self.target(target), value, target)

    def target(self, node: ast.AST) -> View:
        """Return the elements that an assignment changes."""
        if not isinstance(node, ast.Subscript):
            raise self.refuse("assign to names and to elements of arrays", node)
        array = self.visit(node.value)
        self.forbid(not isinstance(array, View), "only elements of arrays can be assigned to", node)
        parts = self.index(node.slice, node)
        if any(isinstance(part, Arraylike) for part in parts):
            raise self.refuse("cannot assign through an array index: write a loop", node)
        return self.part(array, parts, node)

    def unpacked(self, value: Any, count: int, node: ast.AST) -> tuple:
        if isinstance(value, tuple):
            parts = value
        elif isinstance(value, View):
            size = value.shape[0]
            if size.number is None:
                same = self.b.op("equal", size, count)
                self.check(same, ValueError, f"expected {count} elements")
                size = constant(count)
            parts = tuple(self.item(value, [constant(k)]) for k in range(size.number))
        else:
            raise self.refuse("only tuples and arrays can be unpacked", node)
        self.forbid(len(parts) != count, f"{len(parts)} values for {count} names", node)
        return parts

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        name = OPERATORS.get(type(node.op), "")
        self.forbid(not name, "use + - * / // % ** and the operators of bits", node)
        count = len(self.b.block)
        value = self.visit(node.value)
        if isinstance(node.target, ast.Name):
            current = self.visit(node.target)
            if isinstance(current, View):
                self.store(current, self.binary(name, current, value), node)
            else:
                self.assign(node.target, self.kept(self.binary(name, current, value)))
            return
        view = self.target(node.target)
        if view.array in ir.arrays_of(self.b.block[count:], ir.Store, ir.Fill):
            raise self.refuse("the value writes to the same array: assign it to a name first")
        self.changes(view.array, node)
        if not view.shape and name in ("add", "subtract") and view.type in ir.FLOATS:
            number = self.b.cast(self.number(value, node), view.type)
            if name == "subtract":
                number = self.b.op("negative", number)
            view.put(self.b, (), number, adds=True)
            return
        self.store(view, self.binary(name, self.evaluated(view), value), node)
