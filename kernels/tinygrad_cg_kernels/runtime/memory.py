"""The memory of large arrays, which later ones of the same size take over.

An allocator hands large memory back to the system when it is freed, and the system fills every
page with zeros before it hands it out again, which takes longer than a kernel takes to write it.
So what results have lain in is kept for others, within a limit.

It is kept when nothing refers to it any more. An array that is made here does not own its elements:
its base is the buffer's owner, which lives as long as the array and all that was made of it (views,
buffers, capsules), and hands the memory back when it goes.

Smaller arrays are the allocator's. Glibc's begins by handing back whatever lies above 128 KiB;
`keep_heap` changes that before the first array is made that may be so large.
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
"""Bytes that arrays are aligned to: tanh(x) @ w took 11 ms rather than 14, x of 76 MB."""
PAGE = 4096
"""Sizes are multiples of it, so that those of x[1:] and x are the same, mostly."""

MIN_MMAPPED_BYTES = 2**17
"""At first, glibc's allocator returns pieces of at least this size to the system."""
MAX_LEARNT_BYTES = 2**25 - 2**16
"""glibc's allocator raises that limit to the size of a piece that is freed, at most to this."""

Piece = tuple[int, np.ndarray]
"""Where the first line begins, and the memory."""

_kept: dict[int, list[Piece]] = {}  # by size: those that were kept last at the end
_lock = threading.Lock()
# Nobody waits for the lock: an owner may be freed where its own thread holds it, when garbage is
# collected; in a forked child the thread that held it is not there. Then memory is made and freed.


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
    """Free 32 MiB once: glibc's allocator keeps up to twice as much of its heap from then on.

    Any program that frees an array so large does so. In a new process the gradient of log1pexp,
    n = 60,000, took 785 us without it, and 287 with it.
    """
    np.empty(MAX_LEARNT_BYTES, np.uint8)


def clear() -> None:
    """Free all memory that is kept."""
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
    """Keep memory that nobody uses. If that is too much, sizes that were unused for longest go."""
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
    """The owner of a buffer: arrays in it refer to this object, which gives the buffer back."""

    __slots__ = ("__array_interface__", "_piece")

    def __init__(self, piece: Piece, shape: tuple[int, ...], dtype: np.dtype):
        self._piece = piece
        pointer = piece[0], False
        interface = {"shape": shape, "typestr": dtype.str, "data": pointer, "version": 3}
        self.__array_interface__ = interface

    def __del__(self, keep=_keep) -> None:
        keep(self._piece)
