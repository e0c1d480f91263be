"""Keras's ``keras.optimizers``."""

from ..optimizers import SGD, Adam, Optimizer

__all__ = ["SGD", "Adam", "Optimizer"]
