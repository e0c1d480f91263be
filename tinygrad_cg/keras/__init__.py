"""Keras's names."""

from . import losses, ops, optimizers, random

__all__ = ["losses", "ops", "optimizers", "random"]
