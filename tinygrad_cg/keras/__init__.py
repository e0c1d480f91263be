"""Keras's names."""

from . import backend, config, losses, metrics, ops, optimizers, random

__all__ = ["backend", "config", "losses", "metrics", "ops", "optimizers", "random"]
