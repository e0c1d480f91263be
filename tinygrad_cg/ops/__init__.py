"""Operations. Everything about one of them stands in its record, in the module of its kind."""

from . import (
    complex,
    convolution,
    creation,
    einsum,
    elementwise,
    indexing,
    linalg,
    operators,
    padding,
    pooling,
    random,
    reductions,
    shape,
    sorting,
    special,
    trigonometric,
)

__all__ = [
    "complex",
    "convolution",
    "creation",
    "einsum",
    "elementwise",
    "indexing",
    "linalg",
    "operators",
    "padding",
    "pooling",
    "random",
    "reductions",
    "shape",
    "sorting",
    "special",
    "trigonometric",
]
