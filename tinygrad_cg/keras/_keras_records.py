"""The functions of ``keras.ops`` that are one operation on elements: their records name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.primitive import Primitive
from .._core.tensor import Tensor
from .._ops.namespaces.namespace import functions_of_records
from ._operands import as_real, as_reals


def _function_of(primitive: Primitive) -> Callable[..., Tensor]:
    """Return the function that calls an operation; a function of reals takes floats."""
    operation = primitive.function

    def unary(x: Any) -> Tensor:
        return operation(x)

    def unary_of_reals(x: Any) -> Tensor:
        return operation(as_real(x))

    def binary(x1: Any, x2: Any) -> Tensor:
        return operation(x1, x2)

    def binary_of_reals(x1: Any, x2: Any) -> Tensor:
        return operation(*as_reals(x1, x2))

    of_reals = getattr(primitive.kernel, "kind", "") == "float"
    if len(primitive.inputs) == 1:
        return unary_of_reals if of_reals else unary
    return binary_of_reals if of_reals else binary


_functions = functions_of_records("keras.ops", _function_of)
globals().update(_functions)
__all__ = list(_functions)
