"""Keras's names."""

from . import ops, optimizers, random

__all__ = ["ops", "optimizers", "random"]


def __dir__() -> list[str]:
    return sorted(__all__)
