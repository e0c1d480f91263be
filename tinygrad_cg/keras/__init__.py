"""Keras's names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._core.suggestions import refuse_name

if TYPE_CHECKING:
    from . import (
        activations,
        backend,
        config,
        initializers,
        losses,
        metrics,
        ops,
        optimizers,
        random,
        utils,
    )

__all__ = ["activations", "backend", "config", "initializers", "losses", "metrics", "ops"]
__all__ += ["optimizers", "random", "utils"]
__dir__ = __all__.copy  # what dir() shows


def __getattr__(name: str) -> Any:
    """Return a module, which is loaded at its first use, so that programs load what they use."""
    if name not in __all__:
        refuse_name(__name__, name)
    return import_module(f".{name}", __name__)
