"""Where TensorFlow 1 kept what was new."""

from . import eager

__all__ = ["eager"]


def __dir__() -> list[str]:
    return sorted(__all__)
