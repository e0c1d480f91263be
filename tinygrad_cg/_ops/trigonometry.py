"""tan, and the inverses of trigonometric and hyperbolic functions: one record each."""

from __future__ import annotations

import numpy as np

from tinygrad_cg_kernels import elementary as kmath

from .._core.tensor import Tensor
from .define import Real, binary, unary
from .elementwise import AWAY, add, divide, multiply, negative, sqrt, square, subtract

INSIDE = Real(-0.9, 0.9)  # for functions of numbers from -1 to 1
WIDE = Real(-4.0, 4.0)


def _cosine_of_arcsine(x: Tensor) -> Tensor:
    """sqrt(1 - x**2), to the last digits near 1 and -1."""
    return sqrt(multiply(subtract(1, x), add(x, 1)))


tan = unary(
    "tan",
    kmath.tan,
    doc="The tangent of x, in radians.",
    vjp=lambda dy, out: multiply(dy, add(square(out), 1)),
    reference=np.tan,
    samples=(Real(-1.3, 1.3),),
)
arcsin = unary(
    "arcsin",
    kmath.arcsin,
    doc="The angle, from -pi/2 to pi/2, whose sine is x; NaN for real x beyond -1 and 1.",
    vjp=lambda dy, x: divide(dy, _cosine_of_arcsine(x)),
    reference=np.arcsin,
    samples=(INSIDE,),
)
arccos = unary(
    "arccos",
    kmath.arccos,
    doc="The angle, from 0 to pi, whose cosine is x; NaN for real x beyond -1 and 1.",
    vjp=lambda dy, x: negative(divide(dy, _cosine_of_arcsine(x))),
    reference=np.arccos,
    samples=(INSIDE,),
)
arctan = unary(
    "arctan",
    kmath.arctan,
    doc="The angle, from -pi/2 to pi/2, whose tangent is x.",
    vjp=lambda dy, x: divide(dy, add(square(x), 1)),
    reference=np.arctan,
    samples=(WIDE,),
)
arctan2 = binary(
    "arctan2",
    kmath.arctan2,
    doc="The angle, from -pi to pi, of the point with ordinate `x` and abscissa `y`. Integers "
    "give float64; signed zeros and infinities count as in C.",
    kind="float",
    vjp=(
        lambda dy, x, y: multiply(dy, divide(y, add(square(x), square(y)))),
        lambda dy, x, y: negative(multiply(dy, divide(x, add(square(x), square(y))))),
    ),
    reference=np.arctan2,
    samples=(AWAY, AWAY),
)
arcsinh = unary(
    "arcsinh",
    kmath.arcsinh,
    doc="The number whose hyperbolic sine is x.",
    vjp=lambda dy, x: divide(dy, sqrt(add(square(x), 1))),
    reference=np.arcsinh,
    samples=(WIDE,),
)
arccosh = unary(
    "arccosh",
    kmath.arccosh,
    doc="The number, from 0 on, whose hyperbolic cosine is x; NaN for real x below 1.",
    vjp=lambda dy, x: divide(dy, multiply(sqrt(subtract(x, 1)), sqrt(add(x, 1)))),
    reference=np.arccosh,
    samples=(Real(1.2, 4.0),),
)
arctanh = unary(
    "arctanh",
    kmath.arctanh,
    doc="The number whose hyperbolic tangent is x: infinite at -1 and 1, NaN for real x beyond.",
    vjp=lambda dy, x: divide(dy, multiply(subtract(1, x), add(x, 1))),
    reference=np.arctanh,
    samples=(INSIDE,),
)
