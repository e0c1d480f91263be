"""Fast launches of kernels: arguments are written to fixed memory, where the driver reads them.

Each launch by Numba examines and converts every argument. Here, a kernel is compiled and loaded
once for kinds of arguments. All arguments are words of 8 bytes, in the order in which Numba's
kernels take them. A launch writes them to fixed memory and calls the driver. Without the driver's
packages, and in the simulator, Numba launches the kernel.
"""

import struct
from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.cuda import adapter

Kind = np.dtype | int | None
"""The kind of an argument: the dtype of memory, the length of a tuple of integers, or None for an
integer."""


class Place(NamedTuple):
    """The place of an array's memory among arguments: `size` elements from a byte offset on."""

    dtype: np.dtype
    offset: int
    size: int
    pointer: int = 0


class DeviceKernel:
    """A kernel whose arguments are memory, integers, and tuples of integers."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self._ready: dict[tuple[Kind, ...], Ready] = {}

    def launch(self, blocks: int, arguments: Sequence[Any]) -> None:
        """Launch the kernel on the stream of this thread."""
        driver = adapter.driver()
        if driver is None:
            adapter.launch(self.function, blocks, arguments)
        else:
            self.ready(driver, arguments).launch(blocks, words(arguments))

    def ready(self, driver: Any, arguments: Sequence[Any]) -> "Ready":
        """Return the kernel as it is loaded for the kinds of arguments."""
        signature = kinds(arguments)
        ready = self._ready.get(signature)
        if ready is None:
            loaded, count = driver.load(self.function, signature), len(words(arguments))
            ready = self._ready[signature] = Ready(driver, loaded, count)
        return ready


class Ready:
    """A loaded kernel, and room for its arguments."""

    def __init__(self, driver: Any, loaded: Any, count: int) -> None:
        self._launch, self._loaded, self._threads = driver.launch, loaded, adapter.threads()
        self._words: Any = np.zeros(count, np.int64)
        first = self._words.ctypes.data
        self._addresses = np.arange(first, first + 8 * count, 8, dtype=np.uint64)
        self._room = self._addresses.ctypes.data
        self._write = struct.Struct(f"={count}q").pack_into
        self._lock = Lock()  # until the driver has read the arguments

    def launch(self, blocks: int, numbers: Sequence[int]) -> None:
        """Launch the kernel with the words of arguments."""
        with self._lock:
            self._write(self._words, 0, *numbers)
            self._launch(self._loaded, blocks, self._threads, self._room)


class Prepared:
    """A launch of which only the memory changes: arguments have a `Place` for each array."""

    def __init__(self, kernel: DeviceKernel, blocks: int, arguments: Sequence[Any]) -> None:
        self._kernel, self._blocks, self._arguments = kernel, blocks, arguments
        self._driver: Any = None

    def __call__(self, arrays: Sequence[Any]) -> None:
        """Launch the kernel on arrays, which are in the order of their places."""
        driver = adapter.driver()
        if driver is None:
            rest = iter(arrays)
            arguments = [
                adapter.vector(next(rest), x.offset, x.size) if type(x) is Place else x
                for x in self._arguments
            ]
            adapter.launch(self._kernel.function, self._blocks, arguments)
            return
        if driver is not self._driver:
            self._prepare(driver)
        numbers = self._words.copy()
        for array, (position, offset) in zip(arrays, self._pointers, strict=True):
            numbers[position] = array.data.ptr + offset
        self._ready.launch(self._blocks, numbers)

    def _prepare(self, driver: Any) -> None:
        self._words, self._pointers = words(self._arguments), []
        for k, x in enumerate(self._arguments):
            if type(x) is Place:
                self._pointers.append((len(words(self._arguments[:k])) + POINTER, x.offset))
        self._ready, self._driver = self._kernel.ready(driver, self._arguments), driver


def kinds(arguments: Sequence[Any]) -> tuple[Kind, ...]:
    """Return the kinds of arguments, for which a kernel is compiled."""
    return tuple(
        [None if type(x) is int else len(x) if type(x) is tuple else x.dtype for x in arguments]
    )


POINTER = 4
"""The position of the address among the words of a vector."""


def words(arguments: Sequence[Any]) -> list[int]:
    """Return the words of arguments, as Numba's kernels take them.

    A vector has 7 words: two that only matter on the CPU, the number and the size of its elements,
    its address, its length, and its step in bytes.
    """
    numbers: list[int] = []
    for value in arguments:
        if type(value) is int:
            numbers.append(value)
        elif type(value) is tuple:
            numbers += value
        else:
            count, size = value.size, value.dtype.itemsize
            numbers += (0, 0, count, size, value.pointer, count, size)
    return numbers
