"""Keras's ``keras.activations``: those of ``keras.ops``, some with other arguments; `get`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .._core.suggestions import refuse_name
from .._ops.activation_functions import mish as _mish
from . import ops
from ._identifiers import refuse_identifier
from ._operands import as_real
from .ops import (
    celu,
    elu,
    glu,
    hard_shrink,
    hard_sigmoid,
    hard_silu,
    hard_swish,
    hard_tanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    relu6,
    selu,
    sigmoid,
    silu,
    soft_shrink,
    softmax,
    softplus,
    softsign,
    sparse_plus,
    sparse_sigmoid,
    sparsemax,
    squareplus,
    swish,
    tanh,
    tanh_shrink,
    threshold,
)
from .ops import exp as exponential

__all__ = [
    "celu",
    "elu",
    "exponential",
    "gelu",
    "get",
    "glu",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_shrink",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "sparsemax",
    "squareplus",
    "swish",
    "tanh",
    "tanh_shrink",
    "threshold",
]
__dir__ = __all__.copy
__getattr__ = partial(refuse_name, __name__)


def relu(
    x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> Any:
    """Return `x` above `threshold`, at most `max_value`, and a line of `negative_slope` below.

    The line is ``negative_slope * (x - threshold)``. Modelled on ``keras.activations.relu``.
    """
    if not threshold and not negative_slope:
        above = ops.relu(x)
    elif not threshold:
        above = ops.leaky_relu(x, negative_slope)
    else:
        x = ops.convert_to_tensor(x)
        above = ops.where(x > threshold, x, negative_slope * (x - threshold))
    return above if max_value is None else ops.minimum(above, max_value)


def gelu(x: Any, approximate: bool = False) -> Any:
    """Return ``x * P(X <= x)`` for a normal X; by tanh if `approximate`, by erf otherwise."""
    return ops.gelu(x, approximate)


def linear(x: Any) -> Any:
    """Return `x`."""
    return ops.convert_to_tensor(x)


def mish(x: Any) -> Any:
    """Return ``x * tanh(softplus(x))``."""
    return _mish(as_real(x))


def get(identifier: str | Callable[..., Any] | None) -> Callable[..., Any]:
    """Return the activation of that name; a function unchanged; `linear` for None.

    Raises ValueError for an unknown name. Modelled on ``keras.activations.get``.
    """
    if identifier is None:
        return linear
    if callable(identifier):
        return identifier
    names = [name for name in __all__ if name != "get"]
    if identifier not in names:
        refuse_identifier("keras.activations.get", "a function", names, identifier)
    return globals()[identifier]
