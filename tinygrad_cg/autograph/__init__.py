"""Python's control flow in a `function`. Modelled on ``tf.autograph``."""

from importlib import import_module
from typing import Any

from .._core.suggestions import refuse_name

__all__ = ["experimental"]
__dir__ = __all__.copy  # what dir() shows


def __getattr__(name: str) -> Any:
    if name not in __all__:
        refuse_name(__name__, name)
    return import_module(f".{name}", __name__)
