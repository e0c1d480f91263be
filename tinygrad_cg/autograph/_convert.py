"""Transformation of functions whose control flow tensors may decide.

1. Before `function` traces a Python function, it calls `has_branches` (`_detection.py`), which
   reads compiled code and calls nothing. A function without branches is not transformed. If a
   function that detection did not find asks for a value all the same, the function is transformed,
   and traced again.
2. `_rules/user_source.py` finds the syntax tree of a function by its first line; for lambdas also
   by the columns of the compiled instructions. `_names.py` finds the names that a statement
   assigns, and the names that are live after it.
3. `_transform.py` keeps each branch and loop as it was, and puts a question before it: ``if
   traced(t := x > 0)``. If Python decides, the answer is no and the user's own statement runs.
   Lines and columns stay those of the user. Calls go through `call`, which transforms functions.
4. If a tensor decides, a *site* runs (`_dispatch.py`, `_runs.py`). Its *regions*, such as both
   cases of an `if`, are compiled at that time, each as a function of the names it mentions. If a
   case returns, breaks or continues, the rest of its block becomes part of both cases. If that
   leaves a loop or a `with`, a `Flow` records it, and later statements are guarded by it.
5. Each region runs once as a trial, which adds nothing to the graph (`FunctionTrace.trial`). Its
   side effects, and those of the functions it calls, are undone (`_side_effects.py`). The results
   of all regions determine a type that tensors can carry (`_merging.py`). Then `cond` or
   `while_loop` runs the regions again, as functions of tensors.
6. A `for` over the rows of a tensor, or over a long range whose rounds are all alike
   (`_repeatable.py`), is tried as a loop of the program. If that fails, Python's own loop runs.
"""

from __future__ import annotations

import ast
import builtins
import copy
import functools
from collections import OrderedDict
from collections.abc import Callable
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType
from typing import Any

from .._core.transformed import Transformed
from .._rules.user_source import (
    NoSource,
    codes_in,
    compile_tree,
    find_definition,
    first_line,
)
from ..errors import is_ours
from ._detection import LEFT, function_of, is_left
from ._dispatch import Helper, dynamic_range, show
from ._runs import cells_of
from ._transform import factory, plain_body
from ._units import HELPER, INSIDE, Unit

_MAX_KEPT = 1000  # transformed functions
_kept: OrderedDict[int, tuple[CodeType, Any]] = OrderedDict()


def do_not_convert(func: Any = None) -> Any:
    """Decorate a function that `function` must not transform.

    Its `if`, `while` and `for` stay Python's: a tensor without a value cannot decide them. Modelled
    on ``tf.autograph.experimental.do_not_convert``.
    """
    if func is None:
        return do_not_convert
    if not callable(func):
        raise TypeError(f"do_not_convert decorates a function, got {type(func).__name__}")
    if isinstance(func, (FunctionType, type)):
        setattr(func, LEFT, True)
        return func

    @functools.wraps(func)
    def left(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    setattr(left, LEFT, True)
    return left


def convert(function: Any) -> Any:
    """Return the transformed function, or the function itself if there is nothing to transform."""
    if isinstance(function, functools.partial):
        inside = convert(function.func)
        if inside is function.func:
            return function
        return functools.partial(inside, *function.args, **function.keywords)
    if isinstance(function, MethodType):
        inside = convert(function.__func__)
        return function if inside is function.__func__ else MethodType(inside, function.__self__)
    if isinstance(function, Transformed):
        inside = convert(function.__wrapped__)
        return function if inside is function.__wrapped__ else function.remake(inside)
    if not isinstance(function, FunctionType):
        called = function_of(function)
        return function if called is None else convert(called)
    if is_left(function) or HELPER in function.__code__.co_freevars:
        return function
    transformed = _transformed(function)
    return function if isinstance(transformed, str) else _instance(transformed, function)


def reason(code: CodeType) -> str:
    """Return why a function runs as it was written; "" if it was transformed."""
    if HELPER in code.co_freevars:
        return ""
    cached = _kept.get(id(code))
    if cached is not None and isinstance(cached[1], str):
        return cached[1]
    return (
        f"`{code.co_name}` is not transformed, because its source is not available, because it "
        "belongs to another library or is called by one, or because it is marked with "
        "autograph.experimental.do_not_convert or autograph=False"
    )


def _transformed(function: FunctionType) -> Any:
    """Return the unit and code of a transformed function, or the reason why there is none."""
    code = function.__code__
    cached = _kept.get(id(code))
    if cached is not None:
        return cached[1]
    try:
        result: Any = _transform(function)
    except NoSource as error:
        result = str(error)
    _kept[id(code)] = code, result
    while len(_kept) > _MAX_KEPT:
        _kept.popitem(last=False)
    return result


def _transform(function: FunctionType) -> tuple[Unit, CodeType]:
    code = function.__code__
    tree: Any = find_definition(function)
    line = first_line(tree)
    owner = code.co_qualname.split(".")[-2:-1]
    if owner and owner[0] != "<locals>":
        tree = _Mangle(owner[0]).visit(copy.deepcopy(tree))
        tree.name = code.co_name
    if isinstance(tree, ast.Lambda):
        body = ast.copy_location(ast.Return(tree.body), tree.body)
        tree = ast.copy_location(ast.FunctionDef("<lambda>", tree.args, [body], []), tree)
    own = frozenset((*code.co_varnames, *code.co_cellvars))
    unit = Unit(code.co_name, tree, code.co_filename, own, frozenset(code.co_freevars))
    definition = copy.copy(tree)
    definition.name = INSIDE
    definition.args = _without_defaults(tree.args)
    definition.returns = None
    definition.body = plain_body(unit)
    mark = ast.Name(
        "staticmethod", ast.Load(), lineno=line, col_offset=0, end_lineno=line, end_col_offset=0
    )
    definition.decorator_list = [mark] if getattr(tree, "decorator_list", None) else []
    module = compile_tree(factory([*code.co_freevars, HELPER], definition), code)
    inside = next(candidate for candidate in codes_in(module) if candidate.co_name == INSIDE)
    return unit, inside.replace(co_name=code.co_name, co_qualname=code.co_qualname)


def _without_defaults(arguments: ast.arguments) -> ast.arguments:
    stripped = copy.deepcopy(arguments)
    stripped.defaults, stripped.kw_defaults = [], [None] * len(stripped.kwonlyargs)
    names: list[Any] = list(ast.iter_child_nodes(stripped))
    for argument in names:
        argument.annotation = None
    return stripped


class _Mangle(ast.NodeTransformer):
    """Mangles private names of a class as Python's compiler does."""

    def __init__(self, owner: str):
        self.prefix = f"_{owner.lstrip('_')}"

    def _mangle(self, node: Any) -> Any:
        self.generic_visit(node)
        for field in ("id", "attr", "arg", "name"):
            text = getattr(node, field, None)
            if isinstance(text, str) and text.startswith("__") and not text.endswith("__"):
                setattr(node, field, f"{self.prefix}{text}")
        return node

    visit_Name = visit_Attribute = visit_arg = visit_FunctionDef = visit_keyword = _mangle

    def visit_ClassDef(self, node: Any) -> Any:
        return node


def _instance(transformed: tuple[Unit, CodeType], function: FunctionType) -> FunctionType:
    """Return a transformed function with the cells, defaults and names of the original."""
    unit, code = transformed
    helper = Helper(unit, code, function.__globals__, call)
    cells = {**cells_of(function), HELPER: CellType(helper)}
    closure = tuple(cells[name] for name in code.co_freevars)
    instance = FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    instance.__kwdefaults__ = function.__kwdefaults__
    instance.__dict__.update(function.__dict__)
    instance.__qualname__, instance.__doc__ = function.__qualname__, function.__doc__
    instance.__module__, instance.__annotations__ = function.__module__, function.__annotations__
    return instance


def call(function: Any) -> Any:
    """Return the function that transformed code calls instead of `function`."""
    kind = type(function)
    if kind is FunctionType or kind is MethodType:
        if (
            kind is FunctionType
            and function.__name__ == "range"
            and is_ours(function.__code__.co_filename)
        ):
            return functools.partial(dynamic_range, function)
        of = function.__func__ if kind is MethodType else function
        if not isinstance(of, (FunctionType, Transformed)):
            return function
        if isinstance(of, FunctionType) and is_left(of):
            if is_ours(of.__code__.co_filename) and of.__module__.endswith(_TAKE_FUNCTIONS):
                return functools.partial(_with_functions, function)
            return function
        return convert(function)
    if function is builtins.print:
        return show
    if function is range:
        return functools.partial(dynamic_range, range)
    if function is map or function is functools.reduce:
        return lambda mapped, *args: function(call(mapped), *args)
    if kind is BuiltinFunctionType or isinstance(function, type):
        return function
    return convert(function)


_TAKE_FUNCTIONS = (
    *("batching", "control_flow", "differentiable", "functional", "_loops", "matrices"),
    *("recompute", "tracing.scans"),
)


def _with_functions(called: Callable, *args: Any, **kwargs: Any) -> Any:
    """Call a function of the library with its function arguments transformed."""
    kwargs = {key: _argument(value) for key, value in kwargs.items()}
    return called(*map(_argument, args), **kwargs)


def _argument(value: Any) -> Any:
    """Return an argument with its functions transformed, also those in lists and dictionaries."""
    if isinstance(value, (FunctionType, MethodType, Transformed)):
        return convert(value)
    if type(value) in (list, tuple):
        return type(value)(map(_argument, value))
    return {key: _argument(item) for key, item in value.items()} if type(value) is dict else value
