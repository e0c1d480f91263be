"""The names of ``autograd.scipy``, written with this library's operations."""

from . import integrate, linalg, signal, special, stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]
__dir__ = __all__.copy
