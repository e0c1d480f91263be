"""Incomplete gamma and beta functions: derivatives by all arguments, and by the last at any order.

With the order by a parameter as theirs, the derivatives of these functions are closed under
differentiation: by the last argument a density follows, whose derivatives are densities again.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from tinygrad_cg_kernels.elementary import incomplete as kernels
from tinygrad_cg_kernels.loops.engine import Elementwise

from .._core.device_runs import kernel_for
from .._core.kinds import REAL
from .._core.primitive import Primitive, as_tensors, public_function
from .._core.tensor import Aval, Tensor
from ..errors import DerivativeOrderError
from .comparison import equal, logical_or
from .define import Real, elementwise, elementwise_aval, operation, public
from .elementwise import (
    add,
    divide,
    multiply,
    multiply_upstream,
    negative,
    of_order,
    subtract,
    where,
)

_PARAMETER = Real(0.6, 3.0)
_SHARE = Real(0.15, 0.85)
_OF_GAMMA, _OF_BETA = 4, 2
"""The orders by parameters that the kernels know."""

igamma = of_order(
    "igamma",
    kernel=kernels.igamma,
    doc="Return the regularized lower incomplete gamma function of `x` and `y` (a and x in most "
    "books): the integral of t**(x - 1) exp(-t) from 0 to y, over gamma(x). NaN below 0. Both "
    "have gradients: `y` at every order, `x` up to order 4. Modelled on ``tf.math.igamma``.",
    vjp=(
        lambda dy, x, y: multiply_upstream(dy, _igamma_derivative(x, y, 1)),
        lambda dy, x, y: multiply_upstream(dy, _gamma_density(x, y, 0)),
    ),
    samples=(_PARAMETER, _PARAMETER),
)
igammac = of_order(
    "igammac",
    kernel=kernels.igammac,
    doc="Return 1 - igamma(x, y), accurate for small results. Both have gradients: "
    "`y` at every order, `x` up to order 4. Modelled on ``tf.math.igammac``.",
    vjp=(
        lambda dy, x, y: negative(multiply_upstream(dy, _igamma_derivative(x, y, 1))),
        lambda dy, x, y: negative(multiply_upstream(dy, _gamma_density(x, y, 0))),
    ),
    samples=(_PARAMETER, _PARAMETER),
)


_of_three_arguments = elementwise(
    "betainc",
    ("a", "b", "x"),
    "float",
    kernel=kernels.betainc,
    vjp=(
        lambda dy, a, b, x: multiply_upstream(dy, _betainc_derivative(a, b, x, (1, 0))),
        lambda dy, a, b, x: multiply_upstream(dy, _betainc_derivative(a, b, x, (0, 1))),
        lambda dy, a, b, x: multiply_upstream(dy, _beta_density(a, b, x, (0, 0))),
    ),
    dtypes=REAL,
    doc="Return the regularized incomplete beta function: the integral of "
    "t**(a - 1) (1 - t)**(b - 1) from 0 to x, over beta(a, b).\n\nElementwise; the arguments "
    "broadcast. NaN for parameters below 0 and for `x` outside of 0 to 1. The gradients are right "
    "with respect to `x` at every order, with respect to `a` and `b` (not in TensorFlow and JAX) "
    "up to order 2. Modelled on ``tf.math.betainc``.",
    ulps=None,
    samples=(_PARAMETER, _PARAMETER, _SHARE),
    spellings=(),
)
betainc = public(_of_three_arguments)(public_function(_of_three_arguments))


_of_two_gammas = elementwise(
    "gamma_transport",
    ("a", "base", "x"),
    "float",
    kernel=kernels.gamma_transport,
    vjp=(
        lambda dy, a, out: negative(
            multiply_upstream(dy, divide(_igamma_derivative(a, out, 1), _gamma_density(a, out, 0)))
        ),
        lambda dy, a, base, x, out: multiply_upstream(
            dy, divide(_igamma_derivative(base, x, 1), _gamma_density(a, out, 0))
        ),
        lambda dy, a, base, x, out: multiply_upstream(
            dy, divide(_gamma_density(base, x, 0), _gamma_density(a, out, 0))
        ),
    ),
    dtypes=REAL,
    doc="Return the number y with igamma(a, y) = igamma(base, x).\n\nIt takes draws of the gamma "
    "distribution of shape `base` to draws of the shape `a`, and is `x` where these are equal. Its "
    "gradient with respect to `a` is the implicit reparameterization of Figurnov, Mohamed and Mnih "
    "(2018). NaN for arguments that are not positive and finite.",
    ulps=None,
    samples=(_PARAMETER, _PARAMETER, _PARAMETER),
    spellings=(),
)
gamma_transport = public(_of_two_gammas)(public_function(_of_two_gammas))


# Derivatives by parameters, and densities ----------------------------------------------------


def check_order(name: str, parameters: str, order: int, largest: int) -> None:
    if order > largest:
        raise DerivativeOrderError(
            f"{name}: derivatives with respect to {parameters} are known up to order "
            f"{largest}, but order {order} was requested",
            function=name,
            order=order,
            max_order=largest,
        )


def by_orders(name: str, functions: Any, vjp: Any, **record: Any) -> Primitive:
    """Return an elementwise operation with kernels by the orders of a derivative."""
    inputs = record["inputs"]
    first = next(sample for sample in record["samples"] if type(sample) is dict)
    ((parameter, order),) = first.items()

    @cache
    def kernel_of(chosen: Any) -> Elementwise:
        return Elementwise(name, functions[chosen], len(inputs), "float")

    def run(*arrays: np.ndarray, **params: Any) -> np.ndarray:
        return kernel_for(arrays[0], kernel_of(params[parameter]))(*arrays)

    run.kernel_of = lambda params: kernel_of(params[parameter])
    aval = elementwise_aval(kernel_of(order))

    def abstract(*avals: Aval, **params: Any) -> Aval:
        return aval(*avals)

    return operation(name, run, abstract, vjp, kernel=kernel_of(order), **record)


_GAMMA: dict[str, Any] = {
    "inputs": ("a", "x"),
    "kind": "elementwise",
    "dtypes": REAL,
    "samples": (_PARAMETER, _PARAMETER, {"order": 1}, {"order": 2}),
}
_BETA: dict[str, Any] = {
    "inputs": ("a", "b", "x"),
    "kind": "elementwise",
    "dtypes": REAL,
    "samples": (_PARAMETER, _PARAMETER, _SHARE, {"orders": (0, 0)}),
}


def _igamma_derivative(a: Tensor, x: Tensor, order: int) -> Tensor:
    """Return the derivative of a whole order by `a` of igamma."""
    check_order("igamma", "`a`", order, _OF_GAMMA)
    return _of_order(*as_tensors(_of_order, a, x), order=order)


def _gamma_density(a: Tensor, x: Tensor, order: int) -> Tensor:
    """Return the same derivative of the derivative by `x`: x**(a - 1) exp(-x) / gamma(a)."""
    check_order("igamma", "`a`", order, _OF_GAMMA)
    return _density(*as_tensors(_density, a, x), order=order)


def _gamma_density_slope(dy: Tensor, a: Tensor, x: Tensor, order: int) -> Tensor:
    """Return the pullback of the density by `x`; at 0 by densities of parameters one less."""
    edge = equal(x, 0)
    inside = where(edge, 1, x)
    density = _gamma_density(where(edge, subtract(a, 1), a), x, order)
    slope = multiply_upstream(density, divide(subtract(subtract(a, 1), x), inside))
    if order:
        lower = multiply(_gamma_density(a, x, order - 1), order)
        slope = add(slope, divide(lower, inside))
    fall = subtract(density, _gamma_density(a, x, order))
    return multiply_upstream(dy, where(edge, fall, slope))


_of_order = by_orders(
    "igamma_derivative",
    kernels.igamma_derivatives,
    (
        lambda dy, a, x, order: multiply_upstream(dy, _igamma_derivative(a, x, order + 1)),
        lambda dy, a, x, order: multiply_upstream(dy, _gamma_density(a, x, order)),
    ),
    **_GAMMA,
)
_density = by_orders(
    "gamma_density",
    kernels.gamma_densities,
    (
        lambda dy, a, x, order: multiply_upstream(dy, _gamma_density(a, x, order + 1)),
        _gamma_density_slope,
    ),
    **_GAMMA,
)


def _betainc_derivative(a: Tensor, b: Tensor, x: Tensor, orders: tuple[int, int]) -> Tensor:
    """Return the derivative of whole orders by `a` and `b` of betainc."""
    check_order("betainc", "`a` and `b`", sum(orders), _OF_BETA)
    return _of_orders(*as_tensors(_of_orders, a, b, x), orders=orders)


def _beta_density(a: Tensor, b: Tensor, x: Tensor, orders: tuple[int, int]) -> Tensor:
    """Return the same derivative of the derivative by `x`."""
    check_order("betainc", "`a` and `b`", sum(orders), _OF_BETA)
    return _share_density(*as_tensors(_share_density, a, b, x), orders=orders)


def _beta_density_slope(
    dy: Tensor, a: Tensor, b: Tensor, x: Tensor, orders: tuple[int, int]
) -> Tensor:
    """Return the pullback of the density by `x`; at 0 and 1 by densities of parameters one less."""
    first, second = orders
    rest = subtract(1, x)
    start, end = equal(x, 0), equal(rest, 0)
    x_inside, rest_inside = where(start, 1, x), where(end, 1, rest)
    density = _beta_density(a, b, x, orders)
    ratio = subtract(divide(subtract(a, 1), x_inside), divide(subtract(b, 1), rest_inside))
    slope = multiply_upstream(density, ratio)
    edge = logical_or(start, end)
    a_less, b_less = where(edge, subtract(a, 1), a), where(edge, subtract(b, 1), b)

    def fall(n: int, m: int) -> Tensor:
        lower, upper = _beta_density(a_less, b, x, (n, m)), _beta_density(a, b_less, x, (n, m))
        return subtract(lower, upper)

    at_edge = multiply(subtract(add(a, b), 1), fall(first, second))
    if first:
        lower = _beta_density(a, b, x, (first - 1, second))
        slope = add(slope, divide(multiply(lower, first), x_inside))
        at_edge = add(at_edge, multiply(fall(first - 1, second), first))
    if second:
        lower = _beta_density(a, b, x, (first, second - 1))
        slope = subtract(slope, divide(multiply(lower, second), rest_inside))
        at_edge = add(at_edge, multiply(fall(first, second - 1), second))
    return multiply_upstream(dy, where(edge, at_edge, slope))


_of_orders = by_orders(
    "betainc_derivative",
    kernels.betainc_derivatives,
    (
        lambda dy, a, b, x, orders: multiply_upstream(
            dy, _betainc_derivative(a, b, x, (orders[0] + 1, orders[1]))
        ),
        lambda dy, a, b, x, orders: multiply_upstream(
            dy, _betainc_derivative(a, b, x, (orders[0], orders[1] + 1))
        ),
        lambda dy, a, b, x, orders: multiply_upstream(dy, _beta_density(a, b, x, orders)),
    ),
    **_BETA,
)
_share_density = by_orders(
    "beta_density",
    kernels.beta_densities,
    (
        lambda dy, a, b, x, orders: multiply_upstream(
            dy, _beta_density(a, b, x, (orders[0] + 1, orders[1]))
        ),
        lambda dy, a, b, x, orders: multiply_upstream(
            dy, _beta_density(a, b, x, (orders[0], orders[1] + 1))
        ),
        _beta_density_slope,
    ),
    **_BETA,
)
