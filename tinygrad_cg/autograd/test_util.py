"""autograd's ``check_grads``: gradients against differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._transforms.functional import grad, jvp
from .misc.flatten import flatten

__all__ = ["check_grads"]
__dir__ = __all__.copy
_STEP, _TOLERANCE = 1e-6, 1e-6


def check_grads(
    f: Callable[..., Any], modes: Sequence[str] = ("fwd", "rev"), order: int = 2
) -> Callable[..., None]:
    """Return a function of f's arguments that compares its derivatives with central differences.

    It compares along random directions, in forward mode ("fwd") and reverse mode ("rev"), for
    derivatives up to `order`. Raises AssertionError where they differ by more than 1e-6, relatively
    or absolutely, as for ``autograd.test_util.check_grads``.
    """
    if not set(modes) <= {"fwd", "rev"}:
        raise ValueError(f"check_grads: modes must be among 'fwd' and 'rev', got {modes!r}")

    def check(*args: Any) -> None:
        draws = np.random.default_rng(0)
        flat, unflatten = flatten(tuple(args))
        weights = draws.normal(size=flatten(f(*args))[0].size)

        def scalar(x: Any) -> Any:
            return (flatten(f(*unflatten(x)))[0] * weights).sum()

        _compare(scalar, np.asarray(flat), modes, order, draws)

    return check


def _compare(
    scalar: Callable[[Any], Any],
    x: np.ndarray,
    modes: Sequence[str],
    order: int,
    draws: np.random.Generator,
) -> None:
    direction = draws.normal(size=x.shape)
    above, below = (float(scalar(x + sign * _STEP * direction)) for sign in (1, -1))
    expected = (above - below) / (2 * _STEP)
    gradient = grad(scalar)
    for mode in modes:
        if mode == "fwd":
            computed = float(jvp(scalar, (x,), (direction,))[1])
        else:
            computed = float(np.sum(np.asarray(gradient(x)) * direction))
        if not abs(computed - expected) <= _TOLERANCE * max(1.0, abs(expected)):
            raise AssertionError(
                f"check_grads: the derivative in mode {mode!r} is {computed}, by differences "
                f"{expected}"
            )
    if order > 1:
        weights = draws.normal(size=x.shape)
        _compare(lambda x: (gradient(x) * weights).sum(), x, modes, order - 1, draws)
