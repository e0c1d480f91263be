"""The names, examples and `__getattr__` of a module of functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from types import FunctionType
from typing import Any, TypeVar

from ..._core.annotations import TensorLike
from ..._core.examples import EXAMPLES, with_example, without_example
from ..._core.primitive import OPS, Primitive
from ..._core.suggestions import (
    hides_others,
    reads_own_arguments,
    refuse_arguments,
    refuse_name,
)
from ..._core.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")
_MENTION = re.compile(r"\b(?:x|y|low|high)\b|(?<=`)\w+(?=`)")  # of a parameter in a docstring


def export_functions(
    namespace: dict[str, Any], find: Callable[[str], Any] | None = None
) -> list[str]:
    """Return the names of the functions that a module defines; their docstrings get examples.

    Functions of an axis, a seed or features answer keywords of other libraries. ``dir`` shows what
    the module's `__all__` has. `find` returns what another name stands for; without it that is an
    error that says what to use.
    """
    home, names = namespace["__name__"], own_functions(namespace)
    for name in names:
        namespace[name] = function = with_own_keywords(namespace[name])
        key = f"{home.partition('.')[2]}.{name}"
        if key in EXAMPLES:
            function.__doc__ = with_example(key, inspect.cleandoc(function.__doc__))
    namespace.setdefault("__all__", names)
    namespace["__dir__"] = lambda: sorted(namespace["__all__"])
    namespace["__getattr__"] = find or partial(refuse_name, home)
    return names


def find_later(namespace: dict[str, Any], homes: dict[str, str], name: str) -> Any:
    """Return a function of a module of `_ops` that is loaded now: `homes` has it by names.

    Other names are an error that says what to use.
    """
    if name not in homes:
        refuse_name(namespace["__name__"], name)
    home = import_module(f"{__name__.rsplit('.', 2)[0]}.{homes[name]}")
    namespace[name] = function = getattr(home, name)
    return function


def own_functions(namespace: dict[str, Any]) -> list[str]:
    """Return the names of the public functions that a module defines."""
    home = namespace["__name__"]
    return [
        name
        for name, value in namespace.items()
        if isinstance(value, FunctionType) and value.__module__ == home and name[0] != "_"
    ]


@cache
def with_own_keywords(function: Any) -> Any:
    """Return a function so that it answers keywords of other libraries: of an axis, a seed
    or features.

    Functions that take few microseconds do so themselves: they are decorated with `hides_others`.
    """
    code = inspect.unwrap(function).__code__
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    has_any = {"axis", "keepdims", "seed", "features"} & {*own}
    if not has_any or code.co_flags & inspect.CO_VARKEYWORDS or hasattr(function, "__signature__"):
        return function
    return reads_own_arguments(function)


def named_by_records(namespace: str) -> dict[str, Primitive]:
    """Return the primitives whose records name a namespace, by their names there."""
    return {
        spelling.rpartition(".")[2]: primitive
        for primitive in OPS.values()
        for spelling in primitive.spellings
        if spelling.rpartition(".")[0] == namespace
    }


def functions_of_records(
    namespace: str, make: Callable[[Primitive], Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    """Return what `make` makes of the primitives that records name, by their names there.

    The names of one primitive are one function.
    """
    primitives = named_by_records(namespace)
    functions = {}
    for name, primitive in primitives.items():
        if primitive.name not in functions:
            function = spelled(make(primitive), name, primitive.function)
            function.__module__ = f"{__name__.partition('.')[0]}.{namespace}"
            functions[primitive.name] = function
    return {name: functions[primitive.name] for name, primitive in primitives.items()}


def spelled(function: F, name: str, operation: Any = None) -> F:
    """Give a function its name, as one of several that another function makes.

    With `operation` it gets the docstring of that, in which parameters have the function's names:
    those that the operation takes, in the same order.
    """
    function.__name__ = function.__qualname__ = name
    function.__code__ = function.__code__.replace(co_name=name, co_qualname=name)  # for errors
    if operation is not None:
        code = function.__code__
        own = [name for name in code.co_varnames[: code.co_argcount] if name != "name"]
        names = dict(zip(inspect.unwrap(operation).__code__.co_varnames, own, strict=False))
        text = without_example(inspect.getdoc(operation) or "")
        function.__doc__ = _MENTION.sub(lambda mention: names.get(mention[0], mention[0]), text)
    return function


def restates(operation: Any) -> Callable[[F], F]:
    """Decorate a function that has an operation's docstring, with its own parameters' names."""
    return lambda function: spelled(function, function.__name__, operation)


def named_unary(operation: Callable[[Any], Tensor], module: str):
    """Return an operation of x, with its name and docstring, as a module's function."""

    def unary(x: TensorLike, name: str | None = None) -> Tensor:
        return operation(x)

    return _placed(unary, operation, module)


def unary_of_input(operation: Callable[[Any], Tensor], module: str, name: str = ""):
    """Return what `named_unary` does, with the parameter `input`."""

    def unary(input: TensorLike, name: str | None = None) -> Tensor:
        return operation(input)

    return _placed(unary, operation, module, name)


def unary_of_features(operation: Callable[[Any], Tensor], module: str):
    """Return what `named_unary` does, with the parameter `features`."""

    def unary(features: TensorLike, name: str | None = None, **others: Any) -> Tensor:
        if others:
            refuse_arguments(unary.__name__, ("features", "name"), others)
        return operation(features)

    return hides_others(_placed(unary, operation, module))


def unary_of_tensor(operation: Callable[[Any], R], module: str):
    """Return what `named_unary` does, with the parameter `tensor`."""

    def unary(tensor: TensorLike, name: str | None = None) -> R:
        return operation(tensor)

    unary.__annotations__["return"] = operation.__annotations__["return"]
    return _placed(unary, operation, module)


def named_binary(operation: Callable[[Any, Any], Tensor], module: str, name: str = ""):
    """Return an operation of x and y, with its name and docstring, as a module's function."""

    def binary(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
        return operation(x, y)

    return _placed(binary, operation, module, name)


def _placed(function: F, operation: Any, module: str, name: str = "") -> F:
    function.__module__ = module
    return spelled(function, name or operation.__name__, operation)
