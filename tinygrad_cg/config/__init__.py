"""TensorFlow's ``tf.config``, as far as it concerns this library: devices, threads; the cache."""

from importlib import import_module as _import_module
from typing import Any as _Any

from .._core.suggestions import refuse_name as _refuse_name
from . import cache, experimental, threading
from ._physical_devices import (
    LogicalDevice,
    LogicalDeviceConfiguration,
    PhysicalDevice,
    get_logical_device_configuration,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_visible_devices,
)

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "cache",
    "experimental",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_visible_devices",
    "threading",
]
__dir__ = __all__.copy  # what dir() shows


def __getattr__(name: str) -> _Any:
    if name in ("functions_run_eagerly", "run_functions_eagerly"):  # loaded at their first use
        return getattr(_import_module(".._function.tracing.function", __name__), name)
    return _refuse_name(__name__, name)
