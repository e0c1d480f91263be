"""Fast launches of kernels: arguments are written to fixed memory, where the driver reads them.

Each launch by Numba examines and converts every argument. Here, a kernel is compiled and loaded
once for kinds of arguments. All arguments are words of 8 bytes, in the order in which Numba's
kernels take them. A launch writes them to fixed memory and calls the driver. In the simulator,
Numba launches the kernel.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from operator import attrgetter
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.reduce.axes import contiguous_strides

Kind = np.dtype | int | None
"""Of an argument: the dtype of memory, the length of a tuple of integers, None for an integer."""


Shape = tuple[int, ...]


class Place(NamedTuple):
    """The place of an array's memory among arguments: a vector of `size` elements."""

    dtype: np.dtype
    size: int
    offset: int = 0
    """The bytes from the array's first element to the vector."""
    shape: Shape = ()
    steps: Shape = ()
    """The array's steps, in elements."""
    first: int = 0
    """The position of the array's first element in the vector."""
    is_copy: bool = False
    """Whether all this is of a copy in C order: strides, as of fields, may be no whole elements."""


_layout = attrgetter("dtype", "shape", "strides")
Layouts = tuple[tuple[np.dtype, Shape, Shape], ...]


def layout_of(arrays: Sequence[Any]) -> Layouts:
    """Return the dtypes, shapes and strides of arrays, as a key."""
    return tuple(map(_layout, arrays))


def place_of(dtype: np.dtype, shape: Shape, strides: Shape) -> Place:
    """Return the place of an array of this layout."""
    is_copy = any(stride % dtype.itemsize for stride in strides)
    strides = contiguous_strides(shape, dtype.itemsize) if is_copy else strides
    steps = tuple([stride // dtype.itemsize for stride in strides])
    ends = [step * (size - 1) for step, size in zip(steps, shape, strict=True)]
    first = -sum([end for end in ends if end < 0])
    count = sum(map(abs, ends)) + 1 if prod(shape) else 0
    return Place(dtype, count, -first * dtype.itemsize, shape, steps, first, is_copy)


@lru_cache(maxsize=4096)
def _loaded(driver: Any, kernel: Any, kinds: tuple[Kind, ...]) -> Any:
    return driver.load(kernel, kinds)


class Prepared:
    """A launch of which only the memory changes: arguments have a `Place` for each array.

    A vector has 7 words: two that only matter on the CPU, the number and the size of its elements,
    its address, its length, and its step in bytes.
    """

    def __init__(self, kernel: Any, blocks: int, arguments: Sequence[Any]) -> None:
        self._kernel, self._blocks, self._arguments = kernel, blocks, arguments
        self._copies = any(type(x) is Place and x.is_copy for x in arguments)
        self._driver: Any = None
        self._lock = Lock()  # until the driver has read the arguments
        self._pointers: list[tuple[int, int]] = []  # by their positions among the words
        kinds: list[Kind] = []
        words: list[int] = []
        for x in arguments:
            if type(x) is int:
                kinds.append(None)
                words.append(x)
            elif type(x) is Place:
                kinds.append(x.dtype)
                self._pointers.append((len(words) + 4, x.offset))
                words += (0, 0, x.size, x.dtype.itemsize, 0, x.size, x.dtype.itemsize)
            else:
                kinds.append(len(x))
                words += x
        self._kinds, self.words = tuple(kinds), np.array(words, np.int64)
        addresses = np.arange(0, 8 * len(words), 8, dtype=np.uint64)
        self._slots, self._addresses = self.words.data, self.words.ctypes.data + addresses

    def __call__(self, arrays: Sequence[Any]) -> None:
        """Launch the kernel on arrays, which are in the order of their places."""
        driver = adapter.driver()
        if self._copies:
            arrays = [adapter.array_module().ascontiguousarray(array) for array in arrays]
        if driver is None:
            make, rest = adapter.array_module().Memory, iter(arrays)
            arguments = [
                make(next(rest), x.offset, x.size) if type(x) is Place else x
                for x in self._arguments
            ]
            adapter.launch(self._kernel, self._blocks, arguments)
            return
        with self._lock:
            if driver is not self._driver:
                self._loaded = _loaded(driver, self._kernel, self._kinds)
                self._room, self._driver = self._addresses.ctypes.data, driver
            words = self._slots
            for array, (position, offset) in zip(arrays, self._pointers, strict=True):
                words[position] = array.data.ptr + offset
            driver.launch(self._loaded, self._blocks, adapter.THREADS, self._room)
