"""The syntax tree of a function, from its source file."""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import linecache
import os
from collections import OrderedDict
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from ..errors import IMPORTED, location_of

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_FUTURES = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag,
    __future__.all_feature_names,
    0,
)
_MAX_TREES = 16  # kept, one for each file
_TIME_ERROR = 1.0  # seconds, of the modification times of files
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
    """A function cannot be transformed; the message has the reason and the remedy."""


def find_definition(function: FunctionType) -> Definition:
    """Return the syntax tree of a function, with the lines and columns of its file.

    Raise NoSource if the text is not available, or is not the text that was compiled.
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
            f"the source of `{function.__name__}` is not what it was compiled from "
            f"({location_of(code.co_filename, code.co_firstlineno)}): import it again"
        )
    return definitions[0]


def _is_recent(file: str) -> bool:
    """Return whether a file was written after, or shortly before, the library was imported."""
    try:
        return os.stat(file).st_mtime > IMPORTED - _TIME_ERROR
    except OSError:
        return False


def _gives(definition: Definition, lines: list[str], code: CodeType) -> bool:
    """Return whether a definition compiles to the same code as `code`.

    Names that pytest adds to code do not count as a difference.
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
    """Return a key that is equal for code, or constants, that do the same at any position."""
    if isinstance(value, (tuple, frozenset)):
        return type(value)(map(_meaning, value))
    if not isinstance(value, CodeType):
        return type(value), repr(value)
    own = _meaning(value.co_qualname)  # a constant of classes, which names the functions around
    constants = (
        None if constant == own else constant for constant in map(_meaning, value.co_consts)
    )
    return *(getattr(value, fact) for fact in _FACTS), *constants


def _alone(code: CodeType, lines: list[str]) -> Definition | None:
    """Parse a definition without the rest of its file, which may be long.

    Return None if that is not possible, as for a lambda expression.
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


def _definitions(code: CodeType, lines: list[str]) -> list[Definition]:
    cached = _trees.get(code.co_filename)
    if cached is None or cached[0] is not lines:
        try:
            tree = ast.parse("".join(lines), code.co_filename)
        except SyntaxError as error:
            raise NoSource(f"its source cannot be read: {error}") from None
        index: dict[int, list[Definition]] = {}
        for node in ast.walk(tree):
            if isinstance(node, Definition):
                index.setdefault(first_line(node), []).append(node)
        cached = _trees[code.co_filename] = lines, index
        while len(_trees) > _MAX_TREES:
            _trees.popitem(last=False)
    return cached[1].get(code.co_firstlineno, [])


def first_line(node: Definition) -> int:
    """Return the line on which a definition begins; that is the line of its first decorator."""
    decorators = getattr(node, "decorator_list", ())
    return decorators[0].lineno if decorators else node.lineno


def _is_of(node: Definition, code: CodeType) -> bool:
    """Return whether a definition is that of `code`, by its names and positions."""
    name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
    if name != code.co_name or _arguments(node) != _unmangled(code):
        return False
    last = node.end_lineno or node.lineno
    positions = [
        position
        for position in code.co_positions()
        if position[0] is not None and position[2] is not None
    ]
    if any(not first_line(node) <= position[0] <= last for position in positions if position[0]):
        return False
    if isinstance(node, ast.Lambda):
        start, end = (node.lineno, node.col_offset), (last, node.end_col_offset or 0)
        inner = [
            (position[0], position[2])
            for position in positions
            if position[1] is not None and position[3]
        ]
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
    return [
        name.lstrip("_")
        if "__" not in name[1:]
        else name.partition("__")[2].lstrip("_")
        if name.startswith("_") and not name.startswith("__")
        else name.lstrip("_")
        for name in code.co_varnames[:count]
    ]


def compile_tree(node: ast.Module, parents: CodeType) -> CodeType:
    """Compile a module with the file name and future features of the code `parents`."""
    flags = parents.co_flags & _FUTURES
    return compile(node, parents.co_filename, "exec", flags, True)


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects inside a code object, outermost first."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_in(constant)
