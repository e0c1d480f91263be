"""Reading a program's source: how values flow from one name to another.

The library does not record where a tensor loses its record, since that would slow down every
program. When a user asks why there is no gradient, the functions between source and target are
read, statement by statement, up to the one that takes a value out of a tensor.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from .. import _ops as ops
from .._core.kinds import is_differentiable
from .._core.primitive import OPS
from .._rules.definition import closure
from .._rules.user_source import definition_of, parse_file
from ..errors import is_ours, location_of

DEPTH = 4  # nested calls that are read
OBJECTS = 500  # parts of one object that are searched for the source
_OUT = {"numpy", "item", "tolist"}  # methods that return values
_CONSTRUCTORS = {"array", "asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "copy"}
_OF_TYPE = {"shape", "dtype", "ndim", "size", "rank", "len"}  # what does not depend on values
_ASSIGNMENTS = {"assign", "assign_add", "assign_sub"}
_ADDERS = {"append", "extend", "add", "insert", "update", "setdefault"}


class DetachPoint(NamedTuple):
    """The expression where the derivative ends: what it does, its file, line and text."""

    words: str
    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"`{self.text}` {self.words} ({location_of(self.file, self.line)})"


FLOWS = "flows"  # the expression depends on the source, differentiably
GRADIENT = "gradient"  # it depends on the source, and a tape returned it
Status = Any  # None (independent of the source), FLOWS, GRADIENT or a DetachPoint


def join(statuses: Iterable[Status]) -> Status:
    """Return the status of a result that is computed from operands with these statuses."""
    joined = None
    for status in statuses:
        if status == FLOWS:
            return FLOWS
        joined = joined or status
    return joined


def find_cut(frame: FrameType, tape: Any, target: Any, source: Any) -> Status:
    """Return the status of `target` in the code of `frame`, up to its present line.

    The status is None if the code does not lead from `source` to `target`. It is FLOWS if the code
    leads there without a detach point, as far as it can be read.
    """
    space = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    body, cells = _body_of(frame.f_code), []
    last = frame.f_lineno
    if frame.f_code.co_name == "<module>" and "get_ipython" in space:
        body, cells = _read_cells(space.get("In") or [])
        last += cells[-1][0] if cells else 0
    goals = _names_of(frame, target)
    starts = _names_of(frame, source)
    if body is None or not goals or not starts:
        return None
    tapes = set(_names_of(frame, tape))
    file = frame.f_code.co_filename
    reader = _Reader(file, space, 0, source, tapes, set(starts), last, cells)
    reader.find_blocks(body)
    reader.states = {name: FLOWS for name in starts if name not in reader.bound}
    reader.read(body)
    status = join(reader.states.get(name) for name in goals)
    if status == FLOWS and reader.gradients.issuperset(goals):
        status = GRADIENT
    return status


def _names_of(frame: FrameType, value: Any) -> list[str]:
    """Return the names of a value in a frame, or of a container or object that holds it."""
    for space in (frame.f_locals, frame.f_globals):
        own = [name for name, other in space.items() if other is value]
        held = [name for name, other in space.items() if _holds(other, value)]
        held += [path for name, other in list(space.items()) for path in _paths(name, other, value)]
        if own or held:
            return own or held
    return []


def _paths(
    name: str, owner: Any, value: Any, depth: int = 3, seen: set[int] | None = None
) -> Iterator[str]:
    """Yield the dotted names of `value` as an attribute of an object, or of objects in it."""
    seen = set() if seen is None else seen
    if isinstance(owner, (ModuleType, type, FunctionType)) or depth == 0 or len(seen) > OBJECTS:
        return
    seen.add(id(owner))
    for attribute, part in list(getattr(owner, "__dict__", {}).items())[:100]:
        if part is value or _holds(part, value):
            yield f"{name}.{attribute}"
        elif type(part).__module__ != "builtins" and id(part) not in seen:
            yield from _paths(f"{name}.{attribute}", part, value, depth - 1, seen)


def _holds(container: Any, value: Any) -> bool:
    if isinstance(container, (list, tuple)):
        return any(element is value for element in container[:100])
    if isinstance(container, dict):
        return any(element is value for element in list(container.values())[:100])
    return False


def _body_of(code: CodeType) -> list[ast.stmt] | None:
    """Return the statements of a function, or of a module; None without the source."""
    if code.co_name == "<module>":
        tree = parse_file(code.co_filename)
        return None if tree is None else tree.body
    definition = definition_of(code)
    return None if definition is None or isinstance(definition, ast.Lambda) else definition.body


def _read_cells(texts: list[str]) -> tuple[list[ast.stmt], list[tuple[int, str]]]:
    """Return the statements of a notebook's cells, and the lines of the cells.

    The cells are in the order in which they ran, the present one last. For each cell comes the
    number of lines before it, and its name.
    """
    body: list[ast.stmt] = []
    cells: list[tuple[int, str]] = []
    lines = 0
    for i, text in enumerate(texts):
        cells.append((lines, f"Cell In[{i}]"))
        rows = ["pass" if row[:1] in ("%", "!") else row for row in text.split("\n")]
        try:
            tree = ast.parse("\n".join(rows))
        except SyntaxError:
            tree = ast.Module([], [])
        body += ast.increment_lineno(tree, lines).body
        lines += len(rows)
    return body, cells


@dataclass
class _Reader:
    """A reader of statements, in their order, that keeps the status of each name."""

    file: str
    space: Mapping[str, Any]
    depth: int
    source: Any
    tapes: set[str] = field(default_factory=set)  # the names of the tape
    sources: set[str] = field(default_factory=set)
    last: float = math.inf  # the line at which the question is asked
    cells: list[tuple[int, str]] = field(default_factory=list)  # of a notebook
    states: dict[str, Status] = field(default_factory=dict)
    bound: dict[str, int] = field(default_factory=dict)  # by name, its last line
    gradients: set[str] = field(default_factory=set)  # names of what tapes returned
    statement: Any = None
    blocks: list[range] = field(default_factory=list)  # the lines in which the tape records
    watched: int | None = None  # the line at which it watches the source
    paused: bool = False
    results: list[Status] = field(default_factory=list)  # of what is returned

    # Statements ------------------------------------------------------------------------------

    def find_blocks(self, body: list[ast.stmt]) -> None:
        """Find where the tape records and watches, and where the source gets its names."""
        for statement in body:
            node: Any
            for node in ast.walk(statement):
                if isinstance(getattr(node, "ctx", None), ast.Store) and node.lineno <= self.last:
                    name = ast.unparse(node)
                    if name in self.sources:
                        self.bound[name] = max(node.lineno, self.bound.get(name, 0))
                if isinstance(node, ast.With):
                    parts = [item.optional_vars for item in node.items]
                    parts += [item.context_expr for item in node.items]
                    if {part.id for part in parts if isinstance(part, ast.Name)} & self.tapes:
                        self.blocks.append(range(node.lineno, (node.end_lineno or 0) + 1))
                elif self._calls_tape(node, "watch") and self.sources & _loaded(node.args):
                    line = node.lineno
                    self.watched = line if self.watched is None else min(self.watched, line)

    def _calls_tape(self, node: ast.AST, method: str) -> bool:
        function = getattr(node, "func", None)
        if not isinstance(function, ast.Attribute) or function.attr != method:
            return False
        return isinstance(function.value, ast.Name) and function.value.id in self.tapes

    def read(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if statement.lineno <= self.last:
                self.statement = statement
                self._read_one(statement)

    def _read_one(self, statement: Any) -> None:
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            self._read_assignment(statement)
        elif isinstance(statement, ast.Expr):
            self._read_effect(statement.value)
        elif isinstance(statement, ast.Return):
            if statement.value is not None:
                self.results.append(self.status(statement.value))
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            for _ in range(2):  # the second pass uses results of the first
                self._bind(statement.target, self.status(statement.iter))
                self.read([*statement.body, *statement.orelse])
        elif isinstance(statement, (ast.While, ast.If)):
            for _ in range(1 + isinstance(statement, ast.While)):
                self.status(statement.test)
                self.read([*statement.body, *statement.orelse])
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            paused = self.paused
            self.paused = paused or any(
                self._calls_tape(item.context_expr, "stop_recording") for item in statement.items
            )
            self.read(statement.body)
            self.paused = paused
        elif isinstance(statement, ast.Try):
            handlers = [nested for handler in statement.handlers for nested in handler.body]
            self.read([*statement.body, *handlers, *statement.orelse, *statement.finalbody])

    def _read_assignment(self, statement: Any) -> None:
        if statement.value is None:
            return
        status = self.status(statement.value)
        augmented = isinstance(statement, ast.AugAssign)
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if augmented:
            status = join([status, self.status(statement.target)])
        if augmented or not isinstance(statement.value, (ast.Name, ast.Constant)):
            status = self._recorded_status(statement, status)
        values = getattr(statement.value, "elts", None)
        method = getattr(getattr(statement.value, "func", None), "attr", "")
        if method in ("gradient", "jacobian", "batch_jacobian"):
            self.gradients |= _loaded(targets)
        for target in targets:
            parts = getattr(target, "elts", None)
            if parts and values and len(parts) == len(values):
                for part, value in zip(parts, values, strict=True):
                    self._bind(part, self._recorded_status(value, self.status(value)))
            else:
                self._bind(target, status)

    def _recorded_status(self, node: Any, status: Status) -> Status:
        """Return the status of an expression that was computed where the tape may not record."""
        if status != FLOWS:
            return status
        if self.paused:
            return self._cut("is computed inside tape.stop_recording()", node)
        if not self.blocks:
            return status
        if node.lineno < min(block.start for block in self.blocks):
            return self._cut("is computed before the tape records", node)
        if not any(node.lineno in block for block in self.blocks):
            return self._cut("is computed after the tape closed", node)
        if self.watched is not None and node.lineno < self.watched:
            file, line = self._location(self.watched)
            where = f"at line {line}" + (f" of {file}" if self.cells else "")
            return self._cut(f"is computed before tape.watch is called, {where}", node)
        return status

    def _bind(self, target: Any, status: Status) -> None:
        if isinstance(target, (ast.Name, ast.Attribute)):
            name = ast.unparse(target)
            if name in self.bound:  # after its last binding the name means the source
                status = FLOWS if target.lineno == self.bound[name] else None
            self.states[name] = status
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self._bind(element, status)
        elif isinstance(target, ast.Starred):
            self._bind(target.value, status)
        elif isinstance(target, ast.Subscript):
            name = _root(target)
            if status == FLOWS and isinstance(self.space.get(name), np.ndarray):
                words = f"writes values into the NumPy array `{name}`"
                status = self._cut(words, self.statement)
            self._add(name, status)

    def _add(self, name: str, status: Status) -> None:
        if status is not None:
            self.states[name] = join([self.states.get(name), status])

    def _read_effect(self, node: ast.expr) -> None:
        status = self.status(node)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return
        owner, method = node.func.value, node.func.attr
        incoming = join(map(self.status, node.args))
        if method in _ASSIGNMENTS and incoming is not None:
            name = ast.unparse(owner)
            words = f"assigns to the Variable `{name}`, which is not differentiated"
            status = self._cut(words, node) if incoming == FLOWS else incoming
            self.states[_root(owner) if isinstance(owner, ast.Subscript) else name] = status
        elif method in _ADDERS:
            self._add(_root(owner), incoming)

    # Expressions -----------------------------------------------------------------------------

    def status(self, node: Any) -> Status:
        if isinstance(node, ast.Name):
            return self.states.get(node.id)
        if isinstance(node, ast.Attribute):
            attribute = self.states.get(ast.unparse(node))
            if attribute is not None or node.attr in _OF_TYPE:
                return attribute
            return self.status(node.value)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.IfExp):
            return join([self.status(node.body), self.status(node.orelse)])
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            for loop in node.generators:
                self._bind(loop.target, self.status(loop.iter))
            parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
            return join(map(self.status, parts))
        if isinstance(node, ast.NamedExpr):
            status = self.status(node.value)
            self._bind(node.target, status)
            return status
        if isinstance(node, (ast.Lambda, ast.Constant, ast.JoinedStr)):
            return None
        status, words = join(map(self.status, ast.iter_child_nodes(node))), ""
        if isinstance(node, ast.Compare):
            words = "is a comparison, which has no derivative"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            words = "has no derivative"
        return self._cut(words, node) if words and status == FLOWS else status

    def _call(self, node: ast.Call) -> Status:
        arguments = [*node.args, *[keyword.value for keyword in node.keywords]]
        statuses = [self.status(argument) for argument in arguments]
        function = self._resolve(node.func)
        owner = self.status(node.func.value) if isinstance(node.func, ast.Attribute) else None
        status = join([*statuses, owner])
        name = ast.unparse(node.func).rpartition(".")[2]
        bound = self._method(node.func) if self.source is not None else None
        if bound is not None and (status is None or status == FLOWS):
            read = self._read_function(bound[0], node, bound[1])
            return read if owner != FLOWS or read is not None else FLOWS
        if status is None and self._captures(function):
            return self._read_function(function, node)
        if status != FLOWS:
            return status
        if name in _OF_TYPE and _package(function) in ("tinygrad_cg", "numpy", "builtins"):
            return None
        words = self._words(function, name, node, owner == FLOWS)
        if words:
            return self._cut(words, node)
        return self._read_function(function, node) if owner != FLOWS else FLOWS

    def _words(self, function: Any, name: str, node: ast.Call, of_tensor: bool) -> str:
        """Return why a call of this function has no derivative, or "" if it has one."""
        converts = any(function is converter for converter in (float, int, bool, complex))
        if converts or (of_tensor and name in _OUT):
            return "takes the value out of the record"
        package = _package(function)
        if isinstance(function, BuiltinFunctionType) and package == "math":
            return "takes the value as a number"
        makes_array = function is np.ndarray or name in _CONSTRUCTORS
        is_scalar = isinstance(function, type) and issubclass(function, np.generic)
        if (package == "numpy" and makes_array) or is_scalar:
            return "takes the value as a NumPy array"
        if name == "stop_gradient":
            return "detaches its result"
        if name in ("cast", "astype", "saturate_cast"):
            dtype = self._dtype([*node.args[not of_tensor :], *[k.value for k in node.keywords]])
            if dtype is not None and not is_differentiable(dtype):
                return f"has the dtype {dtype}, which has no gradient"
            return ""
        own = getattr(getattr(function, "primitive", None), "rules", True) is None
        if of_tensor or isinstance(function, np.ufunc) or package in ("tinygrad_cg", "numpy"):
            ops.load_all()
            own = own or (name in OPS and OPS[name].rules is None)
        return "has no derivative" if own else ""

    def _dtype(self, nodes: Iterable[ast.expr]) -> Any:
        for node in nodes:
            value = self._resolve(node)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                value = node.value
            if value is None:
                continue
            try:
                return np.dtype(value)
            except TypeError:
                continue
        return None

    def _resolve(self, node: Any) -> Any:
        """Return what a dotted name stands for: a name, or one in modules; else None."""
        if isinstance(node, ast.Name):
            return None if node.id in self.states else self.space.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._resolve(node.value)
            if isinstance(owner, ModuleType):
                return getattr(owner, node.attr, None)
        return None

    def _method(self, node: ast.expr) -> tuple[FunctionType, Any] | None:
        """Return the user's function that a call of an object, or of its method, runs."""
        owner, name = self._object(node), "__call__"
        if owner is None and isinstance(node, ast.Attribute):
            owner, name = self._object(node.value), node.attr
        if owner is None or isinstance(owner, (type, ModuleType, FunctionType)):
            return None
        function = inspect.getattr_static(type(owner), name, None)
        if not isinstance(function, FunctionType) or is_ours(function.__code__.co_filename):
            return None
        return function, owner

    def _object(self, node: ast.expr) -> Any:
        """Return the object that a dotted name stands for, without running any code."""
        if isinstance(node, ast.Name):
            return self.space.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self._object(node.value)
            if isinstance(owner, ModuleType):
                return None
            return getattr(owner, "__dict__", {}).get(node.attr)
        return None

    def _read_function(self, function: Any, node: ast.Call, owner: Any = None) -> Status:
        """Return the status of a call's result, found in the function's own text."""
        if type(function).__name__ == "Function":  # of `function`; custom rules are not read
            function = getattr(function, "__wrapped__", None)
        if not isinstance(function, FunctionType) or is_ours(function.__code__.co_filename):
            return FLOWS
        if self.depth >= DEPTH or any(isinstance(arg, ast.Starred) for arg in node.args):
            return FLOWS
        code = function.__code__
        space = {**vars(builtins), **function.__globals__, **closure(function)}
        reader = _Reader(code.co_filename, space, self.depth + 1, self.source)
        try:
            keywords = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg}
            arguments = node.args if owner is None else [ast.Constant(None), *node.args]
            bound = inspect.signature(function).bind(*arguments, **keywords)
        except (TypeError, ValueError):
            return FLOWS
        names = {*code.co_names, *code.co_freevars}
        reader.states = {name: FLOWS for name in names if space.get(name) is self.source}
        if owner is not None:
            first = code.co_varnames[0]
            space[first] = owner
            for path in _paths(first, owner, self.source):
                reader.states[path] = FLOWS
        for name, argument in bound.arguments.items():
            if owner is not None and name == first:
                continue
            parts = argument.values() if isinstance(argument, dict) else argument
            several = parts if isinstance(argument, (tuple, dict)) else [argument]
            reader.states[name] = join(map(self.status, several))
        definition = definition_of(code)
        if definition is None:
            return FLOWS
        if isinstance(definition, ast.Lambda):
            return reader.status(definition.body)
        reader.read(definition.body)
        return join(reader.results)

    def _captures(self, function: Any) -> bool:
        """Return whether a user's function reads the source without taking it as an argument."""
        code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
        if code is None or is_ours(code.co_filename):
            return False
        return any(value is self.source for value in captures_of(function).values())

    def _cut(self, words: str, node: Any) -> DetachPoint:
        text = ast.unparse(node)
        text = text if len(text) <= 60 else f"{text[:57]}..."
        return DetachPoint(words, *self._location(node.lineno), text)

    def _location(self, line: int) -> tuple[str, int]:
        """Return the file, or the notebook's cell, and the line there."""
        for before, name in reversed(self.cells):
            if line > before:
                return name, line - before
        return self.file, line


def captures_of(function: Any) -> dict[str, Any]:
    """Return the values of a function's globals and closure that its code uses, by name."""
    function = inspect.unwrap(function) if callable(function) else None
    code = getattr(function, "__code__", None)
    if code is None:
        return {}
    namespace = getattr(function, "__globals__", {})
    return {name: namespace[name] for name in code.co_names if name in namespace} | closure(
        function
    )


def _package(function: Any) -> str:
    return (getattr(function, "__module__", None) or "").partition(".")[0]


def _root(node: Any) -> str:
    while isinstance(node, (ast.Subscript, ast.Attribute, ast.Starred)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _loaded(nodes: Iterable[ast.AST]) -> set[str]:
    return {child.id for node in nodes for child in ast.walk(node) if isinstance(child, ast.Name)}
