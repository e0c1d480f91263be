"""The user's expression that a frame is evaluating: whether its value can have a derivative."""

from __future__ import annotations

import ast
import dis
import functools
from types import CodeType, FrameType
from typing import Any

from .user_source import parse_file

_TRUTHS = {"UNARY_NOT", "TO_BOOL"} | {
    name for name in dis.opname if "JUMP" in name and "IF" in name
}
_COUNTS = {"range", "bool"}
_TEXTS = {"print", "str", "repr", "format"}
_TEXTS_OF_METHODS = {"print", "format", "write", "set_description", "set_postfix"}
_TEXTS_OF_LOGGERS = {"debug", "info", "warning", "error", "exception", "critical"}


def only_decides(frame: FrameType) -> bool:
    """Return whether what `frame` evaluates now ends as a truth, a loop count or a text.

    True for ``while float(x) > 1.``, which has no derivative that could be lost. False if it cannot
    be known, for example without the source.
    """
    return _only_decides(frame.f_code, frame.f_lasti)


@functools.lru_cache(256)
def _only_decides(code: CodeType, instruction: int) -> bool:
    if dis.opname[code.co_code[instruction]] in _TRUTHS:
        return True
    positions = list(code.co_positions())[instruction // 2]
    tree = parse_file(code.co_filename)
    if tree is None or None in positions:
        return False
    first, last, column, end = positions
    path = _path_to(tree, ((first, column), (last, end)))
    if _is_text(path[-1]):
        return True
    for parent, child in zip(reversed(path[:-1]), reversed(path), strict=False):
        if any(child in loop.ifs for loop in getattr(parent, "generators", ())):
            return True
        match parent:
            case ast.Compare() | ast.UnaryOp(ast.Not()):
                return True
            case ast.While(test) | ast.If(test) | ast.IfExp(test) | ast.Assert(test) if (
                test is child
            ):
                return True
            case ast.Call(function) if _takes_no_value(function):
                return child is not function
            case _ if _is_text(parent):
                return True
            case ast.stmt() | ast.Lambda() | ast.NamedExpr():
                return False
    return False


def _takes_no_value(function: ast.expr) -> bool:
    """Return whether a called function turns its arguments into a count, a truth value or a text.

    A message of a logger is a text: ``logger.info("loss %s", float(y))``.
    """
    match function:
        case ast.Name(name):
            return name in _COUNTS | _TEXTS
        case ast.Attribute(owner, name):
            is_logger = "log" in ast.unparse(owner).lower()
            return name in _TEXTS_OF_METHODS or (is_logger and name in _TEXTS_OF_LOGGERS)
    return False


def _is_text(node: ast.AST) -> bool:
    """Return whether an expression is a text with values in it: ``"%.3f" % y``."""
    match node:
        case ast.FormattedValue() | ast.BinOp(ast.Constant(str()), ast.Mod()):
            return True
    return False


def _path_to(tree: ast.AST, span: tuple) -> list[Any]:
    """Return the nodes from `tree` down to the innermost one that covers `span`."""
    path: list[Any] = [tree]
    while True:
        for child in _covering_children(path[-1]):
            begin = (child.lineno, child.col_offset)
            end = (child.end_lineno, child.end_col_offset)
            if begin <= span[0] and span[1] <= end:
                path.append(child)
                break
        else:
            return path


def _covering_children(node: ast.AST) -> list[Any]:
    """Return the children that have positions; in place of others, their children."""
    children = []
    for child in ast.iter_child_nodes(node):
        children += [child] if hasattr(child, "lineno") else _covering_children(child)
    return children
