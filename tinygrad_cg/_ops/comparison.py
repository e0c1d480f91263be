"""Comparisons and logic, elementwise: one record each, and none of them has a gradient."""

from __future__ import annotations

from .._core.kinds import REAL
from .define import binary, unary

equal = binary("equal", "Whether x == y.", "compare")
not_equal = binary("not_equal", "Whether x != y.", "compare")
less = binary("less", "Whether x < y.", "compare", dtypes=REAL)
less_equal = binary("less_equal", "Whether x <= y.", "compare", dtypes=REAL)
greater = binary("greater", "Whether x > y.", "compare", dtypes=REAL)
greater_equal = binary("greater_equal", "Whether x >= y.", "compare", dtypes=REAL)
isnan = unary(
    "isnan",
    "Whether x is NaN.",
    "compare",
    spellings=("math.is_nan", "keras.ops.isnan", "numpy.isnan"),
)
isinf = unary(
    "isinf",
    "Whether x is infinite.",
    "compare",
    spellings=("math.is_inf", "keras.ops.isinf", "numpy.isinf"),
)
isfinite = unary(
    "isfinite",
    "Whether x is neither infinite nor NaN.",
    "compare",
    spellings=("math.is_finite", "keras.ops.isfinite", "numpy.isfinite"),
)
logical_and = binary("logical_and", "Whether x and y are both true (not 0).", "logical")
logical_or = binary("logical_or", "Whether x or y is true (not 0).", "logical")
logical_xor = binary("logical_xor", "Whether exactly one of x and y is true (not 0).", "logical")
logical_not = unary("logical_not", "Whether x is false (0).", "logical")
