"""Which names of a function are read later: what loops and branches have to hand on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

Names = frozenset[str]
EXITS = (ast.Break, ast.Continue, ast.Return)


def _names(node: ast.AST | None, is_read: bool) -> Names:
    names = (x for x in ast.walk(node) if isinstance(x, ast.Name)) if node is not None else ()
    return frozenset(name.id for name in names if isinstance(name.ctx, ast.Load) == is_read)


def loaded(*nodes: ast.AST | None) -> Names:
    """Return the names that expressions read."""
    return frozenset().union(*[_names(node, True) for node in nodes])


def stored(nodes: Iterable[ast.AST]) -> Names:
    """Return the names that statements assign to."""
    return frozenset().union(*[_names(node, False) for node in nodes])


def rebound(nodes: Iterable[ast.AST]) -> Names:
    """Return the names that get another value, not one changed in place."""
    inner = [child for node in nodes for child in ast.walk(node)]
    augmented = {child.target for child in inner if isinstance(child, ast.AugAssign)}
    return stored(x for x in inner if isinstance(x, ast.Name) and x not in augmented)


def falls_off(nodes: Sequence[ast.stmt]) -> bool:
    """Return whether statements may end without `return` or `raise`."""
    last = nodes[-1] if nodes else None
    match last:
        case ast.Return() | ast.Raise():
            return False
        case ast.If():
            return falls_off(last.body) or falls_off(last.orelse)
        case ast.While():
            is_endless = isinstance(last.test, ast.Constant) and bool(last.test.value)
            return not is_endless or any(exits(x, (ast.Break,)) for x in last.body)
    return True


def exits(node: ast.AST, kinds: tuple[type, ...] = EXITS) -> bool:
    """Return whether a statement may leave the loop around it, its round, or the function."""
    if isinstance(node, kinds):
        return True
    inner = kinds
    if isinstance(node, (ast.For, ast.While)):  # whose breaks are its own
        inner = tuple(kind for kind in kinds if kind is ast.Return)
    return any(exits(child, inner) for child in ast.iter_child_nodes(node)) if inner else False


def live_before(statements: Sequence[ast.stmt], live: Names, ends: Names = frozenset()) -> Names:
    """Return the names that may be read from the first statement on.

    `live` are those that are read after the last one, `ends` after a jump out of the list.
    """
    for statement in reversed(statements):
        live = _before(statement, live, ends)
    return live


def _before(node: ast.stmt, live: Names, ends: Names) -> Names:
    match node:
        case ast.If():
            inner = live_before(node.body, live, ends) | live_before(node.orelse, live, ends)
            return loaded(node.test) | inner
        case ast.For() | ast.While():
            test = node.iter if isinstance(node, ast.For) else node.test
            return live_in_loop(node, live) | live | loaded(test)
        case ast.Return():
            return loaded(node.value)
        case ast.Break() | ast.Continue():
            return ends
        case ast.Assign() | ast.AnnAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return (live - stored(targets)) | loaded(node.value, *targets)
        case ast.AugAssign():
            return live | loaded(node.value, node.target) | stored([node.target])
    return live | loaded(node)


def live_in_loop(node: ast.For | ast.While, live: Names) -> Names:
    """Return the names that may be read from the head of a loop on, within or after it."""
    test = loaded(node.test) if isinstance(node, ast.While) else frozenset()
    around = live | test
    for _ in range(2):
        head = live_before(node.body, around, around) | test | live
        if isinstance(node, ast.For):
            head = (head - stored([node.target])) | live
        around = around | head
    return head
