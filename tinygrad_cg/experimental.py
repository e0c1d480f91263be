"""TensorFlow's ``tf.experimental``."""

from ._ops import dlpack

__all__ = ["dlpack"]


def __dir__() -> list[str]:
    return sorted(__all__)
