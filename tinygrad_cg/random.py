"""TensorFlow's ``tf.random``."""

from ._ops.sampling import normal, set_seed, uniform

__all__ = ["normal", "set_seed", "uniform"]
