"""The memory of small arrays inside programs, which nobody outside sees, is kept between calls.

They lie together, each program's for itself, so that a call neither makes nor frees them. Others
are made and freed in each call, large ones by the kernels' `memory`.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime.memory import LINE

MAX_ARRAY_BYTES = 2**17
"""Larger arrays are not kept between calls. Making and freeing an array takes 0.25 us, whatever its
size: that is little compared with what is done with a large one."""
MAX_BYTES = 2**20
"""A program keeps at most this much memory."""


class Span(NamedTuple):
    """An array, and the first and the last step at which it is used."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    first: int
    last: int

    @property
    def size(self) -> int:
        """Return its bytes, up to the end of a line of memory."""
        return -(-prod(self.shape) * self.dtype.itemsize // LINE) * LINE


class Scratch:
    """A program's small arrays, in one piece of memory that its calls use again.

    A call takes them and gives them back when it is over. One that runs meanwhile, in another
    thread or from within, gets others; what a call that raised had taken is freed. One set is
    kept, for as long as the program.
    """

    def __init__(self, spans: Sequence[Span]):
        self._spans = spans
        self._offsets, self.size = offsets(spans)
        self._spare: deque[tuple[np.ndarray, ...]] = deque(maxlen=1)
        self.give = self._spare.append
        _all.add(self)

    def take(self) -> tuple[np.ndarray, ...]:
        """Return the arrays, whose elements may be anything."""
        try:
            return self._spare.pop()
        except IndexError:
            return self._make_arrays()

    def _make_arrays(self) -> tuple[np.ndarray, ...]:
        memory = np.empty(self.size + LINE, np.uint8)
        pairs = zip(self._spans, self._offsets, strict=True)
        start = -memory.ctypes.data % LINE  # of the first complete line
        return tuple(np.ndarray(span.shape, span.dtype, memory, start + at) for span, at in pairs)


_all: weakref.WeakSet[Scratch] = weakref.WeakSet()


def clear() -> None:
    """Free what all programs keep."""
    for scratch in list(_all):
        scratch._spare.clear()


def offsets(spans: Sequence[Span]) -> tuple[list[int], int]:
    """Return the byte offsets of arrays in one piece of memory, and the size of that.

    Those that are used at the same time do not overlap. In the order of their first use each
    takes the smallest piece that is free and large enough, or the largest, which then grows.
    """
    sizes: list[int] = []
    chosen: dict[int, int] = {}
    free: list[tuple[int, int]] = []
    ends = sorted(range(len(spans)), key=lambda i: -spans[i].last)
    for i in sorted(range(len(spans)), key=lambda i: spans[i].first):
        while ends and spans[ends[-1]].last < spans[i].first:
            slot = chosen[ends.pop()]
            insort(free, (sizes[slot], slot))
        if free:
            _, slot = free.pop(min(bisect_left(free, (spans[i].size, 0)), len(free) - 1))
            sizes[slot] = max(sizes[slot], spans[i].size)
        else:
            slot = len(sizes)
            sizes.append(spans[i].size)
        chosen[i] = slot
    starts = np.cumsum([0, *sizes]).tolist()
    return [starts[chosen[i]] for i in range(len(spans))], starts[-1]
