"""Kernels over whole arrays, compiled for each dtype when it first comes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from tinygrad_cg_kernels.runtime import compile as build


def numbers(count: int) -> types.UniTuple:
    """The type of a tuple of sizes and steps, unsigned, that a kernel takes."""
    return types.UniTuple(types.uintp, count)


class ByDtype:
    """A kernel with one entry for each dtype; `arguments(dtype)` gives the types it takes."""

    def __init__(
        self, function: Callable, name: str, arguments: Callable[[np.dtype], tuple[types.Type, ...]]
    ) -> None:
        self.name = name
        self.dispatcher = build.kernel(function, name, nogil=True)
        self._arguments = arguments
        self._entries: dict[np.dtype, Callable] = {}

    def __call__(self, dtype: np.dtype, *operands: Any) -> None:
        """Run on operands of exactly the types for `dtype`."""
        enter = self._entries.get(dtype)
        if enter is None:
            enter = build.entry(self.dispatcher, *self._arguments(dtype))
            self._entries[dtype] = enter
        enter(*operands)


def words(dtype: np.dtype) -> tuple[np.dtype, int]:
    """An unsigned dtype that moves elements of `dtype` as bits, and how many of them it takes.

    So a kernel that only copies is compiled at most four times.
    """
    size = min(dtype.itemsize, 8)
    return np.dtype(f"u{size}"), dtype.itemsize // size
