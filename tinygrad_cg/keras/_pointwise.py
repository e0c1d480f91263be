"""The functions of ``keras.ops`` that are one operation on elements: their records name them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.primitive import Primitive
from .._core.tensor import Tensor
from .._spellings.namespace import named_by_records, spelled
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


_primitives = named_by_records("keras.ops")
_functions: dict[str, Any] = {}  # by the primitive's name: several names may be one function
for _name, _primitive in _primitives.items():
    if _primitive.name not in _functions:
        _function = spelled(_function_of(_primitive), _name, _primitive.function)
        _function.__module__ = f"{__package__}.ops"
        _functions[_primitive.name] = _function
    globals()[_name] = _functions[_primitive.name]
__all__ = list(_primitives)
