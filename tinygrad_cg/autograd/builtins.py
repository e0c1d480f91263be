"""The names of ``autograd.builtins``: Python's own types; their containers can hold tensors.

`isinstance` and `type` see the value of a tensor: a number is NumPy's, as float64 a float, and
anything with axes an array.
"""

import builtins
from builtins import dict, list, tuple  # noqa: UP029 (they are its public names)
from typing import Any

import numpy as np

from .._core.tensor import Tensor

__all__ = ["dict", "isinstance", "list", "tuple", "type"]
__dir__ = __all__.copy


def isinstance(x: Any, A: Any) -> bool:
    """Return Python's ``isinstance`` of `x`, or of the value of a tensor."""
    if builtins.isinstance(x, A):
        return True
    return builtins.isinstance(x, Tensor) and issubclass(_type_of_value(x), A)


def type(x: Any) -> Any:
    """Return the type of `x`, or of the value of a tensor: float for a float64."""
    if not builtins.isinstance(x, Tensor):
        return builtins.type(x)
    value_type = _type_of_value(x)
    return float if value_type is np.float64 else value_type


def _type_of_value(x: Tensor) -> Any:
    return np.ndarray if x.shape else x.dtype.type
