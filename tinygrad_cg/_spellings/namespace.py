"""What a module of functions offers: their names, examples, and an answer to names it lacks."""

from __future__ import annotations

import inspect
from functools import partial
from types import FunctionType
from typing import Any

from .._core.examples import EXAMPLES, with_example
from .._core.suggestions import refuse_name


def export_functions(namespace: dict[str, Any]) -> None:
    """Add the functions that a module defines to its `__all__`, which is what ``dir`` shows.

    Their docstrings get their examples. To ask for another name is an error that says what to use.
    """
    home = namespace["__name__"]
    names = [
        name
        for name, value in namespace.items()
        if isinstance(value, FunctionType) and value.__module__ == home and name[0] != "_"
    ]
    for name in names:
        key = f"{home.partition('.')[2]}.{name}"
        if key in EXAMPLES:
            function = namespace[name]
            function.__doc__ = with_example(key, inspect.cleandoc(function.__doc__))
    namespace["__all__"] = [*namespace.get("__all__", ()), *names]
    namespace["__dir__"] = lambda: sorted(namespace["__all__"])
    namespace.setdefault("__getattr__", partial(refuse_name, home))
