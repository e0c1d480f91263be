"""The operation that moves a tensor between the memory of the processor and that of a GPU."""

from __future__ import annotations

from typing import Any, NoReturn

from .._core import devices
from .._core.primitive import Primitive, apply
from .._core.tensor import Tensor, transfers
from ..errors import DeviceError


def _refuse_trace(x: Any, device: str, source: str) -> NoReturn:
    raise DeviceError(
        f"a tensor was moved to {device!r} while a function is traced, where it has no value: move "
        "the arguments before the call, or the result after it"
    )


_transfer = Primitive(
    "transfer",
    lambda x, device, source: devices.move(x, device),
    ("x",),
    _refuse_trace,
    (lambda dy, source: to_device(dy, source),),
    linear=True,
    batch=lambda params, size: params,
    on_gpu=lambda x, device, source: devices.move(x, device),
)


def to_device(x: Tensor, device: str) -> Tensor:
    """Return `x` on a device of `devices`, itself if it is there; its gradient goes back."""
    source = devices.home(x)
    return x if source == device else apply(_transfer, (x,), {"device": device, "source": source})


transfers.to_device = to_device
