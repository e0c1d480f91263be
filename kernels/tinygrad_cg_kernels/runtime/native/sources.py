"""The syntax trees of the kernels' functions, and the names that they know."""

from __future__ import annotations

import ast
import builtins
import linecache
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property
from typing import Any, NamedTuple

from tinygrad_cg_kernels.runtime.native.values import Untranslatable


class Source(NamedTuple):
    """A function to be translated."""

    name: str
    parameters: tuple[str, ...]
    body: list[ast.stmt]
    scope: Mapping[str, Any]
    """What its names stand for, but for its parameters and variables."""

    def __hash__(self) -> int:
        return id(self.body)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self.body is other.body and self.scope == other.scope


@cache
def source_of(function: Callable) -> Source:
    """Return the source of a function of ours; Untranslatable if it is not there."""
    code: Any = getattr(function, "__code__", None)
    if code is None:
        raise Untranslatable(f"a call of {function}")
    node = _tree(function, code)
    body: list[ast.stmt] = node.body
    if isinstance(node, ast.Lambda):
        body = [ast.Return(node.body)]
    return Source(function.__name__, code.co_varnames[: code.co_argcount], body, _scope(function))


def _scope(function: Any) -> Mapping[str, Any]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    closed = dict(zip(function.__code__.co_freevars, cells, strict=True))
    return ChainMap(closed, function.__globals__, dict(vars(builtins)))


_Definitions = dict[int, list[Any]]
"""Definitions and lambda expressions, by their first lines."""


class _File:
    """The definitions of a file: those at its top first, since a walk of all takes longer."""

    def __init__(self, function: Any, file: str):
        self._tree = ast.parse("".join(linecache.getlines(file, function.__globals__)))

    @cached_property
    def top(self) -> _Definitions:
        return _by_line(self._tree.body)

    @cached_property
    def all(self) -> _Definitions:
        return _by_line(ast.walk(self._tree))


def _by_line(nodes: Iterable[ast.AST]) -> _Definitions:
    found: _Definitions = {}
    for node in nodes:
        if isinstance(node, ast.Lambda):
            found.setdefault(node.lineno, []).append(node)
        elif isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found.setdefault(first, []).append(node)
    return found


_files: dict[str, _File] = {}


def _tree(function: Callable, code: Any) -> Any:
    file = _files.get(code.co_filename)
    if file is None:
        file = _files[code.co_filename] = _File(function, code.co_filename)
    found = _match(file.top, code) or _match(file.all, code)
    if found is None:
        raise Untranslatable(f"{code.co_name}, line {code.co_firstlineno} of {code.co_filename}")
    return found


def _match(definitions: _Definitions, code: Any) -> Any:
    for one in definitions.get(code.co_firstlineno, []):
        if isinstance(one, ast.Lambda):
            if code.co_name == "<lambda>" and _holds(one.body, code):
                return one
        elif one.name == code.co_name:
            return one
    return None


def _holds(body: ast.expr, code: Any) -> bool:
    """Return whether code stands within an expression."""
    spans = [span for span in code.co_positions() if None not in span and span[3]]
    if not spans:  # it returns a constant
        return isinstance(body, ast.Constant) and body.value in code.co_consts
    first = min((line, start) for line, _, start, _ in spans)
    final = max((last, end) for _, last, _, end in spans)
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return start <= first and final <= end
