"""TensorFlow's ``tf.config``, as far as it concerns this library: devices, threads; the cache."""

from functools import partial as _partial

from .._core.suggestions import refuse_name as _refuse_name
from . import cache, experimental, threading
from ._devices import (
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
    "get_logical_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "set_logical_device_configuration",
    "set_visible_devices",
    "threading",
]

__getattr__ = _partial(_refuse_name, __name__)
