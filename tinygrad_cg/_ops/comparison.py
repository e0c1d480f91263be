"""Comparisons and logic, elementwise: one record each, and none of them has a gradient."""

from __future__ import annotations

from typing import Any

from .._core.kinds import REAL
from .define import binary, unary


def _test(
    define: Any, name: str, doc: str, kind: str = "compare", math: str | None = None, **record: Any
) -> Any:
    """Return an operation with a boolean result; `math` is its name in ``tf.math``, if another."""
    spellings = (f"math.{math or name}", f"keras.ops.{name}", f"numpy.{name}")
    return define(name, doc, kind, spellings=spellings, **record)


equal = _test(binary, "equal", "Whether x == y.")
not_equal = _test(binary, "not_equal", "Whether x != y.")
less = _test(binary, "less", "Whether x < y.", dtypes=REAL)
less_equal = _test(binary, "less_equal", "Whether x <= y.", dtypes=REAL)
greater = _test(binary, "greater", "Whether x > y.", dtypes=REAL)
greater_equal = _test(binary, "greater_equal", "Whether x >= y.", dtypes=REAL)
isnan = _test(unary, "isnan", "Whether x is NaN.", math="is_nan")
isinf = _test(unary, "isinf", "Whether x is infinite.", math="is_inf")
isfinite = _test(unary, "isfinite", "Whether x is neither infinite nor NaN.", math="is_finite")
logical_and = _test(binary, "logical_and", "Whether x and y are both true (not 0).", "logical")
logical_or = _test(binary, "logical_or", "Whether x or y is true (not 0).", "logical")
logical_xor = _test(
    binary, "logical_xor", "Whether exactly one of x and y is true (not 0).", "logical"
)
logical_not = _test(unary, "logical_not", "Whether x is false (0).", "logical")
