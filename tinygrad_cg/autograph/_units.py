"""Functions that are transformed, their sites, and helpers that create nodes."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ._names import (
    BREAK,
    CONTINUE,
    NONE,
    RETURN,
    Liveness,
    Names,
    assigned_inside,
    captured,
    declared,
    jumps,
    own_nodes,
    reads,
    writes,
)

HELPER = "@ag"
INSIDE = "@f"  # the name of a generated function during compilation
FLOW, RESULT = "@flow", "@ret"


class Unit:
    """A function that is transformed: its names and its sites."""

    def __init__(self, name: str, tree: Any, file: str, own: Names, free: Names):
        self.name, self.tree, self.file = name, tree, file
        self.body: list[ast.stmt] = tree.body
        inside = captured(self.body)
        self.cells = (own & inside) | free  # shared with functions inside or outside
        self.own = own - self.cells
        self.declared = declared(self.body, ast.Global)
        self.assigned_inside = assigned_inside(self.body) & self.cells
        self.live = Liveness(self.body)
        arguments = tree.args
        first = [*arguments.posonlyargs, *arguments.args]
        self.first = first[0].arg if first else None
        self.effects = Effects(self)
        self.sites: list[Site] = []
        self.site_numbers: dict[tuple, int] = {}
        self.temporaries = 0

    def temporary(self) -> str:
        self.temporaries += 1
        return f"@{self.temporaries}"


class Effects:
    """What statements may change: attributes, containers, cells and global names.

    `mentioned` are the function's own names, `outer` are global names.
    """

    def __init__(self, unit: Unit, nodes: Sequence[ast.AST] = ()):
        statements = nodes or unit.body
        self.written = writes(statements)
        read = reads(statements)
        if "super" in read and unit.first is not None:
            read |= {unit.first}
        cells = (read | set(self.written) | unit.assigned_inside) & unit.cells
        self.mentioned = sorted((read | set(self.written)) & unit.own)
        self.cells = sorted(cells | ({"__class__"} & unit.cells if "super" in read else set()))
        self.outer = sorted(read - unit.own - unit.cells)
        self.changed_cells = sorted((set(self.written) | unit.assigned_inside) & unit.cells)
        self.globals = sorted(set(self.written) & unit.declared)
        self.attributes = _attributes(statements, ast.Store | ast.Del)
        self.paths = _attributes(statements, ast.Load)


class Site(Effects):
    """A branch or loop that a tensor may decide: its statements, and the names live after them.

    `kind` is "if", "while", "for" or "guard". `then` and `other` are the two cases of a branch;
    `then` is the body of a loop. `leaves` are the ways of leaving the statements, `ways` those of
    leaving the site. `outs` are the assigned names that may be read after some way of leaving.
    """

    def __init__(
        self, unit: Unit, kind: str, node: Any, then: list, other: list, target: Any, end: Any
    ):
        self.unit, self.kind, self.node = unit, kind, node
        self.then, self.other, self.target = then, other, target
        self.test = node.test if kind == "while" else None
        self.line: int = node.lineno
        self.is_loop = kind in ("while", "for")
        self.leaves = jumps(then) | jumps(other)
        self.ways = self.leaves - {CONTINUE} if self.is_loop else self.leaves
        self.is_endless = (  # a `while True` that only a `return` ends
            isinstance(self.test, ast.Constant)
            and bool(self.test.value)
            and BREAK not in self.leaves
        )
        everything = [*then, *other, *filter(None, [self.test, target])]
        super().__init__(unit, everything)
        self.has_yield = any(
            isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await))
            for node in own_nodes(everything)
        )
        live = unit.live
        if self.is_loop:
            after, head = live.after[id(node)], live.heads[id(node)]
            self.live = {0: after | head, BREAK: after, CONTINUE: head}
        else:
            brk, cont = live.exits[id(node)]
            self.live = {0: live.after[id(end)], BREAK: brk, CONTINUE: cont}
            if target is not None:  # the guarded rest of a round
                self.live[0] = cont
        self.after = live.after[id(node)]
        self.live[RETURN] = NONE
        wanted = NONE.union(*(self.live[way] for way in (0, *self.leaves)))
        self.outs = [
            identifier
            for identifier in self.written
            if identifier in unit.own and identifier in wanted
        ]


def _attributes(statements: Sequence[ast.AST], context: Any) -> list[str]:
    """Return the attributes that are assigned or read, such as ``self.h``."""
    texts: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, context):
                base: Any = node
                while isinstance(base, ast.Attribute):
                    base = base.value
                if isinstance(base, ast.Name):
                    texts[ast.unparse(node)] = None
    return list(texts)


def reached(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements up to the first one that always leaves."""
    for i, statement in enumerate(statements):
        if isinstance(statement, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return list(statements[: i + 1])
    return list(statements)


def name(identifier: str, at: Any, store: bool = False) -> ast.Name:
    return ast.copy_location(ast.Name(identifier, ast.Store() if store else ast.Load()), at)


def located(node: Any, at: Any) -> Any:
    """Give the nodes that have no position the position of another node."""
    if not hasattr(node, "lineno"):
        ast.copy_location(node, at)
        if node.end_lineno != node.lineno:
            node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
    return ast.fix_missing_locations(node)


def helper(method: str, arguments: list, at: Any) -> ast.Call:
    """Return a call of a method of the helper, at the position of another node."""
    called = ast.Attribute(ast.Name(HELPER, ast.Load()), method, ast.Load())
    return located(ast.Call(called, arguments, []), at)


def question(mark: str, value: Any, at: Any, *flow: Any) -> ast.Call:
    """Return the call that asks whether a tensor decides; the value is assigned to `mark`."""
    named = located(ast.NamedExpr(name(mark, at, store=True), value), at)
    return helper("traced", [named, *flow], at)


def left(at: Any) -> list[ast.Name]:
    """Return the names that say how a block was left, and with which result."""
    return [name(FLOW, at), name(RESULT, at)]


def parameters(names: Sequence[str] = ()) -> ast.arguments:
    """Return the parameters of a function, all positional."""
    return ast.arguments([], list(map(ast.arg, names)), None, [], [], None, [])


def assign(identifier: str, value: Any, at: Any) -> ast.Assign:
    return located(ast.Assign([ast.Name(identifier, ast.Store())], value), at)


def constant(value: Any, at: Any) -> ast.Constant:
    return located(ast.Constant(value), at)
