"""Detection of control flow in compiled code. Functions without any are not transformed.

Most programs have none, so this module does not import the transformation.
"""

from __future__ import annotations

import functools
import inspect
import sys
from opcode import opmap
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from .._core.transformed import Transformed
from .._rules.user_source import codes_in
from ..errors import is_ours

LEFT = "__tg_not_converted__"
"""The attribute that marks what is to run as it is."""

_BRANCHES = frozenset(
    number
    for name, number in opmap.items()
    if ("JUMP" in name and ("IF" in name or "FOR" in name)) or name in ("FOR_ITER", "UNARY_NOT")
)
_FOREIGN = frozenset(
    (*sys.stdlib_module_names, "numpy", "numba", "llvmlite", "scipy", "pytest", "_pytest")
) - {"__main__"}
_CHOICES = ("cond", "case", "switch_case", "switch")
_TAKE_FUNCTIONS = frozenset(
    (*_CHOICES, "while_loop", "fori_loop", "scan", "foldl", "foldr", "map_fn", "map")
)
_STORES = frozenset(opmap[name] for name in ("STORE_ATTR", "STORE_GLOBAL", "STORE_SUBSCR"))
_STORE_CELL = opmap["STORE_DEREF"]
_CHANGING = frozenset(("append", "extend", "insert", "update", "setdefault", "add"))
_ASYNC = 0x80 | 0x200


def is_left(function: Any) -> bool:
    """Return whether a function runs as it is: it is marked, or belongs to a library."""
    code = function.__code__
    if getattr(function, LEFT, False) or is_ours(code.co_filename):
        return True
    home = (function.__module__ or "").partition(".")[0]
    return home in _FOREIGN or code.co_flags & _ASYNC != 0


def has_branches(function: FunctionType) -> bool:
    """Return whether a function, or a function that it visibly calls, has control flow.

    This reads the compiled code and looks up names; it calls nothing. Functions with side effects
    count if there are also loops or choices as functions.
    """
    seen: set[Any] = set()
    return _has_branches(function, seen) or {"takes functions", "changes"} <= seen


def _has_branches(function: Any, seen: set[Any]) -> bool:
    instance = None
    if isinstance(function, MethodType):
        instance, function = function.__self__, function.__func__
    while isinstance(function, Transformed):
        function = function.__wrapped__
    if isinstance(function, MethodType):
        return _has_branches(function, seen)
    if not isinstance(function, FunctionType) or id(function) in seen or is_left(function):
        return False
    seen.add(id(function))
    codes = [function.__code__, *codes_in(function.__code__)]
    names = {name for code in codes for name in code.co_names}
    if "print" in names or any(map(_branches, codes)):
        return True
    if not names.isdisjoint(_TAKE_FUNCTIONS):
        seen.add("takes functions")
    if any(map(_changes, codes)):
        seen.add("changes")
    mentioned = [function.__globals__.get(name) for name in names]
    for cell in function.__closure__ or ():
        try:
            mentioned.append(cell.cell_contents)
        except ValueError:
            continue
    for value in mentioned:
        if isinstance(value, ModuleType) and not _is_foreign(value.__name__):
            mentioned += [vars(value).get(name) for name in names]
    if instance is not None:
        mentioned += [getattr(type(instance), name, None) for name in names]
        mentioned += [getattr(instance, "__dict__", {}).get(name) for name in names]
    if any(_has_changing_methods(value, names) for value in mentioned):
        seen.add("changes")
    return any(_has_branches(function_of(value), seen) for value in mentioned)


def _branches(code: CodeType) -> bool:
    """Return whether compiled code has branches; the loop of a comprehension does not count."""
    within = code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
    return not (_BRANCHES - {opmap["FOR_ITER"]} if within else _BRANCHES).isdisjoint(
        code.co_code[::2]
    )


def _has_changing_methods(value: Any, names: set[str]) -> bool:
    """Return whether a method of these names changes its object, which is the user's."""
    owner = value if isinstance(value, type) else type(value)
    if is_ours(getattr(sys.modules.get(owner.__module__), "__file__", None) or "") or _is_foreign(
        owner.__module__
    ):
        return False
    methods = [inspect.getattr_static(owner, name, None) for name in names]
    return any(isinstance(method, FunctionType) and _changes(method.__code__) for method in methods)


def _changes(code: CodeType) -> bool:
    """Return whether compiled code assigns attributes, elements or names outside of itself."""
    for instruction, argument in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        if instruction in _STORES:
            return True
        if instruction == _STORE_CELL:
            free = argument - len(code.co_varnames)  # arguments that are cells are in both
            if free >= len(set(code.co_cellvars) - set(code.co_varnames)):
                return True
    return not _CHANGING.isdisjoint(code.co_names)


def _is_foreign(module: str) -> bool:
    top = module.partition(".")[0]
    return top in _FOREIGN or top == __name__.partition(".")[0]


def function_of(value: Any) -> Any:
    """Return the function that calling a value runs, as far as it is visible."""
    if isinstance(value, (FunctionType, MethodType, Transformed)):
        return value
    if isinstance(value, functools.partial):
        return function_of(value.func)
    if isinstance(value, (type, ModuleType, BuiltinFunctionType)) or not callable(value):
        return None
    called = inspect.getattr_static(type(value), "__call__", None)
    if isinstance(called, FunctionType) and not is_left(called):
        return MethodType(called, value)
    return None
