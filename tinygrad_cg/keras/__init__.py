"""Keras's names."""

from . import losses, metrics, ops, optimizers, random

__all__ = ["losses", "metrics", "ops", "optimizers", "random"]
