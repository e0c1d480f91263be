"""Forward mode under TensorFlow's name: ``tf.autodiff.ForwardAccumulator``."""

from .forward import ForwardAccumulator

__all__ = ["ForwardAccumulator"]
