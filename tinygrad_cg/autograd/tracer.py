"""``autograd.tracer``: whether a value is being differentiated, and its number."""

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
    """Return whether `x` is a value of a differentiated function, that is, a tensor."""
    return isinstance(x, Tensor)


def getval(x: Any) -> Any:
    """Return a copy of a tensor's value, as an array or a number; other objects unchanged.

    A tensor that has no value, in a compiled function, is returned as a constant.
    """
    if not isinstance(x, Tensor):
        return x
    return np.array(x._data)[()] if type(x._data) is np.ndarray else stop_gradient(x)
