"""Where TensorFlow 1 kept what was new."""

from . import eager

__all__ = ["eager"]
