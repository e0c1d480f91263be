"""Spellings: the operations under other libraries' names, parameters and defaults, from tables.

A row of a table is ``name(parameters) = expression``, or ``name = operation`` where nothing
but the name differs; several names before the bracket are aliases. An expression sees all
operations, and what the module that holds the table has defined so far (its converters).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .ops import complex, creation, elementwise, indexing, linalg, random, reductions, shape

_MODULES = (complex, creation, elementwise, indexing, linalg, random, reductions, shape)
_OPERATIONS = {
    name: value
    for module in _MODULES
    for name, value in vars(module).items()
    if not name.startswith("_")
}
_WORD = re.compile(r"[a-z]\w*")


def spell(namespace: dict[str, Any], table: str) -> list[str]:
    """Define the functions of a table in a module's `namespace`; returns their names."""
    scope = _OPERATIONS | namespace
    aliases, functions, source = {}, {}, []
    for row in filter(None, map(str.strip, table.splitlines())):
        left, _, expression = row.partition(" = ")
        names, bracket, parameters = left.partition("(")
        name, *others = names.split()
        aliases.update(dict.fromkeys(others, name))
        if bracket:
            source.append(f"def {name}({parameters}:\n    return {expression}\n")
            functions[name] = expression
        else:
            aliases[name] = expression
    exec(compile("".join(source), f"<spellings of {scope['__name__']}>", "exec"), scope, made := {})
    for name, expression in functions.items():
        made[name].__doc__ = _document(expression, scope)
    for name, target in aliases.items():
        made[name] = made[target] if target in made and target != name else scope[target]
    namespace.update(made)
    return list(made)


def _document(expression: str, scope: dict[str, Any]) -> str:
    """The docstring of the operation that an expression is about, and the expression."""
    for word in _WORD.findall(expression):
        operation: Callable | None = scope.get(word)
        if getattr(operation, "__module__", "").startswith("tinygrad_cg.ops"):
            if operation.__doc__:
                return f"{operation.__doc__}\n\n    Defined as ``{expression}``.\n"
            break
    return f"Defined as ``{expression}``."
