"""Operations. Everything about one of them stands in its record, in the module of its kind."""

from . import (
    comparison,
    complex,
    convolution,
    creation,
    decompositions,
    einsum,
    elementwise,
    indexing,
    losses,
    operators,
    padding,
    pooling,
    protocol,
    reductions,
    scans,
    shape,
    sorting,
)
from . import linear_algebra as linalg
from . import sampling as random
from . import special_functions as special
from . import trigonometry as trigonometric

__all__ = [
    "comparison",
    "complex",
    "convolution",
    "creation",
    "decompositions",
    "einsum",
    "elementwise",
    "indexing",
    "linalg",
    "losses",
    "operators",
    "padding",
    "pooling",
    "protocol",
    "random",
    "reductions",
    "scans",
    "shape",
    "sorting",
    "special",
    "trigonometric",
]
