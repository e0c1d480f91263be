"""Products with an upstream gradient that may be ordinary products: 0 * inf and 0 * nan cannot
occur.

Rules multiply by slopes so that a zero upstream gradient gives zero whatever the slope is. An
ordinary product is faster, and may equal others. It gives the same if the upstream gradient cannot
be zero where the slope is infinite or NaN. Two proofs are tried; both hold for rounded arithmetic:

* The upstream gradient is computed from the slope by operations that propagate inf and NaN: sums,
  differences and products.
* Both are polynomials in one value x with constant coefficients, and all terms of the upstream
  gradient have one degree and one sign. If it is zero then |x| < 1, where the slope is finite.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._core.kinds import is_native_float
from .values import Value, in_turn

_MAX_SEARCHED = 64  # values between the upstream gradient and the slope
_STRICT = frozenset(("add", "broadcast_to", "multiply", "negative", "square", "subtract"))


class Polynomial(NamedTuple):
    """A polynomial in `base`, with bounds.

    Its absolute value is at most `high` where that of the base is below 1, and at least `low`
    elsewhere; `low` is 0 if it is unknown. `degree` is the degree of all its terms and `sign` their
    sign; both are 0 if terms differ. A constant has degree 0 and no base.
    """

    base: Value | None
    degree: int
    sign: int
    low: float
    high: float


class Polynomials:
    """The values of a graph as polynomials. Each is analysed once, after its operands."""

    def __init__(self) -> None:
        self._polynomials: dict[Value, Polynomial] = {}

    def is_nonzero(self, value: Value) -> bool:
        """Return whether `value` is a constant of finite numbers other than 0."""
        polynomial = self.of(value)
        return polynomial.base is None and polynomial.low > 0

    def may_mask(self, upstream: Value, slope: Value) -> bool:
        """Return whether `upstream` may be zero where `slope` is not finite."""
        p, q = self.of(upstream), self.of(slope)
        if p.low and (p.base is None or q.base is None or p.base is q.base):
            return False
        return not (q.base is None or _hands_on(slope, upstream))

    def of(self, value: Value) -> Polynomial:
        """Return `value` as a polynomial; in itself if there is no other."""
        for term in in_turn(value, _terms, self._polynomials.__contains__):
            polynomial = self._polynomial(term)
            if polynomial is None or not _is_in_range(polynomial, term.dtype):
                polynomial = Polynomial(term, 1, 1, 1.0, 1.0)
            self._polynomials[term] = polynomial
        return self._polynomials[value]

    def _polynomial(self, value: Value) -> Polynomial | None:
        if isinstance(value.aval, list) or not is_native_float(value.dtype):
            return None
        if (array := value.array) is not None:
            if not array.size or not np.isfinite(array).all():
                return None
            sign = 1 if (array > 0).all() else -1 if (array < 0).all() else 0
            size = abs(array)
            return Polynomial(None, 0, sign, float(size.min()), float(size.max()))
        if not _terms(value) or any(operand.dtype != value.dtype for operand in value.inputs):
            return None
        x, *others = [self._polynomials[operand] for operand in value.inputs]
        if value.name == "broadcast_to":
            return x
        if value.name == "negative":
            return x._replace(sign=-x.sign)
        y = others[0] if others else x
        if x.base is not None and y.base is not None and x.base is not y.base:
            return None
        base = x.base if x.base is not None else y.base
        if value.name in ("multiply", "square"):
            degree = x.degree + y.degree if x.sign and y.sign else 0
            return Polynomial(base, degree, x.sign * y.sign, x.low * y.low, x.high * y.high)
        high = x.high + y.high
        sign = y.sign if value.name == "add" else -y.sign
        if x.sign and x.degree == y.degree and x.sign == sign:
            return Polynomial(base, x.degree, x.sign, max(x.low, y.low), high)
        return Polynomial(base, 0, 0, 0.0, high)


def _terms(value: Value) -> tuple[Value, ...]:
    """Return the operands of an operation if it propagates inf and NaN."""
    return value.inputs if value.name in _STRICT else ()


def _is_in_range(polynomial: Polynomial, dtype: np.dtype) -> bool:
    """Return whether the bounds hold despite rounding and overflow."""
    limits = np.finfo(dtype)
    low, high = 1e3 * float(limits.tiny), 1e-3 * float(limits.max)
    return (not polynomial.low or polynomial.low > low) and polynomial.high < high


def _doubled(value: Value) -> Value | None:
    """Return x for the slope 2 x, which overflows only if the square of x overflows."""
    if value.name == "multiply":
        x, factor = value.inputs
        if factor.array is not None and not factor.array.ndim and abs(factor.array) <= 2:
            return x
    return None


def _is_square(value: Value, base: Value) -> bool:
    return value.name in ("square", "multiply") and all(x is base for x in value.inputs)


def _hands_on(slope: Value, upstream: Value) -> bool:
    """Return whether `upstream` is inf or NaN wherever `slope` is."""
    base = _doubled(slope)
    seen, stack = {upstream}, [upstream]
    while stack:
        value = stack.pop()
        if value is slope or (base is not None and _is_square(value, base)):
            return True
        if len(seen) < _MAX_SEARCHED:
            new = [operand for operand in _terms(value) if operand not in seen]
            seen.update(new)
            stack.extend(new)
    return False
