"""NumPy's elementwise functions that are made of several operations.

Where a formula has branches, each branch is right where it is chosen, at every order. Elsewhere it
is finite, so that no 0 * inf appears in gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import log, pi
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import promotion

from .._core.conversion import convert, convert_operands, promote
from .._core.kinds import is_complex, is_exact, is_floating, is_inexact
from .._core.levels import Level
from .._core.primitive import apply
from .._core.tensor import Aval, Tensor
from .._ops.comparison import (
    equal,
    greater,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    sign_bit,
)
from .._ops.complex import imag, real
from .._ops.creation import full_like, zeros_like
from .._ops.cumulative import cumsum
from .._ops.elementwise import (
    absolute,
    add,
    ceil,
    divide,
    floor,
    floor_divide,
    logaddexp,
    multiply,
    power,
    remainder,
    subtract,
    where,
)
from .._ops.indexing import getitem
from .._ops.shape import broadcast_to, cast, concatenate, identity, reshape, stack, stop_gradient
from .._ops.trigonometry import arctan2
from .._ops.validation import normalize_axis
from ..errors import InvalidArgumentError
from ._manipulation import _part
from ._readers import _array, _into, _pair, _real


def _reals(x1: Any, x2: Any) -> tuple[Tensor, ...]:
    """Return two operands, read as NumPy does, in one floating dtype."""
    tensors = convert_operands(_pair(x1, x2))
    dtype = promote(*[tensor.dtype for tensor in tensors])
    return tuple([cast(tensor, np.float64 if is_exact(dtype) else dtype) for tensor in tensors])


def angle(z: Any, deg: bool = False) -> Tensor:
    """Return the angle of complex numbers, in radians, or in degrees if `deg`."""
    z = _real(z)
    result = arctan2(imag(z), real(z))
    return multiply(result, 180 / pi) if deg else result


def unwrap(
    p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * pi
) -> Tensor:
    """Return `p` with periods added where neighbours along `axis` differ by more than half a
    period.

    The added periods have no gradient. Arguments as for ``np.unwrap``.
    """
    x = _real(p)
    dim, half = normalize_axis("unwrap", axis, x.ndim), period / 2
    fixed = stop_gradient(x)
    steps = subtract(_part(fixed, dim, 1, None), _part(fixed, dim, None, -1))
    wrapped = subtract(remainder(add(steps, half), period), half)
    wrapped = where(logical_and(equal(wrapped, -half), greater(steps, 0)), half, wrapped)
    is_short = less(absolute(steps), half if discont is None else discont)
    periods = cumsum(where(is_short, 0, subtract(wrapped, steps)), dim)
    first = zeros_like(_part(x, dim, 0, 1))
    return add(x, concatenate([first, periods], dim))


def logaddexp2(x1: Any, x2: Any, /) -> Tensor:
    """Return ``log2(2**x1 + 2**x2)`` without overflow; the operands broadcast."""
    x, y = _reals(x1, x2)
    return divide(logaddexp(multiply(x, log(2)), multiply(y, log(2))), log(2))


# Signs, and parts of numbers -----------------------------------------------------------------


def signbit(x: Any, /) -> Tensor:
    """Return whether `x` is negative: -0.0 is, and a NaN whose sign bit is set."""
    x = _array(x)
    return sign_bit(x) if is_floating(x.dtype) else less(x, 0)


def _sign_of(x: Tensor) -> Tensor:
    """Return 1 or -1 in the dtype of `x`, also for signed zeros."""
    return where(signbit(x), full_like(x, -1), full_like(x, 1))


def copysign(x1: Any, x2: Any, /) -> Tensor:
    """Return the size of `x1` with the sign of `x2`, in floating point; the operands broadcast."""
    x, y = _reals(x1, x2)
    return multiply(multiply(x, _sign_of(x)), _sign_of(y))


def fabs(x: Any, /) -> Tensor:
    """Return the absolute value of a real `x`, in floating point."""
    x = _real(x)
    if is_complex(x.dtype):
        raise TypeError("fabs: needs real numbers, got complex ones: use absolute")
    return absolute(x)


def heaviside(x1: Any, x2: Any, /) -> Tensor:
    """Return 0 for negative `x1`, 1 for positive, `x2` where `x1` is 0, and NaN for NaN."""
    x, y = _reals(x1, x2)
    step = where(less(x, 0), zeros_like(x), full_like(x, 1))
    return where(isnan(x), np.nan, where(equal(x, 0), y, step))


def trunc(x: Any, /) -> Tensor:
    """Return `x` rounded towards zero. It has no gradient."""
    x = _array(x)
    return x if is_exact(x.dtype) else where(less(x, 0), ceil(x), floor(x))


fix = trunc


def modf(x: Any, /) -> tuple[Tensor, Tensor]:
    """Return the fractional and the integral part of `x`; the integral part has no gradient."""
    x = _real(x)
    integral = trunc(x)
    infinite = isinf(x)
    return subtract(where(infinite, 0, x), where(infinite, 0, integral)), integral


def divmod(x1: Any, x2: Any, /) -> tuple[Tensor, Tensor]:
    """Return ``(x1 // x2, x1 % x2)``; the operands broadcast."""
    x, y = _pair(x1, x2)
    return floor_divide(x, y), remainder(x, y)


def fmod(x1: Any, x2: Any, /) -> Tensor:
    """Return the remainder of ``x1 / x2``, with the sign of `x1`; the operands broadcast."""
    tensors = convert_operands(_pair(x1, x2))
    dtype = promote(*[tensor.dtype for tensor in tensors])
    x, y = (cast(tensor, dtype) for tensor in tensors)
    if is_exact(dtype):  # not by -x, which may overflow
        rest = remainder(x, y)
        across = logical_and(not_equal(rest, 0), not_equal(less(x, 0), less(y, 0)))
        return where(across, subtract(rest, y), rest)
    sign = _sign_of(x)
    return multiply(remainder(multiply(x, sign), multiply(y, _sign_of(y))), sign)


def float_power(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 ** x2`` in float64, or complex128; the operands broadcast."""
    x, y = convert_operands(_pair(x1, x2))
    wide = np.complex128 if is_complex(x.dtype) or is_complex(y.dtype) else np.float64
    return power(cast(x, wide), cast(y, wide))


def ldexp(x1: Any, x2: Any, /) -> Tensor:
    """Return ``x1 * 2**x2`` for integers `x2`; the operands broadcast."""
    x, exponent = _real(x1), _array(x2)
    if not is_exact(exponent.dtype):
        raise TypeError(f"ldexp: the exponent must be integers, got {exponent.dtype}")
    half = floor_divide(exponent, 2)  # two factors: 2**x2 alone may overflow
    two = full_like(x, 2)
    return multiply(multiply(x, power(two, half)), power(two, subtract(exponent, half)))


# Larger and smaller, NaN left out ------------------------------------------------------------


def _without_nan_of_two(choose: Callable, x1: Any, x2: Any) -> Tensor:
    x, y = convert_operands(_pair(x1, x2))
    return where(isnan(x), y, where(isnan(y), x, choose(x, y)))


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Tensor:
    """Return `x` with NaN replaced by 0, and infinities by the largest numbers, unless others are
    given.

    Replaced elements have no gradient. Raises ValueError for ``copy=False``.
    """
    x = _array(x)
    if not copy:
        raise ValueError("nan_to_num: tensors are immutable, copy must be True")
    if not is_inexact(x.dtype):
        return identity(x)
    if is_complex(x.dtype):
        parts = [nan_to_num(part, copy, nan, posinf, neginf) for part in (real(x), imag(x))]
        return add(parts[0], multiply(parts[1], 1j))
    limits = np.finfo(x.dtype)
    x = where(isnan(x), nan, x)
    x = where(equal(x, np.inf), limits.max if posinf is None else posinf, x)
    return where(equal(x, -np.inf), limits.min if neginf is None else neginf, x)


def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Return whether ``|a - b| <= atol + rtol |b|``, or both are the same infinity, or NaN if
    `equal_nan`."""
    x, y = convert_operands(_pair(a, b))
    finite = logical_and(isfinite(x), isfinite(y))
    near = less_equal(
        absolute(subtract(where(finite, x, 0), where(finite, y, 0))),
        add(atol, multiply(rtol, absolute(where(finite, y, 0)))),
    )
    close = where(finite, near, equal(x, y))
    return logical_or(close, logical_and(isnan(x), isnan(y))) if equal_nan else close


# Choices -------------------------------------------------------------------------------------


def select(condlist: Any, choicelist: Any, default: Any = 0) -> Tensor:
    """Return elements of the first of `choicelist` whose condition holds, else `default`.

    All broadcast. Gradients as for `where`. InvalidArgumentError unless both lists have the same
    length.
    """
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices) or not conditions:
        raise InvalidArgumentError(
            f"select: needs a choice for each condition, got {len(conditions)} conditions and "
            f"{len(choices)} choices"
        )
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = where(_array(condition), *_pair(choice, result))
    return convert(result)


def choose(a: Any, choices: Any, out: None = None, mode: str = "raise") -> Tensor:
    """Return for each element of `a` the element of ``choices[a]`` at its index; all broadcast.

    `a` are integers. `mode` is for out-of-range indices: "raise" (IndexError), "wrap" or "clip".
    """
    options = [_array(choice) for choice in choices]
    index = _into(_array(a), len(options), mode)
    shape = promotion.broadcast_shapes(*[tuple(array.shape) for array in (index, *options)])
    rows = stack([broadcast_to(option, shape) for option in options])
    grid = np.ogrid[tuple([slice(size) for size in shape])]
    return getitem(rows, (broadcast_to(index, shape), *grid))


def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """Return each function of `funclist` (or number) where its condition holds.

    Elsewhere the result is 0, or that of an additional last function. A function gets the 1-D
    elements of `x` for which its condition holds, and `args` and `kw`. If several conditions hold,
    the last one wins. The result has the shape and dtype of `x`. Inside ``vmap`` and ``function``,
    functions get all elements and must be elementwise; otherwise this raises InvalidArgumentError.
    """
    x = _array(x)
    conditions = _conditions(condlist, x)
    functions = list(funclist)
    if len(functions) == len(conditions) + 1:
        conditions = [*conditions, logical_not(reduce(logical_or, conditions))]
    elif len(functions) != len(conditions):
        raise InvalidArgumentError(
            f"piecewise: {len(conditions)} conditions need as many functions, or one more, got "
            f"{len(functions)}"
        )
    result, flat = zeros_like(x), reshape(x, (-1,))
    for condition, function in zip(conditions, functions, strict=True):
        if callable(function) and isinstance(condition._data, Aval):
            with _Elementwise(flat.shape[0]):
                values = cast(function(flat, *args, **kw), x.dtype)
            values = reshape(values, x.shape) if values.ndim else values
            result = where(condition, values, result)
        elif callable(function):
            result = _put(result, condition, function(getitem(x, condition), *args, **kw))
        else:
            result = _put(result, condition, function)
    return result


class _Elementwise(Level):
    """A level that refuses operations that are not elementwise, on `count` elements."""

    def __init__(self, count: int) -> None:
        self.count = count

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        elementwise = primitive.kind == "elementwise" or primitive.name in ("cast", "stop_gradient")
        some = self.count > 1 and any(operand.shape[-1:] == (self.count,) for operand in inputs)
        if some and not elementwise:
            raise _not_elementwise(f"`{primitive.label}`")
        return apply(primitive, inputs, params)

    def custom_call(self, call: Any, inputs: Any, outputs: Any) -> list:
        raise _not_elementwise("a custom gradient")


def _not_elementwise(name: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        "piecewise: inside `vmap` and `function`, a function must be elementwise, but this one "
        f"uses {name}: use np.where or np.select"
    )


def _conditions(condlist: Any, x: Tensor) -> list[Tensor]:
    several = isinstance(condlist, (list, tuple)) or getattr(condlist, "ndim", 0)
    if isinstance(condlist, Tensor):
        single = condlist.ndim <= 1 and x.ndim != 0
    else:
        rows = list, np.ndarray, Tensor
        single = not several or (not isinstance(condlist[0], rows) and x.ndim != 0)
    listed = [condlist] if single else condlist
    return [broadcast_to(cast(_array(condition), bool), tuple(x.shape)) for condition in listed]


def _put(x: Tensor, condition: Tensor, values: Any) -> Tensor:
    """Return `x` with `values`, in order, where `condition` holds."""
    values = cast(values, x.dtype)
    if not values.ndim:
        return where(condition, values, x)
    if not values.shape[0]:
        return x
    mask = np.asarray(condition)
    order = np.where(mask, np.cumsum(mask).reshape(mask.shape) - 1, 0)
    return where(mask, getitem(values, (order,)), x)
