"""``autograd.tracer``: asking whether a value is differentiated, and for its number."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._core.suggestions import refuse_name
from .._core.tensor import Tensor
from .._ops.shape import stop_gradient
from .extend import notrace_primitive, primitive

__all__ = ["Box", "getval", "isbox", "notrace_primitive", "primitive"]
__dir__ = __all__.copy
__getattr__ = partial(refuse_name, __name__)

Box = Tensor


def isbox(x: Any) -> bool:
    """Return whether `x` belongs to a differentiated function: it is a tensor there."""
    return isinstance(x, Tensor)


def getval(x: Any) -> Any:
    """Return the value of a tensor, a copy, as an array or a number; everything else as it is.

    A tensor that has no value, in a compiled function, is returned as a constant.
    """
    if not isinstance(x, Tensor):
        return x
    return np.array(x._data)[()] if type(x._data) is np.ndarray else stop_gradient(x)
