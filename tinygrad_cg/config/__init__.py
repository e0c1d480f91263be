"""TensorFlow's ``tf.config``, as far as it concerns this library: threads."""

from . import threading

__all__ = ["threading"]
