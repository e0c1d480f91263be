"""What programs for TensorFlow 1 and the older documents use."""

from ..custom_gradient import custom_gradient
from ..math import exp, log

__all__ = ["custom_gradient", "exp", "log"]
