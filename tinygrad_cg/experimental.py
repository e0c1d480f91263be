"""TensorFlow's ``tf.experimental``, and names that TensorFlow does not have."""

from ._ops import dlpack
from ._reverse.variable import recorded_assignments

__all__ = ["dlpack", "recorded_assignments"]
