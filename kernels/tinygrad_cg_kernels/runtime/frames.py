"""Memory for the frames of deep recursion."""

import functools
import sys
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
ROOM = 70_000
"""Words that a frame asks for: it gets a piece of 1 MiB, of which it uses next to nothing."""


def deep(function: Function) -> Function:
    """Return a function for deep recursion: what it calls keeps its frames in one piece of memory.

    CPython has frames in pieces of 16 KiB. Recursion that returns across the end of a piece frees
    the next one, and asks the system for it again: that took a third of the time of translations.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    if sys.implementation.name == "cpython":
        call.__code__ = call.__code__.replace(co_stacksize=ROOM)
    made: Any = functools.wraps(function)(call)
    return made
