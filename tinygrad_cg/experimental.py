"""TensorFlow's ``tf.experimental``."""

from ._ops import dlpack

__all__ = ["dlpack"]
