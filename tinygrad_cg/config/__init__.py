"""TensorFlow's ``tf.config``, as far as it concerns this library, and the cache of programs."""

from importlib import import_module as _import_module
from typing import Any as _Any

from .._core.suggestions import refuse_name as _refuse_name
from . import _physical_devices, cache, experimental, threading
from ._physical_devices import *  # noqa: F403

__all__ = ["cache", "experimental", "threading"]
__all__ += ["functions_run_eagerly", "run_functions_eagerly"]  # noqa: F405 (see __getattr__)
__all__ += _physical_devices.__all__
__dir__ = __all__.copy  # what dir() shows


def __getattr__(name: str) -> _Any:
    if name in ("functions_run_eagerly", "run_functions_eagerly"):  # loaded at their first use
        return getattr(_import_module(".._function.tracing.function", __name__), name)
    return _refuse_name(__name__, name)
