"""Trigonometric and hyperbolic functions and their inverses: one record each."""

from __future__ import annotations

import numpy as np

from .._core.kinds import is_complex
from .._core.tensor import Tensor
from .comparison import isinf
from .define import Real, unary
from .elementwise import (
    AWAY,
    add,
    direction,
    divide,
    divide_unbounded,
    divide_upstream,
    hypot,
    multiply_upstream,
    negative,
    of_reals,
    one_minus_square,
    sqrt,
    square,
    subtract,
    where,
)

INSIDE = Real(-0.9, 0.9)  # for functions of numbers from -1 to 1
WIDE = Real(-4.0, 4.0)


def _cosine_of_arcsine(x: Tensor) -> Tensor:
    """Return sqrt(1 - x**2), to the last digits near 1 and -1."""
    return sqrt(one_minus_square(x))


def _arctan_rule(dy: Tensor, x: Tensor) -> Tensor:
    if is_complex(x.dtype):
        return divide_upstream(dy, add(square(x), 1))
    length = hypot(x, 1)
    return divide_upstream(divide_upstream(dy, length), length)


def _arcsinh_rule(dy: Tensor, x: Tensor) -> Tensor:
    length = sqrt(add(square(x), 1)) if is_complex(x.dtype) else hypot(x, 1)
    return divide_upstream(dy, where(isinf(x), np.nan, length))


tan = unary(
    "tan",
    "Return the tangent of x, in radians.",
    vjp=lambda dy, out: multiply_upstream(dy, add(square(out), 1)),
    samples=(Real(-1.3, 1.3),),
)
arcsin = unary(
    "arcsin",
    "Return the angle, from -pi/2 to pi/2, whose sine is x; NaN for real x beyond -1 and 1.",
    vjp=lambda dy, x: divide_upstream(dy, _cosine_of_arcsine(x)),
    spellings=("math.asin", "keras.ops.arcsin", "numpy.arcsin", "numpy.asin"),
    samples=(INSIDE,),
)
arccos = unary(
    "arccos",
    "Return the angle, from 0 to pi, whose cosine is x; NaN for real x beyond -1 and 1.",
    vjp=lambda dy, x: negative(divide_upstream(dy, _cosine_of_arcsine(x))),
    spellings=("math.acos", "keras.ops.arccos", "numpy.arccos", "numpy.acos"),
    samples=(INSIDE,),
)
arctan = unary(
    "arctan",
    "Return the angle, from -pi/2 to pi/2, whose tangent is x.",
    vjp=_arctan_rule,
    spellings=("math.atan", "keras.ops.arctan", "numpy.arctan", "numpy.atan"),
    samples=(WIDE,),
)
arctan2 = of_reals(
    "arctan2",
    "Return the angle, from -pi to pi, of the point with ordinate `x` and abscissa `y`. "
    "Integers give float64; signed zeros and infinities count as in C.",
    vjp=(
        lambda dy, x, y: multiply_upstream(dy, divide(direction(y, x), hypot(x, y))),
        lambda dy, x, y: negative(multiply_upstream(dy, divide(direction(x, y), hypot(x, y)))),
    ),
    spellings=("numpy.arctan2", "numpy.atan2"),
    samples=(AWAY, AWAY),
)
sinh = unary(
    "sinh",
    "Return the hyperbolic sine of x.",
    vjp=lambda dy, x: multiply_upstream(dy, cosh(x)),
    samples=(Real(-3.0, 3.0),),
)
cosh = unary(
    "cosh",
    "Return the hyperbolic cosine of x.",
    vjp=lambda dy, x: multiply_upstream(dy, sinh(x)),
    samples=(Real(-3.0, 3.0),),
)
arcsinh = unary(
    "arcsinh",
    "Return the number whose hyperbolic sine is x.",
    vjp=_arcsinh_rule,
    spellings=("math.asinh", "keras.ops.arcsinh", "numpy.arcsinh", "numpy.asinh"),
    samples=(WIDE,),
)
arccosh = unary(
    "arccosh",
    "Return the number >= 0 whose hyperbolic cosine is x; NaN for real x below 1.",
    vjp=lambda dy, x: divide_unbounded(
        dy, multiply_upstream(sqrt(subtract(x, 1)), sqrt(add(x, 1)))
    ),
    spellings=("math.acosh", "keras.ops.arccosh", "numpy.arccosh", "numpy.acosh"),
    samples=(Real(1.2, 4.0),),
)
arctanh = unary(
    "arctanh",
    "Return the number whose hyperbolic tangent is x: infinite at -1 and 1, NaN for real x beyond.",
    vjp=lambda dy, x: divide_upstream(dy, one_minus_square(x)),
    spellings=("math.atanh", "keras.ops.arctanh", "numpy.arctanh", "numpy.atanh"),
    samples=(INSIDE,),
)
