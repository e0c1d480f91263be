"""Names that statements read and assign, how they are left, and names live after them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Names = frozenset[str]
NONE: Names = frozenset()
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
NORMAL, BREAK, CONTINUE, RETURN = 0, 1, 2, 3
_JUMPS = {ast.Break: BREAK, ast.Continue: CONTINUE, ast.Return: RETURN}


def own_nodes(nodes: ast.AST | Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield the nodes of statements, without what is inside of other functions and classes."""
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
    todo = [nodes] if isinstance(nodes, ast.AST) else [one for one in nodes if one is not None]
    return frozenset(
        node.id for one in todo for node in _names_in(one) if isinstance(node.ctx, ast.Load)
    )


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _names_in(node: ast.AST, bound: Names = NONE) -> Iterator[ast.Name]:
    """Yield the names in a node, but for those that comprehensions have for themselves."""
    if isinstance(node, ast.Name):
        if node.id not in bound:
            yield node
        return
    if isinstance(node, _COMPREHENSIONS):
        yield from _names_in(node.generators[0].iter, bound)
        targets = [name for one in node.generators for name in _names_in(one.target)]
        bound |= {name.id for name in targets}
    for one in ast.iter_child_nodes(node):
        yield from _names_in(one, bound)


def writes(nodes: Any) -> list[str]:
    """Return the names that are assigned or deleted, in the order of the text."""
    found: dict[tuple[int, int], str] = {}
    todo = [nodes] if isinstance(nodes, ast.AST) else nodes
    names = {id(name) for one in todo for name in _names_in(one)}
    for node in own_nodes(nodes):
        if isinstance(node, ast.Name) and id(node) not in names:
            continue
        position = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            found[position] = node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[position] = node.name
        elif isinstance(node, ast.alias):
            found[position] = (node.asname or node.name).partition(".")[0]
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            found[position] = node.name
        elif isinstance(node, ast.MatchMapping) and node.rest:
            found[position] = node.rest
    return list(dict.fromkeys(found[position] for position in sorted(found)))


def captured(body: Sequence[ast.AST]) -> Names:
    """Return the names that functions, classes and generators inside mention."""
    found: set[str] = set()
    for node in own_nodes(body):
        if isinstance(node, (*SCOPES, ast.GeneratorExp)):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name):
                    found.add(inner.id)
                elif isinstance(inner, (ast.Nonlocal, ast.Global)):
                    found.update(inner.names)
    return frozenset(found)


def assigned_inside(body: Sequence[ast.AST]) -> Names:
    """Return the names that functions inside declare nonlocal: a call may assign them."""
    return declared([node for node in own_nodes(body) if isinstance(node, SCOPES)], ast.Nonlocal)


def declared(nodes: Iterable[ast.AST], kind: Any) -> Names:
    """Return the names that are declared nonlocal or global, also by functions inside."""
    found: list[Any] = [one for node in nodes for one in ast.walk(node) if isinstance(one, kind)]
    return frozenset(name for one in found for name in one.names)


def jumps(statements: Sequence[ast.stmt]) -> frozenset[int]:
    """Return how control may leave statements other than at their end."""
    found: set[int] = set()
    for one in statements:
        if type(one) in _JUMPS:
            found.add(_JUMPS[type(one)])
        elif isinstance(one, LOOPS):
            found |= jumps(one.body) & {RETURN} | jumps(one.orelse)
        else:
            for block in blocks(one):
                found |= jumps(block)
    return frozenset(found)


def blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement."""
    if isinstance(statement, SCOPES):
        return
    for name in ("body", "orelse", "finalbody"):
        found = getattr(statement, name, None)
        if found:
            yield found
    for one in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield one.body


def is_compound(statement: ast.stmt) -> bool:
    return next(blocks(statement), None) is not None


def may_leave_early(statements: Sequence[ast.stmt]) -> bool:
    """Return whether a jump out of these statements stands in a statement inside of them."""
    return any(is_compound(one) and jumps([one]) for one in statements)


class Liveness:
    """The names whose values may be read after each statement of a function.

    A backward analysis over the blocks; loops are gone through until nothing changes.
    """

    def __init__(self, body: Sequence[ast.stmt]):
        self.after: dict[int, Names] = {}
        self.heads: dict[int, Names] = {}  # of loops: before each round
        self.exits: dict[int, tuple[Names, Names]] = {}  # at the targets of break and continue
        self._caught: Names = NONE  # what handlers around may read
        self._block(body, NONE, NONE, NONE)

    def _block(self, body: Sequence[ast.stmt], out: Names, brk: Names, cont: Names) -> Names:
        for one in reversed(body):
            self.after[id(one)] = out | self._caught
            self.exits[id(one)] = brk, cont
            out = self._statement(one, out, brk, cont) | self._caught
        return out

    def _statement(self, one: Any, out: Names, brk: Names, cont: Names) -> Names:
        match one:
            case ast.If():
                found = self._block(one.body, out, brk, cont)
                return reads(one.test) | found | self._block(one.orelse, out, brk, cont)
            case ast.While():
                other = self._block(one.orelse, out, brk, cont)
                head = other | reads(one.test)
                while True:
                    found = head | self._block(one.body, head, out, head)
                    if found == head:
                        break
                    head = found
                self.heads[id(one)] = head
                return head
            case ast.For() | ast.AsyncFor():
                other = self._block(one.orelse, out, brk, cont)
                head, targets = other, frozenset(writes(one.target))
                while True:
                    inside = self._block(one.body, head, out, head)
                    found = head | inside - targets | reads(one.target)
                    if found == head:
                        break
                    head = found
                self.heads[id(one)] = head
                return head | reads(one.iter)
            case ast.Try() | ast.TryStar():
                before = self._caught
                final = self._block(one.finalbody, out, brk, cont) if one.finalbody else out
                if one.finalbody:
                    self._caught |= final
                handled = NONE
                for handler in one.handlers:
                    found = self._block(handler.body, final, brk, cont) - {handler.name}
                    handled |= found | reads([handler.type])
                otherwise = self._block(one.orelse, final, brk, cont)
                self._caught |= handled
                found = self._block(one.body, otherwise, brk, cont) | handled
                self._caught = before
                return found
            case ast.With() | ast.AsyncWith():
                passes = all(map(_passes_errors_on, one.items))
                before, self._caught = self._caught, self._caught | (NONE if passes else out)
                found = self._block(one.body, out, brk, cont)
                self._caught = before
                targets = frozenset(
                    writes([item.optional_vars for item in one.items if item.optional_vars])
                )
                first = frozenset(writes([one.items[0].optional_vars or one.items[0].context_expr]))
                return (found - targets) | reads(one.items) | (NONE if passes else out - first)
            case ast.Match():
                found = out | reads(one.subject)
                for case in one.cases:
                    inside = self._block(case.body, out, brk, cont)
                    found |= inside | reads([case.pattern, case.guard])
                return found
            case ast.Return():
                return reads([one.value])
            case ast.Raise():
                return reads([one.exc, one.cause])
            case ast.Break():
                return brk
            case ast.Continue():
                return cont
            case ast.AugAssign():
                return out | reads(one) | reads_as_loads(one.target)
            case ast.Assign() | ast.AnnAssign() | ast.FunctionDef() | ast.ClassDef():
                return (out - frozenset(writes(one))) | reads(one)
            case _:
                return out | reads(one)


_PASS_ERRORS_ON = {"GradientTape", "ForwardAccumulator", "stop_recording", "name_scope", "device"}


def _passes_errors_on(item: ast.withitem) -> bool:
    """Return whether an error ends the `with`, and what is after it: not so with `suppress`."""
    called = getattr(item.context_expr, "func", None)
    return getattr(called, "attr", getattr(called, "id", "")) in _PASS_ERRORS_ON


def reads_as_loads(target: ast.AST) -> Names:
    return frozenset(one.id for one in ast.walk(target) if isinstance(one, ast.Name))
