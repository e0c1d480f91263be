"""TensorFlow 1's namespace of experimental features."""

from . import eager

__all__ = ["eager"]
