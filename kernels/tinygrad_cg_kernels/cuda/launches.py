"""Fast launches of kernels: arguments are written to fixed memory, where the driver reads them.

Each launch by Numba examines and converts every argument. Here, a kernel is compiled and loaded
once for kinds of arguments. All arguments are words of 8 bytes, in the order in which Numba's
kernels take them. A launch writes them to fixed memory and calls the driver. In the simulator,
Numba launches the kernel.
"""

from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.cuda import adapter

Kind = np.dtype | int | None
"""The kind of an argument: the dtype of memory, the length of a tuple of integers, or None for an
integer."""


class Place(NamedTuple):
    """The place of an array's memory among arguments: a vector of `size` elements."""

    dtype: np.dtype
    size: int
    offset: int = 0
    """The bytes from the array's first element to the vector."""
    steps: tuple[int, ...] = ()
    """The array's steps, in elements."""
    first: int = 0
    """The position of the array's first element in the vector."""


def place_of(array: Any) -> Place:
    """Return the place of an array, whose strides are multiples of elements (see `aligned`)."""
    itemsize, low, high = array.dtype.itemsize, 0, 0
    for size, stride in zip(array.shape, array.strides, strict=True):
        low, high = low + min(0, stride * (size - 1)), high + max(0, stride * (size - 1))
    steps = tuple([stride // itemsize for stride in array.strides])
    if not array.size:
        low, high = 0, -itemsize
    return Place(array.dtype, (high - low) // itemsize + 1, low, steps, -low // itemsize)


def aligned(arrays: Sequence[Any]) -> Sequence[Any]:
    """Return arrays whose strides are multiples of elements: copies of others, as of fields."""
    for array in arrays:
        itemsize = array.dtype.itemsize
        for stride in array.strides:
            if stride % itemsize:
                return [adapter.array_module().ascontiguousarray(x) for x in arrays]
    return arrays


class DeviceKernel:
    """A kernel whose arguments are memory, integers, and tuples of integers."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self._loaded: dict[tuple[Kind, ...], Any] = {}

    def launch(self, blocks: int, arrays: Sequence[Any], numbers: Sequence[Any] = ()) -> None:
        """Launch the kernel on arrays in C order, and numbers, or tuples."""
        places = [Place(array.dtype, array.size) for array in arrays]
        Prepared(self, blocks, [*places, *numbers])(arrays)

    def loaded(self, driver: Any, arguments: Sequence[Any]) -> Any:
        """Return the kernel as a driver loaded it for the kinds of arguments."""
        signature = kinds(arguments)
        if signature not in self._loaded:
            self._loaded[signature] = driver.load(self.function, signature)
        return self._loaded[signature]


class Prepared:
    """A launch of which only the memory changes: arguments have a `Place` for each array."""

    def __init__(self, kernel: DeviceKernel, blocks: int, arguments: Sequence[Any]) -> None:
        self._kernel, self._blocks, self._arguments = kernel, blocks, arguments
        self._driver: Any = None
        self._lock = Lock()  # until the driver has read the arguments

    def __call__(self, arrays: Sequence[Any]) -> None:
        """Launch the kernel on arrays, which are in the order of their places."""
        driver = adapter.driver()
        if driver is None:
            make, rest = adapter.array_module().Memory, iter(arrays)
            arguments = [
                make(next(rest), x.offset, x.size) if type(x) is Place else x
                for x in self._arguments
            ]
            adapter.launch(self._kernel.function, self._blocks, arguments)
            return
        with self._lock:
            if driver is not self._driver:
                self._load(driver)
            numbers = self._numbers
            for array, (position, offset) in zip(arrays, self._pointers, strict=True):
                numbers[position] = array.data.ptr + offset
            driver.launch(self._loaded, self._blocks, self._threads, self._room)

    def _load(self, driver: Any) -> None:
        self._loaded = self._kernel.loaded(driver, self._arguments)
        self._threads, self._pointers = adapter.threads(), []
        for k, x in enumerate(self._arguments):
            if type(x) is Place:
                self._pointers.append((len(words(self._arguments[:k])) + POINTER, x.offset))
        self._numbers: Any = np.array(words(self._arguments), np.int64)
        first = self._numbers.ctypes.data
        self._addresses = first + np.arange(0, 8 * self._numbers.size, 8, dtype=np.uint64)
        self._room, self._driver = self._addresses.ctypes.data, driver


def kinds(arguments: Sequence[Any]) -> tuple[Kind, ...]:
    """Return the kinds of arguments, for which a kernel is compiled."""
    return tuple(
        [None if type(x) is int else x.dtype if type(x) is Place else len(x) for x in arguments]
    )


POINTER = 4
"""The position of the address among the words of a vector."""


def words(arguments: Sequence[Any]) -> list[int]:
    """Return the words of arguments, as Numba's kernels take them; addresses are 0.

    A vector has 7 words: two that only matter on the CPU, the number and the size of its elements,
    its address, its length, and its step in bytes.
    """
    numbers: list[int] = []
    for value in arguments:
        if type(value) is int:
            numbers.append(value)
        elif type(value) is Place:
            count, size = value.size, value.dtype.itemsize
            numbers += (0, 0, count, size, 0, count, size)
        else:
            numbers += value
    return numbers
