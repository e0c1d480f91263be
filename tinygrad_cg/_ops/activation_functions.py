"""Activations of neural networks, as compositions of other operations."""

from __future__ import annotations

import math
from typing import Any

from .._core import devices
from .._core.annotations import Axes, TensorLike
from .._core.conversion import convert, is_tensor
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .comparison import greater, greater_equal, less, less_equal
from .creation import arange
from .cumulative import cumsum
from .distribution_functions import gelu as exact_gelu
from .elementwise import (
    absolute,
    add,
    clip,
    divide,
    expm1,
    hypot,
    multiply,
    multiply_upstream,
    negative,
    relu,
    sigmoid,
    sign,
    softplus,
    sqrt,
    square,
    subtract,
    tanh,
    where,
)
from .reductions import reduce_sum
from .shape import cast, concatenate, floating, reshape, split
from .sorting import sort
from .validation import normalize_axis

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def _weigh(x: Tensor, share: Tensor) -> Tensor:
    """Return ``x * share``, and its limit 0 where the share is 0 and `x` is infinite."""
    return multiply_upstream(share, x)


def gelu(x: Any, approximate: bool = False) -> Tensor:
    """Return ``x`` times the normal distribution function at `x`, or `approximate` it by tanh."""
    x = convert(x)
    if approximate:
        inner = multiply(x, add(1, multiply(square(x), 0.044715)))
        return _weigh(x, sigmoid(multiply(inner, math.sqrt(8 / math.pi))))
    return exact_gelu(x)


def silu(x: Any, beta: Any = 1.0) -> Tensor:
    """Return ``x * sigmoid(beta * x)``, also called swish; `beta` has a gradient, too."""
    x = convert(x)
    is_one = type(beta) in (int, float) and beta == 1
    return _weigh(x, sigmoid(x if is_one else multiply(x, beta)))


def mish(x: Any) -> Tensor:
    """Return ``x * tanh(softplus(x))``. After D. Misra, "Mish" (2019)."""
    x = convert(x)
    return _weigh(x, tanh(softplus(x)))


def elu(x: Any, alpha: Any = 1.0) -> Tensor:
    """Return `x` where it is positive, and ``alpha * (exp(x) - 1)`` elsewhere."""
    x = convert(x)
    below = expm1(x)
    is_one = type(alpha) in (int, float) and alpha == 1
    return where(greater(x, 0), x, below if is_one else multiply(below, alpha))


def selu(x: Any) -> Tensor:
    """Return 1.0507 times `elu` with an alpha of 1.6733, which keeps mean 0 and variance 1.

    After G. Klambauer et al., "Self-normalizing neural networks" (2017).
    """
    x = convert(x)
    above, below = multiply(x, SELU_SCALE), multiply(expm1(x), SELU_SCALE * SELU_ALPHA)
    return where(greater(x, 0), above, below)


def celu(x: Any, alpha: Any = 1.0) -> Tensor:
    """Return `x` where it is positive, and ``alpha * (exp(x / alpha) - 1)`` elsewhere."""
    x = convert(x)
    return where(greater(x, 0), x, multiply(expm1(divide(x, alpha)), alpha))


def leaky_relu(x: Any, alpha: Any = 0.2) -> Tensor:
    """Return `x` where it is positive, and ``alpha * x`` elsewhere. The slope at 0 is `alpha`."""
    x = convert(x)
    return where(greater(x, 0), x, multiply(x, alpha))


def relu6(x: Any) -> Tensor:
    """Return `x` limited to [0, 6]; its gradient is 0 at both limits."""
    x = convert(x)
    return where(greater_equal(x, 6), 6, relu(x))


def hard_sigmoid(x: Any) -> Tensor:
    """Return ``x / 6 + 0.5`` limited to [0, 1]."""
    return clip(add(divide(x, 6), 0.5), 0, 1)


def hard_silu(x: Any) -> Tensor:
    """Return ``x * hard_sigmoid(x)``, also called hard swish."""
    x = convert(x)
    return _weigh(x, hard_sigmoid(x))


def hard_tanh(x: Any) -> Tensor:
    """Return `x` limited to [-1, 1]."""
    return clip(x, -1, 1)


def hard_shrink(x: Any, threshold: Any = 0.5) -> Tensor:
    """Return `x` where its absolute value is above `threshold`, and 0 elsewhere."""
    x = convert(x)
    return where(less_equal(absolute(x), threshold), 0, x)


def soft_shrink(x: Any, threshold: Any = 0.5) -> Tensor:
    """Return `x` moved by `threshold` towards 0, and 0 where `abs(x)` is at most `threshold`."""
    x = convert(x)
    moved = subtract(x, multiply(sign(x), threshold))
    return where(less_equal(absolute(x), threshold), 0, moved)


def tanh_shrink(x: Any) -> Tensor:
    """Return ``x - tanh(x)``."""
    x = convert(x)
    return subtract(x, tanh(x))


def keep_above(x: Any, limit: Any, default: Any) -> Tensor:
    """Return `x` where it is above `limit`, and `default` elsewhere."""
    x = convert(x)
    return where(less_equal(x, limit), default, x)


def squareplus(x: Any, b: Any = 4.0) -> Tensor:
    """Return ``(x + sqrt(x**2 + b)) / 2``, without cancellation below 0."""
    x = convert(x)
    length = hypot(x, sqrt(b) if is_tensor(b) else math.sqrt(b))
    below = divide(b, multiply(subtract(length, x), 2))
    return where(less(x, 0), below, multiply(add(x, length), 0.5))


def sparse_plus(x: Any) -> Tensor:
    """Return 0 below -1, `x` above 1, and ``(x + 1)**2 / 4`` between."""
    x = convert(x)
    between = multiply(square(add(x, 1)), 0.25)
    return where(less_equal(x, -1), 0, where(less(x, 1), between, x))


def sparse_sigmoid(x: Any) -> Tensor:
    """Return ``(x + 1) / 2`` limited to [0, 1]."""
    return clip(multiply(add(x, 1), 0.5), 0, 1)


@devices.on_device_of_operands
def sparsemax(x: Any, axis: Any = -1) -> Tensor:
    """Return the nearest point of the probability simplex, of rows along `axis`.

    After A. Martins and R. Astudillo, "From softmax to sparsemax" (2016). Raises
    InvalidArgumentError for an axis that `x` does not have.
    """
    x = convert(x)
    dim = normalize_axis("sparsemax", axis, x._data.ndim)
    x = floating(x)
    ordered = sort(x, dim, descending=True)
    sizes = (-1, *[1] * (x._data.ndim - dim - 1))
    counts = reshape(arange(1, x._data.shape[dim] + 1, 1, x.dtype), sizes)
    kept = greater(add(1, multiply(counts, ordered)), cumsum(ordered, dim))
    total = reduce_sum(where(kept, ordered, 0), dim, True)
    count = reduce_sum(cast(kept, x.dtype), dim, True)
    return relu(subtract(x, divide(subtract(total, 1), count)))


@reads_own_arguments
def glu(x: TensorLike, axis: Axes = -1) -> Tensor:
    """Return the first half of `x` along `axis` times the sigmoid of the second.

    After Y. Dauphin et al., "Language modeling with gated convolutional networks" (2016). Raises
    InvalidArgumentError for an axis of odd size.
    """
    x = convert(x)
    dim = normalize_axis("glu", axis, x._data.ndim)
    if x._data.shape[dim] % 2:
        raise InvalidArgumentError(
            f"glu: axis {dim} of shape {tuple(x.shape)} must have an even size, for two halves"
        )
    first, second = split(x, 2, dim)
    return multiply(first, sigmoid(second))


@reads_own_arguments
def crelu(features: TensorLike, axis: Axes = -1, name: str | None = None) -> Tensor:
    """Return ``relu(features)`` and ``relu(-features)``, joined along `axis`.

    After W. Shang et al., "Understanding and improving convolutional neural networks via
    concatenated rectified linear units" (2016).
    """
    x = convert(features)
    return concatenate([relu(x), relu(negative(x))], axis)
