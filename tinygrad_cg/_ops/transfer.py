"""The operation that moves a tensor between the memory of the CPU and of a GPU."""

from __future__ import annotations

from typing import Any, NoReturn

from .._core import devices, levels
from .._core.primitive import Primitive, same_parameters
from .._core.tensor import Tensor, operations
from ..errors import DeviceError


def _refuse_trace(x: Any, device: str, source: str) -> NoReturn:
    name = "cpu" if device == devices.CPU else "gpu"
    raise DeviceError(
        f"{name}: a tensor of a function that runs on {source!r} cannot move to {device!r} inside. "
        f"A function runs on the device of its tensors: write .{name}() for the arguments "
        "before the call, or for the result after it"
    )


_transfer = Primitive(
    "transfer",
    lambda x, device, source: devices.move(x, device),
    ("x",),
    _refuse_trace,
    (lambda dy, source: to_device(dy, source),),
    linear=True,
    batch=same_parameters,
    on_gpu=lambda x, device, source: devices.move(x, device),
)


def _device_of(x: Any) -> str:
    """Return where a tensor is; one of a program that is traced, where the program runs."""
    while getattr(x, "physical", None) is not None:
        x = x.physical
    return x.device


def to_device(x: Tensor, device: str) -> Tensor:
    """Return `x` on a device of `devices`, itself if it is there; its gradient goes back."""
    source = _device_of(x)
    if source == device:
        return x
    if (
        type(x) is Tensor and x._rec is None and levels.current_trace() is not None
    ):  # a constant of the program
        return Tensor(devices.move(x._data, device))
    return _transfer(x, device=device, source=source)


operations.to_device = to_device
