"""Keras's names."""

from . import ops, random

__all__ = ["ops", "random"]
