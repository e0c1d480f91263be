"""Devices of tensors: the memory of the CPU or of an NVIDIA GPU.

On a GPU, the value of a tensor is a CuPy array, and its kernels stand in
``tinygrad_cg_kernels.cuda``, which is imported when a GPU is first used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

import numpy as np
from numpy import ndarray

from ..errors import DeviceError, ResourceExhaustedError
from .levels import state

CPU, GPU = "cpu", "gpu:0"
Function = TypeVar("Function", bound=Callable[..., Any])

array_types: tuple[type, ...] = ()
"""The classes of arrays on a GPU: none before a GPU is first used."""

_NAME = re.compile(
    r"(?i)(/(job|replica|task):\w+)*/?((device:)?(xla_)?(?P<kind>cpu|gpu|cuda|tpu|mps)"
    r"(:(?P<index>\d+|\*))?)?",
    re.ASCII,
)
visible = True  # whether GPUs are used at all


def read_name(name: Any) -> tuple[str, int] | None:
    """Return the kind of a named device ("" if it is left open) and its number; None for others."""
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        return None
    kind, index = (match["kind"] or "").lower(), match["index"]
    return "gpu" if kind == "cuda" else kind, int(index) if index and index != "*" else 0


def count_gpus(hidden: bool = False) -> int:
    """Return how many GPUs tensors may be on, at most one, with CuPy alone; also `hidden` ones."""
    if not (visible or hidden) or adapter().device_count() < 1:
        return 0
    try:
        adapter().array_module()
    except ImportError:
        return 0
    return 1


def adapter() -> Any:
    """Return the module through which NVIDIA's driver and CuPy are used."""
    from tinygrad_cg_kernels.cuda import adapter

    return adapter


def find(name: Any, function: str, hidden: bool = False) -> str:
    """Return the device of a name, as `device_of` gives it; DeviceError if there is none such.

    A GPU that `set_visible_devices` hides is one only if `hidden` devices count.
    """
    name_parts = read_name(name)
    if name_parts is None:
        raise ValueError(
            f"{function}: {name!r} is not the name of a device, such as 'cpu' or 'gpu:0'"
        )
    kind, index = name_parts
    if kind in ("", "cpu"):
        return CPU
    if kind == "gpu" and index < count_gpus(hidden):
        library()
        return GPU
    raise DeviceError(f"{function}: there is no device {name!r}. {_missing(kind, index)}")


def _missing(kind: str, index: int) -> str:
    if kind != "gpu":
        return "Devices are 'cpu' and 'gpu:0'"
    if not visible:
        return (
            "GPUs are hidden by set_visible_devices: "
            "config.set_visible_devices(config.list_physical_devices()) shows them"
        )
    if count_gpus():
        return f"The only GPU is 'gpu:0'; 'gpu:{index}' does not exist"
    return (
        "A GPU needs NVIDIA's driver, Numba's CUDA target and CuPy: check `nvidia-smi`, and "
        'run `pip install ".[cuda12]"` (or cuda13) in a clone of the library'
    )


def library() -> Any:
    """Return the library of arrays on the GPU, whose arrays tensors may hold from then on."""
    global array_types, _library
    if forked:
        raise DeviceError(
            "this process was forked from one that had used the GPU, which CUDA does not support: "
            'start it with multiprocessing.get_context("spawn")'
        )
    if _library is None:
        array_module = adapter().array_module()
        array_types = (array_module.ndarray,)
        _library = array_module  # last: other threads use what is there
    return _library


_library: Any = None
forked = False  # whether this process was forked from one that had used a GPU


def _note_fork() -> None:
    global forked
    forked = _library is not None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


WAITS = os.environ.get("TINYGRAD_CG_CUDA_WAIT", "0") not in ("", "0")
"""Whether each operation and each program waits for the GPU, so that its errors are its own."""


def wait(name: str) -> None:
    """Wait for the GPU; raise DeviceError, in the name of what it computes, for its error."""
    try:
        adapter().synchronize()
    except Exception as error:  # any error of the driver
        raise DeviceError(f"{name}: the GPU reports {type(error).__name__}: {error}") from error
    bounds().raise_errors()


def memory_pool() -> Any:
    """Return what arrays on the GPU take their memory from. It has a limit; 0 means none."""
    return library().get_default_memory_pool()


def limit_memory(size: int) -> None:
    """Limit the bytes of all arrays on the GPU; 0 means no limit."""
    memory_pool().free_all_blocks()  # later arrays could take them beyond the limit
    memory_pool().set_limit(size=size)


def clear() -> None:
    """Give memory of the GPU that is kept for later arrays back, if it was ever used."""
    if array_types:
        from tinygrad_cg_kernels.cuda import graphs

        _number.cache_clear()
        graphs.clear()
        memory_pool().free_all_blocks()


def number(data: ndarray) -> Any:
    """Return a single value on the GPU. It is kept: programs use the same few again and again."""
    return _number(data.dtype, data.tobytes())


@lru_cache(maxsize=256)
def _number(dtype: np.dtype, value: bytes) -> Any:
    return library().asarray(np.frombuffer(value, dtype).reshape(()))


def device_of(data: Any) -> str:
    """Return the device of an array: `CPU` or `GPU`."""
    return GPU if isinstance(data, array_types) else CPU


def data_of(tensor: Any) -> Any:
    """Return the value of a tensor; for an example of a batch, the value of the whole batch."""
    while getattr(tensor, "physical", None) is not None:
        tensor = tensor.physical
    return tensor._data


def home(tensor: Any) -> str:
    """Return the device of a tensor; for an example of a batch, the device of the batch."""
    return GPU if isinstance(tensor._data, array_types) else device_of(data_of(tensor))


def elsewhere(tensor: Any, other: Any) -> tuple[str | None, str]:
    """Return the devices of two tensors, or a name, if known and different; else None and one."""
    wanted = other if isinstance(other, str) else _known_home(other)
    device = _known_home(tensor)
    if device is None or wanted is None or device == wanted:
        return None, CPU
    return device, wanted


def homes(tensors: Iterable[Any]) -> list[str | None] | None:
    """Return the device of each tensor, None if it has no value; None alone if no GPU is used."""
    return [_known_home(tensor) for tensor in tensors] if array_types else None


def _known_home(tensor: Any) -> str | None:
    array = None if tensor is None else data_of(tensor)
    if isinstance(array, array_types):
        return GPU
    return CPU if isinstance(array, ndarray) else None


def library_of(array: Any) -> Any:
    """Return the library that makes arrays where an array is: NumPy or CuPy."""
    return library() if isinstance(array, array_types) else np


def create(name: str, maker: str, *arguments: Any, like: Any = None, **named: Any) -> Any:
    """Return an array of NumPy's `maker`: where `like` is, or where new tensors are."""
    if (_known_home(like) or state.device) in (None, CPU):
        return getattr(np, maker)(*arguments, **named)
    try:
        return getattr(library(), maker)(*arguments, **named)
    except MemoryError as error:
        raise out_of_memory(name, error) from error


@contextmanager
def memory_for(name: str) -> Iterator[None]:
    """Raise ResourceExhaustedError, in the name of a function, where memory of a GPU runs out."""
    try:
        yield
    except MemoryError as error:
        is_named = isinstance(error, ResourceExhaustedError)
        if is_named or type(error).__module__.startswith("numpy"):  # of the processor's memory
            raise
        raise out_of_memory(name, error) from error


def to_host(data: Any) -> ndarray:
    """Return an array in the processor's memory: a copy of what is on a GPU, if nothing failed."""
    if not isinstance(data, array_types):
        return data
    bounds().raise_errors()
    return data.get()


def bounds() -> Any:
    """Return the module that raises errors of the GPU which were found without waiting for it."""
    from tinygrad_cg_kernels.cuda import bounds

    return bounds


def move(data: Any, device: str) -> Any:
    """Return an array on a device: a copy, unless it is there."""
    if device_of(data) == device:
        return data
    if device == CPU:
        return to_host(data)
    with memory_for("gpu"):
        return library().asarray(data)


def out_of_memory(name: str, error: MemoryError) -> ResourceExhaustedError:
    """Return the error to raise where the GPU has no memory for a result."""
    return ResourceExhaustedError(
        f"{name}: the memory of 'gpu:0' is too small ({error}). Tensors and tapes free their "
        "memory when they are no longer used; clear_cache() frees the memory kept for later "
        "arrays. Smaller batches, or recompute_grad, need less"
    )


def to_current(data: ndarray) -> Any:
    """Return a new array where `tf.device` says that new tensors are."""
    return data if state.device in (None, CPU) else move(data, GPU)


def adopt(value: Any) -> Any:
    """Return an array on the GPU that shares the memory of an object; None for other objects.

    Raises DeviceError for memory of another GPU, and where GPUs are hidden.
    """
    ours = isinstance(value, array_types)
    by_dlpack = not ours and dlpack_device(value)[0] in CUDA  # which waits for its owner's stream
    if not (ours or by_dlpack) and getattr(value, "__cuda_array_interface__", None) is None:
        return None
    if reason := _refusal(value):
        raise DeviceError(f"constant: the array is on a GPU. {reason}")
    if ours:
        return value
    return library().from_dlpack(value) if by_dlpack else library().asarray(value)


CUDA = (2, 13)  # the types kDLCUDA and kDLCUDAManaged of DLPack


def dlpack_device(value: Any) -> tuple[int, int]:
    """Return the type and number of an object's device; (1, 0), the processor, if it has none."""
    tell = getattr(type(value), "__dlpack_device__", None)
    return (1, 0) if tell is None else tell(value)


def _refusal(value: Any) -> str:
    """Return why tensors cannot share an object's memory of a GPU: "" if they can."""
    if not count_gpus():
        return _missing("gpu", 0)
    kind, number = dlpack_device(value)
    if kind not in CUDA:
        number = adapter().device_number(value.__cuda_array_interface__["data"][0])
    return f"It is 'gpu:{number}', tensors need 'gpu:0': copy it there first" if number else ""


def import_capsule(value: Any) -> Any:
    """Return an array on the GPU that shares the memory of an object with ``__dlpack__``."""
    if reason := _refusal(value):
        raise BufferError(f"from_dlpack: the array is on a GPU. {reason}")
    return library().from_dlpack(value)


_ANYWHERE = nullcontext()


def on_device_of(tensor: Any) -> AbstractContextManager[None]:
    """Let new tensors be where a tensor with an array is, in this thread, in a ``with`` block."""
    device = _known_home(tensor) if array_types else None
    return on(device) if device else _ANYWHERE


def on_device_of_operands(function: Function) -> Function:
    """Decorate a function: what it makes is on the GPU if an argument is a tensor there."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if array_types and any(map(_is_there, (*arguments, *named.values()))):
            with on(GPU):
                return function(*arguments, **named)
        return function(*arguments, **named)

    return cast(Function, call)


def _is_there(argument: Any) -> bool:
    if isinstance(argument, (list, tuple)):
        return any(map(_is_there, argument))
    return hasattr(argument, "_data") and home(argument) == GPU


@contextmanager
def on(device: str | None) -> Iterator[None]:
    """Let new tensors be on a device, in this thread, within a ``with`` block."""
    outer, state.device = state.device, device
    try:
        yield
    finally:
        state.device = outer
