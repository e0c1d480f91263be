"""Keras's ``keras.optimizers``."""

from .. import schedules
from ..optimizers import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lion, Optimizer, RMSprop

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lion",
    "Optimizer",
    "RMSprop",
    "schedules",
]
