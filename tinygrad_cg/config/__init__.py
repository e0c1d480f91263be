"""TensorFlow's ``tf.config``, as far as it concerns this library: threads; and the cache."""

from . import cache, threading

__all__ = ["cache", "threading"]


def __dir__() -> list[str]:
    return sorted(__all__)
