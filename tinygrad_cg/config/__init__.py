"""TensorFlow's ``tf.config``, as far as it concerns this library: threads; and the cache."""

from . import cache, threading

__all__ = ["cache", "threading"]
