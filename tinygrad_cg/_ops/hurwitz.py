"""Hurwitz's zeta function, with derivatives by both arguments."""

from __future__ import annotations

from tinygrad_cg_kernels.elementary.hurwitz import zeta_derivatives

from .._core.kinds import REAL
from .._core.primitive import as_tensors
from .._core.tensor import Tensor
from .define import Real
from .elementwise import POSITIVE, add, multiply, multiply_upstream, negative, of_reals
from .incomplete import by_orders, check_order

_LARGEST = 2
"""The order by the first argument that the kernels know."""

zeta = of_reals(
    "zeta",
    "Return Hurwitz's zeta function: the sum over k = 0, 1, ... of (y + k)**-x, infinite where x "
    "is 1 or y is 0, -1, -2, ...; NaN for x below 1, and below y = 0 unless x is whole. The "
    "gradients are right: with respect to y at every order, with respect to x, for positive y, "
    "up to order 2 (not in TensorFlow).",
    vjp=(
        lambda dy, x, y: multiply_upstream(dy, _by_order(x, y, 1)),
        lambda dy, x, y: negative(multiply_upstream(dy, multiply(x, zeta(add(x, 1), y)))),
    ),
    ulps=None,
    samples=(Real(1.6, 4.4), POSITIVE),
    spellings=(),
)


def _by_order(s: Tensor, q: Tensor, order: int) -> Tensor:
    """Return the derivative of a whole order of zeta by its first argument."""
    check_order("zeta", "its first argument", order, _LARGEST)
    return _derivative(*as_tensors(_derivative, s, q), order=order)


def _slope(dy: Tensor, s: Tensor, q: Tensor, order: int) -> Tensor:
    """Return the pullback by `q`: that of zeta is -s zeta(s + 1, q)."""
    above = add(s, 1)
    value = multiply(s, _by_order(above, q, order))
    if order:
        value = add(value, multiply(_by_order(above, q, order - 1), order))
    return negative(multiply_upstream(dy, value))


_derivative = by_orders(
    "zeta_derivative",
    zeta_derivatives,
    (lambda dy, s, q, order: multiply_upstream(dy, _by_order(s, q, order + 1)), _slope),
    inputs=("s", "q"),
    kind="elementwise",
    dtypes=REAL,
    samples=(Real(1.6, 4.4), POSITIVE, {"order": 0}),
)
