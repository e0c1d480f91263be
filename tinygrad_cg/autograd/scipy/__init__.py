"""Counterparts of ``autograd.scipy``, made of this library's operations."""

from . import special, stats

__all__ = ["special", "stats"]
__dir__ = __all__.copy
