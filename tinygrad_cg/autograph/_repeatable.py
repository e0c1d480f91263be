"""Loops over ranges whose rounds are all alike, whatever the number of the round.

Python runs the body of such a loop a few times instead of once for each number. So the number may
only be used as an index, and the body may only call functions of the library, methods of tensors,
and user functions that visibly call nothing else: others may draw random numbers, read on in a
file, or count.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping
from types import FunctionType, ModuleType
from typing import Any

from .._core.conversion import is_tensor
from .._rules.user_source import NoSource, find_definition
from ..errors import is_ours
from ._runs import SiteRun, cells_of
from ._side_effects import read_cell

_INDEX = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator)
_INDEX += (ast.unaryop, ast.expr_context)
_UNKNOWN = (ast.With, ast.Yield, ast.YieldFrom, ast.Await, ast.GeneratorExp, ast.Import)
_UNKNOWN += (ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp)
_BUILTINS = (range, len, abs, min, max)


def is_repeatable(run: SiteRun, outer: Mapping[str, Any]) -> bool:
    """Return whether all rounds of a `for` are alike; `outer` has the global names."""
    site = run.site
    target = site.target.id if isinstance(site.target, ast.Name) else ""
    nodes = [node for statement in site.then for node in ast.walk(statement)]
    if target not in site.unit.own - site.after or not _is_index(target, nodes):
        return False
    values = {**vars(builtins), **outer}
    values |= {key: read_cell(cell) for key, cell in run.cells.items()} | run.names
    values |= dict.fromkeys(site.written)  # their values are unknown
    return _calls_what_repeats(nodes, values, set())


def _is_index(target: str, nodes: list[ast.AST]) -> bool:
    """Return whether a name is read only in indices, such as ``x[i + 1]``."""
    parts = [list(ast.walk(node.slice)) for node in nodes if isinstance(node, ast.Subscript)]
    simple = [part for part in parts if all(isinstance(node, _INDEX) for node in part)]
    indices = {id(node) for part in simple for node in part}
    names = [node for node in nodes if isinstance(node, ast.Name) and node.id == target]
    return all(id(name) in indices for name in names)


def _calls_what_repeats(nodes: list[ast.AST], values: Mapping[str, Any], seen: set[Any]) -> bool:
    """Return whether code does the same each time; `values` are the values of its names."""
    loaded = [values.get(node.id) for node in nodes if isinstance(node, ast.Name)]
    if any(callable(value) and not _repeats(value, seen) for value in loaded):
        return False
    for node in nodes:
        if isinstance(node, _UNKNOWN):
            return False
        if isinstance(node, ast.For) and not isinstance(node.iter, ast.Call):
            return False  # it may be an iterator that continues in the next round
        if isinstance(node, ast.Call):
            called = _root(node.func)
            value = values.get(called.id) if isinstance(called, ast.Name) else None
            plain = is_tensor(value) or isinstance(value, ModuleType) or callable(value)
            if isinstance(called, ast.Name) and not plain:
                return False
    modules = [value for value in loaded if isinstance(value, ModuleType)]
    return all(is_ours(getattr(module, "__file__", None) or "") for module in modules)


def _repeats(value: Any, seen: set[Any]) -> bool:
    """Return whether a function visibly does the same each time."""
    if not isinstance(value, FunctionType):
        return any(value is builtin for builtin in _BUILTINS)
    code = value.__code__
    if is_ours(code.co_filename) or value in seen:
        return True
    seen.add(value)
    try:
        tree: Any = find_definition(value)
    except NoSource:
        return False
    cells = {key: read_cell(cell) for key, cell in cells_of(value).items()}
    values = {**vars(builtins), **value.__globals__, **cells}
    values |= dict.fromkeys((*code.co_varnames, *code.co_cellvars))
    body = tree.body if isinstance(tree.body, list) else [tree.body]
    return _calls_what_repeats(
        [node for statement in body for node in ast.walk(statement)], values, seen
    )


def _root(node: ast.AST) -> ast.AST:
    """Return the object at the start of a chain of attributes, subscripts and calls."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node
