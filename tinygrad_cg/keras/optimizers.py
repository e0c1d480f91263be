"""Keras's ``keras.optimizers``."""

from __future__ import annotations

from typing import Any

from .. import optimizers
from ..optimizers import *  # noqa: F403
from ..optimizers import Optimizer
from ._identifiers import refuse_identifier

__all__ = ["get"]
__all__ += optimizers.__all__
__dir__ = __all__.copy  # what dir() shows


def get(identifier: str | Optimizer) -> Optimizer:
    """Return a new optimizer of the class of that name, in any case; an optimizer unchanged.

    Raises ValueError for an unknown name. Modelled on ``keras.optimizers.get``.
    """
    if isinstance(identifier, Optimizer):
        return identifier
    classes: dict[str, Any] = {
        name.lower(): getattr(optimizers, name)
        for name in optimizers.__all__
        if name not in ("Optimizer", "schedules")
    }
    if not isinstance(identifier, str) or identifier.lower() not in classes:
        refuse_identifier("keras.optimizers.get", "an optimizer", classes, identifier)
    return classes[identifier.lower()]()
