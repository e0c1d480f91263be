"""The names that statements read and assign, the ways control leaves them, and live names."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Names = frozenset[str]
NONE: Names = frozenset()
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
NORMAL, BREAK, CONTINUE, RETURN = 0, 1, 2, 3
JUMPS = {ast.Break: BREAK, ast.Continue: CONTINUE, ast.Return: RETURN}


def own_nodes(nodes: ast.AST | Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of statements, except those inside functions and classes."""
    todo = [nodes] if isinstance(nodes, ast.AST) else list(nodes)
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, SCOPES):
            todo += getattr(node, "decorator_list", ())
            arguments = getattr(node, "args", None)
            if arguments is not None:
                todo += [*arguments.defaults, *filter(None, arguments.kw_defaults)]
            todo += getattr(node, "bases", ())
        else:
            todo += ast.iter_child_nodes(node)


def reads(nodes: Any) -> Names:
    """Return the names that are read, also by functions inside."""
    todo = [nodes] if isinstance(nodes, ast.AST) else [node for node in nodes if node is not None]
    return frozenset(
        node.id for root in todo for node in _names_in(root) if isinstance(node.ctx, ast.Load)
    )


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _names_in(node: ast.AST, bound: Names = NONE) -> Iterator[ast.Name]:
    """Yield the names in a node, except the variables of comprehensions."""
    if isinstance(node, ast.Name):
        if node.id not in bound:
            yield node
        return
    if isinstance(node, _COMPREHENSIONS):
        yield from _names_in(node.generators[0].iter, bound)
        targets = [name for generator in node.generators for name in _names_in(generator.target)]
        bound |= {name.id for name in targets}
    for child in ast.iter_child_nodes(node):
        yield from _names_in(child, bound)


def writes(nodes: Any) -> list[str]:
    """Return the names that are assigned or deleted, in the order of the text."""
    by_position: dict[tuple[int, int], str] = {}
    todo = [nodes] if isinstance(nodes, ast.AST) else nodes
    names = {id(name) for root in todo for name in _names_in(root)}
    for node in own_nodes(nodes):
        if isinstance(node, ast.Name) and id(node) not in names:
            continue
        position = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            by_position[position] = node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            by_position[position] = node.name
        elif isinstance(node, ast.alias):
            by_position[position] = (node.asname or node.name).partition(".")[0]
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            by_position[position] = node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            by_position[position] = node.rest
    return list(dict.fromkeys(by_position[position] for position in sorted(by_position)))


def captured(body: Sequence[ast.AST]) -> Names:
    """Return the names that functions, classes and generators inside use."""
    names: set[str] = set()
    for node in own_nodes(body):
        if isinstance(node, (*SCOPES, ast.GeneratorExp)):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name):
                    names.add(inner.id)
                elif isinstance(inner, (ast.Nonlocal, ast.Global)):
                    names.update(inner.names)
    return frozenset(names)


def assigned_inside(body: Sequence[ast.AST]) -> Names:
    """Return the names that functions inside declare nonlocal: calls may assign them."""
    return declared([node for node in own_nodes(body) if isinstance(node, SCOPES)], ast.Nonlocal)


def declared(nodes: Iterable[ast.AST], kind: Any) -> Names:
    """Return the names that are declared nonlocal or global, also by functions inside."""
    declarations: list[Any] = [
        inner for node in nodes for inner in ast.walk(node) if isinstance(inner, kind)
    ]
    return frozenset(name for declaration in declarations for name in declaration.names)


def jumps(statements: Sequence[ast.stmt]) -> frozenset[int]:
    """Return the ways in which control may leave statements before their end."""
    ways: set[int] = set()
    for statement in statements:
        if type(statement) in JUMPS:
            ways.add(JUMPS[type(statement)])
        elif isinstance(statement, LOOPS):
            ways |= jumps(statement.body) & {RETURN} | jumps(statement.orelse)
        else:
            for block in blocks(statement):
                ways |= jumps(block)
    return frozenset(ways)


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement."""
    if isinstance(statement, SCOPES):
        return
    for name in ("body", "orelse", "finalbody"):
        block = getattr(statement, name, None)
        if block:
            yield block
    for clause in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield clause.body


def is_compound(statement: ast.stmt) -> bool:
    return next(blocks(statement), None) is not None


def may_leave_early(statements: Sequence[ast.stmt]) -> bool:
    """Return whether a compound statement among these contains a jump out of them."""
    return any(is_compound(statement) and jumps([statement]) for statement in statements)


class Liveness:
    """The names whose values may be read after each statement of a function.

    This is a backward analysis over the blocks. Loops are analysed until nothing changes.
    """

    def __init__(self, body: Sequence[ast.stmt]):
        self.after: dict[int, Names] = {}
        self.heads: dict[int, Names] = {}  # of loops, before each round
        self.exits: dict[int, tuple[Names, Names]] = {}  # live where break and continue lead
        self._caught: Names = NONE  # read by handlers around
        self._block(body, NONE, NONE, NONE)

    def _block(self, body: Sequence[ast.stmt], out: Names, brk: Names, cont: Names) -> Names:
        for statement in reversed(body):
            self.after[id(statement)] = out | self._caught
            self.exits[id(statement)] = brk, cont
            out = self._statement(statement, out, brk, cont) | self._caught
        return out

    def _statement(self, statement: Any, out: Names, brk: Names, cont: Names) -> Names:
        match statement:
            case ast.If():
                live = self._block(statement.body, out, brk, cont)
                return reads(statement.test) | live | self._block(statement.orelse, out, brk, cont)
            case ast.While() | ast.For() | ast.AsyncFor():
                is_while = isinstance(statement, ast.While)
                head = self._block(statement.orelse, out, brk, cont)
                head |= reads(statement.test if is_while else statement.target)
                targets = NONE if is_while else frozenset(writes(statement.target))
                while True:
                    live = head | self._block(statement.body, head, out, head) - targets
                    if live == head:
                        break
                    head = live
                self.heads[id(statement)] = head
                return head if is_while else head | reads(statement.iter)
            case ast.Try() | ast.TryStar():
                before = self._caught
                final = (
                    self._block(statement.finalbody, out, brk, cont) if statement.finalbody else out
                )
                if statement.finalbody:
                    self._caught |= final
                handled = NONE
                for handler in statement.handlers:
                    live = self._block(handler.body, final, brk, cont) - {handler.name}
                    handled |= live | reads([handler.type])
                otherwise = self._block(statement.orelse, final, brk, cont)
                self._caught |= handled
                live = self._block(statement.body, otherwise, brk, cont) | handled
                self._caught = before
                return live
            case ast.With() | ast.AsyncWith():
                passes = all(map(_passes_errors_on, statement.items))
                before, self._caught = self._caught, self._caught | (NONE if passes else out)
                live = self._block(statement.body, out, brk, cont)
                self._caught = before
                targets = frozenset(
                    writes([item.optional_vars for item in statement.items if item.optional_vars])
                )
                first = frozenset(
                    writes([statement.items[0].optional_vars or statement.items[0].context_expr])
                )
                return (live - targets) | reads(statement.items) | (NONE if passes else out - first)
            case ast.Match():
                live = out | reads(statement.subject)
                for case in statement.cases:
                    inside = self._block(case.body, out, brk, cont)
                    live |= inside | reads([case.pattern, case.guard])
                return live
            case ast.Return():
                return reads([statement.value])
            case ast.Raise():
                return reads([statement.exc, statement.cause])
            case ast.Break():
                return brk
            case ast.Continue():
                return cont
            case ast.AugAssign():
                return out | reads(statement) | frozenset(writes(statement.target))
            case ast.Assign() | ast.AnnAssign() | ast.FunctionDef() | ast.ClassDef():
                return (out - frozenset(writes(statement))) | reads(statement)
            case _:
                return out | reads(statement)


_PASS_ERRORS_ON = {"GradientTape", "ForwardAccumulator", "stop_recording", "name_scope", "device"}


def _passes_errors_on(item: ast.withitem) -> bool:
    """Return whether an error leaves the `with`, unlike with `contextlib.suppress`."""
    called = getattr(item.context_expr, "func", None)
    return getattr(called, "attr", getattr(called, "id", "")) in _PASS_ERRORS_ON
