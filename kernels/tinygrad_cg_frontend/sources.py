"""The syntax trees of the kernels' functions, and their scopes."""

from __future__ import annotations

import ast
import builtins
import linecache
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from tinygrad_cg_frontend.library import Library
from tinygrad_cg_frontend.values import Untranslatable


class Source(NamedTuple):
    """A function to be translated."""

    name: str
    parameters: tuple[str, ...]
    body: list[ast.stmt]
    scope: Mapping[str, Any]
    """The meaning of its names, except parameters and variables."""

    def __hash__(self) -> int:
        return id(self.body)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self.body is other.body and self.scope == other.scope


@cache
def source_of(function: Callable, library: Library) -> Source:
    """Return the source of a library's function; Untranslatable if there is none."""
    code: Any = getattr(function, "__code__", None)
    if code is None:
        raise Untranslatable(f"a call of {function}")
    lines = _lines(function, code.co_filename, library)
    read: Any = _lambda if code.co_name == "<lambda>" else _definition
    node = read(lines, code) if lines else None
    if node is None:
        raise Untranslatable(f"{code.co_name}, line {code.co_firstlineno} of {code.co_filename}")
    body: Any = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
    return Source(function.__name__, code.co_varnames[: code.co_argcount], body, _scope(function))


def _scope(function: Any) -> Mapping[str, Any]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    closed = dict(zip(function.__code__.co_freevars, cells, strict=True))
    return ChainMap(closed, function.__globals__, dict(vars(builtins)))


_unchanged_lines: dict[str, list[str]] = {}
"""The lines of files that have not changed since they were imported."""


def _lines(function: Any, file: str, library: Library) -> list[str]:
    """Return the lines of a file; Untranslatable if the file has changed since it was imported.

    A generated module keeps its text, in case `linecache` was cleared.
    """
    lines = linecache.getlines(file, function.__globals__)
    lines = lines or function.__globals__.get("__text__", "").splitlines(True)
    if _unchanged_lines.get(file) is not lines:
        if library.is_changed(file):
            raise Untranslatable(f"{file}, which has changed since it was imported")
        _unchanged_lines[file] = lines
    return lines


MAX_CLOSING_LINES = 2  # lines of closing brackets that may follow the last line with code


def _spans(code: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the start and end of each expression in code, and in functions that it defines."""
    for line, last, start, end in code.co_positions():
        if None not in (line, last, start, end) and end:
            yield (line, start), (last, end)
    for constant in code.co_consts:
        if hasattr(constant, "co_positions"):
            yield from _spans(constant)


def _last_line(code: Any) -> int:
    """Return the last line on which an instruction of code begins."""
    lines = [line for _, _, line in code.co_lines() if line]
    lines += [_last_line(constant) for constant in code.co_consts if hasattr(constant, "co_lines")]
    return max(lines, default=0)


def _definition(lines: list[str], code: Any) -> ast.FunctionDef | None:
    """Return a function's definition, parsed from its lines alone; None if that fails."""
    begin, last = code.co_firstlineno - 1, _last_line(code)
    head = "if True:\n" if lines[begin : begin + 1] and lines[begin][0].isspace() else ""
    for count in range(last, last + MAX_CLOSING_LINES + 1) if last > begin else ():
        try:
            definition: Any = ast.parse(head + "".join(lines[begin:count])).body[0]
        except (SyntaxError, ValueError):
            continue
        definition = definition.body[0] if head else definition
        is_own = isinstance(definition, ast.FunctionDef) and definition.name == code.co_name
        return definition if is_own else None
    return None


def _lambda(lines: list[str], code: Any) -> ast.Lambda | None:
    """Return a lambda expression, if the text between its ends compiles to the same code."""
    spans = list(_spans(code))
    if not spans:
        return None
    (first, start), (last, end) = min(start for start, _ in spans), max(end for _, end in spans)
    text = [line.encode() for line in lines[first - 1 : last]]
    text[-1] = text[-1][:end]
    text[0] = text[0][start:]
    imports = [f"import {name}" for name in code.co_names]  # Python calls functions of modules so
    names = ", ".join(code.co_varnames[: code.co_argcount])
    source = "\n".join([*imports, f"made = lambda {names}: ({b''.join(text).decode()})"])
    try:
        tree = ast.parse(source)
        constants = compile(tree, "", "exec").co_consts
        (compiled,) = (constant for constant in constants if hasattr(constant, "co_code"))
    except (SyntaxError, ValueError):
        return None
    parts = ("co_code", "co_consts", "co_names")
    statement: Any = tree.body[-1]
    return statement.value if all(getattr(compiled, k) == getattr(code, k) for k in parts) else None
