"""Dawson's, the exponential, Fresnel's and Spence's integrals."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from tinygrad_cg_kernels.elementary import integrals as kernels

from .._core.tensor import Tensor
from .define import ANY, Real
from .elementwise import (
    POSITIVE,
    add,
    divide,
    exp,
    multiply,
    multiply_upstream,
    of_order,
    of_real,
)

_OWN = "Accurate by our own approximations, and differentiable at every order. After "
_ORDERS = (
    "for whole orders from 0 to 170; NaN for others. Integers give float64. No gradient flows to "
    "the order."
)
_of_one = partial(of_real, spellings=())

dawson_derivative = of_order(
    "dawson_derivative",
    f"Return the derivative of order `x` of Dawson's integral at `y`, {_ORDERS} The relative "
    "error grows with the order where `y` is from 2 to 6: to 1e-14 at order 1, 1e-12 at order 2.",
    kernel=kernels.dawson_derivative,
    vjp=(None, lambda dy, x, y: multiply_upstream(dy, dawson_derivative(add(x, 1), y))),
    samples=(Real(0.0, 1.0), ANY),
)
spence_derivative = of_order(
    "spence_derivative",
    f"Return the derivative of order `x` of Spence's function at `y`, {_ORDERS} The first is "
    "-log(y) / (y - 1), which is -1 at 1.",
    kernel=kernels.spence_derivative,
    vjp=(None, lambda dy, x, y: multiply_upstream(dy, spence_derivative(add(x, 1), y))),
    samples=(Real(0.0, 1.0), POSITIVE),
)
expint = _of_one(
    "expint",
    "Return the exponential integral Ei(x): the integral of exp(t) / t from -inf to x, the "
    "principal value above 0. Infinite at 0; below 0 it is -E1(-x), as in SciPy (TensorFlow has "
    f"NaN there). {_OWN}``tf.math.special.expint``.",
    kernel=kernels.expint,
    vjp=lambda dy, x: multiply_upstream(dy, divide(exp(x), x)),
    ulps=(5.0, 1.0),
    samples=(Real(-2.0, 3.0, avoid=(0.0,)),),
)
fresnel_cos = _of_one(
    "fresnel_cos",
    "Return Fresnel's integral C(x): the integral of cos(pi t**2 / 2) from 0 to x; 1/2 at "
    f"infinity. {_OWN}``tf.math.special.fresnel_cos``.",
    kernel=kernels.fresnel_cos,
    vjp=lambda dy, x: multiply_upstream(dy, cos_square(x)),
    ulps=(6.0, 1.0),
)
fresnel_sin = _of_one(
    "fresnel_sin",
    "Return Fresnel's integral S(x): the integral of sin(pi t**2 / 2) from 0 to x; 1/2 at "
    f"infinity. {_OWN}``tf.math.special.fresnel_sin``.",
    kernel=kernels.fresnel_sin,
    vjp=lambda dy, x: multiply_upstream(dy, sin_square(x)),
    ulps=(4.0, 1.0),
)
sin_square = _of_one(
    "sin_square",
    "Return sin(pi x**2 / 2), right to 2**-51 also where x**2 is rounded.",
    kernel=kernels.sin_square,
    vjp=lambda dy, x: multiply_upstream(dy, multiply(multiply(x, math.pi), cos_square(x))),
    ulps=None,
)
cos_square = _of_one(
    "cos_square",
    "Return cos(pi x**2 / 2), right to 2**-51 also where x**2 is rounded.",
    kernel=kernels.cos_square,
    vjp=lambda dy, x: multiply_upstream(dy, multiply(multiply(x, -math.pi), sin_square(x))),
    ulps=None,
)


def dawsn(x: Any) -> Tensor:
    """Return Dawson's integral: exp(-x**2) times the integral of exp(t**2) from 0 to x.

    Elementwise; the shape of `x`, and its dtype (integers give float64). Right to 4 units in the
    last place, by approximations of our own; the gradients lose no digits for large `x`, where 1 -
    2 x dawsn(x) does. Modelled on ``tf.math.special.dawsn``.
    """
    return dawson_derivative(0, x)


def spence(x: Any) -> Tensor:
    """Return Spence's function: the integral of log(t) / (1 - t) from 1 to x.

    It is the dilogarithm of 1 - x. Elementwise; the shape of `x`, and its dtype (integers give
    float64). NaN below 0 and at infinity. Right to 2 units in the last place, by approximations of
    our own, and differentiable at every order, at 1 too. Modelled on ``tf.math.special.spence``.
    """
    return spence_derivative(0, x)
