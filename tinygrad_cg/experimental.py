"""TensorFlow's ``tf.experimental``, and what is not in TensorFlow."""

from ._ops import dlpack
from ._reverse.variable import recorded_assignments

__all__ = ["dlpack", "recorded_assignments"]
