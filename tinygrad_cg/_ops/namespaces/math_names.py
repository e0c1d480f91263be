"""The functions of ``tf.math`` that are operations under another name: their records name it."""

from __future__ import annotations

from .namespace import named_by_records

_primitives = named_by_records("math")
globals().update({name: primitive.function for name, primitive in _primitives.items()})
__all__ = list(_primitives)
