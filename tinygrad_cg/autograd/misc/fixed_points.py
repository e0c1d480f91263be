"""Fixed points with the gradient of the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import identity, nest, stop_gradient, zeros_like
from ..._rules.custom_gradient import custom_gradient
from ..._transforms.functional import vjp
from ...numpy import asarray

__all__ = ["fixed_point"]
__dir__ = __all__.copy


def fixed_point(
    f: Callable[[Any], Callable[[Any], Any]],
    a: Any,
    x0: Any,
    distance: Callable[[Any, Any], Any],
    tol: float,
) -> Any:
    """Return the x with ``f(a)(x) = x``, by iteration from `x0`; differentiable with respect to
    `a`.

    `a` and x are tensors, arrays or numbers. Iteration ends when the `distance` of two iterates is
    below `tol`. The gradient belongs to the implicit function and comes from another iteration with
    the same `distance` and `tol`; it is right at every order. `x0` has no gradient. An iteration
    that does not converge does not end. Modelled on ``autograd.misc.fixed_points``.
    """

    a = nest.map_structure(asarray, a)
    answer = _iterate(f(nest.map_structure(stop_gradient, a)), x0, distance, tol)
    return _follow(f, a, stop_gradient(answer), distance, tol)


def _follow(f: Any, a: Any, answer: Any, distance: Any, tol: float) -> Any:
    """Return `answer`, the fixed point of ``f(a)``, with the gradient with respect to `a`."""

    @custom_gradient
    def solve(*leaves: Any) -> tuple[Any, Callable[[Any], Any]]:
        def gradient(upstream: Any) -> Any:
            params = nest.pack_sequence_as(a, leaves)
            x = _follow(f, params, answer, distance, tol)
            adjoint = fixed_point(
                _adjoint_step(f), (params, x, upstream), zeros_like(upstream), distance, tol
            )
            _, pullback = vjp(lambda *params: f(nest.pack_sequence_as(a, params))(x), *leaves)
            gradients = pullback(adjoint)
            return gradients[0] if len(gradients) == 1 else list(gradients)

        return identity(answer), gradient

    return solve(*nest.flatten(a))


def _adjoint_step(f: Any) -> Callable[[Any], Callable[[Any], Any]]:
    """Return the iteration whose fixed point is the upstream gradient through (1 - df/dx)."""

    def at(state: Any) -> Callable[[Any], Any]:
        a, x, upstream = state
        return lambda g: upstream + vjp(f(a), x)[1](g)[0]

    return at


def _iterate(step: Callable[[Any], Any], x: Any, distance: Any, tol: float) -> Any:
    while True:
        following = step(x)
        if distance(following, x) < tol:
            return following
        x = following
