"""Forward mode under TensorFlow's name: ``tf.autodiff.ForwardAccumulator``."""

from ._transforms.forward import ForwardAccumulator

__all__ = ["ForwardAccumulator"]
