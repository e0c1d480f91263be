"""From what runs an operation on the processor to what runs it on a GPU.

The `run` of a primitive is a kernel, or a function that calls kernels and functions of NumPy. It
runs on a GPU as it is written, with the kernels that it calls replaced by those for the GPU, and
with NumPy's functions that make arrays replaced by those of the library of arrays there. NumPy's
other functions ask their operands, and so are the library's already.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NoReturn

import numpy as np
from numpy import ndarray

from ..errors import ArgumentTypeError, DeviceError, called_function
from . import devices
from .kinds import is_native_float
from .tensor import transfers

_runs: dict[Any, Any] = {}  # by primitive, what runs it on a GPU


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
            else transfers.to_device(tensor, devices.GPU)
            for tensor in tensors
        ]
    )


def run(primitive: Any, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
    """Carry an operation out on arrays of which one is on a GPU.

    Single values of the processor go along, as do indices and conditions. Raises
    ArgumentTypeError for other arrays of the processor, DeviceError for an operation that has no
    implementation for GPUs, unless the processor refuses such dtypes, too: then what it raises.
    """
    operands = arrays
    if not primitive.mixes_devices:
        operands = [_on_gpu(primitive, arrays, i) for i in range(len(arrays))]
    found = _runs.get(primitive)
    if found is None:
        found = _runs[primitive] = _implementation(primitive)
    try:
        if primitive.on_gpu is None:
            there = {name: moved(value) for name, value in params.items()}
            return found(*operands, **there)
        return found(*operands, **params)
    except MemoryError as error:
        raise devices.out_of_memory(primitive.label, error) from error
    except _Absent as error:
        _refuse_dtypes(primitive, arrays, params)
        raise DeviceError(
            f"{primitive.label}: there is no implementation for GPUs. Write x.cpu() for its "
            "operands, and .gpu() for the result"
        ) from error.__cause__


def _refuse_dtypes(primitive: Any, arrays: Sequence[Any], params: dict[str, Any]) -> None:
    """Raise the TypeError of the processor, if it refuses operands such as these.

    Only the processor's own functions know; they take floats, so these are not asked.
    """
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
    if isinstance(data, devices.array_types):
        return data
    if type(data) is not ndarray:  # a tensor without values: the caller says so
        raise TypeError(f"{primitive.name}: an operand has no value")
    if not data.ndim:
        return devices.number(data)
    if _is_choice(primitive, position, data):
        return devices.move(data, devices.GPU)
    names = [*primitive.inputs, *[primitive.inputs[-1]] * len(arrays)]
    numbered = len(arrays) > len(primitive.inputs)
    names = [f"{names[i]}[{i}]" if numbered else names[i] for i in range(len(arrays))]
    label, called = primitive.label, called_function()
    what = "its operands" if called in (None, label) else f"operands of `{label}`"
    raise _different_devices(f"{called or label}: {what}", dict(zip(names, arrays, strict=True)))


def check_devices(function: str, **operands: Any) -> None:
    """Raise ArgumentTypeError for tensors on different devices; single values may be elsewhere."""
    found = {name: devices.data_of(one) for name, one in operands.items()}
    known = devices.homes(one for one in operands.values() if one._data.ndim) or ()
    if len({one for one in known if one is not None}) > 1:
        raise _different_devices(f"{function}: its operands", found)


def _different_devices(what: str, arrays: dict[str, Any]) -> ArgumentTypeError:
    homes = ", ".join(
        f"{name} of shape {tuple(one.shape)} is on '{devices.device_of(one)}'"
        for name, one in arrays.items()
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
    if type(value) is tuple and any(type(one) is ndarray for one in value):
        return tuple(map(moved, value))
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
    run = _Translation().of(primitive.run)
    return run if run is _absent or primitive.kind == "elementwise" else _Checked(primitive, run)


def on_gpu(kernel: Any) -> Any:
    """Return what computes the same as a kernel, on arrays of a GPU; None if there is nothing."""
    from tinygrad_cg_kernels.cuda.kernels import device_run

    return device_run(kernel)


class _Absent(Exception):
    """Says that a kernel or a function does not exist for a GPU; `run` tells the caller."""


def _absent(*arrays: Any, **params: Any) -> NoReturn:
    """Stand for a kernel that does not exist for a GPU."""
    raise _Absent


class _Checked:
    """A function that may use what the library of arrays has not, and so may fail.

    Where NumPy raises LinAlgError, contractions do so too: decompositions are among them.
    """

    def __init__(self, primitive: Any, run: Callable[..., Any]) -> None:
        self.names = f"{primitive.label}:", f"{primitive.name}:"
        self.run = run
        self.errors = devices.linalg_errors if primitive.kind == "contraction" else nullcontext

    def __call__(self, *arrays: Any, **params: Any) -> Any:
        try:
            with self.errors():
                found = self.run(*arrays, **params)
        except (TypeError, AttributeError, NotImplementedError) as error:
            if str(error).startswith(self.names):  # what the operation refuses everywhere
                raise
            raise _Absent from error
        for one in found if type(found) in (list, tuple) else (found,):
            if not isinstance(one, devices.array_types):
                raise _Absent
        return found


class _Module:
    """A module of kernels, or NumPy, as a function for a GPU sees it."""

    def __init__(self, module: ModuleType, translation: _Translation) -> None:
        self.__module, self.__translation = module, translation

    def __getattr__(self, name: str) -> Any:
        if self.__module is np:
            return getattr(devices.library() if name in _MAKERS else np, name)
        found = self.__translation.of(getattr(self.__module, name))
        setattr(self, name, found)
        return found


class _Translation:
    """Functions, kernels and modules that an operation uses, as they are used on a GPU."""

    def __init__(self) -> None:
        self._copies: dict[FunctionType, FunctionType] = {}

    def of(self, value: Any) -> Any:
        """Return a value as it is used on a GPU: itself if that makes no difference."""
        if isinstance(value, ModuleType):
            changes = value is np or (
                _is_of_kernels(value.__name__) and value.__name__ not in _PLAIN
            )
            return _Module(value, self) if changes else value
        if isinstance(value, partial):
            return partial(self.of(value.func), *value.args, **value.keywords)
        if isinstance(value, type):
            return value
        if not callable(value):
            return getattr(value, "on_gpu", value)
        home = getattr(value, "__module__", None) or type(value).__module__
        if home in _PLAIN:
            return value
        if _is_of_kernels(home):
            return on_gpu(value) or _absent
        if not home.startswith("tinygrad_cg.") or hasattr(value, "primitive"):
            return value
        if hasattr(value, "cache_info"):  # it makes kernels, and keeps them
            return lambda *args, **kwargs: self.of(value(*args, **kwargs))
        return self._copy(value) if isinstance(value, FunctionType) else value

    def _copy(self, function: FunctionType) -> FunctionType:
        """Return a function with what it uses as it is used on a GPU."""
        if function in self._copies:
            return self._copies[function]
        code = function.__code__
        scope: dict[str, Any] = {"__builtins__": __builtins__, "__name__": function.__module__}
        cells = tuple(CellType() for _ in function.__closure__ or ())
        copy = FunctionType(code, scope, function.__name__, function.__defaults__, cells)
        copy.__kwdefaults__ = function.__kwdefaults__
        self._copies[function] = copy
        for cell, old in zip(cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self.of(old.cell_contents)
        known = function.__globals__
        scope.update({name: self.of(known[name]) for name in _names_in(code) if name in known})
        return copy


def _is_of_kernels(name: str) -> bool:
    return name == _KERNELS or name.startswith(f"{_KERNELS}.")


def _names_in(code: CodeType) -> set[str]:
    """Return the names of globals, and of attributes, in a piece of code and those inside it."""
    inside = [one for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*map(_names_in, inside))
