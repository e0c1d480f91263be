"""Keras's names."""

from . import ops, optimizers, random

__all__ = ["ops", "optimizers", "random"]
