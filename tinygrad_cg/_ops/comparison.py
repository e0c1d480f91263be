"""Comparisons and logic, elementwise: one record each, and none of them has a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core import devices
from .._core.kinds import REAL
from .._core.primitive import apply, same_parameters
from .._core.tensor import Aval, Tensor
from .define import Case, binary, operation, unary


def _question(name: str, doc: str, in_math: str) -> Any:
    spellings = (f"math.{in_math}", f"keras.ops.{name}", f"numpy.{name}")
    return unary(name, doc, "compare", spellings=spellings)


equal = binary("equal", "Return whether x == y.", "compare")
not_equal = binary("not_equal", "Return whether x != y.", "compare")
less = binary("less", "Return whether x < y.", "compare", dtypes=REAL)
less_equal = binary("less_equal", "Return whether x <= y.", "compare", dtypes=REAL)
greater = binary("greater", "Return whether x > y.", "compare", dtypes=REAL)
greater_equal = binary("greater_equal", "Return whether x >= y.", "compare", dtypes=REAL)
isnan = _question("isnan", "Return whether x is NaN.", "is_nan")
isinf = _question("isinf", "Return whether x is infinite.", "is_inf")
isfinite = _question("isfinite", "Return whether x is neither infinite nor NaN.", "is_finite")
logical_and = binary("logical_and", "Return whether x and y are both true (not 0).", "logical")
logical_or = binary("logical_or", "Return whether x or y is true (not 0).", "logical")
logical_xor = binary("logical_xor", "Whether exactly one of x and y is true (not 0).", "logical")
logical_not = unary("logical_not", "Return whether x is false (0).", "logical")

_sign_bit = operation(
    "sign_bit",
    lambda x: devices.library_of(x).asarray(np.signbit(x)),
    lambda x: Aval(x.shape, np.dtype(bool)),
    dtypes=REAL,
    batch=same_parameters,
    samples=[Case(((2, 3),), {}, {0: np.array([[0.5, -0.0, 0.0], [-3.0, 1.0, -2.0]])})],
)


def sign_bit(x: Tensor) -> Tensor:
    """Return whether real numbers are negative: also -0.0, and a NaN whose sign bit is set."""
    return apply(_sign_bit, (x,), {})
