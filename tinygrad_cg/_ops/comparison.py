"""Comparisons and logic, elementwise: one record each, and none of them has a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinygrad_cg_kernels import elementary as kmath

from .._core.kinds import REAL
from .define import Real, binary, unary

ANY = Real(-2.0, 2.0)


def _test(define: Any, name: str, doc: str, kind: str = "compare", **record: Any) -> Any:
    """Return an operation with a boolean result, whose kernel and ufunc bear its name."""
    return define(
        name,
        getattr(kmath, name),
        doc=doc,
        kind=kind,
        ufunc=getattr(np, name),
        samples=(ANY,) if define is unary else (ANY, ANY),
        **record,
    )


equal = _test(
    binary,
    "equal",
    "Whether x == y.",
    spellings=("math.equal", "keras.ops.equal", "numpy.equal"),
)
not_equal = _test(
    binary,
    "not_equal",
    "Whether x != y.",
    spellings=("math.not_equal", "keras.ops.not_equal", "numpy.not_equal"),
)
less = _test(
    binary,
    "less",
    "Whether x < y.",
    dtypes=REAL,
    spellings=("math.less", "keras.ops.less", "numpy.less"),
)
less_equal = _test(
    binary,
    "less_equal",
    "Whether x <= y.",
    dtypes=REAL,
    spellings=("math.less_equal", "keras.ops.less_equal", "numpy.less_equal"),
)
greater = _test(
    binary,
    "greater",
    "Whether x > y.",
    dtypes=REAL,
    spellings=("math.greater", "keras.ops.greater", "numpy.greater"),
)
greater_equal = _test(
    binary,
    "greater_equal",
    "Whether x >= y.",
    dtypes=REAL,
    spellings=("math.greater_equal", "keras.ops.greater_equal", "numpy.greater_equal"),
)
isnan = _test(
    unary,
    "isnan",
    "Whether x is NaN.",
    spellings=("math.is_nan", "keras.ops.isnan", "numpy.isnan"),
)
isinf = _test(
    unary,
    "isinf",
    "Whether x is infinite.",
    spellings=("math.is_inf", "keras.ops.isinf", "numpy.isinf"),
)
isfinite = _test(
    unary,
    "isfinite",
    "Whether x is neither infinite nor NaN.",
    spellings=("math.is_finite", "keras.ops.isfinite", "numpy.isfinite"),
)
logical_and = _test(
    binary,
    "logical_and",
    "Whether x and y are both true (not 0).",
    "logical",
    spellings=("math.logical_and", "keras.ops.logical_and", "numpy.logical_and"),
)
logical_or = _test(
    binary,
    "logical_or",
    "Whether x or y is true (not 0).",
    "logical",
    spellings=("math.logical_or", "keras.ops.logical_or", "numpy.logical_or"),
)
logical_xor = _test(
    binary,
    "logical_xor",
    "Whether exactly one of x and y is true (not 0).",
    "logical",
    spellings=("math.logical_xor", "keras.ops.logical_xor", "numpy.logical_xor"),
)
logical_not = _test(
    unary,
    "logical_not",
    "Whether x is false (0).",
    "logical",
    spellings=("math.logical_not", "keras.ops.logical_not", "numpy.logical_not"),
)
