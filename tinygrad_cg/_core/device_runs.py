"""Operations on a GPU: the functions that run them.

The `run` of a primitive is a kernel, or a function that calls kernels and functions of NumPy. Such
a function runs where its arrays are: it asks for its kernels by `kernel_for`, and for the library
that makes arrays by `devices.library_of`. NumPy's other functions ask their operands.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy import ndarray

from ..errors import ArgumentTypeError, DeviceError
from . import devices
from .kinds import is_native_float
from .tensor import operations


def operands_on_gpu(tensors: Sequence[Any], moves: bool) -> Sequence[Any] | None:
    """Return operands, with recorded single values moved if `moves`; None if none is on a GPU."""
    is_there = is_recorded = False
    for tensor in tensors:
        if isinstance(tensor._data, devices.array_types):
            is_there = True
        elif tensor._rec is not None:
            is_recorded = moves
    if is_there and is_recorded:
        tensors = tuple(map(move_scalar, tensors))
    return tensors if is_there else None


def move_scalar(tensor: Any) -> Any:
    """Return a recorded single value on the GPU, which is recorded; other tensors as they are."""
    if tensor._rec is None or type(tensor._data) is not ndarray or tensor._data.ndim:
        return tensor
    return operations.to_device(tensor, devices.GPU)


def run(primitive: Any, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
    """Run an operation whose operands include an array on a GPU.

    Single values, indices and conditions on the CPU are copied to the GPU. Raises ArgumentTypeError
    for other arrays on the CPU, and DeviceError if the operation has no implementation for GPUs; if
    the CPU refuses these dtypes too, the error is the CPU's.
    """
    if devices.forked:
        devices.library()  # which raises
    operands = list(arrays)
    for i, data in enumerate(arrays):
        if not (isinstance(data, devices.array_types) or primitive.mixes_devices):
            is_number = type(data) is ndarray and not data.ndim
            operands[i] = devices.number(data) if is_number else _on_gpu(primitive, arrays, i)
    function = _implementation(primitive)
    try:
        there = params
        if params and primitive.on_gpu is None:
            there = {name: moved(value) for name, value in params.items()}
        result = function(*operands, **there)
        if devices.WAITS:
            devices.wait(primitive.label)
        return result
    except MemoryError as error:
        raise devices.out_of_memory(primitive.label, error) from error
    except _Absent as error:
        _refuse_dtypes(primitive, arrays, params)
        raise DeviceError(
            f"{primitive.label}: GPUs are not supported. Write x.cpu() for its "
            "operands, and .gpu() for the result"
        ) from error.__cause__


def _refuse_dtypes(primitive: Any, arrays: Sequence[Any], params: dict[str, Any]) -> None:
    """Raise the TypeError of the processor, if its function refuses operands such as these."""
    if all(is_native_float(data.dtype) for data in arrays):
        return
    operands = [devices.move(data, devices.CPU) for data in arrays]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            primitive.run(*operands, **params)
        except TypeError:
            raise
        except Exception:  # of their values: it can take such dtypes
            return


def _on_gpu(primitive: Any, arrays: Sequence[Any], position: int) -> Any:
    data = arrays[position]
    if type(data) is not ndarray:  # a tensor without values: the caller says so
        raise TypeError(f"{primitive.name}: an operand has no value")
    if _is_choice(primitive, position, data):
        return devices.move(data, devices.GPU)
    names = primitive.inputs
    if len(arrays) > len(names):  # the last stands for several
        names = [f"{names[min(i, len(names) - 1)]}[{i}]" for i in range(len(arrays))]
    operands = dict(zip(names, arrays, strict=False))
    raise _different_devices(f"{primitive.label}: its operands", operands)


def check_devices(function: str, **operands: Any) -> None:
    """Raise ArgumentTypeError for tensors on different devices; single values may be elsewhere."""
    arrays = {name: devices.data_of(tensor) for name, tensor in operands.items()}
    homes = devices.homes(tensor for tensor in operands.values() if tensor._data.ndim) or ()
    if len({device for device in homes if device is not None}) > 1:
        raise _different_devices(f"{function}: its operands", arrays)


def _different_devices(what: str, arrays: dict[str, Any]) -> ArgumentTypeError:
    homes = ", ".join(
        f"{name} of shape {tuple(array.shape)} is on '{devices.device_of(array)}'"
        for name, array in arrays.items()
    )
    return ArgumentTypeError(
        f"{what} are on different devices: {homes}. Write x.gpu() or x.cpu() for one of them, so "
        "that all are on one device"
    )


def _is_choice(primitive: Any, position: int, data: ndarray) -> bool:
    """Return whether an operand chooses elements of the others: indices, or a condition."""
    rules = primitive.vjp or ()
    return data.dtype.kind in "biu" and position < len(rules) and rules[position] is None


def moved(value: Any) -> Any:
    """Return a parameter with its arrays, such as indices, on the GPU."""
    if type(value) is ndarray:
        return devices.library().asarray(value)
    if type(value) is tuple and any(type(part) is ndarray for part in value):
        return tuple(map(moved, value))
    return value


# Implementations -------------------------------------------------------------------------------


@cache
def _implementation(primitive: Any) -> Callable[..., Any]:
    if primitive.on_gpu is not None:
        return primitive.on_gpu
    run = primitive.run
    home = getattr(run, "__module__", None) or type(run).__module__
    if home.startswith("tinygrad_cg_kernels."):
        return on_gpu(run) or _absent
    return run if primitive.kind == "elementwise" else _checked(primitive, run)


def kernel_for(array: Any, kernel: Any) -> Any:
    """Return a kernel or, for an array on a GPU, what computes the same there."""
    return (on_gpu(kernel) or _absent) if isinstance(array, devices.array_types) else kernel


def on_gpu(kernel: Any) -> Any:
    """Return what computes the same as a kernel, on arrays of a GPU; None if there is nothing."""
    from tinygrad_cg_kernels.cuda.kernels import device_run

    return device_run(kernel)


class _Absent(Exception):
    """Says that a kernel or a function does not exist for a GPU; `run` tells the caller."""


def _absent(*arrays: Any, **params: Any) -> NoReturn:
    raise _Absent


_LIBRARIES = "cupy", "cupyx", "numpy"
REFUSALS = TypeError, AttributeError, NotImplementedError
_ASKED = "no implementation found for 'numpy.", "returned NotImplemented from __array_ufunc__"
"""NumPy's errors if it asked a library of arrays for a function that the library does not have."""
_KEYWORD = re.compile(r"(\w+)\(\) got an unexpected keyword argument")
"""The error of a function for a keyword that it does not have; compiled ones leave no frame."""


def is_of_library(error: Exception) -> bool:
    """Return whether an error says that the library of arrays lacks or refuses something."""
    if isinstance(error, AttributeError):
        home = error.obj if isinstance(error.obj, ModuleType) else type(error.obj)
        name = home.__name__ if isinstance(home, ModuleType) else home.__module__
    elif any(text in str(error) for text in _ASKED) or (
        (match := _KEYWORD.match(str(error))) and hasattr(devices.library(), match[1])
    ):
        return True
    else:
        trace: Any = error.__traceback__
        while trace.tb_next is not None:
            trace = trace.tb_next
        name = trace.tb_frame.f_globals.get("__name__", "")
    return any(part in _LIBRARIES for part in name.split("."))


def _checked(primitive: Any, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that may use what the library of arrays has not, and so may fail."""
    names = f"{primitive.label}:", f"{primitive.name}:"
    is_contraction = primitive.kind == "contraction"  # which raises LinAlgError, as NumPy's does

    def call(*arrays: Any, **params: Any) -> Any:
        try:
            with devices.adapter().linalg_errors() if is_contraction else nullcontext():
                result = run(*arrays, **params)
        except REFUSALS as error:
            if str(error).startswith(names) or not is_of_library(error):
                raise  # what the operation refuses everywhere; a failure of the compiler; a mistake
            raise _Absent from error
        for part in result if type(result) in (list, tuple) else (result,):
            if not isinstance(part, devices.array_types):
                raise _Absent
        return result

    return call
