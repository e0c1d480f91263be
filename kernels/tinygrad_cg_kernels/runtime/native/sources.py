"""The syntax trees of the kernels' functions, and the names that they know."""

from __future__ import annotations

import ast
import builtins
import linecache
from collections import ChainMap
from collections.abc import Callable, Mapping
from functools import cache
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


_files: dict[str, dict[int, list[Any]]] = {}


def _functions(function: Any, file: str) -> dict[int, list[Any]]:
    """Return the definitions and lambda expressions in a file, by their first lines."""
    if file in _files:
        return _files[file]
    found = _files[file] = {}
    for node in ast.walk(ast.parse("".join(linecache.getlines(file, function.__globals__)))):
        if isinstance(node, ast.Lambda):
            found.setdefault(node.lineno, []).append(node)
        elif isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found.setdefault(first, []).append(node)
    return found


def _tree(function: Callable, code: Any) -> Any:
    for one in _functions(function, code.co_filename).get(code.co_firstlineno, []):
        if isinstance(one, ast.Lambda):
            if code.co_name == "<lambda>" and _holds(one.body, code):
                return one
        elif one.name == code.co_name:
            return one
    raise Untranslatable(f"{code.co_name}, line {code.co_firstlineno} of {code.co_filename}")


def _holds(body: ast.expr, code: Any) -> bool:
    """Return whether code stands within an expression."""
    spans = [span for span in code.co_positions() if None not in span and span[3]]
    if not spans:  # it returns a constant
        return isinstance(body, ast.Constant) and body.value in code.co_consts
    first = min((line, start) for line, _, start, _ in spans)
    final = max((last, end) for _, last, _, end in spans)
    start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
    return start <= first and final <= end
