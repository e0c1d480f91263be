"""Optimizers over nested parameters: autograd's ``misc.optimizers``.

Each takes ``grad(params, iteration)``, the first parameters, and optionally ``callback(params,
iteration, gradient)``, and returns the last parameters in the structure of the first. They run on
arrays, and are not differentiable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .flatten import flatten

__all__ = ["adam", "rmsprop", "sgd"]
__dir__ = __all__.copy

_Gradient = Callable[[Any, int], Any]
_Callback = Callable[[Any, int, Any], Any] | None
_Update = Callable[[np.ndarray, int], np.ndarray]


def sgd(
    grad: _Gradient,
    x0: Any,
    callback: _Callback = None,
    num_iters: int = 200,
    step_size: float = 0.1,
    mass: float = 0.9,
) -> Any:
    """Return the parameters after stochastic gradient descent with momentum.

    The velocity is a mean of gradients with decay `mass`; each step subtracts it.
    """
    velocity: Any = 0.0

    def step(gradient: np.ndarray, _: int) -> np.ndarray:
        nonlocal velocity
        velocity = mass * velocity - (1.0 - mass) * gradient
        return step_size * velocity

    return _optimize(grad, x0, callback, num_iters, step)


def rmsprop(
    grad: _Gradient,
    x0: Any,
    callback: _Callback = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Return the parameters after RMSprop, whose mean of squared gradients starts at 1."""
    mean_square: Any = 1.0

    def step(gradient: np.ndarray, _: int) -> np.ndarray:
        nonlocal mean_square
        mean_square = mean_square * gamma + gradient**2 * (1 - gamma)
        return -step_size * gradient / (np.sqrt(mean_square) + eps)

    return _optimize(grad, x0, callback, num_iters, step)


def adam(
    grad: _Gradient,
    x0: Any,
    callback: _Callback = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Return the parameters after Adam (Kingma and Ba, arXiv:1412.6980, algorithm 1)."""
    first: Any = 0.0
    second: Any = 0.0

    def step(gradient: np.ndarray, iteration: int) -> np.ndarray:
        nonlocal first, second
        first = (1 - b1) * gradient + b1 * first
        second = (1 - b2) * gradient**2 + b2 * second
        unbiased = first / (1 - b1 ** (iteration + 1))
        return -step_size * unbiased / (np.sqrt(second / (1 - b2 ** (iteration + 1))) + eps)

    return _optimize(grad, x0, callback, num_iters, step)


def _optimize(grad: _Gradient, x0: Any, callback: _Callback, num_iters: int, step: _Update) -> Any:
    flat, unflatten = flatten(x0)
    x = np.asarray(flat)
    for iteration in range(num_iters):
        params = unflatten(x)
        gradient = np.asarray(flatten(grad(params, iteration))[0])
        if callback:
            callback(params, iteration, unflatten(gradient))
        x = x + step(gradient, iteration)
    return unflatten(x)
