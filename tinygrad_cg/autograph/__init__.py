"""Python's control flow in a `function`. After ``tf.autograph``."""

from . import experimental

__all__ = ["experimental"]
__dir__ = __all__.copy  # what dir() shows
