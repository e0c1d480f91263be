"""The registry of operations: every primitive by name, in order of definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .primitive import Primitive

OPS: dict[str, Primitive] = {}
USER_OPS: dict[str, Primitive] = {}  # those that a program defined by `primitive`
