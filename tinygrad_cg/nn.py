"""TensorFlow's ``tf.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .math import log_softmax, sigmoid, softmax, softplus, tanh
from .spell import spell

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


__all__ = ["log_softmax", "sigmoid", "softmax", "softplus", "tanh"]

spell(globals(), "relu(features, name=None) = relu(features)")
