"""What ``tf.math`` has of operations under other names alone: their records name it."""

from __future__ import annotations

from .namespace import renamed

_functions = renamed("math")
globals().update(_functions)
__all__ = list(_functions)
