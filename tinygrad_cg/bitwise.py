"""TensorFlow's ``tf.bitwise``: bits of integers and bools."""

from __future__ import annotations

from ._ops.namespaces.namespace import export_functions, named_by_records

_primitives = named_by_records("bitwise")
globals().update({name: primitive.function for name, primitive in _primitives.items()})
__all__ = [*_primitives, *export_functions(globals())]
