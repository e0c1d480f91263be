"""Dispatch between two functions of a name, by whether an argument is a tensor."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ..._core.tensor import Tensor


def lookup(name: str, theirs: ModuleType, ours: ModuleType, namespace: dict[str, Any]) -> Any:
    """Return the attribute `name` of a module that stands for NumPy's module `theirs`.

    What both modules have as a function becomes one that calls `ours` where a tensor is among the
    arguments, in lists and tuples too, and NumPy's otherwise. All else is NumPy's. It is kept in
    `namespace`. AttributeError for what NumPy does not have.
    """
    if not hasattr(theirs, name) or (name.startswith("__") and name != "__version__"):
        raise AttributeError(f"module {namespace['__name__']!r} has no attribute {name!r}")
    attribute = getattr(theirs, name)
    differentiable = getattr(ours, name, None)
    both = callable(attribute) and callable(differentiable) and differentiable is not attribute
    if both and not isinstance(attribute, (type, ModuleType)):
        attribute = _either(attribute, differentiable)
    namespace[name] = attribute
    return attribute


def for_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns an array where no argument is a tensor."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        with_tensor = _has_tensor(args) or (kwargs and _has_tensor(tuple(kwargs.values())))
        return result if with_tensor else result.numpy()[()]

    return run


def _either(theirs: Any, differentiable: Any) -> Any:
    @functools.wraps(theirs, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        with_tensor = _has_tensor(args) or (kwargs and _has_tensor(tuple(kwargs.values())))
        return (differentiable if with_tensor else theirs)(*args, **kwargs)

    return run


def _has_tensor(values: tuple | list) -> bool:
    for value in values:
        if isinstance(value, Tensor):
            return True
        if isinstance(value, (tuple, list)) and _has_tensor(value):
            return True
    return False
