"""Where a single fault can be planted in the library, and the text that plants it."""

from __future__ import annotations

import ast
import copy
import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("tinygrad_cg", "kernels/tinygrad_cg_kernels", "kernels/tinygrad_cg_frontend")
SWAPPED = (ast.Sub, ast.Div, ast.FloorDiv, ast.MatMult, ast.Pow)
BOUNDS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
DTYPES = {
    "float64": "float32",
    "float32": "float64",
    "int64": "int32",
    "int32": "int64",
    "complex128": "complex64",
    "complex64": "complex128",
}
AXES = ("axis", "axes", "dim", "batch_dims")
WEIGHTS = {
    "swapped operands": 0.3,
    "dropped term": 0.5,
    "sign": 0.5,
    "off by one": 1.0,
    "swallowed error": 1.5,
    "dropped check": 2.0,
    "dtype": 2.0,
    "axis": 8.0,
}
"""The weight of each place of a kind: some kinds have a thousand times the places of others."""
COMMUTATIVE = ("add", "multiply", "maximum", "minimum", "max", "min", "equal", "not_equal")


class Fault(NamedTuple):
    """A fault: what it does to a statement, and the file's text between two offsets."""

    path: str
    function: str
    begins: int
    """The line where the innermost function begins; 0 for code that runs at import."""
    line: int
    kind: str
    statement: str
    number: int
    """Which of the faults of this kind in statements of this text in functions of this name."""
    start: int
    end: int
    text: str

    @property
    def name(self) -> str:
        """What stays the same when the code around the statement changes."""
        return f"{self.function}: {self.statement}: {self.kind} {self.number}"

    def plant(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


def choose(root: Path, count: int, seed: int) -> list[Fault]:
    """Return `count` faults of all packages; a seed gives the same where the code still stands."""
    faults = [fault for package in PACKAGES for fault in faults_below(root, package)]
    numbers: Counter[str] = Counter()
    ranked = []
    for fault in faults:
        numbers[fault.name] += 1
        fault = fault._replace(number=numbers[fault.name])
        digest = hashlib.sha256(f"{seed} {fault.name}".encode()).digest()
        share = (int.from_bytes(digest[:8], "big") + 1) / 2**64
        ranked.append((-math.log(share) / WEIGHTS[fault.kind], fault))
    return [fault for _, fault in sorted(ranked)[:count]]


def faults_below(root: Path, package: str) -> Iterator[Fault]:
    for path in sorted((root / package).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        yield from _File(name, path.read_text(encoding="utf-8")).faults()


def users(path: Path, fault: Fault) -> list[str]:
    """Return a function and those of its folder that call it, directly or not, nearest first.

    At the top of a module these are the functions that use the name which the statement assigns.
    """
    words: dict[str, set[str]] = defaultdict(set)
    for source in sorted(path.parent.glob("*.py")):
        for node in ast.parse(source.read_text(encoding="utf-8")).body:
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            if isinstance(node, ast.FunctionDef):
                words[node.name] |= names
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                words[node.targets[0].id] |= names
    begin = fault.function.partition(".")[0]
    if begin == "<module>":
        begin = fault.statement.partition(" ")[0]
    used = [begin]
    for name in used:
        used += [user for user, names in words.items() if name in names and user not in used]
    return used


class _File:
    """The places of one file."""

    def __init__(self, path: str, source: str):
        self.path, self.source = path, source
        self.lines = source.splitlines(keepends=True)
        self.offsets = [0]
        for line in self.lines:
            self.offsets.append(self.offsets[-1] + len(line))

    def faults(self) -> Iterator[Fault]:
        yield from self._of_body(ast.parse(self.source).body, "<module>", 0)

    def _of_body(self, body: list[ast.stmt], function: str, begins: int) -> Iterator[Fault]:
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([statement.lineno, *(d.lineno for d in statement.decorator_list)])
                name = statement.name if function == "<module>" else f"{function}.{statement.name}"
                yield from self._of_body(statement.body, name, first)
            elif isinstance(statement, ast.ClassDef):
                name = statement.name if function == "<module>" else f"{function}.{statement.name}"
                yield from self._of_body(statement.body, name, begins)
            elif not _is_for_type_checkers(statement):
                yield from self._of_statement(statement, function, begins)
                for part in ("body", "orelse", "finalbody"):
                    yield from self._of_body(getattr(statement, part, []), function, begins)
                for handler in getattr(statement, "handlers", []):
                    yield from self._of_body(handler.body, function, begins)

    def _of_statement(self, statement: ast.stmt, function: str, begins: int) -> Iterator[Fault]:
        text = ast.unparse(statement).splitlines()[0]
        for kind, node, new, first in _variants(statement, begins):
            start, end = self._offset(node.lineno, node.col_offset), self._end(node)
            yield Fault(self.path, function, first, node.lineno, kind, text, 0, start, end, new)

    def _offset(self, line: int, column: int) -> int:
        before = self.lines[line - 1].encode()[:column].decode()
        return self.offsets[line - 1] + len(before)

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)


Variant = tuple[str, ast.expr | ast.stmt, str, int]


def _is_for_type_checkers(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"


def _variants(statement: ast.stmt, begins: int) -> Iterator[Variant]:
    """Yield kinds of faults, nodes that are replaced, their new texts, and where they run."""
    if isinstance(statement, ast.Raise):
        yield "swallowed error", statement, "pass", begins
    elif isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Raise):
        yield "dropped check", statement.test, "False", begins
    for field, value in ast.iter_fields(statement):
        if field in ("body", "orelse", "finalbody", "handlers", "annotation", "msg", "exc"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.expr | ast.withitem):
                yield from _of_expression(node, begins, counts=False)


def _of_expression(node: ast.AST, begins: int, counts: bool) -> Iterator[Variant]:
    """Faults of an expression; `counts` says that its integers are positions or bounds."""
    if isinstance(node, ast.JoinedStr):  # its parts have no places of their own
        return
    if isinstance(node, ast.expr):
        for kind, new in _changes(node, counts):
            yield kind, node, f"({ast.unparse(new)})", begins
    if isinstance(node, ast.Lambda):
        yield from _of_expression(node.body, node.lineno, False)
        return
    inside = isinstance(node, ast.Compare | ast.Slice) or (
        isinstance(node, ast.Call) and ast.unparse(node.func) == "range"
    )
    for child in ast.iter_child_nodes(node):
        inner = inside or (isinstance(node, ast.Subscript) and child is node.slice)
        if isinstance(child, ast.keyword):
            child = child.value
        yield from _of_expression(child, begins, inner)


def _changes(node: ast.expr, counts: bool) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.BinOp):
        yield from _changes_of_terms(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield "sign", node.operand
    elif isinstance(node, ast.BoolOp):
        for index in range(len(node.values)):
            rest = node.values[:index] + node.values[index + 1 :]
            yield "dropped term", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in BOUNDS:
        yield "off by one", _with(node, ops=[BOUNDS[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.Constant):
        if type(node.value) is int and counts:
            yield "off by one", ast.Constant(node.value + 1)
        elif isinstance(node.value, str) and node.value in DTYPES:
            yield "dtype", ast.Constant(DTYPES[node.value])
    elif isinstance(node, ast.Attribute) and node.attr in DTYPES:
        yield "dtype", _with(node, attr=DTYPES[node.attr])
    elif isinstance(node, ast.Call):
        yield from _changes_of_arguments(node)


def _changes_of_terms(node: ast.BinOp) -> Iterator[tuple[str, ast.expr]]:
    texts = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple)
    if isinstance(node.op, ast.Add | ast.Sub):
        is_text = any(
            isinstance(side, texts) and not isinstance(getattr(side, "value", ""), int | float)
            for side in (node.left, node.right)
        )
        if not is_text:
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield "sign", _with(node, op=other)
        yield "dropped term", node.left
    if isinstance(node.op, SWAPPED):
        yield "swapped operands", _with(node, left=node.right, right=node.left)


def _changes_of_arguments(node: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    first = node.args[:2]
    plain = not any(isinstance(arg, ast.Starred) for arg in first)
    called = ast.unparse(node.func).rpartition(".")[2]
    exempt = (*COMMUTATIVE, "isinstance", "getattr", "hasattr", "range")
    differ = len({ast.dump(arg) for arg in first}) == 2
    if differ and plain and called not in exempt:
        yield "swapped operands", _with(node, args=[*reversed(first), *node.args[2:]])
    for index, keyword in enumerate(node.keywords):
        if keyword.arg in AXES:
            try:
                axis = ast.literal_eval(keyword.value)
            except ValueError:
                continue
            if type(axis) is int:
                keywords = list(node.keywords)
                keywords[index] = ast.keyword(keyword.arg, ast.Constant(1 if axis == 0 else 0))
                yield "axis", _with(node, keywords=keywords)


def _with(node: ast.expr, **fields: object) -> ast.expr:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed
