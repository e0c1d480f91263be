"""NumPy's names, on tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .spell import spell

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_TABLE = """
    exp(x, /) = exp(x)
    mean(a, axis=None, *, keepdims=False) = reduce_mean(a, axis, keepdims)
"""
__all__ = spell(globals(), _TABLE)
