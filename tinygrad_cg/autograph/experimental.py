"""What runs as it is in a `function`. After ``tf.autograph.experimental``."""

from .._autograph.convert import do_not_convert

__all__ = ["do_not_convert"]
__dir__ = __all__.copy  # what dir() shows
