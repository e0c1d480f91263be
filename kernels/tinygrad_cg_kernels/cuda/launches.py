"""Kernels that are launched at little cost: the driver reads their arguments where they stay.

Numba's own launch looks at the type of each argument, and converts it, each time. Here a kernel is
compiled and loaded once for arguments of some kinds. All of them are words of 8 bytes, in the order
in which Numba's kernels take them, in memory that stays: a launch writes them and calls the driver.
Where the driver's packages are not installed, and in the simulator, Numba launches.
"""

import struct
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter

Kind = np.dtype | int | None
"""Of an argument: the elements' dtype of memory, the length of a tuple of integers, None: one."""


class DeviceKernel:
    """A kernel whose arguments are memory, integers, and tuples of integers."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self._ready: dict[tuple[Kind, ...], Callable[[int, Sequence[Any]], None]] = {}

    def launch(self, blocks: int, arguments: Sequence[Any]) -> None:
        """Launch the kernel on the stream of this thread."""
        driver = adapter.driver()
        if driver is None:
            adapter.launch(self.function, blocks, arguments)
            return
        signature = kinds(arguments)
        ready = self._ready.get(signature)
        if ready is None:
            ready = self._ready[signature] = self._prepare(driver, signature, len(words(arguments)))
        ready(blocks, arguments)

    def _prepare(
        self, driver: Any, signature: tuple[Kind, ...], count: int
    ) -> Callable[[int, Sequence[Any]], None]:
        try:
            return Ready(driver, driver.load(self.function, signature), count)
        except Exception as error:  # of a compiler, a linker, a driver of any version
            warnings.warn(
                f"a kernel could not be prepared ({type(error).__name__}: {error}): Numba "
                "launches it, which takes longer",
                RuntimeWarning,
                stacklevel=2,
            )
            return partial(adapter.launch, self.function)


class Ready:
    """A loaded kernel, and room for its arguments."""

    def __init__(self, driver: Any, loaded: Any, count: int) -> None:
        self._driver, self._loaded = driver, loaded
        self._words: Any = np.zeros(count, np.int64)
        first = self._words.ctypes.data
        self._addresses = np.arange(first, first + 8 * count, 8, dtype=np.uint64)
        self._room = self._addresses.ctypes.data
        self._write = struct.Struct(f"={count}q").pack_into
        self._lock = Lock()  # the driver has read the arguments when it returns

    def __call__(self, blocks: int, arguments: Sequence[Any]) -> None:
        """Launch the kernel."""
        with self._lock:
            self._write(self._words, 0, *words(arguments))
            self._driver.launch(self._loaded, blocks, adapter.threads(), self._room)


def kinds(arguments: Sequence[Any]) -> tuple[Kind, ...]:
    """Return what a kernel is compiled for."""
    return tuple(
        [None if type(x) is int else len(x) if type(x) is tuple else x.dtype for x in arguments]
    )


def words(arguments: Sequence[Any]) -> list[int]:
    """Return arguments as Numba's kernels take them.

    A vector is 7 words: two that are of use to the processor alone, the number and the size of its
    elements, its address, its length, its step in bytes.
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
