"""From what runs an operation on the processor to what runs it on a GPU.

The `run` of a primitive is a kernel, or a function that calls kernels and functions of NumPy. It
runs on a GPU as it is written, with the kernels that it calls replaced by those for the GPU, and
with NumPy's functions that make arrays replaced by those of the library of arrays there. NumPy's
other functions ask their operands, and so are the library's already.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy import ndarray

from ..errors import ArgumentTypeError, DeviceError, ResourceExhaustedError
from . import devices

_runs: dict[Any, Any] = {}  # by primitive, what runs it on a GPU
_numbers: dict[tuple[Any, bytes], Any] = {}  # single values of the processor, on the GPU
_MOST_NUMBERS = 256


def any_on_gpu(tensors: Sequence[Any]) -> bool:
    """Return whether one of the tensors is on a GPU."""
    for tensor in tensors:  # noqa: SIM110 (any() takes three times as long)
        if isinstance(tensor._data, devices.array_types):
            return True
    return False


def bring_along(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return operands of which one is on a GPU, with single values that are recorded there, too.

    So their gradients come back to where they are.
    """
    return tuple(
        [
            tensor
            if tensor._rec is None or type(tensor._data) is not ndarray or tensor._data.ndim
            else tensor.gpu()
            for tensor in tensors
        ]
    )


def run(primitive: Any, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
    """Carry an operation out on arrays of which one is on a GPU.

    Single values of the processor go along. Raises ArgumentTypeError for other arrays of the
    processor, DeviceError for an operation that has no implementation for GPUs.
    """
    operands = [_on_gpu(primitive, arrays, i) for i in range(len(arrays))]
    found = _runs.get(primitive)
    if found is None:
        found = _runs[primitive] = _implementation(primitive)
    try:
        return found(*operands, **{name: _moved(value) for name, value in params.items()})
    except MemoryError as error:
        raise out_of_memory(primitive.label, error) from error


def out_of_memory(name: str, error: MemoryError) -> ResourceExhaustedError:
    """Return the error to raise where the GPU has no memory for a result."""
    return ResourceExhaustedError(
        f"{name}: the memory of 'gpu:0' does not suffice ({error}). Tensors that are no longer "
        "used free theirs, so do tapes; clear_cache() returns what is kept for later arrays. "
        "Smaller batches, or recompute_grad, need less"
    )


def _on_gpu(primitive: Any, arrays: Sequence[Any], position: int) -> Any:
    data = arrays[position]
    if isinstance(data, devices.array_types):
        return data
    if type(data) is not ndarray:  # a tensor without values: the caller says so
        raise TypeError(f"{primitive.name}: an operand has no value")
    if not data.ndim:
        return number(data)
    names = [*primitive.inputs, *[primitive.inputs[-1]] * len(arrays)]
    numbered = len(arrays) > len(primitive.inputs)
    places = ", ".join(
        f"{names[i]}{f'[{i}]' if numbered else ''} of shape {tuple(one.shape)} is on "
        f"'{devices.device_of(one)}'"
        for i, one in enumerate(arrays)
    )
    raise ArgumentTypeError(
        f"{primitive.label}: its operands are on different devices: {places}. Write x.gpu() or "
        "x.cpu() for one of them, so that all are on one device"
    )


def number(data: ndarray) -> Any:
    """Return a single value on the GPU. It is kept: programs use the same few again and again."""
    key = data.dtype, data.tobytes()
    found = _numbers.get(key)
    if found is None:
        found = devices.library().asarray(data)
        if len(_numbers) < _MOST_NUMBERS:
            _numbers[key] = found
    return found


def forget_numbers() -> None:
    """Free the single values that are kept on the GPU."""
    _numbers.clear()


def _moved(value: Any) -> Any:
    """Return a parameter with its arrays, such as indices, on the GPU."""
    if type(value) is ndarray:
        return devices.library().asarray(value)
    if type(value) is tuple and any(type(one) is ndarray for one in value):
        return tuple(map(_moved, value))
    return value


# Implementations -------------------------------------------------------------------------------

_MAKERS = frozenset(
    (
        *("arange", "array", "asanyarray", "asarray", "ascontiguousarray", "empty", "eye"),
        *("full", "identity", "indices", "linspace", "ones", "tri", "zeros"),
    )
)
_KERNELS = "tinygrad_cg_kernels"
_PLAIN = {f"{_KERNELS}.runtime.errstate", f"{_KERNELS}.runtime.promotion"}
"""Modules of the kernels whose functions are NumPy's own with settings, for any arrays."""


def _implementation(primitive: Any) -> Callable[..., Any]:
    """Return what runs an operation on arrays of a GPU."""
    if primitive.on_gpu is not None:
        return primitive.on_gpu
    run = _translated(primitive.run, primitive.label)
    return (
        run
        if isinstance(run, _Absent) or primitive.kind == "elementwise"
        else _Checked(primitive, run)
    )


class _Absent:
    """In place of a kernel that there is none of for a GPU."""

    def __init__(self, label: str) -> None:
        self.label = label

    def __call__(self, *arrays: Any, **params: Any) -> NoReturn:
        raise _absent(self.label)


def _absent(label: str) -> DeviceError:
    return DeviceError(
        f"{label}: there is no implementation for GPUs. Write x.cpu() for its operands, and "
        ".gpu() for the result"
    )


class _Checked:
    """A function that may use what the library of arrays has not, and so may fail."""

    def __init__(self, primitive: Any, run: Callable[..., Any]) -> None:
        self.label, self.names = primitive.label, (f"{primitive.label}:", f"{primitive.name}:")
        self.run = run

    def __call__(self, *arrays: Any, **params: Any) -> Any:
        try:
            found = self.run(*arrays, **params)
        except (TypeError, AttributeError, NotImplementedError) as error:
            if str(error).startswith(self.names):  # what the operation refuses everywhere
                raise
            raise _absent(self.label) from error
        for one in found if type(found) in (list, tuple) else (found,):
            if not isinstance(one, devices.array_types):
                raise _absent(self.label)
        return found


class _Module:
    """A module of kernels, or NumPy, as a function for a GPU sees it."""

    def __init__(self, module: ModuleType, label: str) -> None:
        self.__module, self.__label = module, label

    def __getattr__(self, name: str) -> Any:
        if self.__module is np:
            return getattr(devices.library() if name in _MAKERS else np, name)
        found = _translated(getattr(self.__module, name), self.__label)
        setattr(self, name, found)
        return found


def _translated(value: Any, label: str) -> Any:
    """Return a function, kernel or module as it is used on a GPU; other values as they are."""
    if value is np or (isinstance(value, ModuleType) and _is_of_kernels(value.__name__)):
        return value if getattr(value, "__name__", "") in _PLAIN else _Module(value, label)
    if isinstance(value, partial):
        return partial(_translated(value.func, label), *value.args, **value.keywords)
    if isinstance(value, type) or not callable(value):
        return value
    home = getattr(value, "__module__", None) or type(value).__module__
    if home in _PLAIN:
        return value
    if _is_of_kernels(home):
        from tinygrad_cg_kernels.cuda.kernels import device_run

        return device_run(value) or _Absent(label)
    is_own = isinstance(value, FunctionType) and home.startswith("tinygrad_cg.")
    return _copy(value, label) if is_own and not hasattr(value, "primitive") else value


def _is_of_kernels(name: str) -> bool:
    return name == _KERNELS or name.startswith(f"{_KERNELS}.")


def _copy(function: FunctionType, label: str) -> FunctionType:
    """Return a function with what it uses as it is used on a GPU."""
    scope: dict[str, Any] = {"__builtins__": __builtins__, "__name__": function.__module__}
    copy = FunctionType(
        function.__code__,
        scope,
        function.__name__,
        function.__defaults__,
        tuple(CellType(_translated(cell.cell_contents, label)) for cell in _cells(function)),
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    for name in _names_in(function.__code__):
        known = function.__globals__.get(name, scope)
        if known is function:  # it calls itself
            scope[name] = copy
        elif known is not scope:
            scope[name] = _translated(known, label)
    return copy


def _cells(function: FunctionType) -> tuple[Any, ...]:
    return function.__closure__ or ()


def _names_in(code: CodeType) -> set[str]:
    """Return the names of globals, and of attributes, in a piece of code and those inside it."""
    inside = [one for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*map(_names_in, inside))
