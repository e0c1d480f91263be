"""Groups of a picture: the operations of modules, and the last step of an optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .sketch import Item, Region


def group_modules(
    items: list[Item], owners: Mapping[Item, str], classes: Mapping[str, str]
) -> list[Region]:
    """Return a frame for each module whose Variables are used.

    `owners` has the Variables' items, with the path of the module that keeps each.
    No tape knows which module called an operation. A module's are those that use its Variables,
    what lies between them, and the operations of one operand that lead from there to another
    module: its activation. A module around others has theirs, and what lies between those.
    """
    forward = [item for item in items if not item.order]  # operands come first
    users: dict[Item, list[Item]] = {item: [] for item in forward}
    for item in forward:
        for operand in item.operands:
            if operand in users:
                users[operand].append(item)
    uses: dict[Item, str] = {}  # by the operation: whose Variable it uses
    for item, path in owners.items():
        for user in users.get(item, ()):
            uses.setdefault(user, path)
    after: dict[Item, set[str]] = {}  # the modules on the ways to an operation
    for item in forward:
        before = {path for operand in item.operands for path in after.get(operand, ())}
        after[item] = {uses[item]} if item in uses else before
    ahead: dict[Item, set[str]] = {}  # those on the ways from it
    inside: dict[Item, str] = dict(uses)
    for item in reversed(forward):
        following = [{uses[user]} if user in uses else ahead[user] for user in users[item]]
        ahead[item] = set().union(*following)
        if item.operation and item not in inside and after[item]:
            common = after[item] & ahead[item]
            if len(common) == 1:
                inside[item] = min(common)
            elif len(item.operands) == 1 == len(users[item]) == len(after[item]) and ahead[item]:
                inside[item] = min(after[item])
    of: dict[str, set[Item]] = {}
    for item, path in inside.items():
        of.setdefault(path, set()).add(item)
    for item, path in owners.items():
        if users.get(item):
            of[path].add(item)
    for path in _around(of):
        ones = [other for other in of if _lies_in(other, path)]
        if path in of or len(ones) > 1:
            of[path] = of.get(path, set()).union(*(of[other] for other in ones))
            of[path] |= {
                item
                for item in forward
                if any(_lies_in(other, path) for other in after[item])
                and any(_lies_in(other, path) for other in ahead[item])
            }
    return [
        Region("module", path, frozenset(members), remark=classes.get(path, ""))
        for path, members in of.items()
    ]


def _around(paths: Mapping[str, Any]) -> list[str]:
    """Return the paths of the modules around those of `paths`, innermost first."""
    modules = set()
    for path in paths:
        while "." in path:
            path = path.rpartition(".")[0]
            modules.add(path)
    return sorted(modules, key=lambda path: (-path.count("."), path))


def _lies_in(path: str, around: str) -> bool:
    return path == around or path.startswith(f"{around}.")
