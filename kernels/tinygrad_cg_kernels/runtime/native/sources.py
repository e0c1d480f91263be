"""The syntax trees of the kernels' functions, and the names that they know."""

from __future__ import annotations

import ast
import builtins
import linecache
from collections import ChainMap
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple


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
    """Return the source of a function of ours."""
    code = function.__code__  # type: ignore[attr-defined]
    node = _tree(code)
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.Return(node.body)]
    else:
        body = node.body
    return Source(function.__name__, code.co_varnames[: code.co_argcount], body, _scope(function))


def _scope(function: Any) -> Mapping[str, Any]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    closed = dict(zip(function.__code__.co_freevars, cells, strict=True))
    return ChainMap(closed, function.__globals__, dict(vars(builtins)))


@cache
def _functions(file: str) -> dict[int, list[Any]]:
    """Return the definitions and lambda expressions in a file, by their first lines."""
    found: dict[int, list[Any]] = {}
    for node in ast.walk(ast.parse("".join(linecache.getlines(file)))):
        if isinstance(node, ast.Lambda):
            found.setdefault(node.lineno, []).append(node)
        elif isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found.setdefault(first, []).append(node)
    return found


@cache
def _tree(code: Any) -> Any:
    candidates = _functions(code.co_filename).get(code.co_firstlineno, [])
    if code.co_name != "<lambda>":
        (found,) = [one for one in candidates if getattr(one, "name", "") == code.co_name]
        return found
    spans = [
        (line, start, last, end)
        for line, last, start, end in code.co_positions()
        if None not in (line, last, start, end) and end
    ]
    first, final = min(span[:2] for span in spans), max(span[2:] for span in spans)
    for one in candidates:
        if isinstance(one, ast.Lambda):
            body = one.body
            if (body.lineno, body.col_offset) <= first and final <= (
                body.end_lineno,
                body.end_col_offset,
            ):
                return one
    raise LookupError(f"no lambda in line {code.co_firstlineno} of {code.co_filename}")
