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

from tinygrad_cg_kernels.cuda import adapter, programs
from tinygrad_cg_kernels.cuda.adapter import cuda  # noqa: F401 (the simulator looks for it here)
from tinygrad_cg_kernels.cuda.elementwise import contiguous, define, keep
from tinygrad_cg_kernels.move.gather import check_positions
from tinygrad_cg_kernels.runtime.promotion import INT64

FLAGS = 64  # the host reads them when this many are in use
MAX_KEPT = 2**26  # or when indices that are kept for errors take this many bytes

_SOURCE = """
def kernel(indices, flag, out, count, sizes, wraps):
    i = cuda.grid(1)
    while i < count:
        total = 0
        outside = False
        for d in range(len(sizes)):
            k = indices[i * len(sizes) + d]
            p = np.int64(k)
            outside = outside or (p < 0 and k > 0)  # an unsigned number
            if wraps and p < 0:
                p += sizes[d]
            outside = outside or p < 0 or p >= sizes[d]
            total = total * sizes[d] + (0 if outside else p)
        if outside:
            flag[0] = 1
        out[i] = 0 if outside else total
        i += cuda.gridsize(1)
"""


class _OpenChecks:
    """Checks whose flags the host has not read yet: arrays, and functions that raise errors."""

    def __init__(self) -> None:
        self._lock, self._flags, self._kept = RLock(), None, 0
        self._checks: list[tuple[Any, Callable[[np.ndarray], Any]]] = []

    def add(self, array: Any, check: Callable[[np.ndarray], Any], launch: Callable) -> None:
        """Have `check` raise an error for an array if what `launch` does sets the flag it is given.

        Another thread reads the flags before or after it.
        """
        with self._lock:
            if len(self._checks) == FLAGS or self._kept > MAX_KEPT:
                self.raise_errors()
            if self._flags is None:
                self._flags = adapter.array_module().zeros(FLAGS, dtype=INT64)
                self._views = [self._flags[k : k + 1] for k in range(FLAGS)]
            launch(self._views[len(self._checks)])
            self._checks.append((array, check))
            self._kept += array.nbytes

    def raise_errors(self) -> None:
        """Read the flags, and raise the error of the first operation whose flag is set."""
        if not self._checks:
            return
        with self._lock:
            checks, self._checks, self._kept = self._checks, [], 0
            flags: Any = self._flags
            told = flags.get()
            if told.any():
                flags[...] = 0
        for (array, check), wrong in zip(checks, told, strict=False):
            if wrong:
                check(array.get())
                raise IndexError("an index was out of range on the GPU; it was changed since")


_checks = _OpenChecks()
check_later, raise_errors = _checks.add, _checks.raise_errors
_kernels: list[Any] = []
_plans: dict[tuple, Any] = {}


def positions(name: str, indices: Any, size: int) -> Any:
    """Return indices as int64 from 0 to size - 1, as the CPU's `check_positions`."""
    check = partial(check_positions, name, size=size)
    if indices.dtype.kind not in "iu":
        check(indices.get())  # which raises
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
    indices = indices if indices.flags.c_contiguous else contiguous(indices)

    def launch(flag: Any) -> None:
        arrays, key = (indices, flag, out), (indices.dtype, out.size, sizes, wraps)
        plan = _plans.get(key)
        if plan is None:
            if not _kernels:
                _kernels.append(define(_SOURCE, {}, globals()))
            blocks, numbers = adapter.blocks_for(out.size), [out.size, sizes, int(wraps)]
            plan = keep(_plans, key, programs.prepare(_kernels[0], blocks, arrays, numbers))
        plan(arrays)

    check_later(indices, check, launch)
    return out
