"""name_scope: a prefix of the names of Variables. Modelled on ``tf.name_scope``."""

from __future__ import annotations

from typing import Any

from .._core.levels import state


class name_scope:
    """A context in which the names of new Variables begin with ``name/``.

    Scopes nest: `with` gives the names of all of them, joined, with a slash at the end. A `name`
    that ends in a slash re-enters a scope instead of nesting. Operations have no names, so nothing
    else changes. Raises ValueError if `name` is not a string.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> with tf.name_scope("encoder"):
    ...     tf.Variable(1.0, name="w").name
    'encoder/w:0'
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise ValueError(f"name_scope: `name` must be a string, got {type(name).__name__}")
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def __enter__(self) -> str:
        name = self._name
        nested = name if name.endswith("/") or not name else f"{state.names[-1]}{name}/"
        state.names.append(nested)
        return nested

    def __exit__(self, *error: Any) -> None:
        state.names.pop()


def current_scope() -> str:
    """Return what the names of new Variables begin with in this thread: "" or "a/b/"."""
    return state.names[-1]


def get_current_name_scope() -> str:
    """Return the name of this thread's scopes: "" or "a/b".

    Modelled on ``tf.get_current_name_scope``.
    """
    return current_scope().rstrip("/")
