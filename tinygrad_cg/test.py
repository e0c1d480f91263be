"""Numerical checks: `assert_gradients`, and TensorFlow's ``tf.test.compute_gradient``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._check import assert_gradients
from ._core.conversion import convert
from ._core.kinds import is_differentiable
from ._transforms.jacobians import jacobian

__all__ = ["assert_gradients", "compute_gradient"]
__dir__ = __all__.copy  # what dir() shows


def compute_gradient(
    f: Callable[..., Any], x: Sequence[Any], delta: float | None = None
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the Jacobians of ``f(*x)`` for each of `x`: by the gradient rules, and by differences.

    `f` returns one tensor. The result is two lists of arrays of shape (size of the output, size of
    the argument): from `jacobian`, and from central differences with step `delta` (1/1024), in the
    argument's dtype. Raises TypeError if `x` is not a list or tuple. Modelled on
    ``tf.test.compute_gradient``.

    Examples
    --------
    >>> theory, numbers = tf.test.compute_gradient(tf.square, [tf.constant([3.0])])
    >>> theory[0].round(2), numbers[0].round(2)
    (array([[6.]], dtype=float32), array([[6.]], dtype=float32))
    """
    if not isinstance(x, (list, tuple)):
        raise TypeError(
            "`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`), "
            f"got {type(x).__name__}"
        )
    step = 1.0 / 1024 if delta is None else float(delta)
    tensors = [convert(value) for value in x]
    argnums = [i for i, tensor in enumerate(tensors) if is_differentiable(tensor.dtype)]
    if len(argnums) < len(tensors):
        raise TypeError("compute_gradient: all of `x` must be floats, cast integers first")
    blocks = jacobian(f, argnums=argnums)(*tensors)
    theoretical = [
        np.reshape(block.numpy(), (math.prod(block.shape[: block.ndim - tensor.ndim]), tensor.size))
        for block, tensor in zip(blocks, tensors, strict=True)
    ]
    numerical = [_differences(f, tensors, i, step) for i in argnums]
    return theoretical, numerical


def _differences(f: Callable[..., Any], tensors: list, argnum: int, step: float) -> np.ndarray:
    middle = tensors[argnum].numpy()
    columns = []
    for index in np.ndindex(np.shape(middle)):
        ends = []
        for sign in (1, -1):
            moved = np.array(middle)
            moved[index] += sign * step
            values = [*tensors[:argnum], convert(moved), *tensors[argnum + 1 :]]
            ends.append(np.asarray(f(*values).numpy()).reshape(-1))
        columns.append((ends[0] - ends[1]) / (2 * step))
    if not columns:
        return np.zeros((f(*tensors).size, 0), middle.dtype)
    return np.stack(columns, axis=1)
