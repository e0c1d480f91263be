"""Functions that a `function` does not transform. Modelled on ``tf.autograph.experimental``."""

from ._convert import do_not_convert

__all__ = ["do_not_convert"]
__dir__ = __all__.copy  # what dir() shows
