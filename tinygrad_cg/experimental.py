"""TensorFlow's ``tf.experimental``."""

from . import dlpack

__all__ = ["dlpack"]
