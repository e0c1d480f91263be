"""Keras's ``keras.optimizers``."""

from ..optimizers import SGD, Adam, Optimizer

__all__ = ["SGD", "Adam", "Optimizer"]


def __dir__() -> list[str]:
    return sorted(__all__)
