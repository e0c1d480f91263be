"""Which names of a function are read later: what loops and branches have to hand on."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

Names = frozenset[str]
EXITS = (ast.Break, ast.Continue, ast.Return)


def stored(nodes: Iterable[ast.AST]) -> Names:
    """Return the names that statements assign to."""
    return frozenset(
        node.id
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    )


def rebound(nodes: Iterable[ast.AST]) -> Names:
    """Return the names that get another value, not one changed in place."""
    names = stored(nodes)
    augmented: set[int] = set()
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, ast.AugAssign):
                augmented.add(id(node.target))
    return frozenset(
        node.id
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, ast.Name)
        and node.id in names
        and id(node) not in augmented
        and not isinstance(node.ctx, ast.Load)
    )


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


def loaded(node: ast.AST | None) -> Names:
    """Return the names that an expression reads."""
    if node is None:
        return frozenset()
    return frozenset(
        child.id
        for child in ast.walk(node)
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load)
    )


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
            return live_in_loop(node, live) | live | _head(node)
        case ast.Return():
            return loaded(node.value)
        case ast.Break() | ast.Continue():
            return ends
        case ast.Assign() | ast.AnnAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            return (live - _plain(targets)) | loaded(node.value) | _indices(targets)
        case ast.AugAssign():
            return live | loaded(node.value) | loaded(node.target) | stored([node.target])
    return live | loaded(node)


def live_in_loop(node: ast.For | ast.While, live: Names) -> Names:
    """Return the names that may be read from the head of a loop on, within or after it."""
    test = loaded(node.test) if isinstance(node, ast.While) else frozenset()
    around = live | test
    for _ in range(2):
        head = live_before(node.body, around, around) | test | live
        if isinstance(node, ast.For):
            head = (head - _plain([node.target])) | live
        around = around | head
    return head


def _head(node: ast.For | ast.While) -> Names:
    return loaded(node.iter) if isinstance(node, ast.For) else loaded(node.test)


def _plain(targets: Iterable[ast.AST]) -> Names:
    """Return the names that an assignment gives new values, whatever they were."""
    return stored(targets)


def _indices(targets: Iterable[ast.AST]) -> Names:
    return frozenset(name for target in targets for name in loaded(target))
