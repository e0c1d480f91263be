"""NumPy's functions that are one operation on elements: their records name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.primitive import Primitive
from .._core.tensor import Tensor
from .._ops.namespaces.namespace import functions_of_records
from ._readers import _array, _pair


def _function_of(primitive: Primitive) -> Callable[..., Tensor]:
    operation = primitive.function

    def unary(x: Any, /) -> Tensor:
        return operation(_array(x))

    def binary(x1: Any, x2: Any, /) -> Tensor:
        return operation(*_pair(x1, x2))

    return unary if len(primitive.inputs) == 1 else binary


_functions = functions_of_records("numpy", _function_of)
globals().update(_functions)
__all__ = list(_functions)
