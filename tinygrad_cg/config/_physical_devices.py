"""The devices that there are, and which of them are used. Modelled on ``tf.config``."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._core import devices
from ..errors import DeviceError, InvalidArgumentError

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "get_logical_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "set_logical_device_configuration",
    "set_visible_devices",
]
__dir__ = __all__.copy  # what dir() shows


class PhysicalDevice(NamedTuple):
    """An existing device: the CPU or a GPU."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device that tensors can be on; `tf.device` takes its name."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """Options of `set_logical_device_configuration`: the most memory of a GPU to use, in MB."""

    memory_limit: float | None = None


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the existing devices of type "CPU" or "GPU", or of both.

    A GPU exists if NVIDIA's driver, Numba's CUDA target and CuPy are installed. If there are
    several, the first in the environment variable CUDA_VISIBLE_DEVICES is used.
    `set_visible_devices` makes no difference.

    Examples
    --------
    >>> tf.config.list_physical_devices("CPU")
    [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    return _physical(device_type, True)


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Return the devices that tensors can be on, of type "CPU" or "GPU", or of both.

    Examples
    --------
    >>> tf.config.list_logical_devices("CPU")
    [LogicalDevice(name='/device:CPU:0', device_type='CPU')]
    """
    return [LogicalDevice(f"/device:{kind}:0", kind) for _, kind in _physical(device_type, False)]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices of `list_physical_devices` that are used."""
    return _physical(device_type, False)


def set_visible_devices(visible: Any, device_type: str | None = None) -> None:
    """Choose which devices are used, of `list_physical_devices`: an empty list hides the GPU.

    The CPU is always used. Tensors on the GPU, and results of operations on them, stay there;
    moving others there raises DeviceError. InvalidArgumentError for devices of another type, and
    for another `device_type`.
    """
    if device_type is not None and str(device_type).upper() not in ("CPU", "GPU"):
        raise InvalidArgumentError(
            f"set_visible_devices: device_type must be 'CPU' or 'GPU', got {device_type!r}"
        )
    alone = isinstance(visible, PhysicalDevice) or not isinstance(visible, (list, tuple))
    chosen: list[Any] = [visible] if alone else list(visible)
    for device in chosen:
        if device not in list_physical_devices(device_type):
            raise InvalidArgumentError(
                f"set_visible_devices: {device!r} is not one of "
                f"{list_physical_devices(device_type)}"
            )
    if device_type is None or device_type.upper() == "GPU":
        devices.visible = any(device.device_type == "GPU" for device in chosen)


def set_logical_device_configuration(device: Any, logical_devices: Any) -> None:
    """Limit the memory of a GPU that arrays may take: ``[LogicalDeviceConfiguration(MB)]``.

    None means no limit. An operation that would need more raises ResourceExhaustedError. Modelled
    on ``tf.config``, for one logical device only, and possible at any time. Raises
    InvalidArgumentError for a limit that is not a number of megabytes above 0.
    """
    check_gpu("set_logical_device_configuration", device)
    if len(logical_devices) != 1:
        raise InvalidArgumentError(
            "set_logical_device_configuration: a GPU is one logical device, got "
            f"{len(logical_devices)}"
        )
    limit = logical_devices[0].memory_limit
    is_number = isinstance(limit, (int, float)) and not isinstance(limit, bool)
    if limit is not None and not (is_number and 0 < limit < 2**40):
        raise InvalidArgumentError(
            "set_logical_device_configuration: memory_limit must be None or a number of megabytes "
            f"above 0, got {limit!r}"
        )
    devices.limit_memory(0 if limit is None else int(limit * 2**20))


def get_logical_device_configuration(device: Any) -> list[LogicalDeviceConfiguration] | None:
    """Return the limit that `set_logical_device_configuration` set for a GPU; None without one."""
    check_gpu("get_logical_device_configuration", device)
    limit = devices.memory_pool().get_limit()
    return [LogicalDeviceConfiguration(limit / 2**20)] if limit else None


def check_gpu(function: str, device: Any) -> None:
    """Raise DeviceError for a GPU that does not exist."""
    if device not in list_physical_devices("GPU"):
        raise DeviceError(f"{function}: there is no GPU {device!r}")


def _physical(device_type: str | None, hidden: bool) -> list[PhysicalDevice]:
    """Return the devices of a type, or of both; also a `hidden` GPU."""
    wanted = ("CPU", "GPU") if device_type is None else (str(device_type).upper(),)
    return [
        PhysicalDevice(f"/physical_device:{kind}:0", kind)
        for kind in ("CPU", "GPU")
        if kind in wanted and (kind == "CPU" or devices.count_gpus(hidden))
    ]
