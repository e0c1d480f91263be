"""TensorFlow's ``tf.config.experimental``, as far as it concerns this library: memory of a GPU."""

from typing import Any

from ..errors import InvalidArgumentError
from ._physical_devices import check_gpu

__all__ = ["get_memory_growth", "set_memory_growth"]
__dir__ = __all__.copy  # what dir() shows


def get_memory_growth(device: Any) -> bool:
    """Return True: memory of a GPU is always allocated on demand."""
    check_gpu("get_memory_growth", device)
    return True


def set_memory_growth(device: Any, enable: bool) -> None:
    """Allocate memory of a GPU on demand, as this library always does.

    InvalidArgumentError for False: a limit is set by `set_logical_device_configuration`.
    """
    check_gpu("set_memory_growth", device)
    if not enable:
        raise InvalidArgumentError(
            "set_memory_growth: memory of a GPU is allocated on demand, never all at once: pass "
            "True, and set a limit with tf.config.set_logical_device_configuration"
        )
