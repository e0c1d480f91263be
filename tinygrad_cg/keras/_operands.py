"""Operands of Keras's functions of reals."""

from __future__ import annotations

from typing import Any

from .._core.conversion import convert, convert_operands
from .._core.kinds import is_exact
from .._core.tensor import Tensor
from .._ops.settings import settings
from .._ops.shape import cast


def as_real(x: Any) -> Tensor:
    """Return integers and booleans as `floatx`, float32 unless it is set."""
    x = convert(x)
    return cast(x, settings.floatx) if is_exact(x.dtype) else x


def as_reals(x1: Any, x2: Any) -> list[Tensor]:
    """Return two operands, both as float32 if neither is of a floating dtype."""
    return [as_real(x) for x in convert_operands((x1, x2))]
