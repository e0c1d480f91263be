"""Foreign values become tensors here: Python numbers, nested lists, NumPy and other arrays.

Promotion follows docs/behaviour.md, decision 1. Python and NumPy *scalars* are weak, they take the
dtype of the tensor they meet; arrays are not.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.errstate import cast, quiet
from tinygrad_cg_kernels.runtime.promotion import SUPPORTED, promote

from .. import nest
from ..errors import ArgumentTypeError
from . import devices
from .kinds import is_bool, is_complex, is_exact, is_floating, is_inexact, is_integer
from .levels import state
from .tensor import ArrayLike, Tensor, operations

BOOL, INT32, INT64 = np.dtype(np.bool_), np.dtype(np.int32), np.dtype(np.int64)
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
COMPLEX64, COMPLEX128 = np.dtype(np.complex64), np.dtype(np.complex128)

_REMEDIES = {
    "O": "dtype=object; call .astype(float) on it first",
    **dict.fromkeys("US", "it holds strings; tensors hold numbers only"),
    "M": "datetime64; subtract an epoch and convert to a number first",
    "m": "timedelta64; divide by a unit and convert to a number first",
}


class Weak:
    """A Python float whose value is not known yet: an argument of a function being traced."""

    __slots__ = ()

    def strong(self, dtype: np.dtype | None = None) -> Tensor:
        """Return the number as a tensor, of the dtype of a Python float unless another is given."""
        raise TypeError(f"{type(self).__name__} does not define strong()")


def as_dtype(dtype: Any) -> np.dtype:
    """Return a supported NumPy dtype from a dtype, its name, or a NumPy or Python type.

    Python's `float` and `int` become float32 and int32, as numbers of these types do. Raises
    TypeError for None and other objects, and for dtypes that tensors cannot have.

    Examples
    --------
    >>> tf.as_dtype("float32").name
    'float32'
    """
    if dtype is float or (type(dtype) is str and dtype == "float"):
        return FLOAT32
    if dtype is int or (type(dtype) is str and dtype == "int"):
        return INT32
    try:
        if dtype is None:  # which NumPy reads as float64
            raise TypeError
        result = np.dtype(dtype)
    except TypeError:
        name = getattr(dtype, "name", dtype)
        remedy = ": use float32, which holds all its values" if name == "bfloat16" else ""
        if type(dtype) is int:  # zeros(3, 4)
            remedy = ": pass sizes as one list, such as [2, 3]"
        raise ArgumentTypeError(
            f"{name!r} is not a supported dtype{remedy}; tensors hold bool, integers, float16, "
            "float32, float64, complex64 and complex128"
        ) from None
    return check_dtype(result, "dtype")


_NATIVE = {dtype: np.result_type(dtype) for dtype in SUPPORTED}


def check_dtype(dtype: np.dtype, where: str) -> np.dtype:
    """Return `dtype` in native byte order, as the one object that NumPy has for it."""
    native = _NATIVE.get(dtype)
    if native is not None:
        return native
    if not dtype.isnative:
        return check_dtype(dtype.newbyteorder("="), where)
    if dtype.names is not None:
        remedy = "structured dtype; pass its fields separately"
    elif is_inexact(dtype):
        name, narrow = "longdouble", "float64"
        if is_complex(dtype):
            name, narrow = dtype.name, "complex128"
        remedy = f"{name} is not supported; call .astype(np.{narrow}) if that loses nothing"
    elif dtype.name == "bfloat16":
        remedy = "bfloat16 is not supported; call .astype(np.float32), which holds all its values"
    else:
        remedy = _REMEDIES.get(dtype.kind, f"dtype={dtype} is not supported")
    raise TypeError(f"{where}: {remedy}")


def scalar_dtype(value: Any) -> np.dtype:
    """Return the dtype of a Python number that meets no tensor, after ``tf.constant``."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT32 if is_int32(value) else INT64
    return FLOAT32 if isinstance(value, (float, Weak)) else COMPLEX128


def weak_dtype(value: Any, other: np.dtype) -> np.dtype:
    """Return the dtype that a scalar takes with a tensor of dtype `other`."""
    if isinstance(value, (bool, np.bool_)):
        return other
    if isinstance(value, (int, np.integer)):
        return other if not is_bool(other) else INT32
    if isinstance(value, (float, np.floating, Weak)):
        return other if is_inexact(other) else FLOAT32
    if is_complex(other):
        return other
    return COMPLEX64 if other in (FLOAT32, np.dtype(np.float16)) else COMPLEX128


def is_weak(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, np.generic, Weak))


def is_tensor(value: Any) -> bool:
    """Return True for a Tensor or a Variable.

    Examples
    --------
    >>> tf.is_tensor(tf.constant(1.0)), tf.is_tensor(1.0)
    (True, False)
    """
    return isinstance(value, ArrayLike)


def convert(value: Any, dtype: np.dtype | None = None, copy: bool = True) -> Tensor:
    """Return `value` as a Tensor: itself if it is one, read if it is a Variable, else converted.

    `dtype` is what a foreign value becomes; a Tensor keeps its own. `copy=False` lets an
    operation read a foreign array without copying it; nothing may then retain it. Raises
    TypeError for what holds no numbers, ValueError for ragged lists, OverflowError for integers
    that do not fit.
    """
    if isinstance(value, Tensor):
        return value
    if isinstance(value, ArrayLike):
        return value._read()
    if isinstance(value, IndexedSlices):
        return value.dense()
    if isinstance(value, Weak):
        return value.strong(dtype)
    if isinstance(value, (list, tuple)) and any_tensor(value):
        return operations.stack(value)
    if not devices.array_types and type(value) in _OF_HOST:
        return Tensor(to_array(value, dtype, copy))
    if not isinstance(value, _OF_THE_HOST):
        with devices.memory_for("constant"):
            adopted = adopt(value, dtype, copy)
        if adopted is not None:
            return Tensor(adopted)
    data = to_array(value, dtype, copy)
    return Tensor(data if state.device is None else devices.to_current(data))


_OF_THE_HOST = (float, int, np.ndarray, list, tuple, np.generic)


_OF_HOST = {np.ndarray, bool, int, float, complex, list, tuple}


def adopt(value: Any, dtype: np.dtype | None, copy: bool) -> Any:
    """Return the array of an object that is on a GPU, on the GPU; None for all others."""
    array = devices.adopt(value)
    if array is None:
        return None
    wanted = check_dtype(array.dtype, "cannot make a tensor of this array")
    if dtype is not None and dtype != wanted:
        return array.astype(dtype)
    return array.copy() if copy else array


class IndexedSlices:
    """A tensor that is zero except for some slices along its first axis.

    Accepted in place of tensors; slices at the same index add up. Modelled on ``tf.IndexedSlices``.
    """

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None):
        self.values: Tensor = convert(values)
        self.indices: Tensor = convert(indices)
        self.dense_shape = dense_shape

    def dense(self) -> Tensor:
        """Return the whole tensor."""
        if self.dense_shape is None:
            raise ValueError("IndexedSlices: a dense tensor needs dense_shape")
        shape = tuple(np.asarray(self.dense_shape).tolist())
        return operations.scatter_slices(self.values, self.indices, shape)


def any_tensor(values: list | tuple) -> bool:
    """Return whether nested lists have to be read one by one: they hold tensors.

    So do masked arrays, which NumPy would read without their masks: `to_array` refuses them.
    """
    return _any_of((ArrayLike, Weak, *_masked_arrays()), values)


def _any_of(kinds: tuple[type, ...], values: list | tuple) -> bool:
    return any(
        isinstance(value, kinds) or (isinstance(value, (list, tuple)) and _any_of(kinds, value))
        for value in values
    )


def refuse_masked(value: Any) -> None:
    """Raise TypeError for a masked array: here its mask would have no effect."""
    if isinstance(value, _masked_arrays()):
        raise TypeError("a masked array would lose its mask: call .filled(value) on it first")


def _masked_arrays() -> tuple[type, ...]:
    """Return the class of masked arrays, if this process may have any."""
    loaded = sys.modules.get("numpy.ma")
    return () if loaded is None else (loaded.MaskedArray,)


def _refuse_objects(array: np.ndarray, where: str) -> None:
    """Raise TypeError for an object array with elements that are not numbers; name the first."""
    for index, element in np.ndenumerate(array) if array.dtype == object else ():
        if not isinstance(element, (Number, np.bool_)):
            position = f"[{', '.join(map(str, index))}]" if index else ""
            raise TypeError(
                f"{where}: dtype=object; element {position} is {element!r:.60} of type "
                f"{type(element).__name__}, not a number: replace it"
            )


def to_array(value: Any, dtype: np.dtype | None = None, copy: bool = True) -> np.ndarray:
    """Return a native NumPy array of a supported dtype; never the caller's own if `copy`.

    Raises as `convert` does. Floats that are too large for `dtype` become infinite.
    """
    if type(value) is np.ndarray:
        return _own_array(value, dtype, copy)
    if isinstance(value, np.generic):
        return _own_array(np.asarray(value), dtype, copy)
    if isinstance(value, (bool, int, float, complex)):
        if dtype is None:
            dtype = scalar_dtype(value)
        elif isinstance(value, (float, complex)) and is_exact(dtype):
            words = f"Cannot convert {value} to EagerTensor of dtype {dtype}"
            raise ArgumentTypeError(f"{words}: cast() it, or choose another dtype")
        return number_array(value, dtype)
    if value is None or callable(value) or isinstance(value, (str, bytes, set, dict)):
        raise ArgumentTypeError(_refusal(value))
    if isinstance(value, Weak):
        return value.strong(dtype)._values()  # an error, which says what to do
    refuse_masked(value)
    if isinstance(value, (list, tuple, range)):
        return _from_nested(value, dtype)
    array = np.asarray(value)
    is_object = array.dtype == object and not hasattr(value, "__array__")
    if is_object or isinstance(value, Mapping):  # such as the arrays of a .npz file
        raise ArgumentTypeError(_refusal(value))
    return _own_array(array, dtype, copy)


def unrounded(value: Any) -> Any:
    """Return Python's floats, alone or in lists, in float64 for a cast; all else as it is.

    `convert` would round them to float32, the default, first.
    """
    if type(value) is float:
        return np.float64(value)
    if isinstance(value, Weak):
        return value.strong(FLOAT64)
    return _read_nested(value) if _is_weak_list(value) else value


def number_array(value: complex, dtype: np.dtype) -> np.ndarray:
    """Return a Python number as a 0-d array; infinite if it is a float too large for `dtype`."""
    try:
        return quiet.run(np.array, value, dtype)
    except OverflowError:
        raise OverflowError(_too_large(value, dtype)) from None


def _too_large(value: Any, dtype: np.dtype) -> str:
    number = str(value) if value.bit_length() < 200 else f"of {value.bit_length()} bits"
    if is_inexact(dtype):
        return f"the integer {number} is too large for {dtype}: use float('inf'), or scale it down"
    return (
        f"the integer {number} does not fit into {dtype}: choose a dtype that "
        "holds it, such as float64"
    )


def _refusal(value: Any) -> str:
    remedy = ""
    if isinstance(value, (str, bytes)):
        remedy = ". Tensors cannot hold text: convert it to numbers, or keep it in a Python list"
    elif type(value).__module__.startswith("scipy.sparse"):
        remedy = ". Write value.toarray() for a sparse array"
    elif isinstance(value, Mapping):
        remedy = ". Choose one of the values, such as value['x']"
    return (
        f"Attempt to convert a value ({value!r}) with an unsupported type ({type(value)}) to a "
        f"Tensor: tensors are made from numbers, nested lists of numbers and arrays{remedy}"
    )


def _own_array(array: np.ndarray, dtype: np.dtype | None, copy: bool) -> np.ndarray:
    if array.dtype.kind == "O":
        _refuse_objects(array, "cannot make a tensor of this array")
    wanted = check_dtype(array.dtype, "cannot make a tensor of this array")
    if dtype is not None and dtype != wanted:
        complex_lost = is_complex(wanted) and not is_complex(dtype)
        if not array.ndim and (complex_lost or (is_inexact(wanted) and is_exact(dtype))):
            words = f"Cannot convert {array[()]} to EagerTensor of dtype {dtype}"
            raise ArgumentTypeError(f"{words}: cast() it, or choose another dtype")
        return cast_in_range(array, dtype)
    own = np.array(array, dtype=wanted, copy=True if copy else None, subok=False)
    return own if own.dtype is wanted else own.view(wanted)  # see `restore`


def _from_nested(value: Any, dtype: np.dtype | None) -> np.ndarray:
    array = _read_nested(value)
    if not array.size and array.dtype == FLOAT64:
        return array.astype(FLOAT32 if dtype is None else dtype)
    if dtype is not None:
        if is_inexact(array.dtype) and is_exact(dtype):
            raise TypeError(f"Cannot convert {_first(value)} to EagerTensor of dtype {dtype}")
        return cast_in_range(array, dtype)
    if _is_numeric(value):  # float32, and int32 if all fit, as in TensorFlow
        if array.dtype == FLOAT64:
            return cast(array, FLOAT32)
        if array.dtype == INT64 and array.size and is_int32(array.min()) and is_int32(array.max()):
            return cast(array, INT32)
    return array


def is_int32(value: Any) -> bool:
    return -(2**31) <= value < 2**31


def _read_nested(value: Any) -> np.ndarray:
    """Return the array that NumPy makes of nested lists, in its widest dtypes."""
    try:
        array = np.array(value)
    except ValueError as error:
        raise ValueError(
            "inhomogeneous shape: the nested list is ragged, pad its rows to the same length "
            f"({error})"
        ) from None
    if (
        array.dtype == object
        and array.size
        and all(isinstance(element, int) for element in array.flat)
    ):
        raise OverflowError(_too_large(max(array.flat, key=abs), INT64))
    _refuse_objects(array, "cannot make a tensor of this list")
    check_dtype(array.dtype, "cannot make a tensor of this list")
    return array


def _is_numeric(value: Any) -> bool:
    """Return whether a nested list is one of Python's numbers, not of arrays or NumPy's scalars."""
    first = _first(value)
    return is_weak(first) and not isinstance(first, np.generic)


def cast_in_range(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Return `array` as `dtype`; OverflowError for integers that do not fit."""
    if array.size and is_integer(array.dtype) and is_integer(dtype):
        low, high = array.min(), array.max()
        if low < np.iinfo(dtype).min or high > np.iinfo(dtype).max:
            raise OverflowError(f"values from {low} to {high} do not fit into {dtype}")
    return cast(array, dtype)


def _first(value: Any) -> Any:
    while isinstance(value, (list, tuple, range)) and len(value):
        value = value[0]
    return value


class _Numbers(dict):
    """Python numbers as 0-d arrays for tensors of one dtype; the frequent ones are kept."""

    def __init__(self, dtype: np.dtype):
        self.dtype = dtype

    def __missing__(self, value: float) -> np.ndarray:
        array = number_array(value, weak_dtype(value, self.dtype))
        # 0.0 equals -0.0, and NaN nothing; with integers 1 and 1.0 are not the same
        if value and value == value and is_floating(self.dtype) and len(self) < 256:
            self[value] = array
        return array


class _NumbersByDtype(dict):
    def __missing__(self, dtype: np.dtype) -> _Numbers:
        self[dtype] = numbers = _Numbers(dtype)
        return numbers


weak_arrays: dict[np.dtype, _Numbers] = _NumbersByDtype()


def convert_result(value: Any, args: Any) -> Tensor:
    """Return what a user's function made of `args`: a Python number gets their dtype."""
    if type(value) not in (float, complex):
        return convert(value)
    kinds = (ArrayLike, np.ndarray, np.generic)
    others = [arg for arg in nest.flatten(args) if isinstance(arg, kinds)]
    return convert_operands((*others, value))[-1]


def convert_operands(values: tuple, copy: bool = True) -> tuple[Tensor, ...]:
    """Return the operands of one operation as tensors, wherever each of them stands.

    Tensors and arrays determine the dtype; scalars and lists of Python's numbers take it. Lists
    among themselves keep their own, and so determine the dtype of scalars. Scalars among themselves
    keep their own, but for Python's floats: these have the precision of the widest.
    """
    if len(values) == 2:  # two tensors, or a tensor of floats and a number, as nearly always
        x, y = values
        if type(x) is Tensor is type(y):
            return values
        if type(x) is Tensor and type(y) in (float, int):
            dtype = x._data.dtype
            if dtype is FLOAT64 or dtype is FLOAT32:
                return x, Tensor(weak_arrays[dtype][y])
        if type(y) is Tensor and type(x) in (float, int):
            dtype = y._data.dtype
            if dtype is FLOAT64 or dtype is FLOAT32:
                return Tensor(weak_arrays[dtype][x]), y
    if all(isinstance(value, Tensor) for value in values):
        return values
    if any(value is None for value in values):
        kinds = " and ".join(repr(type(value).__name__) for value in values)
        raise ArgumentTypeError(f"unsupported operand type(s): {kinds}")
    tensors: list[Any] = [None] * len(values)
    strong, lists = None, []
    for i, value in enumerate(values):
        if is_weak(value):
            continue
        if _is_weak_list(value):
            lists.append(i)
            continue
        tensors[i] = convert(value, copy=copy)
        strong_dtype = tensors[i].dtype
        strong = strong_dtype if strong is None else promote(strong, strong_dtype)
    for i in lists:
        if strong is None:
            tensors[i] = convert(values[i])
        else:
            array = _read_nested(values[i])
            tensors[i] = Tensor(cast_in_range(array, weak_dtype(array.flat[0].item(), strong)))
    if strong is None and lists:
        strong = promote(*[tensors[i].dtype for i in lists])
    if strong is None:
        return convert_each(*values)
    for i, value in enumerate(values):
        if tensors[i] is None:
            dtype = weak_dtype(value, strong)
            here = isinstance(value, Weak)
            tensors[i] = convert(value, dtype) if here else Tensor(to_array(value, dtype))
    return _beside(values, tensors) if devices.array_types else tuple(tensors)


def convert_each(*values: Any) -> tuple[Tensor, ...]:
    """Return operands as tensors of their own dtypes, which an operation then promotes.

    Python's floats, and lists of them, have the precision of the widest.
    """
    tensors = [convert(value) for value in values]
    dtypes = {tensor.dtype for tensor in tensors}
    if len(dtypes) > 1 and promote(*dtypes) in _OF_DOUBLES:
        for i, value in enumerate(values):
            if tensors[i].dtype == FLOAT32 and _is_python(value):
                tensors[i] = convert(value, FLOAT64)
    return tuple(tensors)


_OF_DOUBLES = (FLOAT64, COMPLEX128)


def _is_python(value: Any) -> bool:
    """Return whether a value is a number of Python's, or a list of such numbers."""
    return (is_weak(value) and not isinstance(value, np.generic)) or _is_weak_list(value)


def _beside(values: tuple, tensors: list[Tensor]) -> tuple[Tensor, ...]:
    """Return operands with those made of arrays and lists on the GPU, if a tensor is there."""
    if not any(is_tensor(value) and devices.home(value) == devices.GPU for value in values):
        return tuple(tensors)
    return tuple(
        [
            tensor
            if is_tensor(value) or type(tensor._data) is not np.ndarray
            else Tensor(devices.move(tensor._data, devices.GPU))
            for value, tensor in zip(values, tensors, strict=True)
        ]
    )


def _is_weak_list(value: Any) -> bool:
    is_list = isinstance(value, (list, tuple, range)) and _is_numeric(value)
    return is_list and (isinstance(value, range) or not any_tensor(value))
