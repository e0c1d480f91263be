"""Operations. Everything about one of them stands in its record, in the module of its kind."""

from . import (
    complex,
    creation,
    elementwise,
    indexing,
    linalg,
    operators,
    random,
    reductions,
    shape,
)

__all__ = [
    "complex",
    "creation",
    "elementwise",
    "indexing",
    "linalg",
    "operators",
    "random",
    "reductions",
    "shape",
]
