"""The syntax trees of the kernels' functions, and the names that they know."""

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
    """What its names stand for, but for its parameters and variables."""

    def __hash__(self) -> int:
        return id(self.body)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and self.body is other.body and self.scope == other.scope


@cache
def source_of(function: Callable, library: Library) -> Source:
    """Return the source of a function of a library's; Untranslatable if it is not there."""
    code: Any = getattr(function, "__code__", None)
    if code is None:
        raise Untranslatable(f"a call of {function}")
    node = _tree(function, code, library)
    body: list[ast.stmt] = node.body
    if isinstance(node, ast.Lambda):
        body = [ast.Return(node.body)]
    return Source(function.__name__, code.co_varnames[: code.co_argcount], body, _scope(function))


def _scope(function: Any) -> Mapping[str, Any]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    closed = dict(zip(function.__code__.co_freevars, cells, strict=True))
    return ChainMap(closed, function.__globals__, dict(vars(builtins)))


_known: dict[str, list[str]] = {}
"""The lines of files that are those which were imported."""


def _lines(function: Any, file: str, library: Library) -> list[str]:
    """Return the lines of a file; Untranslatable if they are not those which were imported.

    Where `linecache` was cleared a generated module still has its text.
    """
    lines = linecache.getlines(file, function.__globals__)
    lines = lines or function.__globals__.get("__text__", "").splitlines(True)
    if _known.get(file) is not lines:
        if library.is_changed(file):
            raise Untranslatable(f"{file}, which has changed since it was imported")
        _known[file] = lines
    return lines


CLOSING = 2  # lines that may follow the last one with code: of brackets


def _spans(code: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where the expressions of code begin and end, also in functions that it defines."""
    for line, last, start, end in code.co_positions():
        if None not in (line, last, start, end) and end:
            yield (line, start), (last, end)
    for one in code.co_consts:
        if hasattr(one, "co_positions"):
            yield from _spans(one)


def _last_line(code: Any) -> int:
    """Return the last line on which something of code begins."""
    lines = [line for _, _, line in code.co_lines() if line]
    lines += [_last_line(one) for one in code.co_consts if hasattr(one, "co_lines")]
    return max(lines, default=0)


def _definition(lines: list[str], code: Any) -> ast.FunctionDef | None:
    """Return a definition, of its lines alone; None where they do not tell."""
    begin, last = code.co_firstlineno - 1, _last_line(code)
    head = "if True:\n" if lines[begin : begin + 1] and lines[begin][0].isspace() else ""
    for count in range(last, last + CLOSING + 1) if last > begin else ():
        try:
            found: Any = ast.parse(head + "".join(lines[begin:count])).body[0]
        except (SyntaxError, ValueError):
            continue
        found = found.body[0] if head else found
        return found if isinstance(found, ast.FunctionDef) and found.name == code.co_name else None
    return None


def _lambda(lines: list[str], code: Any) -> ast.Lambda | None:
    """Return a lambda expression, where what stands between its ends gives the same code."""
    spans = list(_spans(code))
    if not spans:
        return None
    (first, start), (last, end) = min(one for one, _ in spans), max(one for _, one in spans)
    text = [line.encode() for line in lines[first - 1 : last]]
    text[-1] = text[-1][:end]
    text[0] = text[0][start:]
    known = [f"import {name}" for name in code.co_names]  # Python calls functions of modules so
    names = ", ".join(code.co_varnames[: code.co_argcount])
    source = "\n".join([*known, f"made = lambda {names}: ({b''.join(text).decode()})"])
    try:
        tree = ast.parse(source)
        (made,) = (one for one in compile(tree, "", "exec").co_consts if hasattr(one, "co_code"))
    except (SyntaxError, ValueError):
        return None
    parts = ("co_code", "co_consts", "co_names")
    found: Any = tree.body[-1]
    return found.value if all(getattr(made, k) == getattr(code, k) for k in parts) else None


def _tree(function: Any, code: Any, library: Library) -> Any:
    lines = _lines(function, code.co_filename, library)
    read = _lambda if code.co_name == "<lambda>" else _definition
    found = read(lines, code) if lines else None
    if found is None:
        raise Untranslatable(f"{code.co_name}, line {code.co_firstlineno} of {code.co_filename}")
    return found
