"""Instructions that Python has no function for, and the marks of functions."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_cg_frontend import (
    ANY_ORDER,
    FLOATS,
    STORED,
    Intrinsic,
    IRValue,
    Untranslatable,
    intrinsic,
    llvm_function,
    llvm_type,
)
from tinygrad_cg_frontend import drives as drives
from tinygrad_cg_frontend import inlined as inlined
from tinygrad_cg_frontend import noalias as noalias
from tinygrad_cg_frontend import number_by_number as number_by_number
from tinygrad_cg_frontend import outlined as outlined
from tinygrad_cg_frontend import short_rows as short_rows
from tinygrad_cg_frontend import vectorised as vectorised
from tinygrad_cg_frontend import wide_vectors as wide_vectors

# --- types --------------------------------------------------------------------------------


@intrinsic(None, lambda body, value, model: body.cast(value, model.type))
def like(value, model):
    """Return `value` cast to the type of `model`: a literal that does not widen a formula."""
    return np.asarray(model).dtype.type(value)


def _by_width(body: Any, model: IRValue, wide: IRValue, narrow: IRValue) -> IRValue:
    kind = model.type
    if not model.is_number or kind[1:] not in ("64", "32"):
        raise Untranslatable(f"the width of {kind}")
    chosen = wide if kind[1:] == "64" else narrow
    if chosen.is_number:
        return body.cast(chosen, kind)
    parts = tuple(body.cast(part, kind) for part in body.parts(chosen))
    return IRValue((kind,) * len(parts), parts)


@intrinsic(None, _by_width)
def by_width(model, wide, narrow):
    """Return `wide` if `model` has 64 bits, `narrow` if it has 32, in the type of `model`.

    Both are numbers, or tuples of numbers. The choice is made at compile time.
    """
    kind = np.asarray(model).dtype
    chosen = wide if kind.itemsize == 8 else narrow
    return tuple(map(kind.type, chosen)) if isinstance(chosen, tuple) else kind.type(chosen)


def _reinterpreted(kinds: dict[str, str]) -> Callable:
    def emit(body: Any, value: IRValue) -> IRValue:
        if value.type not in kinds:
            raise Untranslatable(f"the bits of {value.type}")
        kind = kinds[value.type]
        source = f"{llvm_type(value.type)} {value.text}"
        return IRValue(kind, body.emit(f"bitcast {source} to {STORED[kind]}"))

    return emit


@intrinsic(None, _reinterpreted({"f64": "i64", "f32": "i32"}))
def bits(value):
    """Return the bits of a float as an integer of its width."""
    value = np.asarray(value)
    return value.view(f"i{value.itemsize}")[()]


@intrinsic(None, _reinterpreted({"i64": "f64", "u64": "f64", "i32": "f32", "u32": "f32"}))
def from_bits(value):
    """Return the float with the bits of an integer."""
    value = np.asarray(value)
    return value.view(f"f{value.itemsize}")[()]


# --- floats -------------------------------------------------------------------------------


def _sum_of_powers(sum_up: Callable) -> Callable:
    """Return the `Emit` of the sum of coefficients[k] * x**k, in the type of x.

    It is written without a loop: LLVM does not always unroll one over a tuple, and then does not
    vectorise the loop around it.
    """

    def emit(body: Any, x: IRValue, coefficients: IRValue) -> IRValue:
        if x.type not in FLOATS:
            raise Untranslatable(f"a polynomial of {x.type}")
        return sum_up(body, x, [body.cast(part, x.type) for part in body.parts(coefficients)])

    return emit


def _horner(body: Any, x: IRValue, values: list[IRValue]) -> IRValue:
    *others, total = values
    for other in reversed(others):
        total = body.add(body.product(x, total), other)
    return total


def _estrin(body: Any, x: IRValue, values: list[IRValue]) -> IRValue:
    square = body.operate("Mult", x, x)
    pairs = [_horner(body, x, values[k : k + 2]) for k in range(0, len(values), 2)]
    if len(pairs) <= 3:
        return _horner(body, square, pairs)
    fours = [_horner(body, square, pairs[k : k + 2]) for k in range(0, len(pairs), 2)]
    return _horner(body, body.operate("Mult", square, square), fours)


@intrinsic(None, _sum_of_powers(_horner))
def polynomial(x, coefficients):
    """Return the sum of coefficients[k] * x**k by Horner's rule."""
    kind = np.asarray(x).dtype.type
    total = kind(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = float_fma(x, total, kind(coefficient))
    return total


@intrinsic(None, _sum_of_powers(_estrin))
def estrin(x, coefficients):
    """Return the same in shorter chains: pairs or fours of terms by Estrin's scheme, Horner's rule
    over those.

    It is sooner done where several steps are taken at a time, and rounds a little more.
    """
    pairs = [polynomial(x, coefficients[k : k + 2]) for k in range(0, len(coefficients), 2)]
    if len(pairs) <= 3:
        return polynomial(x * x, pairs)
    fours = [polynomial(x * x, pairs[k : k + 2]) for k in range(0, len(pairs), 2)]
    return polynomial(x * x * (x * x), fours)


def _of_floats(name: str, count: int, flags: str = "") -> Callable[[Callable], Intrinsic]:
    """Return a decorator for the meaning of one of LLVM's functions of floats."""
    return intrinsic(", ".join("f" * count) + " -> f", llvm_function(name, flags))


@_of_floats("maximum", 2)
def float_maximum(x, y):
    """Return the larger one: nan if one is, and 0.0 is above -0.0."""
    return y if x < y or (x == y and np.signbit(x)) or np.isnan(y) else x


@_of_floats("minimum", 2)
def float_minimum(x, y):
    """Return the smaller one: nan if one is, and -0.0 is below 0.0."""
    return y if x > y or (x == y and np.signbit(y)) or np.isnan(y) else x


@_of_floats("maxnum", 2, ANY_ORDER)
def largest_number(x, y):
    """Return the larger one, by one instruction, which a reduction may use in any order.

    If an operand is nan, the result is undefined, so a reduction has to look for nan, too.
    """
    return np.fmax(x, y)


@_of_floats("minnum", 2, ANY_ORDER)
def smallest_number(x, y):
    """Return the smaller one, see `largest_number`."""
    return np.fmin(x, y)


float_floor = _of_floats("floor", 1)(lambda x: np.floor(x))
float_ceil = _of_floats("ceil", 1)(lambda x: np.ceil(x))
float_round = _of_floats("rint", 1)(lambda x: np.rint(x))
float_copysign = _of_floats("copysign", 2)(lambda x, y: np.copysign(x, y))
float_absolute = _of_floats("fabs", 1)(lambda x: np.abs(x))


@_of_floats("fma", 3)
def float_fma(x, y, z):
    """Return x * y + z rounded once, on every processor: for the error of a product, x * y - p.

    Contraction would depend on the processor.
    """
    if not all(map(math.isfinite, (x, y, z))) or 0 in (x, y):
        return x * y + z
    from fractions import Fraction  # takes 3 ms, for Python's result alone

    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    return _rounded(exact, np.asarray(x).dtype.type) if exact else x * y + z


def _rounded(exact: Any, kind: Any) -> Any:
    """Return the nearest float. A float32 is rounded in two steps, first to odd, so it is exact."""
    try:
        near = float(exact)
    except OverflowError:
        return kind(math.copysign(math.inf, exact))
    if near != exact and kind is np.float32 and not np.float64(near).view(np.int64) & 1:
        near = np.nextafter(near, math.inf if exact > near else -math.inf)
    return kind(near)


@intrinsic("f, f -> f", lambda body, x, y: body.remainder(x, y))
def float_remainder(x, y):
    """Return C's fmod: the remainder of a division truncated towards zero."""
    return np.fmod(x, y)


@intrinsic("f, f -> f", "fadd reassoc {f} {0}, {1}")
def reassociating_add(x, y):
    """Return a sum, which LLVM may reassociate with other sums."""
    return x + y


@intrinsic("f, f -> f", "fmul reassoc {f} {0}, {1}")
def reassociating_multiply(x, y):
    """Return a product, which LLVM may reassociate with other products."""
    return x * y


@intrinsic("f, f -> f", "fdiv arcp {f} {0}, {1}")
def reciprocal_divide(x, y):
    """Return a quotient, which LLVM may compute as a product with the reciprocal of `y`."""
    return np.divide(x, y)


@intrinsic("f, f -> f", "fadd arcp reassoc {f} {0}, {1}")
def nan_of_either(x, y):
    """Return a sum that is only tested for nan, so the order of additions does not matter.

    The flag arcp has no meaning for sums, and only distinguishes these. With nsz, LLVM would make
    one chain of several.
    """
    return x + y
