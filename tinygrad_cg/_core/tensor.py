"""Tensor: an immutable array that can carry a record of how it was computed.

Arithmetic operators and array methods are installed on it from one table, in
``tinygrad_cg/_ops/operators.py``.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np
from numpy import ndarray

from ..errors import ArgumentTypeError, InaccessibleTensorError, users_expression
from . import devices
from .levels import ask_for_value, state
from .suggestions import NamesOfOtherLibraries


class TensorShape(tuple):
    """A tuple of sizes with TensorFlow's accessors; None means an unknown size.

    Slices, and sums with other shapes, are shapes. Modelled on ``tf.TensorShape``.

    Examples
    --------
    >>> tf.TensorShape([2, None]).is_compatible_with((2, 3))
    True
    """

    __slots__ = ()

    @property
    def rank(self) -> int:
        return len(self)

    ndims = rank

    def as_list(self) -> list[int]:
        return list(self)

    dims = property(as_list)

    def num_elements(self) -> int | None:
        """Return the number of elements; None if a size is not known."""
        return prod(self.as_list()) if self.is_fully_defined() else None

    def is_fully_defined(self) -> bool:
        return None not in self

    def is_compatible_with(self, other: Any) -> bool:
        """Return whether both can be the shape of one tensor: each size agrees, or is not known."""
        sizes = tuple(other)
        return len(self) == len(sizes) and all(
            None in pair or pair[0] == pair[1] for pair in zip(self, sizes, strict=True)
        )

    def is_subtype_of(self, other: Any) -> bool:
        """Return whether `other` is this shape, or this with sizes that are not known."""
        sizes = tuple(other)
        pairs = zip(self, sizes, strict=False)
        return len(self) == len(sizes) and all(b is None or a == b for a, b in pairs)

    def concatenate(self, other: Any) -> TensorShape:
        """Return the sizes of this shape and then those of `other`."""
        return self + tuple(other)

    def merge_with(self, other: Any) -> TensorShape:
        """Return the shape with the sizes that either knows. Raises ValueError if they differ."""
        self.assert_is_compatible_with(other)
        pairs = zip(self, tuple(other), strict=True)
        return TensorShape(b if a is None else a for a, b in pairs)

    def with_rank(self, rank: int) -> TensorShape:
        """Return this shape. Raises ValueError if it has another rank."""
        self.assert_has_rank(rank)
        return self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Return this shape. Raises ValueError if it has a lower rank."""
        if len(self) < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Return this shape. Raises ValueError if it has a higher rank."""
        if len(self) > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Raise ValueError if this shape has another rank."""
        if len(self) != rank:
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        """Raise ValueError if `other` has another rank."""
        if len(self) != len(tuple(other)):
            raise ValueError(f"Shapes {self} and {tuple(other)} must have the same rank")

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise ValueError unless `is_compatible_with`."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {tuple(other)} are incompatible")

    def assert_is_fully_defined(self) -> None:
        """Raise ValueError if a size is not known."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def __getitem__(self, key: Any) -> Any:
        result = tuple.__getitem__(self, key)
        return TensorShape(result) if type(key) is slice else result

    def __add__(self, other: Any) -> Any:
        return TensorShape((*self, *other))

    def __radd__(self, other: Any) -> Any:
        return TensorShape((*other, *self))

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"

    def __str__(self) -> str:
        return tuple.__repr__(self)


class Aval(NamedTuple):
    """The shape and dtype of a tensor; in place of the data where there is none."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)


class NoValueError(TypeError):
    """A value was asked for of a tensor that has a shape and a dtype only."""


class ExampleAval(Aval):
    """The Aval of one example of a batch, whose values only the batch can reach."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NoReturn:  # a kernel asks: it was used elsewhere
        if name.startswith("__") and name != "__array_interface__":
            raise AttributeError(name)
        refuse_leak()

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        refuse_leak()


def refuse_leak() -> NoReturn:
    raise TypeError(
        "a tensor of a vmap was used outside of it, where it has no values: return it from the "
        "function, instead of keeping it"
    )


def refuse_leaks(*tensors: Tensor) -> None:
    """Raise TypeError if a tensor that a kernel did not take has no values here."""
    for tensor in tensors:
        if type(tensor._data) is ExampleAval:
            refuse_leak()
        if type(tensor._data) is Aval:
            raise leaked_from_trace(tensor)


def is_zero(tensor: Tensor) -> bool:
    """Return whether a tensor is known to be zeros: nothing depends on what it is for."""
    return type(tensor._data) is ndarray and not tensor._data.any()


def leaked_from_trace(tensor: Any) -> InaccessibleTensorError:
    """Return the error for a tensor of a trace that is used where it has no value."""
    name = tensor.level.name
    return InaccessibleTensorError(
        f"{tensor!r} is out of scope: it was created while `{name}` was traced and has no value "
        f"outside. Return it from `{name}`, instead of keeping it in a list, an attribute or "
        "a closure; to keep it from call to call, assign it to a Variable"
    )


class _LateOperations:
    """The operations that tensors and conversion need; their modules, which need these, set them.

    They move a tensor between devices, stack tensors, and add slices at indices to zeros.
    """

    to_device: Callable[[Tensor, str], Tensor]
    stack: Callable[[Any], Tensor]
    scatter_slices: Callable[[Tensor, Tensor, tuple[int, ...]], Tensor]


operations = _LateOperations()


class Reference:
    """A hashable stand-in for a tensor or Variable: equal if it is the same object."""

    __slots__ = ("_object",)

    def __init__(self, referent: Any):
        self._object = referent

    def deref(self) -> Any:
        return self._object

    def __hash__(self) -> int:
        return id(self._object)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._object is self._object

    def __lt__(self, other: object) -> bool:
        """Return whether this reference sorts before another one, as in TensorFlow."""
        return (
            id(self._object) < id(other._object) if isinstance(other, Reference) else NotImplemented
        )

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._object!r}>"


_OF_MASKED_ARRAYS = frozenset(
    (
        *("__call__", "power", "__iadd__", "__isub__", "__imul__", "__ipow__"),
        *("__itruediv__", "__ifloordiv__", "__idiv__"),
    )
)


class ArrayLike(NamesOfOtherLibraries):
    """Base of Tensors and Variables: the views that Python and NumPy have of a value."""

    __slots__ = ()
    __array_priority__: float = 1000.0
    __pandas_priority__: int = 5000
    _data: Any
    _rec: Any

    if TYPE_CHECKING:  # what _ops/operators.py puts on the class, from its table

        def __add__(self, y: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __eq__(self, other: Any) -> Tensor: ...
        def __ne__(self, other: Any) -> Tensor: ...
        def __getitem__(self, key: Any) -> Tensor: ...
        @property
        def T(self) -> Tensor: ...
        @property
        def real(self) -> Tensor: ...
        def all(self, axis: Any = None, out: None = None, keepdims: bool = False) -> Tensor: ...
        def argmax(self, axis: Any = None, out: None = None) -> Tensor: ...
        def argsort(self, axis: Any = -1, kind: Any = None) -> Tensor: ...
        def astype(self, dtype: Any) -> Tensor: ...
        def choose(self, choices: Any, out: None = None, mode: str = "raise") -> Tensor: ...
        def clip(self, a_min: Any = None, a_max: Any = None) -> Tensor: ...
        def compress(self, condition: Any, axis: Any = None) -> Tensor: ...
        def conj(self) -> Tensor: ...
        def copy(self, order: str = "K") -> Tensor: ...
        def cumsum(self, axis: Any = None, dtype: Any = None) -> Tensor: ...
        def diagonal(self, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Tensor: ...
        def dot(self, b: Any) -> Tensor: ...
        def flatten(self, order: str = "C") -> Tensor: ...
        def max(
            self,
            axis: Any = None,
            out: None = None,
            keepdims: bool = False,
            initial: Any = None,
            where: Any = None,
        ) -> Tensor: ...
        def mean(
            self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False
        ) -> Tensor: ...
        def nonzero(self) -> tuple[Tensor, ...]: ...
        def partition(self, kth: Any, axis: Any = -1) -> Tensor: ...
        def repeat(self, repeats: Any, axis: Any = None) -> Tensor: ...
        def reshape(self, *shape: Any) -> Tensor: ...
        def round(self, decimals: int = 0) -> Tensor: ...
        def searchsorted(self, v: Any, side: str = "left", sorter: Any = None) -> Tensor: ...
        def squeeze(self, axis: Any = None) -> Tensor: ...
        def std(
            self,
            axis: Any = None,
            dtype: Any = None,
            out: None = None,
            ddof: Any = 0,
            keepdims: bool = False,
        ) -> Tensor: ...
        def sum(
            self,
            axis: Any = None,
            dtype: Any = None,
            out: None = None,
            keepdims: bool = False,
            initial: Any = None,
            where: Any = None,
        ) -> Tensor: ...
        def swapaxes(self, axis1: Any, axis2: Any) -> Tensor: ...
        def take(self, indices: Any, axis: Any = None) -> Tensor: ...
        def trace(self, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Tensor: ...
        def transpose(self, *axes: Any) -> Tensor: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __add__
        __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __add__
        __matmul__ = __rmatmul__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __add__
        __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __add__
        __rxor__ = __lt__ = __le__ = __gt__ = __ge__ = __add__
        __abs__ = __invert__ = __pos__ = __round__ = __floor__ = __neg__
        mT = T
        imag = real
        any = all
        argmin = argmax
        argpartition = partition
        conjugate = conj
        cumprod = cumsum
        min = max
        prod = sum
        ravel = flatten
        sort = argsort
        var = std

    def _read(self) -> Tensor:
        """Return the value as a tensor."""
        raise TypeError(f"{type(self).__name__} cannot be read")

    def _read_as_source(self) -> Tensor:
        """Return the value as a tensor that is a source of its own, not the Variable."""
        return self._read()

    @property
    def shape(self) -> TensorShape:
        return TensorShape(self._data.shape)

    @property
    def dtype(self) -> np.dtype:
        return self._data.dtype

    @property
    def ndim(self) -> int:
        return self._data.ndim

    @property
    def size(self) -> int:
        return prod(self._data.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Raise ValueError unless the shape, which is always known, fits `shape`."""
        if not TensorShape(shape).is_compatible_with(self.shape):
            raise ValueError(f"set_shape: the tensor has shape {self.shape}, not {shape}")

    def _values(self) -> np.ndarray:
        """Return the array inside, or a copy of one on a GPU. Where values are handed out, they
        are asked for here.
        """
        data = self._data
        if state.rules and self._rec is not None:
            state.rules[-1].warn_detached(self._rec)
        if type(data) is ndarray:
            return data
        return self._ask() if isinstance(data, Aval) else devices.to_host(data)

    def _ask(self) -> np.ndarray:
        """Return the value for an example, where code is run for that; else raise an error."""
        value = ask_for_value(self)
        if value is None:
            raise NoValueError(
                "inside vmap or another transformation, tensors have no values yet: use tensor "
                "operations, with where() for a choice. To call code that needs values (`if`, "
                "float(), numpy(), math functions), use numpy_function or py_function"
            )
        return value

    def _raw(self) -> Any:
        """Return the raw value that a Variable takes when this is assigned to it."""
        data = self._data
        if state.rules and self._rec is not None:
            state.rules[-1].warn_detached(self._rec)
        return self._ask() if isinstance(data, Aval) else data

    def numpy(self) -> Any:
        """Return the value as a read-only NumPy array, or a NumPy scalar for shape ().

        The array is a view; of a tensor on a GPU it is a copy.
        """
        data = self._values()
        if not data.ndim:
            return data[()]
        view = data.view()
        view.flags.writeable = False
        return view

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        on_gpu = isinstance(self._data, devices.array_types)
        if on_gpu and copy is False:
            raise ValueError(_needs_copy("__array__"))
        data = self._values()
        if dtype is not None and np.dtype(dtype) != data.dtype:
            if copy is False:
                raise ValueError(f"a view of {data.dtype} as {np.dtype(dtype)} needs a copy")
            return data.astype(dtype)
        if copy:
            return data if on_gpu else data.copy()
        view = data.view()
        view.flags.writeable = False
        return view

    @property
    def _mask(self) -> NoReturn:
        """Refuse operations of ``numpy.ma``, which ask their operands for it and record nothing.

        A masked array on the left, as in ``masked * tensor``, computes by itself, and asks nothing
        else of a tensor. All others who ask for a mask learn that there is none.
        """
        caller = sys._getframe(1).f_back  # of ``numpy.ma.getmask``
        if (
            caller is not None
            and caller.f_code.co_name in _OF_MASKED_ARRAYS
            and caller.f_globals.get("__name__") == "numpy.ma.core"
        ):
            raise TypeError(
                "numpy.ma does not record tensors: call .filled(value) on the masked array first, "
                "and use functions of numpy instead of numpy.ma"
            )
        raise AttributeError("tensors have no mask")

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: Any = None,
    ) -> Any:
        """Return a capsule on the memory of the value, which keeps it alive; see `dlpack`.

        It is marked read-only if the consumer knows version 1.0 (`max_version`).
        """
        options: dict[str, Any] = {"stream": stream, "dl_device": dl_device, "copy": copy}
        if isinstance(self._data, devices.array_types):
            if (dl_device or (2, 0))[0] != 1:
                asked = {name: value for name, value in options.items() if value is not None}
                return self._raw().__dlpack__(**asked)
            if copy is False:
                raise BufferError(_needs_copy("__dlpack__"))
        data = self._values()
        if max_version is not None and max_version[0] >= 1:
            view = data.view()
            view.flags.writeable = False
            return view.__dlpack__(max_version=max_version, **options)
        if not data.flags.writeable and copy is not False:
            data = data.copy()
        return data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        data = self._data
        return data.__dlpack_device__() if isinstance(data, devices.array_types) else (1, 0)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Describe the memory of a tensor on a GPU, which stays the tensor's: it is only read."""
        if not isinstance(self._data, devices.array_types):
            raise AttributeError("tensors on the CPU have no __cuda_array_interface__")
        return self._raw().__cuda_array_interface__

    @property
    def _numba_type_(self) -> NoReturn:
        if not sys._getframe(1).f_globals.get("__name__", "").startswith("numba."):
            raise AttributeError("tensors have no type of Numba")  # Python 3.13 prints other errors
        raise TypeError(  # Numba hides errors of ValueError's classes
            "functions compiled by Numba do not take tensors: decorate the function with "
            "differentiable, which gives it a derivative; or write a function that calls it with "
            "np.asarray(x), and decorate that function with custom_gradient"
        )

    @property
    def device(self) -> str:
        """Return the device of the value: "cpu", or "gpu:0"."""
        return devices.device_of(self._data)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """Return the value on a device, "cpu" or "gpu:0": itself if it is there.

        Gradients go back to where the value was. Raises DeviceError if the device does
        not exist, ValueError if `device` is not the name of a device.
        """
        return self._on(device, "to_device")

    def gpu(self) -> Tensor:
        """Return the value on the GPU: itself if it is there. DeviceError if there is none."""
        return self._on(devices.GPU, "gpu")

    def _on(self, device: Any, function: str) -> Tensor:
        """Return the value on a device; one on a hidden GPU may stay there."""
        x = self._read()
        return operations.to_device(
            x, devices.find(device, function, devices.home(x) == devices.GPU)
        )

    def cpu(self) -> Tensor:
        """Return the value in the processor's memory: itself if it is there."""
        return operations.to_device(self._read(), devices.CPU)

    def item(self, *index: Any) -> Any:
        """Return an element as a Python number: the only one, or that at `index`.

        Raises ValueError if there are more and no index is given.
        """
        return self._values().item(*index)

    def tobytes(self, order: Literal["C", "F", "A", "K"] = "C") -> bytes:
        """Return the bytes of the elements in row-major order, or in another `order`."""
        return self._values().tobytes(order)

    def tolist(self) -> Any:
        return self._values().tolist()

    def ref(self) -> Reference:
        """Return a hashable reference, for dictionary keys and sets."""
        return Reference(self)

    def __hash__(self) -> int:
        raise TypeError(
            f"{type(self).__name__} is unhashable, since == compares elements. "
            "Instead, use tensor.ref() as the key, and key.deref() to get it back."
        )

    def __bool__(self) -> bool:
        data = self._values()
        if data.size != 1:
            raise ValueError(
                f"the truth value of a tensor of shape {tuple(data.shape)} is ambiguous: choose "
                "element by element with where(), or use reduce_any() or reduce_all()"
            )
        return bool(data)

    def __int__(self) -> int:
        return self._as_number(int)

    def __float__(self) -> float:
        return self._as_number(float)

    def __complex__(self) -> complex:
        return self._as_number(complex)

    def __index__(self) -> int:
        return self._as_number(operator.index)

    def _as_number(self, convert: Callable[[Any], Any]) -> Any:
        data = self._values()
        try:
            return convert(data)
        except TypeError:
            is_index = convert is operator.index
            if not data.ndim and not is_index:
                raise
            wanted = "an integer tensor" if is_index else "a single number, a tensor"
            remedy = "take an element, such as x[0]" if data.ndim else "cast it to int32"
            call = users_expression() or f"{convert.__name__}(x)"
            raise TypeError(
                f"{call} needs {wanted} of shape (), got shape {tuple(data.shape)} and dtype "
                f"{data.dtype}: {remedy}"
            ) from None

    def __len__(self) -> int:
        if not self._data.ndim:
            raise TypeError("Scalar tensor has no `len()`: its shape is ().")
        return self._data.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self._data.ndim:
            raise TypeError(
                "Cannot iterate over a scalar tensor. Its shape is (): for a list of this value, "
                "write [x], for example in zip([x], [y])"
            )
        data = self._data
        if (
            type(data) is np.ndarray and data.dtype.kind in "biu"
        ):  # they keep their values in programs
            return (Tensor(data[i, ...].copy()) for i in range(len(data)))
        return (self[i] for i in range(data.shape[0]))

    def __format__(self, spec: str) -> str:
        data = self._data  # a text: no value that could lose its derivative
        if data.ndim:
            try:
                return format(str(self), spec)
            except ValueError:
                raise ArgumentTypeError(
                    f"format: {spec!r} is for single numbers, and the tensor has shape "
                    f"{data.shape}: use np.array2string(x.numpy(), precision=2), or format the "
                    "elements of x.numpy()"
                ) from None
        return format((self._ask() if isinstance(data, Aval) else devices.to_host(data))[()], spec)

    def __dir__(self) -> Iterable[str]:
        return [name for name in super().__dir__() if hasattr(type(self), name)]

    def _text(self) -> str:
        """Return the value as `repr` shows it."""
        if isinstance(self._data, Aval):
            return "<no value yet>"
        text = repr(self._data) if self._data.ndim else str(self._data)
        return f"\n{text}" if "\n" in text else text


def _needs_copy(function: str) -> str:
    return f"{function}: moving a tensor from 'gpu:0' to the CPU makes a copy: leave out copy=False"


class Tensor(ArrayLike):
    """An immutable, differentiable n-dimensional array of numbers.

    Made by `constant`, `convert_to_tensor` and by every operation, not by calling the class.
    Operators and NumPy functions on it are operations of this library; `numpy()` returns the value.
    `==` compares elements, so tensors are unhashable: use `ref()`.
    """

    __slots__ = ("__weakref__", "_data", "_rec")

    def __init__(self, data: Any, record: Any = None):
        if type(data) is not ndarray and not isinstance(data, (Aval, *devices.array_types)):
            raise TypeError(
                f"Tensor is made by constant() or convert_to_tensor(), got {type(data).__name__}"
            )
        self._data = data
        self._rec = record

    def _read(self) -> Tensor:
        return self

    def _example(self) -> ndarray:
        """Return the values: of one example of a batch, for some arguments of a trace."""
        return self._data

    def _with_record(self, record: Any) -> Tensor:
        """Return the same value with another record."""
        return Tensor(self._data, record)

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(
            "Tensors are immutable: 'Tensor' object does not support item assignment. "
            "Create a changed copy: x = x.at[index].set(value), or .add(), .max() and others; use "
            "tf.where() or tf.concat(); or use a Variable: variable[index].assign(value)."
        )

    def __repr__(self) -> str:
        return f"<tg.Tensor: shape={self.shape}, dtype={self.dtype}, numpy={self._text()}>"

    def __str__(self) -> str:
        text = self._text() if isinstance(self._data, Aval) else str(self._data)
        return f"tg.Tensor({text}, shape={self.shape}, dtype={self.dtype})"

    def __reduce__(self) -> tuple[Any, ...]:
        return restore, (np.array(self._values()),)  # the value travels, the record stays

    def __copy__(self, memo: Any = None) -> Tensor:
        return self  # immutable: the copy is the tensor, and its gradient flows

    __deepcopy__ = __copy__


def restore(array: ndarray) -> Tensor:
    """Return the tensor of an unpickled array.

    The dtype of such an array is equal to NumPy's own object, but not that object. Small kernels
    compare dtypes by identity, and would not take the array.
    """
    return Tensor(array.view(np.dtype(array.dtype.type)))
