"""Fast launches of kernels: arguments are written to fixed memory, where the driver reads them.

Each launch by Numba examines and converts every argument. Here, a kernel is compiled and loaded
once for kinds of arguments. All arguments are words of 8 bytes, in the order in which Numba's
kernels take them. A launch writes them to fixed memory and calls the driver. Without the driver's
packages, and in the simulator, Numba launches the kernel.
"""

import struct
from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter

Kind = np.dtype | int | None
"""The kind of an argument: the dtype of memory, the length of a tuple of integers, or None for an
integer."""


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
            return
        signature = kinds(arguments)
        ready = self._ready.get(signature)
        if ready is None:
            loaded, count = driver.load(self.function, signature), len(words(arguments))
            ready = self._ready[signature] = Ready(driver, loaded, count)
        ready(blocks, arguments)


class Ready:
    """A loaded kernel, and room for its arguments."""

    def __init__(self, driver: Any, loaded: Any, count: int) -> None:
        self._driver, self._loaded = driver, loaded
        self._words: Any = np.zeros(count, np.int64)
        first = self._words.ctypes.data
        self._addresses = np.arange(first, first + 8 * count, 8, dtype=np.uint64)
        self._room = self._addresses.ctypes.data
        self._write = struct.Struct(f"={count}q").pack_into
        self._lock = Lock()  # until the driver has read the arguments

    def __call__(self, blocks: int, arguments: Sequence[Any]) -> None:
        """Launch the kernel."""
        with self._lock:
            self._write(self._words, 0, *words(arguments))
            self._driver.launch(self._loaded, blocks, adapter.threads(), self._room)


def kinds(arguments: Sequence[Any]) -> tuple[Kind, ...]:
    """Return the kinds of arguments, for which a kernel is compiled."""
    return tuple(
        [None if type(x) is int else len(x) if type(x) is tuple else x.dtype for x in arguments]
    )


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
