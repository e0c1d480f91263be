"""DLPack: tensors from and for other libraries, without a copy where that is safe.

After the array API standard 2024.12 and ``tf.experimental.dlpack``. Tensors never change, and tapes
keep them: an array whose owner may still write to it is copied as `constant` copies it, unless the
caller vouches for it with ``copy=False``. Memory that its owner declares read-only, as JAX does, is
shared. Memory of a GPU stays there. Tensors themselves are handed out read-only where the consumer
can be told so, which is from version 1.0 of the protocol on, and of the CPU only; they must not be
written to by any.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from .._core import devices
from .._core.conversion import check_dtype, is_tensor
from .._core.tensor import Tensor
from .creation import constant
from .shape import identity

__all__ = ["from_dlpack", "to_dlpack"]


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor of an array of another library, or of a DLPack capsule; shape and dtype stay.

    Parameters
    ----------
    x:
        An object with ``__dlpack__``: an array of NumPy, PyTorch, JAX, CuPy and others.
    device:
        The device of the tensor: None (the device of `x`), "cpu" or "gpu:0".
    copy:
        False shares the memory: the caller must not write to it while the tensor, or a tape that
        saw it, is in use. True copies. None shares read-only arrays, and copies all others.

    A Tensor is returned unchanged. Raises TypeError for objects without ``__dlpack__`` and for
    dtypes that tensors cannot have, BufferError for a device that does not exist or would need a
    copy, and for objects that cannot be exported, such as a PyTorch tensor that requires gradients.
    """
    wanted = None if device is None else _find(device)
    if is_tensor(x):
        tensor = identity(x) if copy else constant(x)
    elif type(x).__name__ != "PyCapsule" and devices.dlpack_device(x)[0] in devices.CUDA:
        tensor = Tensor(_array_on_gpu(x, copy))
    else:
        capsule, is_frozen = _export(x)
        array = _array_on(x, capsule)
        check_dtype(array.dtype, "from_dlpack")
        is_frozen = is_frozen and devices.device_of(array) == devices.CPU
        if copy or (copy is None and not (is_frozen and not array.flags.writeable)):
            array = array.copy()
        tensor = Tensor(array)
    if wanted is None or tensor.device == wanted:
        return tensor
    if copy is False:
        raise BufferError(f"from_dlpack: {device!r} needs a copy of the data on {tensor.device!r}")
    return tensor.to_device(wanted)


def _find(device: Any) -> str:
    try:
        return devices.find(device, "from_dlpack")
    except ValueError as error:
        raise BufferError(str(error)) from None


def _array_on_gpu(x: Any, copy: bool | None) -> Any:
    """Return an array on the memory of an object on a GPU, or a copy of it there."""
    array = devices.import_capsule(x)
    check_dtype(array.dtype, "from_dlpack")
    frozen = type(x).__module__.startswith("jax")  # no flag tells it of memory on a GPU
    return array.copy() if copy or (copy is None and not frozen) else array


def _export(x: Any) -> tuple[Any, bool]:
    """Return a capsule of `x`, and whether its read-only flag says that nobody writes to it.

    Before version 1.0 there was no such flag, and NumPy shows all such memory as read-only. NumPy
    2.1 shows all capsules so. But JAX, which speaks the older version, never writes to an array.
    """
    if type(x).__name__ == "PyCapsule":
        return x, _has_flag(x)
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: {type(x).__name__} has no __dlpack__: use constant()")
    try:
        capsule = x.__dlpack__(max_version=(1, 0))
    except TypeError:  # a producer that knows no versions
        capsule = x.__dlpack__()
    return capsule, _has_flag(capsule) or type(x).__module__.startswith("jax")


_SHOWS_FLAGS = np.from_dlpack(np.empty(1)).flags.writeable


def _has_flag(capsule: Any) -> bool:
    return _SHOWS_FLAGS and '"dltensor_versioned"' in repr(capsule)


def _array_on(x: Any, capsule: Any) -> Any:
    """Return an array on the memory of a capsule, made from `x`, which lives as long as it."""
    try:
        return np.from_dlpack(_Capsule(capsule, devices.dlpack_device(x)))
    except (RuntimeError, BufferError) as error:
        if type(x).__name__ == "PyCapsule" and devices.count_gpus():
            with suppress(RuntimeError, BufferError):  # a capsule does not tell its device
                return devices.import_capsule(_Capsule(capsule, (2, 0)))
        if "dtype" in str(error):
            dtype = getattr(x, "dtype", "this dtype")
            raise TypeError(f"from_dlpack: {dtype} is not supported ({error})") from None
        raise BufferError(f"from_dlpack: {error}") from error


class _Capsule:
    """A capsule in place of the array that it was made from."""

    def __init__(self, capsule: Any, device: tuple[int, int]):
        self._capsule = capsule
        self._device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def to_dlpack(tensor: Any) -> Any:
    """Return a DLPack capsule on the memory of `tensor`, for libraries that take capsules.

    Whoever takes it must not write to it. Modelled on ``tf.experimental.dlpack.to_dlpack``.
    """
    return constant(tensor).__dlpack__()
