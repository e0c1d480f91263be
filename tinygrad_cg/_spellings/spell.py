"""Spellings: the operations under other libraries' names, parameters and defaults, from tables.

A row of a table is ``name(parameters) = expression``, or ``name = operation`` where nothing but the
name differs. Several names are aliases, unless the expression has ``{}``: then the row is one for
each name, which stands there. A row goes on in lines that are indented more. An expression sees all
operations, the converters of `adapt`, dtypes, and what the module that holds the table has defined
before it. A function that differs by its name alone stands in the operation's record, "math.acos".

A function whose expression is one operation on its own parameters takes the operation's text,
in its own parameters' names. Any other row ends with a text of its own: ``... # What it gives.``
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from types import CodeType
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.texts import compiled

from .. import _ops as ops
from .._core.examples import with_example, without_example
from .._core.primitive import OPS
from .._core.suggestions import REQUIRED, own_signature, refuse_arguments, refuse_name
from .._ops import operators, protocol
from . import adapt


def _public(modules: Iterable[Any]) -> dict[str, Any]:
    """Return what modules define under public names."""
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if not name.startswith("_")
    }


_OPERATIONS = _public(module for module in ops.MODULES if module not in (operators, protocol))
_NAMES = {id(function): name for name, function in _OPERATIONS.items()}
_DTYPES = {
    name: np.dtype(name) for name in ("int32", "int64", "uint32", "uint64", "float32", "float64")
}
_REFUSAL = {"refuse_arguments": refuse_arguments, "REQUIRED": REQUIRED}
_SCOPE = {**_DTYPES, **vars(adapt), **_REFUSAL}
_CHECK = " if others: refuse_arguments({0!r}, {1!r}, others)\n"
_MISSING = """ if axis is REQUIRED:
  raise TypeError("{0}() missing 1 required positional argument: 'axis'")
"""
_MAKER = (
    r"(?:shape|dims|num_rows|start|object|N|input, dtype=None|(?:a|prototype)\b.*\bshape=None)\b"
)
_KNOWN_ELSEWHERE = re.compile(rf"\b(?:axis|keepdims)\b|^{_MAKER}")
"""Parameters of functions that other libraries have with further names, which get an answer."""
_REQUIRED_AXIS = re.compile(r"\baxis(?=[,)])")
_TAKES_ALL = re.compile(r"\*\w")  # arguments of any number or name
_NEXT_ROW = re.compile(r"\n {4}(?=\S)")
_MENTION = re.compile(r"\b(?:x|y|low|high)\b|(?<=`)\w+(?=`)")  # of a parameter in a text


def _spelled(namespace: str, readings: dict[int, str]) -> Iterator[str]:
    """Yield a row for each operation whose record names this namespace."""
    for primitive in OPS.values():
        spellings = [one.rpartition(".") for one in primitive.spellings]
        names = " ".join([name for module, _, name in spellings if module == namespace])
        if names:
            count, function = len(primitive.inputs), _NAMES[id(primitive.function)]
            is_of_reals = getattr(primitive.kernel, "kind", "") == "float"
            reading = readings.get(-count if is_of_reals else count) or readings.get(count)
            yield names + (reading.format(function) if reading else f" = {function}")


def _rows(table: str) -> Iterator[str]:
    """Yield each row of a table in one line; one with ``{}`` once for each of its names."""
    for lines in filter(str.strip, _NEXT_ROW.split(table)):
        row = " ".join(lines.split())
        names = re.split(r"\(| = ", row, maxsplit=1)[0]
        if "{}" in row:
            yield from (name + row[len(names) :].replace("{}", name) for name in names.split())
        else:
            yield row


def spell(
    namespace: dict[str, Any],
    table: str,
    readers: Container[str] = (),
    records: str = "",
    readings: dict[int, str] | None = None,
    lazily: bool = False,
) -> None:
    """Define the functions of a table in a module's `namespace`, and add them to `__all__`.

    `readers` are functions that only turn parameters into tensors: for the text of a function
    a parameter that is read so is the parameter. `records` is what operations' records call this
    namespace: those that name it are defined too. `readings` says how it reads their operands, by
    their number: ``{1: "(x, /) = {}(_array(x))"}`` is a row less its names; -1 is for functions of
    reals, if theirs differs. Without any, the function is the operation itself. With `lazily` the
    module's ``__getattr__`` defines each when it is asked for: for code elsewhere, not the module's
    own.
    """
    rows: dict[str, tuple[str, str, str]] = {}  # parameters, expression and text, by name
    targets: dict[str, str] = {}  # of all other names: a row's, or an operation's
    for row in (*_spelled(records, readings or {}), *_rows(table)):
        left, _, right = row.partition(" = ")
        expression, _, text = right.partition(" # ")
        names, bracket, parameters = left.partition("(")
        name, *others = names.split()
        if bracket:
            rows[name] = parameters, expression, text
            targets.update(dict.fromkeys(others, name))
        else:
            targets.update(dict.fromkeys([name, *others], expression))
    scope, made = _SCOPE | _OPERATIONS | namespace, {}

    def define(name: str) -> Any:
        target = targets.get(name, name)
        if target not in rows:
            return scope[target] if target in scope else _operation(target)
        if target not in made:
            parameters, expression, text = rows[target]
            checks, given, own = "", parameters, re.findall(r"\w+(?=[,=)])", parameters)
            if _KNOWN_ELSEWHERE.search(parameters) and not _TAKES_ALL.search(parameters):
                checks = _CHECK.format(target, tuple(own))
                given = ", **others)".join(given.rsplit(")", 1))
                if _REQUIRED_AXIS.search(given):
                    given = _REQUIRED_AXIS.sub("axis=REQUIRED", given)
                    checks += _MISSING.format(target)
            source = f"def {target}({given}:\n{checks} return {expression}\n"
            code = compiled(source, f"<{namespace['__name__']}.{target}>")
            result = re.findall(r"\w+", parameters.rpartition("->")[2])
            later = (_names(code).union(result) & ops.HOMES.keys()) - scope.keys()
            scope.update({one: _operation(one) for one in later})
            exec(code, scope, made)
            if checks:
                made[target].__signature__ = own_signature(made[target])
            home = namespace["__name__"].partition(".")[2]
            text = text or _inherited(expression, readers)
            made[target].__doc__ = with_example(f"{home}.{target}", text) or None
        return made[target]

    public = [*rows, *(name for name in targets if name not in rows)]
    namespace["__all__"] = [*namespace.get("__all__", ()), *public]
    namespace["__dir__"] = lambda: sorted(namespace["__all__"])
    if lazily:
        namespace["__getattr__"] = _resolver(namespace, frozenset(public), define)
    else:
        namespace.update({name: define(name) for name in public})
        namespace.setdefault("__getattr__", partial(refuse_name, namespace["__name__"]))


def _resolver(
    namespace: dict[str, Any], public: Container[str], define: Callable[[str], Any]
) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``: first for these names, then what the module had."""
    others = namespace.get("__getattr__") or partial(refuse_name, namespace["__name__"])

    def find_attribute(name: str) -> Any:
        if name in public:
            return namespace.setdefault(name, define(name))
        return others(name)

    return find_attribute


def _names(code: CodeType) -> set[str]:
    """Return the names that a definition mentions, also within functions in it."""
    inner = [one for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _operation(name: str) -> Any:
    """Return the operation of a name, whose module is loaded if it is not; KeyError for others."""
    if name not in _OPERATIONS:
        _OPERATIONS[name] = ops.find(name)
    return _OPERATIONS[name]


def _inherited(expression: str, readers: Container[str]) -> str:
    """Return an operation's own text, if it alone is called, on nothing but parameters."""
    call = ast.parse(expression, mode="eval").body
    name = _called(call)
    if not (name in _OPERATIONS or name in ops.HOMES) or not isinstance(call, ast.Call):
        return ""
    operation = _operation(name)
    positional = [name for one in call.args for name in _parameters(one, readers)]
    names = inspect.unwrap(operation).__code__.co_varnames
    given = dict(zip(names, positional, strict=False))
    given |= {str(one.arg): _parameters(one.value, readers)[0] for one in call.keywords}
    if not all(given.values()):
        return ""
    text = without_example(inspect.getdoc(operation) or "")
    return _MENTION.sub(lambda found: given.get(found[0], found[0]), text)


def _called(call: ast.expr) -> str:
    """Return the name of the function that is called; empty for anything else."""
    return call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""


def _parameters(argument: ast.expr, readers: Container[str]) -> list[str]:
    """Return the parameters that an argument stands for; an empty name for anything else."""
    if isinstance(argument, ast.Name):
        return [argument.id]
    if isinstance(argument, ast.Starred):
        return _parameters(argument.value, readers)
    if isinstance(argument, ast.Call) and _called(argument) in readers:
        return [name for one in argument.args for name in _parameters(one, readers)]
    return [""]
