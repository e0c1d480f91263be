"""Keras's names."""

from functools import partial as _partial

from .._core.suggestions import refuse_name as _refuse_name
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
__getattr__ = _partial(_refuse_name, __name__)
