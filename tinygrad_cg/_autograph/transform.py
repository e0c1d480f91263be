"""A function's statements with a question at each branch and loop: does a tensor decide it?

The text that results is Python's own for all that Python decides: its `if`, `while` and `for`
stand there as they were written, with their `return`, `break` and `yield`. Beside each of them
is a call for the case that a traced tensor decides; what that call runs, a branch or a body as a
function of its own, is compiled when it is called for the first time (`regions`).

In what is generated, names begin with "@", so that no user's name is met. "@flow" says whether a
tensor has decided to leave what runs now: 0, or a `Flow`. Statements that come after a place where
that may happen are guarded by it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from typing import Any

from .names import (
    BREAK,
    CONTINUE,
    LOOPS,
    NONE,
    RETURN,
    SCOPES,
    Liveness,
    Names,
    assigned_inside,
    blocks,
    captured,
    is_compound,
    jumps,
    may_leave_early,
    own_nodes,
    reads,
    writes,
)

HELPER = "@ag"
INSIDE = "@f"  # what a generated function is called while it is compiled
FLOW, RESULT = "@flow", "@ret"
_DEEPEST = 5  # conditional expressions inside each other: each level doubles the text


class Unit:
    """A function that is transformed: what its names are, and the sites found in it."""

    def __init__(self, name: str, tree: Any, file: str, own: Names, free: Names):
        self.name, self.tree, self.file = name, tree, file
        self.body: list[ast.stmt] = tree.body
        inside = captured(self.body)
        self.cells = (own & inside) | free  # what functions inside share with it, and those outside
        self.own = own - self.cells
        self.declared = {
            name
            for one in self.body
            for node in ast.walk(one)
            if isinstance(node, ast.Global)
            for name in node.names
        }
        self.assigned_inside = assigned_inside(self.body) & self.cells
        self.live = Liveness(self.body)
        arguments = tree.args
        first = [*arguments.posonlyargs, *arguments.args]
        self.first = first[0].arg if first else None
        self.sites: list[Site] = []
        self.known: dict[tuple, int] = {}
        self.temporaries = 0

    def temporary(self) -> str:
        self.temporaries += 1
        return f"@{self.temporaries}"


class Site:
    """A place where a tensor may decide: the statements there, and what is live after them.

    `kind` is "if", "while", "for" or "guard". `then` and `other` are what runs in the two cases of
    a branch; of a loop `then` is the body. `outs` are the names that it may change, as far as
    somebody may read them, for each way of leaving it.
    """

    def __init__(
        self, unit: Unit, kind: str, node: Any, then: list, other: list, target: Any, end: Any
    ):
        self.unit, self.kind, self.node = unit, kind, node
        self.then, self.other, self.target = then, other, target
        self.test = node.test if kind == "while" else None
        self.line: int = node.lineno
        self.leaves = jumps(then) | jumps(other)
        everything = [*then, *other, *filter(None, [self.test, target])]
        self.written = writes(everything)
        found = reads(everything)
        if "super" in found and unit.first is not None:
            found |= {unit.first}
        cells = (found | set(self.written) | unit.assigned_inside) & unit.cells
        self.mentioned = sorted((found | set(self.written)) & unit.own)
        self.cells = sorted(cells | ({"__class__"} & unit.cells if "super" in found else set()))
        self.changed_cells = sorted((set(self.written) | unit.assigned_inside) & unit.cells)
        self.globals = sorted(set(self.written) & unit.declared)
        self.attributes = _attributes([*then, *other])
        self.has_yield = any(
            isinstance(one, (ast.Yield, ast.YieldFrom, ast.Await)) for one in own_nodes(everything)
        )
        live = unit.live
        if kind in ("while", "for"):
            after, head = live.after[id(node)], live.heads[id(node)]
            self.live = {0: after | head, BREAK: after, CONTINUE: head}
        else:
            brk, cont = live.exits[id(node)]
            self.live = {0: live.after[id(end)], BREAK: brk, CONTINUE: cont}
            if target is not None:  # what is left of a round
                self.live[0] = cont
        self.after = live.after[id(node)] if kind in ("while", "for") else self.live[0]
        self.live[RETURN] = NONE
        wanted = NONE.union(*(self.live[way] for way in (0, *self.leaves)))
        self.outs = [one for one in self.written if one in unit.own and one in wanted]


def _attributes(statements: Sequence[ast.stmt]) -> list[str]:
    """Return the attributes that are assigned, as ``self.h``."""
    found: dict[str, None] = {}
    for one in statements:
        for node in ast.walk(one):
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
                base: Any = node
                while isinstance(base, ast.Attribute):
                    base = base.value
                if isinstance(base, ast.Name):
                    found[ast.unparse(node)] = None
    return list(found)


def _reached(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements up to the first that leaves in any case."""
    for i, one in enumerate(statements):
        if isinstance(one, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return list(statements[: i + 1])
    return list(statements)


def name(identifier: str, at: Any, store: bool = False) -> ast.Name:
    return ast.copy_location(ast.Name(identifier, ast.Store() if store else ast.Load()), at)


def _located(node: Any, at: Any) -> Any:
    """Give a new node, and those in it that have none, the place of another."""
    end = at.lineno, at.col_offset
    if getattr(at, "end_lineno", None) == at.lineno:
        end = at.end_lineno, at.end_col_offset
    place = {
        "lineno": at.lineno,
        "col_offset": at.col_offset,
        "end_lineno": end[0],
        "end_col_offset": end[1],
    }
    for one in ast.walk(node):
        if "lineno" in one._attributes and not hasattr(one, "lineno"):
            for key, value in place.items():
                setattr(one, key, value)
    return node


def helper(method: str, arguments: list, at: Any) -> ast.Call:
    """Return a call of a method of the helper, at the place of another node."""
    called = ast.Attribute(ast.Name(HELPER, ast.Load()), method, ast.Load())
    return _located(ast.Call(called, arguments, []), at)


def assign(identifier: str, value: Any, at: Any) -> ast.Assign:
    return _located(ast.Assign([ast.Name(identifier, ast.Store())], value), at)


def _constant(value: Any, at: Any) -> ast.Constant:
    return _located(ast.Constant(value), at)


class Expressions(ast.NodeTransformer):
    """Rewrites expressions: calls, `and`, `or`, `not`, comparisons in a row, and conditionals."""

    def __init__(self, unit: Unit, lifted: bool):
        self.unit, self.lifted = unit, lifted
        self.depth = 0
        self.iterables = 0  # within the iterable of a comprehension nothing can be assigned

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
        for one in node.generators:
            self.iterables += 1
            one.iter = self.visit(one.iter)
            self.iterables -= 1
            one.ifs = [self.visit(test) for test in one.ifs]
        for part in ("elt", "key", "value"):
            if hasattr(node, part):
                setattr(node, part, self.visit(getattr(node, part)))
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _visit_comprehension

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        node.operand = (
            self.test(node.operand) if isinstance(node.op, ast.Not) else self.visit(node.operand)
        )
        if not isinstance(node.op, ast.Not):
            return node
        return helper("not_", [node.operand], node)

    def _is_plain(self, *later: ast.AST) -> bool:
        """Return whether an expression stays as it is: what runs later assigns or waits."""
        special = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)
        return (
            bool(self.iterables)
            or self.depth >= _DEEPEST
            or any(isinstance(node, special) for one in later for node in ast.walk(one))
        )

    def test(self, node: Any) -> Any:
        """Rewrite an expression of which only the truth matters."""
        if isinstance(node, ast.BoolOp):
            return self.visit_BoolOp(node, test=True)
        return self.visit(node)

    def visit_BoolOp(self, node: ast.BoolOp, test: bool = False) -> Any:
        if self._is_plain(*node.values[1:]):
            return self.generic_visit(node)
        is_and = isinstance(node.op, ast.And)
        if test and all(map(_is_comparison, node.values)):
            method = "both" if is_and else "either"
        else:
            method = ("and_" if is_and else "or_") + ("test" if test else "")
        self.depth += 1
        values = [self.test(one) if test else self.visit(one) for one in node.values]
        self.depth -= 1
        return self._choice(method, node, values)

    def _choice(self, method: str, node: Any, values: list[Any]) -> Any:
        first, *rest = values
        if not rest:
            return first
        mark = self.unit.temporary()
        later = [_thunk(copy.deepcopy(one)) for one in rest]
        others = self._choice(method, node, rest)
        native = ast.BoolOp(copy.copy(node.op), [name(mark, first), others])
        return self._asked(mark, first, helper(method, [name(mark, node), *later], node), native)

    def _asked(self, mark: str, value: Any, traced: Any, native: Any) -> Any:
        named = ast.NamedExpr(name(mark, value, store=True), value)
        question = helper("traced", [_located(named, value)], value)
        return _located(ast.IfExp(question, traced, native), value)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        if self._is_plain(node.body, node.orelse):
            return self.generic_visit(node)
        self.depth += 1
        test, body, other = self.test(node.test), self.visit(node.body), self.visit(node.orelse)
        self.depth -= 1
        mark = self.unit.temporary()
        later = [_thunk(copy.deepcopy(body)), _thunk(copy.deepcopy(other))]
        line = _constant(node.lineno, node)
        traced = helper("choose", [name(mark, node), *later, line], node)
        native = _located(ast.IfExp(name(mark, test), body, other), node)
        return self._asked(mark, test, traced, native)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 2 or self._is_plain(*node.comparators):
            return self.generic_visit(node)
        left, middle, right = map(self.visit, (node.left, *node.comparators))
        mark, shared = self.unit.temporary(), self.unit.temporary()
        kept = _located(ast.NamedExpr(name(shared, middle, store=True), middle), middle)
        first = _located(ast.Compare(left, [node.ops[0]], [kept]), node)
        second = _located(ast.Compare(name(shared, middle), [node.ops[1]], [right]), node)
        traced = helper("and_", [name(mark, node), _thunk(copy.deepcopy(second))], node)
        native = _located(ast.BoolOp(ast.And(), [name(mark, node), second]), node)
        return self._asked(mark, first, traced, native)


def _is_comparison(node: ast.AST) -> bool:
    """Return whether an expression compares sums and products of names and constants."""
    arithmetic = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    parts = (*arithmetic, ast.cmpop, ast.expr_context, ast.Compare)
    divides = (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult, ast.In, ast.NotIn, ast.Not)
    return isinstance(node, ast.Compare) and all(
        isinstance(one, parts) and not isinstance(one, divides) for one in ast.walk(node)
    )


def _thunk(value: Any) -> ast.Lambda:
    nothing = ast.arguments([], [], None, [], [], None, [])
    return _located(ast.Lambda(nothing, value), value)


class Statements:
    """Rewrites statements: of a function, or of a region of it, which is a function then.

    In a region, what leaves it returns to the site: a `return`, and a `break` or `continue` of a
    loop around the region.
    """

    def __init__(self, unit: Unit, lifted: bool):
        self.unit, self.lifted = unit, lifted
        self.depth = 0  # loops around, inside this function
        self.has_flow = False

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return the statements of a block, rewritten."""
        found: list[ast.stmt] = []
        for i, one in enumerate(body):
            rest = body[i + 1 :]
            if isinstance(one, ast.If) and jumps([one]) and not _is_python(one.test):
                found += self._branch(one, rest)
                break
            found += self._statement(one)
            if rest and is_compound(one) and self._may_flow(one):
                found += self._guarded(rest)
                break
        return found or [ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)]

    def _may_flow(self, one: Any) -> bool:
        """Return whether "@flow" may be other than 0 after a statement."""
        left = jumps([one])
        if isinstance(one, LOOPS):
            return RETURN in left
        return bool(left) and any(map(may_leave_early, blocks(one)))

    def expression(self, node: Any) -> Any:
        return (
            None if node is None else Expressions(self.unit, self.lifted).visit(copy.deepcopy(node))
        )

    def _test(self, node: Any) -> Any:
        return Expressions(self.unit, self.lifted).test(copy.deepcopy(node))

    def _statement(self, one: Any) -> list[Any]:
        method: Callable | None = getattr(self, f"_{type(one).__name__.lower()}", None)
        if method is not None:
            return method(one)
        if isinstance(one, (*SCOPES, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)):
            if self.lifted and isinstance(one, (ast.Global, ast.Nonlocal)):
                return []
            return [copy.deepcopy(one)]
        if is_compound(one):
            return [self._compound(one)]
        made = copy.deepcopy(one)
        Expressions(self.unit, self.lifted).generic_visit(made)
        if isinstance(one, ast.AnnAssign):
            made.annotation = _constant(None, one)
        return [made]

    def _compound(self, one: Any) -> Any:
        """Return a `with`, `try` or `match`, with its blocks rewritten."""
        made = copy.copy(one)
        for field in ("body", "orelse", "finalbody"):
            if getattr(one, field, None):
                setattr(made, field, self.block(getattr(one, field)))
        for field in ("handlers", "cases"):
            if getattr(one, field, None):
                parts = []
                for part in getattr(one, field):
                    new = copy.copy(part)
                    new.body = self.block(part.body)
                    if isinstance(part, ast.match_case):
                        new.guard = self.expression(part.guard)
                        new.pattern = copy.deepcopy(part.pattern)
                    else:
                        new.type = self.expression(part.type)
                    parts.append(new)
                setattr(made, field, parts)
        if hasattr(one, "subject"):
            made.subject = self.expression(one.subject)
        if hasattr(one, "items"):
            made.items = [
                ast.withitem(self.expression(item.context_expr), copy.deepcopy(item.optional_vars))
                for item in one.items
            ]
        return made

    # What leaves -----------------------------------------------------------------------------

    def _leave(self, way: int, value: Any, at: Any) -> ast.stmt:
        names = helper("locals", [], at)
        value = value if value is not None else _constant(None, at)
        done = helper("done", [_constant(way, at), value, names], at)
        return _located(ast.Return(done), at)

    def _return(self, one: ast.Return) -> list[ast.stmt]:
        value = self.expression(one.value)
        if self.lifted:
            return [self._leave(RETURN, value, one)]
        return [_located(ast.Return(value), one)]

    def _break(self, one: ast.Break) -> list[ast.stmt]:
        if self.lifted and not self.depth:
            return [self._leave(BREAK, None, one)]
        return [ast.copy_location(ast.Break(), one)]

    def _continue(self, one: ast.Continue) -> list[ast.stmt]:
        if self.lifted and not self.depth:
            return [self._leave(CONTINUE, None, one)]
        return [ast.copy_location(ast.Continue(), one)]

    def _raise(self, one: ast.Raise) -> list[ast.stmt]:
        made = ast.Raise(self.expression(one.exc), self.expression(one.cause))
        if self.lifted and one.exc is not None:
            made = ast.Raise(helper("refuse_raise", [made.exc], one), None)
        return [_located(made, one)]

    def _assert(self, one: ast.Assert) -> list[ast.stmt]:
        mark = self.unit.temporary()
        named = ast.NamedExpr(name(mark, one, store=True), self._test(one.test))
        message = _thunk(_located(self.expression(one.msg) or ast.Constant(None), one))
        check = helper("assert_", [name(mark, one), message, _constant(one.lineno, one)], one)
        native = ast.Assert(name(mark, one), self.expression(one.msg))
        question = helper("traced", [_located(named, one)], one)
        made = ast.If(question, [ast.Expr(check)], [native])
        return [_located(made, one)]

    # Sites -----------------------------------------------------------------------------------

    def _site(
        self, kind: str, node: Any, then: Any, other: Any, target: Any = None, end: Any = None
    ) -> int:
        then, other = _reached(then), _reached(other)
        key = (kind, id(node), len(then), len(other), target is not None)
        if key not in self.unit.known:
            made = Site(self.unit, kind, node, then, other, target, end or node)
            self.unit.sites.append(made)
            self.unit.known[key] = len(self.unit.sites) - 1
        return self.unit.known[key]

    def _decide(self, number: int, method: str, extra: list, at: Any) -> list[ast.stmt]:
        """Return the statements that run a site: what it changed, and how it was left."""
        site = self.unit.sites[number]
        shared = [*site.cells, HELPER]
        cells = _thunk(_located(ast.Tuple([name(one, at) for one in shared], ast.Load()), at))
        arguments = [_constant(number, at), helper("locals", [], at), cells, *extra]
        call = helper(method, arguments, at)
        ways = site.leaves if site.kind not in ("while", "for") else site.leaves - {CONTINUE}
        targets = [*([FLOW, RESULT] if ways else []), *site.outs]
        made: list[ast.stmt] = []
        if targets:
            stored = ast.Tuple([ast.Name(one, ast.Store()) for one in targets], ast.Store())
            made.append(ast.Assign([stored], call))
        else:
            made.append(ast.Expr(call))
        for one in site.outs:
            undefined = ast.Attribute(ast.Name(HELPER, ast.Load()), "undefined", ast.Load())
            test = ast.Compare(ast.Name(one, ast.Load()), [ast.Is()], [undefined])
            made.append(ast.If(test, [ast.Delete([ast.Name(one, ast.Del())])], []))
        if ways:
            self.has_flow = True
            loops = site.kind in ("while", "for")
            for way in sorted(ways, reverse=True):
                if loops and way == BREAK:
                    continue
                test = ast.Compare(ast.Name(FLOW, ast.Load()), [ast.Eq()], [ast.Constant(way)])
                made.append(ast.If(test, self._jump(way, at), []))
        return [_located(one, at) for one in made]

    def _jump(self, way: int, at: Any) -> list[ast.stmt]:
        """Return the statements that leave, when a site was left in this way for certain."""
        if way == RETURN:
            if self.lifted:
                return [self._leave(RETURN, name(RESULT, at), at)]
            return [_located(ast.Return(name(RESULT, at)), at)]
        if self.lifted and not self.depth:
            return [self._leave(way, None, at)]
        jump = ast.Break() if way == BREAK else ast.Continue()
        return [assign(FLOW, ast.Constant(0), at), ast.copy_location(jump, at)]

    def _asked(self, mark: str, value: Any, at: Any) -> Any:
        named = _located(ast.NamedExpr(name(mark, at, store=True), value), at)
        return helper("traced", [named], at)

    def _branch(self, one: ast.If, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return an `if` that may leave, with the rest of its block: it is part of both cases."""
        mark = self.unit.temporary()
        number = self._site(
            "if", one, [*one.body, *rest], [*one.orelse, *rest], None, [one, *rest][-1]
        )
        traced = self._decide(number, "if_", [name(mark, one)], one)
        native = self._native(one, name(mark, one))
        later: list[ast.stmt] = []
        if rest:
            inner = any(map(may_leave_early, blocks(one)))
            later = self._guarded(rest) if inner else self.block(rest)
        question = self._asked(mark, self._test(one.test), one.test)
        return [_located(ast.If(question, traced, [native, *later]), one)]

    def _native(self, one: ast.If, test: Any) -> ast.If:
        other = self.block(one.orelse) if one.orelse else []
        return _located(ast.If(test, self.block(one.body), other), one)

    def _if(self, one: ast.If) -> list[ast.stmt]:
        if _is_python(one.test):
            return [self._native(one, self._test(one.test))]
        mark = self.unit.temporary()
        number = self._site("if", one, one.body, one.orelse)
        traced = self._decide(number, "if_", [name(mark, one)], one)
        question = self._asked(mark, self._test(one.test), one.test)
        return [_located(ast.If(question, traced, [self._native(one, name(mark, one))]), one)]

    def _guarded(self, rest: Sequence[ast.stmt], target: Any = None) -> list[ast.stmt]:
        """Return statements that run if nothing has left before."""
        self.has_flow = True
        first = rest[0]
        number = self._site("guard", first, rest, [], target, rest[-1])
        flow = [name(FLOW, first), name(RESULT, first)]
        traced = self._decide(number, "guard", flow, first)
        test = ast.Compare(name(FLOW, first), [ast.NotEq()], [ast.Constant(0)])
        before = [] if target is None else [self._bind(target, first)]
        return [_located(ast.If(test, traced, [*before, *self.block(rest)]), first)]

    def _bind(self, target: Any, at: Any) -> ast.stmt:
        value = name(_VALUE, at)
        return _located(ast.Assign([copy.deepcopy(target)], value), at)

    # Loops -----------------------------------------------------------------------------------

    def _may_break(self, one: Any) -> bool:
        """Return whether a round may be left because of a tensor."""
        return bool(jumps(one.body))

    def _round(self, one: Any, target: Any = None) -> list[ast.stmt]:
        """Return the body of a loop that Python goes through."""
        self.depth += 1
        if not self._may_break(one):
            body = self.block(one.body)
        elif target is not None:
            body = self._guarded(one.body, target)
        else:
            body = self.block(one.body)
        self.depth -= 1
        if self._may_break(one):
            self.has_flow = True
            body.append(assign(FLOW, helper("next_round", [name(FLOW, one)], one), one))
        return body

    def _after_loop(self, one: Any) -> list[ast.stmt]:
        if not self._may_break(one):
            return []
        return [assign(FLOW, helper("after_loop", [name(FLOW, one)], one), one)]

    def _otherwise(self, one: Any) -> list[ast.stmt]:
        if not one.orelse:
            return []
        return self._guarded(one.orelse) if self._may_break(one) else self.block(one.orelse)

    def _while(self, one: ast.While) -> list[ast.stmt]:
        mark = self.unit.temporary()
        number = self._site("while", one, one.body, [])
        flow = [name(FLOW, one), name(RESULT, one)] if self._may_break(one) else []
        traced = self._decide(number, "while_", flow, one)
        named = _located(ast.NamedExpr(name(mark, one, store=True), self._test(one.test)), one)
        question = helper("traced", [named, *flow[:1]], one.test)
        goes_on = ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), question), name(mark, one)])
        again = helper("traced", [name(mark, one), *copy.deepcopy(flow[:1])], one)
        ended = [ast.If(again, traced, []), *self._otherwise(one)]
        made = _located(ast.While(goes_on, self._round(one), ended), one)
        return [made, *self._after_loop(one)]

    def _for(self, one: ast.For) -> list[ast.stmt]:
        mark = self.unit.temporary()
        number = self._site("for", one, one.body, [], one.target)
        flow = [name(FLOW, one), name(RESULT, one)] if self._may_break(one) else []
        extra = [name(mark, one), *flow]
        traced = [*self._decide(number, "for_", extra, one), *self._otherwise(one)]
        early = self._may_break(one)
        target = ast.Name(_VALUE, ast.Store()) if early else copy.deepcopy(one.target)
        body = self._round(one, one.target if early else None)
        native = ast.For(target, name(mark, one), body, self._otherwise(one))
        value = helper("iterate", [_constant(number, one), self.expression(one.iter)], one.iter)
        named = _located(ast.NamedExpr(name(mark, one, store=True), value), one.iter)
        question = helper("loops", [named], one.iter)
        made = _located(ast.If(question, traced, [_located(native, one)]), one)
        return [made, *self._after_loop(one)]


_VALUE = "@value"


def _is_python(test: ast.AST) -> bool:
    """Return whether a test is Python's in any case: `x is None`, a constant, `isinstance`."""
    if isinstance(test, ast.Compare):
        return all(isinstance(one, (ast.Is, ast.IsNot)) for one in test.ops)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_python(test.operand)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
        return test.func.id in ("isinstance", "issubclass", "hasattr", "callable")
    return isinstance(test, ast.Constant)


def plain_body(unit: Unit) -> list[ast.stmt]:
    """Return the body of a function, rewritten."""
    writer = Statements(unit, lifted=False)
    body = writer.block(unit.body)
    if writer.has_flow:
        at = unit.body[-1]
        finish = helper("finish", [name(FLOW, at), name(RESULT, at)], at)
        body = [*_start(unit.body[0]), *body, _located(ast.Return(finish), at)]
    return body


def _start(at: Any) -> list[ast.stmt]:
    return [assign(FLOW, ast.Constant(0), at), assign(RESULT, ast.Constant(None), at)]


def region(site: Site, which: str) -> ast.FunctionDef:
    """Return a region of a site as a function of the names that it mentions.

    `which` is "then", "other" or "test". It returns how it was left, and all its names.
    """
    unit, node = site.unit, site.node
    writer = Statements(unit, lifted=True)
    body: list[ast.stmt] = []
    for one in site.mentioned:
        undefined = ast.Attribute(ast.Name(HELPER, ast.Load()), "undefined", ast.Load())
        test = ast.Compare(ast.Name(one, ast.Load()), [ast.Is()], [undefined])
        body.append(ast.If(test, [ast.Delete([ast.Name(one, ast.Del())])], []))
    if which == "test":
        inside = [writer._leave(0, writer._test(site.test), node)]
    else:
        before = []
        if which == "then" and site.target is not None:
            before = [writer._bind(site.target, node)]
        inside = [*before, *writer.block(site.then if which == "then" else site.other)]
        last = (site.then if which == "then" else site.other or [node])[-1]
        flow = (
            [name(FLOW, last), name(RESULT, last)]
            if writer.has_flow
            else [_constant(0, last), _constant(None, last)]
        )
        done = helper("done", [*flow, helper("locals", [], last)], last)
        inside.append(_located(ast.Return(done), last))
    if writer.has_flow:
        body += _start(node)
    outer = sorted(set(site.changed_cells) & set(site.written))
    declared: list[ast.stmt] = [ast.Nonlocal(outer)] if outer else []
    if site.globals:
        declared.append(ast.Global(site.globals))
    names = [*site.mentioned, *([_VALUE] if site.target is not None else [])]
    arguments = ast.arguments([], [ast.arg(one) for one in names], None, [], [], None, [])
    made = ast.FunctionDef(INSIDE, arguments, [*declared, *body, *inside], [])
    return _located(made, node)


def factory(names: Sequence[str], inside: ast.stmt) -> ast.Module:
    """Return a module with a function around another, which has these names free."""
    arguments = ast.arguments([], [ast.arg(one) for one in names], None, [], [], None, [])
    around = ast.FunctionDef("@factory", arguments, [inside], [])
    return ast.Module([_located(around, inside)], [])
