"""Spellings: the operations under other libraries' names, parameters and defaults, from tables.

A row of a table is ``name(parameters) = expression``, or ``name = operation`` where nothing
but the name differs. Several names are aliases; a row goes on in lines that are indented more.
An expression sees all operations, the converters of `adapt`, dtypes, and what the module that
holds the table has defined before it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from . import adapt
from .ops import complex, creation, elementwise, indexing, linalg, random, reductions, shape

_MODULES = (complex, creation, elementwise, indexing, linalg, random, reductions, shape)
_OPERATIONS = {
    name: value
    for module in _MODULES
    for name, value in vars(module).items()
    if not name.startswith("_")
}
_DTYPES = {
    name: np.dtype(name) for name in ("int32", "int64", "uint32", "uint64", "float32", "float64")
}
_SCOPE = {**_DTYPES, **vars(adapt), **_OPERATIONS}
_NEXT_ROW = re.compile(r"\n {4}(?=\S)")
_WORD = re.compile(r"[a-z]\w*")


def spell(namespace: dict[str, Any], table: str) -> None:
    """Define the functions of a table in a module's `namespace`, and add them to `__all__`."""
    scope = _SCOPE | namespace
    targets: dict[str, str] = {}
    expressions: dict[str, str] = {}
    source = []
    for row in filter(str.strip, _NEXT_ROW.split(table)):
        left, _, expression = " ".join(row.split()).partition(" = ")
        names, bracket, parameters = left.partition("(")
        name, *others = names.split()
        if bracket:
            source.append(f"def {name}({parameters}: return {expression}\n")
            expressions[name] = expression
            targets.update(dict.fromkeys(others, name))
        else:
            targets.update(dict.fromkeys([name, *others], expression))
    made: dict[str, Any] = {}
    exec(compile("".join(source), f"<{namespace['__name__']}>", "exec"), scope, made)
    for name, expression in expressions.items():
        made[name].__doc__ = _document(expression, scope)
    made |= {name: made.get(target) or scope[target] for name, target in targets.items()}
    namespace.update(made, __all__=[*namespace.get("__all__", ()), *made])


def _document(expression: str, scope: dict[str, Any]) -> str:
    """What the operation in an expression says of itself, and the expression."""
    defined = f"Defined as ``{expression}``, in terms of the library's own operations."
    for word in _WORD.findall(expression):
        text = getattr(_OPERATIONS.get(word), "__doc__", None)
        if word in scope and text:
            return f"{text}\n\n{defined}"
    return defined
