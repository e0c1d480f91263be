"""Elementwise operations: one record each."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels import math as kmath

from ..convert import convert, convert_operands
from ..primitive import Primitive, apply, register
from ..tensor import Aval, Tensor
from .creation import zeros_like
from .define import Real, binary, elementwise, unary
from .shape import identity

ANY = Real(-2.0, 2.0)
POSITIVE = Real(0.3, 3.0)
AWAY = Real(-2.0, 2.0, avoid=(0.0,))  # for functions with a kink or a pole at 0

# Arithmetic ----------------------------------------------------------------------------------

add = binary(
    "add",
    kmath.add,
    vjp=(lambda dy: dy, lambda dy: dy),
    linear=True,
    reference=np.add,
    samples=(ANY, ANY),
)
subtract = binary(
    "subtract",
    kmath.subtract,
    vjp=(lambda dy: dy, lambda dy: negative(dy)),
    linear=True,
    reference=np.subtract,
    samples=(ANY, ANY),
)
multiply = binary(
    "multiply",
    kmath.multiply,
    vjp=(lambda dy, y: multiply(dy, y), lambda dy, x: multiply(dy, x)),
    reference=np.multiply,
    samples=(ANY, ANY),
)
divide = binary(
    "divide",
    kmath.divide,
    kind="float",
    vjp=(
        lambda dy, y: divide(dy, y),
        lambda dy, y, out: negative(divide(multiply(dy, out), y)),
    ),
    reference=np.true_divide,
    samples=(ANY, AWAY),
)
negative = unary(
    "negative",
    kmath.negative,
    kind="same",
    vjp=lambda dy: negative(dy),
    linear=True,
    reference=np.negative,
    samples=(ANY,),
)
floor_divide = binary(
    "floor_divide", kmath.floor_divide, reference=np.floor_divide, samples=(ANY, AWAY)
)
remainder = binary(
    "remainder",
    kmath.remainder,
    vjp=(lambda dy: dy, lambda dy, x, y: negative(multiply(dy, floor_divide(x, y)))),
    reference=np.remainder,
    samples=(Real(0.1, 0.9), Real(1.0, 2.0)),
)

# Powers --------------------------------------------------------------------------------------


def _power_by_base(dy: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """y x**(y-1), and 0 where y is 0: no 0 * inf there, at this order or the next."""
    exponent = where(equal(y, 0), 1, subtract(y, 1))
    return multiply(dy, multiply(y, _general_power(x, exponent)))


def _power_by_exponent(dy: Tensor, x: Tensor, out: Tensor) -> Tensor:
    """out log(x); 0 where x is 0 (0**y is flat for y > 0); NaN for x < 0, as the value."""
    is_zero = equal(x, 0)
    return multiply(dy, multiply(out, where(is_zero, 0, log(where(is_zero, 1, x)))))


_general_power = binary(
    "power",
    kmath.power,
    vjp=(_power_by_base, _power_by_exponent),
    reference=np.power,
    samples=(POSITIVE, Real(-2.5, 2.5)),
)


def _run_scalar_power(x: np.ndarray, exponent: float) -> np.ndarray:
    return _general_power.primitive.run(x, np.asarray(exponent, x.dtype))  # type: ignore


def _scalar_power_rule(dy: Tensor, x: Tensor, exponent: float) -> Tensor:
    if exponent == 0:
        return zeros_like(dy)
    return multiply(dy, multiply(power(x, exponent - 1), exponent))


_scalar_power = register(
    Primitive(
        "scalar_power",
        _run_scalar_power,
        ("x",),
        lambda x, exponent: Aval(x.shape, x.dtype),
        (_scalar_power_rule,),
        kind="elementwise",
        kernel=_general_power.primitive.kernel,  # type: ignore[attr-defined]
        reference=lambda x, exponent: np.power(x, x.dtype.type(exponent)),
        samples=(POSITIVE, {"exponent": -1.5}, {"exponent": 3}, {"exponent": 0}),
    )
)


def power(x: Any, y: Any) -> Tensor:
    """``x ** y``. The gradient of ``x**0`` is 0 everywhere, that of ``0**y`` by y is 0."""
    if type(y) in (int, float):
        x = convert(x)
        kind = x._data.dtype.kind
        if y == 2 and type(y) is int:
            return square(x)
        if y == 1 and (kind in "fc" or type(y) is int):
            return identity(x)
        if kind in "fc":
            return apply(_scalar_power, (x,), {"exponent": y})
    return _general_power(x, y)


square = unary(
    "square",
    kmath.square,
    kind="same",
    vjp=lambda dy, x: multiply(dy, multiply(x, 2)),
    reference=np.square,
    samples=(ANY,),
)
sqrt = unary(
    "sqrt",
    kmath.sqrt,
    vjp=lambda dy, out: divide(multiply(dy, 0.5), out),
    reference=np.sqrt,
    samples=(POSITIVE,),
)

# Exponentials and friends --------------------------------------------------------------------

exp = unary(
    "exp",
    kmath.exp,
    vjp=lambda dy, out: multiply(dy, out),
    reference=np.exp,
    samples=(Real(-4.0, 4.0),),
)
log = unary(
    "log",
    kmath.log,
    vjp=lambda dy, x: divide(dy, x),
    reference=np.log,
    samples=(POSITIVE,),
)
log1p = unary(
    "log1p",
    kmath.log1p,
    vjp=lambda dy, x: divide(dy, add(x, 1)),
    reference=np.log1p,
    samples=(Real(-0.7, 3.0),),
)
expm1 = unary(
    "expm1",
    kmath.expm1,
    vjp=lambda dy, out: multiply(dy, add(out, 1)),
    reference=np.expm1,
    samples=(Real(-3.0, 3.0),),
)
tanh = unary(
    "tanh",
    kmath.tanh,
    vjp=lambda dy, out: multiply(dy, subtract(1, square(out))),
    reference=np.tanh,
    samples=(Real(-4.0, 4.0),),
)
sigmoid = unary(
    "sigmoid",
    kmath.sigmoid,
    vjp=lambda dy, out: multiply(dy, multiply(out, subtract(1, out))),
    reference=lambda x: 1 / (1 + np.exp(-x)),
    samples=(Real(-6.0, 6.0),),
)
softplus = unary(
    "softplus",
    kmath.softplus,
    vjp=lambda dy, x: multiply(dy, sigmoid(x)),
    reference=lambda x: np.logaddexp(x, x.dtype.type(0)),
    samples=(Real(-6.0, 6.0),),
)
sin = unary(
    "sin",
    kmath.sin,
    vjp=lambda dy, x: multiply(dy, cos(x)),
    reference=np.sin,
    samples=(Real(-4.0, 4.0),),
)
cos = unary(
    "cos",
    kmath.cos,
    vjp=lambda dy, x: negative(multiply(dy, sin(x))),
    reference=np.cos,
    samples=(Real(-4.0, 4.0),),
)

# Piecewise linear, and the like --------------------------------------------------------------

relu = unary(
    "relu",
    kmath.relu,
    kind="same",
    vjp=lambda dy, out: where(greater(out, 0), dy, 0),
    reference=lambda x: np.maximum(x, x.dtype.type(0)),
    samples=(AWAY,),
)


def _absolute_rule(dy: Tensor, x: Tensor) -> Tensor:
    if x.dtype.kind != "c":
        return multiply(dy, sign(x))
    size = absolute(x)
    return multiply(dy, divide(x, where(equal(size, 0), 1, size)))


absolute = unary(
    "absolute",
    kmath.absolute,
    kind="real",
    vjp=_absolute_rule,
    analytic=False,
    reference=np.abs,
    samples=(AWAY,),
)
sign = unary(
    "sign",
    kmath.sign,
    kind="same",
    vjp=lambda dy: zeros_like(dy),
    reference=np.sign,
    samples=(AWAY,),
)
round_half_even = unary(
    "round", kmath.round, kind="same", reference=np.round, samples=(Real(-2.9, 2.9),)
)
floor = unary("floor", kmath.floor, kind="same", reference=np.floor, samples=(Real(-2.9, 2.9),))
ceil = unary("ceil", kmath.ceil, kind="same", reference=np.ceil, samples=(Real(-2.9, 2.9),))
maximum = binary(
    "maximum",
    kmath.maximum,
    vjp=(
        lambda dy, x, y: where(greater_equal(x, y), dy, 0),
        lambda dy, x, y: where(greater_equal(x, y), 0, dy),
    ),
    reference=np.maximum,
    samples=(Real(-2.0, 0.0), Real(0.1, 2.0)),
)
minimum = binary(
    "minimum",
    kmath.minimum,
    vjp=(
        lambda dy, x, y: where(less_equal(x, y), dy, 0),
        lambda dy, x, y: where(less_equal(x, y), 0, dy),
    ),
    reference=np.minimum,
    samples=(Real(-2.0, 0.0), Real(0.1, 2.0)),
)
_where = elementwise(
    "where",
    kmath.where,
    ("condition", "x", "y"),
    "select",
    (
        None,
        lambda dy, condition: where(condition, dy, 0),
        lambda dy, condition: where(condition, 0, dy),
    ),
    reference=np.where,
    samples=(Real(0.0, 1.0), ANY, ANY),
)
_clip = elementwise(
    "clip",
    kmath.clip,
    ("x", "low", "high"),
    "same",
    (
        lambda dy, x, low, high: where(logical_or(less(x, low), greater(x, high)), 0, dy),
        lambda dy, x, low: where(less(x, low), dy, 0),
        lambda dy, x, high: where(greater(x, high), dy, 0),
    ),
    reference=np.clip,
    samples=(Real(-2.0, 2.0, avoid=(-1.0, 1.0)), Real(-1.0, -1.0), Real(1.0, 1.0)),
)


def where(condition: Any, x: Any, y: Any) -> Tensor:
    """`x` where `condition` holds and `y` elsewhere; the three broadcast.

    Both branches are differentiated: a branch that is infinite or NaN where it is not chosen
    gives NaN gradients. Guard its argument too: ``where(x > 0, log(where(x > 0, x, 1.)), 0.)``.
    """
    x, y = convert_operands((x, y))
    return apply(_where, (convert(condition), x, y), {})


def clip(x: Any, low: Any = None, high: Any = None) -> Tensor:
    """`x` limited to [low, high]; None is no limit. At a limit the gradient passes."""
    if low is None or high is None:
        x = convert(x)
        x = maximum(x, low) if low is not None else x
        return minimum(x, high) if high is not None else identity(x)
    return apply(_clip, convert_operands((x, low, high)), {})


# Comparisons and logic -----------------------------------------------------------------------

equal = binary("equal", kmath.equal, kind="compare", reference=np.equal, samples=(ANY, ANY))
not_equal = binary(
    "not_equal", kmath.not_equal, kind="compare", reference=np.not_equal, samples=(ANY, ANY)
)
less = binary("less", kmath.less, kind="compare", reference=np.less, samples=(ANY, ANY))
less_equal = binary(
    "less_equal", kmath.less_equal, kind="compare", reference=np.less_equal, samples=(ANY, ANY)
)
greater = binary("greater", kmath.greater, kind="compare", reference=np.greater, samples=(ANY, ANY))
greater_equal = binary(
    "greater_equal",
    kmath.greater_equal,
    kind="compare",
    reference=np.greater_equal,
    samples=(ANY, ANY),
)
logical_and = binary(
    "logical_and",
    kmath.logical_and,
    kind="logical",
    reference=np.logical_and,
    samples=(ANY, ANY),
)
logical_or = binary(
    "logical_or", kmath.logical_or, kind="logical", reference=np.logical_or, samples=(ANY, ANY)
)
logical_xor = binary(
    "logical_xor",
    kmath.logical_xor,
    kind="logical",
    reference=np.logical_xor,
    samples=(ANY, ANY),
)
logical_not = unary(
    "logical_not", kmath.logical_not, kind="logical", reference=np.logical_not, samples=(ANY,)
)
isnan = unary("isnan", kmath.isnan, kind="compare", reference=np.isnan, samples=(ANY,))
isinf = unary("isinf", kmath.isinf, kind="compare", reference=np.isinf, samples=(ANY,))
isfinite = unary("isfinite", kmath.isfinite, kind="compare", reference=np.isfinite, samples=(ANY,))
