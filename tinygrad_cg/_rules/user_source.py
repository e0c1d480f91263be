"""The user's source: the syntax trees of files, and of the functions in them.

All that reads the user's code reads it here.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
import os
import re
from collections import OrderedDict
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from ..errors import IMPORTED, location_of

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FUTURES = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
_MAX_FILES = 16  # files whose trees are kept
_CLOCK_TOLERANCE = 1.0  # seconds by which the times of files may be off
_FACTS = (
    *("co_code", "co_exceptiontable", "co_names", "co_varnames", "co_cellvars", "co_freevars"),
    *("co_argcount", "co_posonlyargcount", "co_kwonlyargcount"),
)


class _File(NamedTuple):
    """A file as it was read: `tree` is None, and `error` says why, if it cannot be parsed."""

    lines: list[str]
    tree: ast.Module | None
    error: SyntaxError | None
    definitions: dict[int, list[Definition]]  # by their first lines


_files: OrderedDict[str, _File] = OrderedDict()


class NoSource(Exception):
    """The source of a function is not there; the message says why, and what to do."""


def parse_file(file: str) -> ast.Module | None:
    """Return the syntax tree of a file or of a notebook's cell; None without its source."""
    lines = linecache.getlines(file)
    return _parsed(file, lines).tree if lines else None


def _parsed(file: str, lines: list[str]) -> _File:
    cached = _files.get(file)
    if cached is not None and cached.lines is lines:
        return cached
    definitions: dict[int, list[Definition]] = {}
    try:
        tree, error = ast.parse("".join(lines), file), None
        for node in ast.walk(tree):
            if isinstance(node, Definition):
                definitions.setdefault(first_line(node), []).append(node)
    except SyntaxError as problem:  # as a notebook's magic
        tree, error = None, problem
    _files[file] = parsed = _File(lines, tree, error, definitions)
    while len(_files) > _MAX_FILES:
        _files.popitem(last=False)
    return parsed


def definition_of(code: CodeType) -> Definition | None:
    """Return the syntax tree of a function; None where its source is not there, or unclear."""
    lines = linecache.getlines(code.co_filename)
    try:
        definitions = _candidates(code, lines) if lines else []
    except NoSource:
        return None
    return definitions[0] if len(definitions) == 1 else None


def _candidates(code: CodeType, lines: list[str]) -> list[Definition]:
    """Return the definitions in a file that `code` may have been compiled from."""
    alone = _alone(code, lines)
    if alone is not None and _is_of(alone, code):
        return [alone]
    file = _parsed(code.co_filename, lines)
    if file.error is not None:
        raise NoSource(f"its source cannot be read: {file.error}")
    definitions = file.definitions.get(code.co_firstlineno, [])
    return [definition for definition in definitions if _is_of(definition, code)]


def find_definition(function: FunctionType) -> Definition:
    """Return the syntax tree of a function, with the lines and columns of its file.

    Raises NoSource where the text cannot be had, or is not the text that the function was
    compiled from.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise NoSource(
            f"the source of `{function.__name__}` is not available (it was made by exec, or typed "
            "into a shell): write it in a file"
        )
    definitions = _candidates(code, lines)
    if len(definitions) != 1 or (
        _is_recent(code.co_filename) and not _gives(definitions[0], lines, code)
    ):
        raise NoSource(
            f"the source of `{function.__name__}` has changed since it was compiled "
            f"({location_of(code.co_filename, code.co_firstlineno)}): import it again"
        )
    return definitions[0]


def _is_recent(file: str) -> bool:
    """Return whether a file was written since the library was imported, or just before."""
    try:
        return os.stat(file).st_mtime > IMPORTED - _CLOCK_TOLERANCE
    except OSError:
        return False


def _gives(definition: Definition, lines: list[str], code: CodeType) -> bool:
    """Return whether a definition in the lines of a file compiles to what `code` does.

    What pytest has written into code is no sign of a change.
    """
    names = (
        name for inner in (code, *codes_in(code)) for name in (*inner.co_varnames, *inner.co_names)
    )
    if any(name.startswith("@py") for name in names):
        return True
    text, meaning = "".join(lines), _meaning(code)
    return any(
        _is_of(definition, candidate) and _meaning(candidate) == meaning
        for imports in (True, False)
        for candidate in _compiled(text, code.co_filename, imports)
    )


@functools.lru_cache(4)
def _compiled(text: str, file: str, imports: bool) -> tuple[CodeType, ...]:
    """Return the codes in a file, compiled with or without the imports of its module.

    Python compiles `tf.sin(x)` differently if the same module imports `tf`. A function inside a
    transformed one was compiled without these imports.
    """
    try:
        tree: Any = ast.parse(text, file)
        tree = tree if imports else _WithoutImports().visit(tree)
        return tuple(codes_in(compile(tree, file, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return ()


class _WithoutImports(ast.NodeTransformer):
    """Removes the imports of a module, except those from the future."""

    def visit_Import(self, node: Any) -> Any:
        is_future = getattr(node, "module", None) == "__future__"
        return node if is_future else ast.copy_location(ast.Pass(), node)

    visit_ImportFrom = visit_Import

    def visit_FunctionDef(self, node: Any) -> Any:
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef


def _meaning(value: Any) -> Any:
    """Return what is equal for codes, or their constants, that do the same wherever they stand."""
    if isinstance(value, (tuple, frozenset)):
        return type(value)(map(_meaning, value))
    if not isinstance(value, CodeType):
        return type(value), repr(value)
    own = _meaning(value.co_qualname)  # a constant of a class; functions around it are in it
    constants = (
        None if constant == own else constant for constant in map(_meaning, value.co_consts)
    )
    return *(getattr(value, fact) for fact in _FACTS), *constants


def _alone(code: CodeType, lines: list[str]) -> Definition | None:
    """Return a definition that is read without the rest of its file, which may be long.

    None where it cannot be read so, as a lambda expression.
    """
    start = code.co_firstlineno - 1
    if code.co_name == "<lambda>" or not 0 <= start < len(lines):
        return None
    cached = _files.get(code.co_filename)
    if cached is not None and cached.lines is lines:
        return None
    is_indented = lines[start][:1].isspace()
    before = "\n" * (start - 1) + "if True:\n" if is_indented else "\n" * start
    try:
        text = "".join(inspect.getblock(lines[start:]))
        (definition,) = ast.parse(before + text, code.co_filename).body
    except (SyntaxError, ValueError):
        return None
    if isinstance(definition, ast.If):
        (definition,) = definition.body if len(definition.body) == 1 else (definition,)
    return definition if isinstance(definition, Definition) else None


def returns(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Return]:
    """Return the return statements of a function, without those of functions inside it."""
    statements = []
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.Return):
            statements.append(node)
        elif not isinstance(node, Definition):
            pending += ast.iter_child_nodes(node)
    return statements


def first_line(node: Definition) -> int:
    """Return the line on which a definition begins, that of its first decorator if it has any."""
    decorators = getattr(node, "decorator_list", ())
    return decorators[0].lineno if decorators else node.lineno


def _is_of(node: Definition, code: CodeType) -> bool:
    """Return whether a definition is that of `code`: names agree, and so do the positions."""
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    if name != code.co_name or _arguments(node) != _unmangled(code):
        return False
    last = node.end_lineno or node.lineno
    spans: list[Any] = [span for span in code.co_positions() if None not in span]
    if any(not first_line(node) <= line <= last for line, *_ in spans if line):
        return False
    if isinstance(node, ast.Lambda):
        start, end = (node.lineno, node.col_offset), (last, node.end_col_offset or 0)
        inner = [(line, column) for line, _, column, stop in spans if stop]
        body = (node.body.lineno, node.body.col_offset)
        return body in inner and all(start <= position <= end for position in inner)
    return True


def _arguments(node: Definition) -> list[str]:
    arguments = node.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    parameters += [extra for extra in (arguments.vararg, arguments.kwarg) if extra is not None]
    return [argument.arg.lstrip("_") for argument in parameters]


def _unmangled(code: CodeType) -> list[str]:
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 4) + bool(code.co_flags & 8)
    names = code.co_varnames[:count]
    return [re.sub(r"^_[^_].*?__", "", name).lstrip("_") for name in names]  # _Class__name


def compile_tree(node: ast.Module, parents: CodeType) -> CodeType:
    """Return a module's code, with the file name and the future features of another's code."""
    return compile(node, parents.co_filename, "exec", parents.co_flags & _FUTURES, True)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects inside a code object, outermost first."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_in(constant)
