"""Forward mode under TensorFlow's name: ``tf.autodiff.ForwardAccumulator``."""

from ._transforms.forward import ForwardAccumulator

__all__ = ["ForwardAccumulator"]


def __dir__() -> list[str]:
    return sorted(__all__)
