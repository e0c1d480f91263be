"""Functions that transforms such as `grad` make of others."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Transformed:
    """A function that a transform made of another, which is its ``__wrapped__``.

    Since a closure cannot be pickled, this is pickled as the call of the transform: `made_by`.
    """

    __slots__ = ("__dict__", "__weakref__", "made_by")  # not in the dict, which wrappers copy

    def __init__(self, run: Callable[..., Any], wrapped: Any):
        self._run: Any = run
        self.__module__, self.__doc__ = run.__module__, run.__doc__
        self.__wrapped__ = wrapped if callable(wrapped) else run  # of a list of functions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def __set_name__(self, owner: type, name: str) -> None:
        self.__name__ = name  # by these names methods are pickled
        self.__qualname__, self.__module__ = f"{owner.__qualname__}.{name}", owner.__module__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)

    def __repr__(self) -> str:
        transform, (function, *_), _ = self.made_by
        return f"<{transform.__name__} of {function!r}>"

    def remake(self, function: Any) -> Any:
        """Return what the transform makes of another function."""
        transform, (_, *args), options = self.made_by
        return transform(function, *args, **options)


def returns_transformed(maker: Callable[P, R]) -> Callable[P, R]:
    """Decorate a transform, which makes a function of its first argument: a `Transformed` now.

    Where it makes an object of another class, such as `Bind`, that gets `made_by` too.
    """
    code = inspect.unwrap(maker).__code__
    name, first, most = maker.__name__, code.co_varnames[0], code.co_argcount

    @functools.wraps(maker)
    def make(*args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) > most:
            raise TypeError(
                f"{name}() takes at most {most} positional arguments, got {len(args)}: it returns "
                f"a function that takes the arguments of {first}: write {name}({first})(...)"
            )
        function: Any = maker(*args, **kwargs)
        arguments = args or (kwargs.pop(first, None),)
        if isinstance(function, FunctionType):
            function = Transformed(function, arguments[0])
        function.made_by = make, arguments, kwargs
        return function

    return make
