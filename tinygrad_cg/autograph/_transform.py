"""Rewriting of statements: each branch and loop is preceded by a question, does a tensor decide it?

The user's `if`, `while` and `for` stay as they were written, with their `return`, `break` and
`yield`, and run if Python decides. Beside each stands a call for the case that a traced tensor
decides. This call runs regions, such as a branch or a body, as functions; they are compiled at
their first call (`region`).

Generated names begin with "@", so they cannot clash with a user's name. "@flow" is 0, or a `Flow`
if a tensor has decided to leave the current block. Statements after a possible exit are guarded by
it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from typing import Any

from ._conditionals import Expressions, thunk
from ._names import (
    BREAK,
    JUMPS,
    LOOPS,
    NORMAL,
    RETURN,
    SCOPES,
    blocks,
    is_compound,
    jumps,
    may_leave_early,
)
from ._units import (
    FLOW,
    HELPER,
    INSIDE,
    RESULT,
    Effects,
    Site,
    Unit,
    assign,
    constant,
    helper,
    left,
    located,
    name,
    parameters,
    question,
    reached,
)


class Statements:
    """Rewrites the statements of a function, or of a region, which becomes a function.

    In a region, a `return`, and a `break` or `continue` of a loop around it, return to the site.
    """

    def __init__(self, unit: Unit, lifted: bool):
        self.unit, self.lifted = unit, lifted
        self.depth = 0  # number of loops around, in this function
        self.has_flow = False

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return the rewritten statements of a block."""
        statements: list[ast.stmt] = []
        for i, node in enumerate(body):
            rest = body[i + 1 :]
            if isinstance(node, ast.If) and jumps([node]) and not _is_python(node.test):
                statements += self._branch(node, rest)
                break
            statements += self._statement(node)
            if rest and is_compound(node) and self._may_flow(node):
                statements += self._guarded(rest)
                break
        return statements or [ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)]

    def _may_flow(self, node: Any) -> bool:
        """Return whether "@flow" may be nonzero after a statement."""
        left = jumps([node])
        if isinstance(node, LOOPS):
            return RETURN in left
        return bool(left) and any(map(may_leave_early, blocks(node)))

    def expression(self, node: Any) -> Any:
        return (
            None if node is None else Expressions(self.unit, self.lifted).visit(copy.deepcopy(node))
        )

    def test(self, node: Any) -> Any:
        return Expressions(self.unit, self.lifted).test(copy.deepcopy(node))

    def _statement(self, node: Any) -> list[Any]:
        method: Callable | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is not None:
            return method(node)
        if type(node) in JUMPS:
            value = self.expression(getattr(node, "value", None))
            return [self._leave(JUMPS[type(node)], value, node)]
        if isinstance(node, (*SCOPES, ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal)):
            if self.lifted and isinstance(node, (ast.Global, ast.Nonlocal)):
                return []
            return [copy.deepcopy(node)]
        if is_compound(node):
            return [self._compound(node)]
        copied = copy.deepcopy(node)
        Expressions(self.unit, self.lifted).generic_visit(copied)
        if isinstance(node, ast.AnnAssign):
            copied.annotation = constant(None, node)
        return [copied]

    def _compound(self, node: Any) -> Any:
        """Return a `with`, `try` or `match`, or a part of one, with its blocks rewritten."""
        copied = copy.copy(node)
        for field, value in ast.iter_fields(node):
            setattr(copied, field, self._field(value))
        return copied

    def _field(self, value: Any) -> Any:
        if isinstance(value, list):
            is_block = bool(value) and isinstance(value[0], ast.stmt)
            return self.block(value) if is_block else list(map(self._field, value))
        if isinstance(value, (ast.ExceptHandler, ast.match_case, ast.withitem)):
            return self._compound(value)
        return self.expression(value) if isinstance(value, ast.expr) else copy.deepcopy(value)

    # What leaves -----------------------------------------------------------------------------

    def _leave(self, way: int, value: Any, at: Any) -> ast.stmt:
        """Return the statement that leaves in this way; in a region it returns to the site."""
        if self.lifted and (way in (NORMAL, RETURN) or not self.depth):
            value = value if value is not None else constant(None, at)
            done = helper("done", [constant(way, at), value, helper("locals", [], at)], at)
            return located(ast.Return(done), at)
        if way == RETURN:
            return located(ast.Return(value), at)
        return ast.copy_location(ast.Break() if way == BREAK else ast.Continue(), at)

    def _raise(self, node: ast.Raise) -> list[ast.stmt]:
        rewritten = ast.Raise(self.expression(node.exc), self.expression(node.cause))
        if self.lifted and node.exc is not None:
            rewritten = ast.Raise(helper("refuse_raise", [rewritten.exc], node), None)
        return [located(rewritten, node)]

    def _assert(self, node: ast.Assert) -> list[ast.stmt]:
        mark = self.unit.temporary()
        message = thunk(located(self.expression(node.msg) or ast.Constant(None), node))
        check = helper("assert_", [name(mark, node), message, constant(node.lineno, node)], node)
        native = ast.Assert(name(mark, node), self.expression(node.msg))
        asked = question(mark, self.test(node.test), node)
        return [located(ast.If(asked, [ast.Expr(check)], [native]), node)]

    # Sites -----------------------------------------------------------------------------------

    def _site(
        self, kind: str, node: Any, then: Any, other: Any, target: Any = None, end: Any = None
    ) -> int:
        then, other = reached(then), reached(other)
        key = (kind, id(node), len(then), len(other), target is not None)
        if key not in self.unit.site_numbers:
            site = Site(self.unit, kind, node, then, other, target, end or node)
            self.unit.sites.append(site)
            self.unit.site_numbers[key] = len(self.unit.sites) - 1
        return self.unit.site_numbers[key]

    def _decide(self, number: int, method: str, extra: list, at: Any) -> list[ast.stmt]:
        """Return the statements that run a site, assign its results, and leave if it has left."""
        site = self.unit.sites[number]
        call = helper(method, [constant(number, at), *_state(site, at), *extra], at)
        targets = [*([FLOW, RESULT] if site.ways else []), *site.outs]
        statements: list[ast.stmt] = []
        if targets:
            stored = ast.Tuple([ast.Name(target, ast.Store()) for target in targets], ast.Store())
            statements.append(ast.Assign([stored], call))
        else:
            statements.append(ast.Expr(call))
        statements += map(_delete_if_undefined, site.outs)
        if site.ways:
            self.has_flow = True
            for way in sorted(site.ways - {BREAK} if site.is_loop else site.ways, reverse=True):
                test = ast.Compare(ast.Name(FLOW, ast.Load()), [ast.Eq()], [ast.Constant(way)])
                leave = self._leave(way, name(RESULT, at) if way == RETURN else None, at)
                stays = not isinstance(leave, ast.Return)  # in this function
                reset = [assign(FLOW, ast.Constant(0), at)] if stays else []
                statements.append(ast.If(test, [*reset, leave], []))
        return [located(node, at) for node in statements]

    def _branch(self, node: ast.If, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Return an `if` and the `rest` of its block, which is part of both cases."""
        mark = self.unit.temporary()
        number = self._site(
            "if", node, [*node.body, *rest], [*node.orelse, *rest], None, [node, *rest][-1]
        )
        traced = self._decide(number, "if_", [name(mark, node)], node)
        native = self._native(node, name(mark, node))
        later: list[ast.stmt] = []
        if rest:
            inner = any(map(may_leave_early, blocks(node)))
            later = self._guarded(rest) if inner else self.block(rest)
        asked = question(mark, self.test(node.test), node.test)
        return [located(ast.If(asked, traced, [native, *later]), node)]

    def _native(self, node: ast.If, test: Any) -> ast.If:
        other = self.block(node.orelse) if node.orelse else []
        return located(ast.If(test, self.block(node.body), other), node)

    def _if(self, node: ast.If) -> list[ast.stmt]:
        if _is_python(node.test):
            return [self._native(node, self.test(node.test))]
        return self._branch(node, [])

    def _guarded(self, rest: Sequence[ast.stmt], target: Any = None) -> list[ast.stmt]:
        """Return statements that run only if nothing has left before."""
        self.has_flow = True
        first = rest[0]
        number = self._site("guard", first, rest, [], target, rest[-1])
        traced = self._decide(number, "guard", left(first), first)
        test = ast.Compare(name(FLOW, first), [ast.NotEq()], [ast.Constant(0)])
        before = [] if target is None else [self._bind(target, first)]
        return [located(ast.If(test, traced, [*before, *self.block(rest)]), first)]

    def _bind(self, target: Any, at: Any) -> ast.stmt:
        value = name(_VALUE, at)
        return located(ast.Assign([copy.deepcopy(target)], value), at)

    # Loops -----------------------------------------------------------------------------------

    def _round(self, loop: Any, target: Any = None, mark: str | None = None) -> list[ast.stmt]:
        """Return the body of a Python loop; `mark` is the name of a `for` loop's iterable."""
        self.depth += 1
        body = self.block(loop.body) if target is None else self._guarded(loop.body, target)
        self.depth -= 1
        if jumps(loop.body):
            self.has_flow = True
            through = [] if mark is None else [name(mark, loop)]
            body.append(
                assign(FLOW, helper("next_round", [name(FLOW, loop), *through], loop), loop)
            )
        return body

    def _after_loop(self, loop: Any) -> list[ast.stmt]:
        if not jumps(loop.body):
            return []
        return [assign(FLOW, helper("after_loop", [name(FLOW, loop)], loop), loop)]

    def _otherwise(self, loop: Any) -> list[ast.stmt]:
        if not loop.orelse:
            return []
        return self._guarded(loop.orelse) if jumps(loop.body) else self.block(loop.orelse)

    def _while(self, loop: ast.While) -> list[ast.stmt]:
        mark = self.unit.temporary()
        number = self._site("while", loop, loop.body, [])
        flow = left(loop) if jumps(loop.body) else []
        traced = self._decide(number, "while_", flow, loop)
        asked = question(mark, self.test(loop.test), loop.test, *flow[:1])
        goes_on = ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), asked), name(mark, loop)])
        again = helper("traced", [name(mark, loop), *copy.deepcopy(flow[:1])], loop)
        ended = [ast.If(again, traced, []), *self._otherwise(loop)]
        rewritten = located(ast.While(goes_on, self._round(loop), ended), loop)
        return [rewritten, *self._after_loop(loop)]

    def _for(self, loop: ast.For) -> list[ast.stmt]:
        mark = self.unit.temporary()
        number = self._site("for", loop, loop.body, [], loop.target)
        flow = left(loop) if jumps(loop.body) else []
        extra = [name(mark, loop), *flow]
        traced = [*self._decide(number, "for_", extra, loop), *self._otherwise(loop)]
        target = ast.Name(_VALUE, ast.Store()) if flow else copy.deepcopy(loop.target)
        body = self._round(loop, loop.target if flow else None, mark)
        native = ast.For(target, name(mark, loop), body, self._otherwise(loop))
        value = helper(
            "iterate", [self.expression(loop.iter), constant(loop.lineno, loop.iter)], loop.iter
        )
        named = located(ast.NamedExpr(name(mark, loop, store=True), value), loop.iter)
        here = [constant(number, loop), *_state(self.unit.sites[number], loop)]
        becomes_one = helper("loops", [named, *here, *copy.deepcopy(flow)], loop.iter)
        rewritten = located(ast.If(becomes_one, traced, [located(native, loop)]), loop)
        return [rewritten, *self._after_loop(loop)]


_VALUE = "@value"


def _is_python(test: ast.AST) -> bool:
    """Return whether Python decides a test in any case: `x is None`, a constant, `isinstance`."""
    if isinstance(test, ast.Compare):
        return all(isinstance(operator, (ast.Is, ast.IsNot)) for operator in test.ops)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_python(test.operand)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name):
        return test.func.id in ("isinstance", "issubclass", "hasattr", "callable")
    return isinstance(test, ast.Constant)


def plain_body(unit: Unit) -> list[ast.stmt]:
    """Return the rewritten body of a function."""
    writer = Statements(unit, lifted=False)
    body = writer.block(unit.body)
    if writer.has_flow:
        at = unit.body[-1]
        finish = helper("finish", left(at), at)
        body = [*_start(unit.body[0]), *body, located(ast.Return(finish), at)]
    effects, at = unit.effects, unit.body[0]
    if effects.mentioned or effects.cells or effects.outer or effects.attributes:
        body.insert(0, located(ast.Expr(helper("enter", _state(effects, at), at)), at))
    return body


def _state(effects: Effects, at: Any) -> list[ast.expr]:
    """Return expressions for the names of a function, and for the cells it shares with others."""
    shared: list[ast.expr] = [name(identifier, at) for identifier in (*effects.cells, HELPER)]
    return [helper("locals", [], at), thunk(located(ast.Tuple(shared, ast.Load()), at))]


def _delete_if_undefined(identifier: str) -> ast.stmt:
    undefined = ast.Attribute(ast.Name(HELPER, ast.Load()), "undefined", ast.Load())
    test = ast.Compare(ast.Name(identifier, ast.Load()), [ast.Is()], [undefined])
    return ast.If(test, [ast.Delete([ast.Name(identifier, ast.Del())])], [])


def _start(at: Any) -> list[ast.stmt]:
    return [assign(FLOW, ast.Constant(0), at), assign(RESULT, ast.Constant(None), at)]


def region(site: Site, which: str) -> ast.FunctionDef:
    """Return a region of a site as a function of the names it mentions.

    `which` is "then", "other" or "test". The function returns its flow and all its names.
    """
    unit, node = site.unit, site.node
    writer = Statements(unit, lifted=True)
    body: list[ast.stmt] = list(map(_delete_if_undefined, site.mentioned))
    if which == "test":
        inside = [writer._leave(NORMAL, writer.test(site.test), node)]
    else:
        before = []
        if which == "then" and site.target is not None:
            before = [writer._bind(site.target, node)]
        inside = [*before, *writer.block(site.then if which == "then" else site.other)]
        last = (site.then if which == "then" else site.other or [node])[-1]
        flow = left(last) if writer.has_flow else [constant(0, last), constant(None, last)]
        done = helper("done", [*flow, helper("locals", [], last)], last)
        inside.append(located(ast.Return(done), last))
    if writer.has_flow:
        body += _start(node)
    outer = sorted(set(site.changed_cells) & set(site.written))
    declared: list[ast.stmt] = [ast.Nonlocal(outer)] if outer else []
    if site.globals:
        declared.append(ast.Global(site.globals))
    names = [*site.mentioned, *([_VALUE] if site.target is not None else [])]
    function = ast.FunctionDef(INSIDE, parameters(names), [*declared, *body, *inside], [])
    return located(function, node)


def factory(names: Sequence[str], inside: ast.stmt) -> ast.Module:
    """Return a module with a function around another one, whose parameters are free there."""
    around = ast.FunctionDef("@factory", parameters(names), [inside], [])
    return ast.Module([located(around, inside)], [])
