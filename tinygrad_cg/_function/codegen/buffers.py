"""Memory of small arrays inside programs, kept between calls.

Only arrays that the caller never sees are kept. They share one piece of memory per program, so a
call neither allocates nor frees them. All other arrays are made and freed in each call; the memory
of large ones comes from the kernels' `memory`.
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
    """An array, with the first and the last step that use it."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype
    first: int
    last: int

    @property
    def size(self) -> int:
        """Return the size in bytes, rounded up to whole cache lines."""
        return -(-prod(self.shape) * self.dtype.itemsize // LINE) * LINE


class Scratch:
    """A program's small arrays, in one piece of memory that its calls reuse.

    A call takes the arrays and gives them back when it ends. If another call runs meanwhile, in
    another thread or from within, it gets a new set. A call that raises does not give its set back,
    so that set is freed. The program keeps one set.
    """

    def __init__(self, spans: Sequence[Span]):
        self._spans = spans
        self._offsets, self.size = offsets(spans)
        self._spare: deque[tuple[np.ndarray, ...]] = deque(maxlen=1)
        self.give = self._spare.append
        _all.add(self)

    def take(self) -> tuple[np.ndarray, ...]:
        """Return the arrays, uninitialised."""
        try:
            return self._spare.pop()
        except IndexError:
            return self._make_arrays()

    def _make_arrays(self) -> tuple[np.ndarray, ...]:
        memory = np.empty(self.size + LINE, np.uint8)
        pairs = zip(self._spans, self._offsets, strict=True)
        start = -memory.ctypes.data % LINE  # of the first whole cache line
        return tuple(np.ndarray(span.shape, span.dtype, memory, start + at) for span, at in pairs)


_all: weakref.WeakSet[Scratch] = weakref.WeakSet()


def clear() -> None:
    """Free the arrays that programs keep."""
    for scratch in list(_all):
        scratch._spare.clear()


def offsets(spans: Sequence[Span]) -> tuple[list[int], int]:
    """Return the byte offsets of arrays in one piece of memory, and the size of that memory.

    Arrays in use at the same time do not overlap. In order of first use, each array takes the
    smallest free piece that is large enough. If none is, the largest free piece grows.
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
