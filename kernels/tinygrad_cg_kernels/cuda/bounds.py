"""Indices on the device, and errors for those out of range, which are raised when the host reads.

Reading the extreme indices back would make the host wait for the device. So a kernel sets a flag,
and uses position 0 in place of an index out of range. When the host next reads data of the device,
it reads the flags, too. If one is set, the CPU's function checks the same indices and raises.
"""

from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.elementwise import contiguous, launch
from tinygrad_cg_kernels.move.gather import check_positions
from tinygrad_cg_kernels.runtime.promotion import INT64, is_integer

FLAGS = 64  # the host reads them when this many are in use
MAX_KEPT = 2**26  # or when indices that are kept for errors take this many bytes

_SOURCE = """
def kernel(indices, flag, out, count, sizes, wraps):
    for i in range(cuda.grid(1), count, cuda.gridsize(1)):
        total = 0
        outside = False
        for d in range(len(sizes)):
            p = position(indices[i * len(sizes) + d], sizes[d], wraps)
            outside = outside or p < 0
            total = total * sizes[d] + p
        if outside:
            flag[0] = 1
        out[i] = 0 if outside else total
"""


@adapter.device_function
def position(index: Any, size: Any, wraps: Any) -> Any:
    """Return an index as int64 from 0 to size - 1; -1 if it is out of range."""
    p = np.int64(index)
    if p < 0 and index > 0:  # an unsigned number
        return np.int64(-1)
    if wraps and p < 0:
        p += size
    return p if p < size else np.int64(-1)


class _OpenChecks:
    """Checks whose flags the host has not read yet: arrays, and functions that raise errors."""

    def __init__(self) -> None:
        self._lock, self._flags, self._kept = RLock(), None, 0
        self._checks: list[tuple[Any, Callable[[np.ndarray], Any]]] = []
        self._streams: set[int] = set()  # those that set the flags

    def add(self, array: Any, check: Callable[[np.ndarray], Any], run: Callable) -> None:
        """Have `check` raise an error for an array if what `run` launches sets the flag.

        Another thread reads the flags before or after it.
        """
        with self._lock:
            if len(self._checks) == FLAGS or self._kept > MAX_KEPT:
                self.raise_errors()
            if self._flags is None:
                self._flags = adapter.array_module().zeros(FLAGS, dtype=INT64)
                adapter.synchronize()  # for other streams
                self._views = [self._flags[k : k + 1] for k in range(FLAGS)]
            run(self._views[len(self._checks)])
            self._streams.add(adapter.array_module().cuda.get_current_stream().ptr)
            self._checks.append((array, check))
            self._kept += array.nbytes

    def raise_errors(self) -> None:
        """Read the flags, and raise the error of the first operation whose flag is set."""
        if not self._checks:
            return
        with self._lock:
            checks, self._checks, self._kept = self._checks, [], 0
            flags: Any = self._flags
            cuda, streams, self._streams = adapter.array_module().cuda, self._streams, set()
            if streams != {cuda.get_current_stream().ptr}:
                cuda.runtime.deviceSynchronize()
            told = flags.get()
            if told.any():
                flags[...] = 0
                adapter.synchronize()
        for (array, check), wrong in zip(checks, told, strict=False):
            if wrong:
                check(array.get())
                raise IndexError("an index was out of range on the GPU; it was changed since")


_checks = _OpenChecks()
check_later, raise_errors = _checks.add, _checks.raise_errors


def positions(name: str, indices: Any, size: int) -> Any:
    """Return indices as int64 from 0 to size - 1, as the CPU's `check_positions`."""
    check = partial(check_positions, name, size=size)
    if not size or not is_integer(indices.dtype):
        check(indices.get())  # which raises, unless there is no index
    return located(indices, indices.shape, (size,), True, check)


def located(
    indices: Any, shape: tuple[int, ...], sizes: tuple[int, ...], wraps: bool, check: Callable
) -> Any:
    """Return the row-major positions, in this shape, of coordinates, which lie along the last axis.

    Negative ones count from the end if `wraps`. `check` raises the error of wrong coordinates.
    """
    out = adapter.array_module().empty(shape, dtype=INT64)
    if not out.size:
        return out
    if 0 in sizes:
        check(indices.get())  # which raises
    indices = contiguous(indices)
    numbers = [out.size, sizes, int(wraps)]

    def run(flag: Any) -> None:
        launch(_SOURCE, out.size, (indices, flag, out), numbers, position=position)

    check_later(indices, check, run)
    return out
