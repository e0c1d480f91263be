"""Keras's names."""

from . import ops

__all__ = ["ops"]
