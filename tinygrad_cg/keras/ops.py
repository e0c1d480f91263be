"""Keras's ``keras.ops``. Integers that meet a function of reals become float32, as there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..convert import FLOAT32, convert, is_tensor
from ..custom_gradient import custom_gradient
from ..dtypes import int32
from ..ops.creation import convert_to_tensor
from ..ops.shape import cast, reshape
from ..spell import spell
from ..tensor import Tensor

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def _real(x: Any) -> Tensor:
    """Integers and booleans as float32."""
    x = convert(x)
    return cast(x, FLOAT32) if x.dtype.kind in "biu" else x


_TABLE = """
    exp(x) = exp(_real(x))
    log(x) = log(_real(x))
    add(x1, x2) = add(x1, x2)
    multiply(x1, x2) = multiply(x1, x2)
"""
__all__ = ["convert_to_tensor", "custom_gradient", "is_tensor", *spell(globals(), _TABLE)]
