"""A stand-in for CuPy in Numba's CUDA simulator: arrays that wrap NumPy's.

A wrapped array is no NumPy array and does not become one by itself, so that what would mix the
memories of two devices fails here as it fails with CuPy. Functions are NumPy's of the same names,
which CuPy has with the same meaning, less the keywords that it does not have.
"""

import functools
import operator
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from . import cuda, errors  # noqa: F401 (`cuda` is a name of CuPy)

_MAKERS = {"array", "asarray", "asanyarray", "ascontiguousarray"}
"""Functions that take arrays of the host: they copy them to the device."""

_OF_UFUNCS = {"out", "dtype", "casting"}
"""The keywords of CuPy's functions of elements, the generalized ones apart."""

_ABSENT = {
    name: absent
    for names, absent in (
        ("max min amax amin nanmax nanmin sum nansum prod nanprod reduce", {"initial", "where"}),
        ("all any mean nanmean", {"where"}),
        ("std var nanstd nanvar", {"correction", "mean", "where"}),
        ("sort argsort", {"order", "stable", "descending"}),
        ("reshape", {"shape"}),
        ("unpackbits", {"count"}),
        ("partition argpartition", {"kind", "order"}),
        ("clip", {"casting", "dtype", "max", "min", "order", "where"}),
        ("count_nonzero", {"keepdims"}),
        ("indices", {"sparse"}),
        ("isin", {"kind"}),
        ("lexsort trim_zeros", {"axis"}),
        ("percentile quantile", {"weights"}),
        ("take", {"mode"}),
        ("unique", {"sorted"}),
        ("cholesky", {"upper"}),
        ("matrix_rank", {"A", "hermitian", "rtol"}),
        ("pinv", {"hermitian", "rtol"}),
        ("array_str histogram matrix_power", {"a"}),  # first parameters of other names
        ("cov flip fliplr flipud rot90", {"m"}),
        ("extract take_along_axis", {"arr"}),
        ("intersect1d union1d", {"ar1", "ar2"}),
        ("corrcoef", {"x"}),
        ("delete", {"obj"}),
        ("ediff1d", {"ary"}),
        ("stack", {"arrays"}),
        ("unravel_index", {"shape"}),
        ("svd", {"hermitian"}),
        ("fft fft2 fftn ifft ifft2 ifftn hfft ihfft", {"out"}),
        ("rfft rfft2 rfftn irfft irfft2 irfftn", {"out"}),
    )
    for name in names.split()
}
"""By the name of a function or a method: keywords that NumPy's has and CuPy's has not."""


def _check_keywords(function: Callable, named: dict[str, Any]) -> None:
    """Raise TypeError, in CuPy's words, for a keyword that its function does not have."""
    if isinstance(function, np.ufunc) and function.signature is None:
        wrong = {name: value for name, value in named.items() if name not in _OF_UFUNCS}
        if wrong:
            raise TypeError(f"Wrong arguments {wrong}")
        return
    called = getattr(function, "__name__", "")
    for name in named:
        if name in _ABSENT.get(called, ()):
            raise TypeError(f"{called}() got an unexpected keyword argument {name!r}")


_INTEGERS, _WORDS = "int32 uint32 uint64", "int32 uint32 int64 uint64"
_OF_METHODS = {
    "reduce": {"add": None, "multiply": None},
    "accumulate": {"add": None, "multiply": None},
    "reduceat": {"add": None},
    "at": {
        "add": f"{_INTEGERS} float16 float32 float64",
        "subtract": "int32 uint32",
        **dict.fromkeys(("maximum", "minimum"), f"{_INTEGERS} float32 float64"),
        **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), _WORDS),
    },
}
"""By the name of a method of ufuncs: the ufuncs that have it in CuPy, and for which dtypes."""


def _check_method(ufunc: np.ufunc, method: str, array: Any) -> None:
    """Raise an error, in CuPy's words, for a method that its ufunc does not have."""
    if method not in _OF_METHODS:  # outer
        return
    supported, name = _OF_METHODS[method], ufunc.__name__
    if name not in supported:
        raise NotImplementedError(f"`cupy_{name}.{method}` is not supported yet")
    dtypes = supported[name]
    if dtypes is not None and array.dtype.name not in dtypes.split():
        listed = ", ".join(dtypes.split())
        raise TypeError(f"cupy.{name}.{method} only supports {listed} as data type")


def _unwrap(value: Any) -> Any:
    """Return the wrapped array; TypeError for an array of the host."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(
            f"Unsupported type {np.ndarray}: an array of the host among arrays of the device"
        )
    if isinstance(value, (list, tuple)):  # also what NumPy names the parts of
        parts = [_unwrap(part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if type(value) is slice:
        return slice(_unwrap(value.start), _unwrap(value.stop), _unwrap(value.step))
    return value


def _wrap(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return ndarray(value)
    if isinstance(value, np.generic):
        return ndarray(np.asarray(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_wrap, value))
    if type(value) in (list, tuple):
        return type(value)(map(_wrap, value))
    return value


def _lifted(function: Callable) -> Callable:
    """Return a function of NumPy as one of wrapped arrays."""
    of_matrices = getattr(function, "__module__", "") == "numpy.linalg"
    run = functools.partial(errors.run, function) if of_matrices else function

    @functools.wraps(function, assigned=("__name__", "__qualname__", "__doc__"))
    def call(*arguments: Any, **named: Any) -> Any:
        if named:
            _check_keywords(function, named)
        named = {name: _unwrap(value) for name, value in named.items()}
        with np.errstate(all="ignore"):
            return _wrap(run(*map(_unwrap, arguments), **named))

    return call


class _Flags:
    """What CuPy tells of an array's memory."""

    def __init__(self, flags: Any) -> None:
        self.c_contiguous, self.f_contiguous = flags.c_contiguous, flags.f_contiguous
        self.owndata, self.forc, self.fnc = flags.owndata, flags.forc, flags.fnc


class _Pool:
    """The memory of arrays: while a limit is set, what they take is counted."""

    def __init__(self) -> None:
        self.limit = self.used = 0

    def set_limit(self, size: int) -> None:
        self.limit = size

    def get_limit(self) -> int:
        return self.limit

    def used_bytes(self) -> int:
        return self.used

    def free_all_blocks(self) -> None:
        """Give nothing back: no memory is kept for later arrays."""

    def hold(self, array: Any, size: int) -> None:
        if self.used + size > self.limit:
            raise MemoryError(
                f"Out of memory allocating {size:,} bytes (allocated so far: {self.used:,} bytes, "
                f"limit set to: {self.limit:,} bytes)."
            )
        self.used += size
        weakref.finalize(array, self._release, size)

    def _release(self, size: int) -> None:
        self.used -= size


_pool = _Pool()


def get_default_memory_pool() -> _Pool:
    return _pool


class _Address:
    """Memory at an address that another object gives, for NumPy to look at."""

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = {**interface, "version": 3}
        self.owner = owner


class _Pointer:
    """Where an array's first element is."""

    def __init__(self, pointer: int) -> None:
        self.ptr = pointer


class ndarray:
    """An array of the simulated device."""

    __slots__ = ("__weakref__", "_host")
    __array_priority__ = 100

    def __init__(self, host: np.ndarray) -> None:
        self._host = host
        if _pool.limit and host.base is None:
            _pool.hold(self, host.nbytes)

    # What NumPy asks: CuPy answers its functions, and refuses to become an array of the host.

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct "
            "a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        run = ufunc
        if ufunc in (np.logical_and, np.logical_or) and any(
            np.iscomplexobj(_unwrap(x)) for x in inputs
        ):
            raise TypeError(f"Wrong type of array for {ufunc.__name__}")
        if ufunc is np.nextafter and any(np.iscomplexobj(_unwrap(x)) for x in inputs):
            raise RuntimeError("no instance of overloaded function matches")  # of its compiler
        if ufunc.__name__ in _LACKING["numpy"].split():
            return NotImplemented
        if method != "__call__":
            _check_method(ufunc, method, inputs[0])
            run = getattr(ufunc, method)
        return _lifted(run)(*inputs, **named)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        if function.__name__ in _LACKING.get(function.__module__, "").split():
            return NotImplemented
        return _lifted(function)(*args, **named)

    # What CuPy's arrays have, and NumPy's do not.

    def get(self) -> np.ndarray:
        """Return a copy on the host."""
        return self._host.copy()

    @property
    def flags(self) -> _Flags:
        return _Flags(self._host.flags)

    @property
    def data(self) -> _Pointer:
        return _Pointer(self._host.__array_interface__["data"][0])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface_of_host = self._host.__array_interface__
        return {
            name: interface_of_host[name] for name in ("shape", "typestr", "data", "strides")
        } | {"version": 3, "stream": None}

    def __dlpack__(self, **_: Any) -> Any:
        return self._host.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0  # a device of CUDA, the first

    # Like NumPy's.

    @property
    def dtype(self) -> np.dtype:
        return self._host.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._host.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self._host.strides

    @property
    def ndim(self) -> int:
        return self._host.ndim

    @property
    def size(self) -> int:
        return self._host.size

    def __getattr__(self, name: str) -> Any:
        """Return NumPy's attribute of the name: `T`, `nbytes`, `reshape`, `astype`, `sum`, ..."""
        if name.startswith("_") or name in ("ctypes", "tofile"):
            raise AttributeError(f"arrays of the device have no attribute {name!r}")
        attribute = getattr(self._host, name)
        return _lifted(attribute) if callable(attribute) else _wrap(attribute)

    def __getitem__(self, key: Any) -> Any:
        return _wrap(self._host[_unwrap(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._host[_unwrap(key)] = _unwrap(value)

    def __len__(self) -> int:
        return len(self._host)

    def __repr__(self) -> str:
        return repr(self._host)

    def __str__(self) -> str:
        return str(self._host)

    __hash__ = None  # type: ignore[assignment]


def _of_operator(name: str) -> Callable:
    def call(self: ndarray, *others: Any) -> Any:
        if isinstance(others[0] if others else None, (str, bytes, dict)):
            return NotImplemented
        result = _lifted(getattr(self._host, name))(*others)
        return self if type(result) is ndarray and result._host is self._host else result

    return call


_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)
for _name in [
    *(f"__{prefix}{name}__" for name in _OPERATORS for prefix in ("", "r", "i")),
    *("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"),
    *("__neg__", "__pos__", "__abs__", "__invert__"),
]:
    setattr(ndarray, _name, _of_operator(_name))
for _convert in (bool, int, float, complex, operator.index):
    _name = f"__{_convert.__name__.removeprefix('__').removesuffix('__')}__"
    setattr(ndarray, _name, lambda self, convert=_convert: convert(self._host))


class Memory:
    """Elements in a row as device code sees them. An index outside is an error, also below 0."""

    __slots__ = ("_host", "shape", "size")

    def __init__(self, array: ndarray, offset: int, count: int) -> None:
        interface = array._host.__array_interface__
        address, read_only = interface["data"]
        data = {"shape": (count,), "typestr": interface["typestr"], "strides": None}
        self._host = np.asarray(_Address({**data, "data": (address + offset, read_only)}, array))
        self.size, self.shape = count, (count,)

    @classmethod
    def at(cls, pointer: int, count: int, dtype: np.dtype) -> "Memory":
        """Return elements at an address, which somebody else keeps."""
        data = {"shape": (count,), "typestr": dtype.str, "strides": None, "data": (pointer, False)}
        return cls(ndarray(np.asarray(_Address(data, None))), 0, count)

    @property
    def dtype(self) -> np.dtype:
        return self._host.dtype

    @property
    def pointer(self) -> int:
        return self._host.__array_interface__["data"][0]

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < self.size:
            raise IndexError(f"device code reads element {index} of {self.size}")
        return self._host[index]

    def __setitem__(self, index: int, value: Any) -> None:
        if not 0 <= index < self.size:
            raise IndexError(f"device code writes element {index} of {self.size}")
        self._host[index] = value


# Functions of the module -----------------------------------------------------------------------


def asnumpy(array: Any) -> np.ndarray:
    """Return a copy on the host."""
    return array.get() if isinstance(array, ndarray) else np.asarray(array)


def _made(name: str) -> Callable:
    """Return a maker of NumPy's: arrays of the host are copied, what is on the device is shared."""
    make = getattr(np, name)

    def call(value: Any, *arguments: Any, **named: Any) -> ndarray:
        if isinstance(value, ndarray):
            result = make(value._host, *arguments, **named)
            return value if result is value._host else ndarray(result)
        interface = getattr(value, "__cuda_array_interface__", None)
        if interface is not None:
            return ndarray(make(np.asarray(_Address(interface, value)), *arguments, **named))
        if isinstance(value, (list, tuple)):
            value = _of_host(value)
        return ndarray(np.array(make(value, *arguments, **named)))

    return call


def _of_host(value: Any) -> Any:
    """Return nested sequences with arrays of the device as arrays that NumPy puts together."""
    if isinstance(value, ndarray):
        return value._host
    return [_of_host(part) for part in value] if isinstance(value, (list, tuple)) else value


def from_dlpack(array: Any) -> ndarray:
    """Return an array of the device, without a copy; TypeError for one of the host."""
    kind, _ = array.__dlpack_device__()
    if kind not in (2, 13):  # kDLCUDA, kDLCUDAManaged
        raise TypeError(f"Unsupported array type: {kind}")
    try:
        capsule = array.__dlpack__(stream=1, max_version=(1, 0), copy=None)
    except TypeError:
        capsule = array.__dlpack__(stream=1)
    host = np.from_dlpack(_Capsule(capsule))
    pointer = host.__array_interface__["data"][0]
    interface = {**host.__array_interface__, "data": (pointer, False)}  # CuPy's can be written to
    return ndarray(np.asarray(_Address(interface, host)))


class _Capsule:
    """A capsule that NumPy reads: memory of the device is the host's."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class _Namespace:
    """A module of NumPy within NumPy: `linalg`, `fft`."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _found(self._module, name)


_LACKING = {
    "numpy": """
        asmatrix block bmat einsum_path frompyfunc fromregex geomspace histogram_bin_edges info
        insert isnat matvec nanpercentile nanquantile polyder polydiv polyint spacing unstack vecdot
        vecmat
    """,
    "numpy.linalg": """
        diagonal matrix_norm multi_dot outer svdvals tensordot trace vecdot vector_norm
    """,
}
"""Functions of NumPy that CuPy 14 does not have, by module."""


def _found(module: Any, name: str) -> Any:
    if name in _LACKING.get(module.__name__, "").split():
        raise AttributeError(f"module 'cu{module.__name__[2:]}' has no attribute {name!r}")
    value = getattr(module, name)
    if isinstance(value, ModuleType):
        value = _Namespace(value)
    elif callable(value) and not isinstance(value, type):
        value = _made(name) if name in _MAKERS else _lifted(value)
    return value


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = _found(np, name)
    return value
