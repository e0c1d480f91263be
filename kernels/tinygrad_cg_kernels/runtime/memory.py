"""Memory of large arrays, which is kept for later arrays of the same size.

When large memory is freed, an allocator returns it to the system. The system fills each page with
zeros before it is used again, which takes longer than a kernel takes to write the page. So the
memory of results is kept for other results, up to a limit.

An array made here does not own its elements. Its base is the owner of the buffer, which lives as
long as the array and everything made from it (views, buffers, capsules). When the owner is deleted,
the memory is kept.

Memory of smaller arrays comes from the allocator. At first, glibc's returns all pieces above 128
KiB to the system. `keep_heap` changes that before the first array of that size is made.
"""

import threading
from functools import cache
from math import prod

import numpy as np

MIN_KEPT_BYTES = 2**20
"""The memory of smaller arrays is not kept: a buffer with an owner takes 3 us more than `np.empty`.
"""
MAX_KEPT_BYTES = 2**28
"""Limit of the memory that is kept."""
LINE = 64
"""Alignment of arrays: tanh(x) @ w took 11 ms with it and 14 without, for an x of 76 MB."""
PAGE = 4096
"""Sizes are rounded up to multiples of this, so that x[1:] mostly has the size of x."""

MIN_MMAPPED_BYTES = 2**17
"""At first, glibc's allocator returns pieces of at least this size to the system."""
MAX_LEARNT_BYTES = 2**25 - 2**16
"""glibc's allocator raises that limit to the size of a piece that is freed, at most to this."""

Piece = tuple[int, np.ndarray]
"""The address of the first aligned byte, and the memory."""

_kept: dict[int, list[Piece]] = {}  # by size, in the order in which sizes were last used
_lock = threading.Lock()
# Nobody waits for the lock. The garbage collector may delete an owner while its own thread holds
# the lock, and a forked child lacks the thread that held it. Memory is then allocated and freed.


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an uninitialised C-contiguous array, as `np.empty` does."""
    size = prod(shape) * dtype.itemsize
    if size < MIN_KEPT_BYTES or dtype.hasobject:
        if size >= MIN_MMAPPED_BYTES:
            keep_heap()
        return np.empty(shape, dtype)
    return np.asarray(_BufferOwner(_take(size), shape, dtype))


@cache
def keep_heap() -> None:
    """Free 32 MiB once. From then on, glibc's allocator keeps up to twice as much free memory.

    Freeing any array of that size has the same effect. In a new process, the gradient of log1pexp
    for n = 60,000 took 785 us without it, and 287 with it.
    """
    np.empty(MAX_LEARNT_BYTES, np.uint8)


def clear() -> None:
    """Free all kept memory."""
    global _kept
    _kept = {}


def _take(size: int) -> Piece:
    """Return memory for `size` bytes, kept or new."""
    size = -(-(size + LINE) // PAGE) * PAGE
    kept = _kept
    if size in kept and _lock.acquire(blocking=False):
        try:
            if pieces := kept.get(size):
                return pieces.pop()
        finally:
            _lock.release()
    memory = np.empty(size, np.uint8)
    start = memory.ctypes.data
    return start + -start % LINE, memory


def _keep(piece: Piece) -> None:
    """Keep unused memory. Beyond the limit, the least recently used sizes are freed."""
    kept, size = _kept, piece[1].size
    if size > MAX_KEPT_BYTES or not _lock.acquire(blocking=False):
        return
    try:
        kept[size] = [*kept.pop(size, ()), piece]
        while sum(size * len(pieces) for size, pieces in kept.items()) > MAX_KEPT_BYTES:
            oldest = next(iter(kept))
            kept[oldest] = kept[oldest][1:]
            if not kept[oldest]:
                del kept[oldest]
    finally:
        _lock.release()


class _BufferOwner:
    """The owner of a buffer, to which its arrays refer. Its deletion lets the memory be kept."""

    __slots__ = ("__array_interface__", "_piece")

    def __init__(self, piece: Piece, shape: tuple[int, ...], dtype: np.dtype):
        self._piece = piece
        pointer = piece[0], False
        interface = {"shape": shape, "typestr": dtype.str, "data": pointer, "version": 3}
        self.__array_interface__ = interface

    def __del__(self, keep=_keep) -> None:
        keep(self._piece)
