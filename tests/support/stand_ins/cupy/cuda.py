"""A stand-in for ``cupy.cuda`` in Numba's CUDA simulator: streams, events, graphs, addresses.

Work on a stream is done at once, unless the stream captures it: then a graph does it, at each
launch, on the memory that its kernels were given. As on a GPU a graph knows that memory's addresses
and does not keep it; to read what was freed is an error here.
"""

import threading
import weakref
from collections.abc import Callable, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import numpy as np

_state = threading.local()
_numbers = count(1)


class Stream:
    """A stream of one thread's work; the default stream, number 0, captures nothing."""

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.ptr = 0 if null else next(_numbers)
        self.is_non_blocking = non_blocking
        self._captured: list[Callable[[], None]] | None = None
        self._outer: list[Stream] = []

    def __enter__(self) -> "Stream":
        self._outer.append(get_current_stream())
        _state.stream = self
        return self

    def __exit__(self, *exception: Any) -> None:
        _state.stream = self._outer.pop()

    def begin_capture(self) -> None:
        if not self.ptr:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        if self._captured is not None:
            raise RuntimeError("the stream is capturing")
        self._captured = []

    def is_capturing(self) -> bool:
        return self._captured is not None

    def end_capture(self) -> "Graph":
        captured, self._captured = self._captured, None
        if captured is None:
            raise RuntimeError("the stream is not capturing")
        return Graph(captured)

    def wait_event(self, event: "Event") -> None:
        """Do nothing: work is done when it is begun."""

    def synchronize(self) -> None:
        if self._captured is not None:
            raise RuntimeError("the stream is capturing")

    def run(self, kernel: Callable[..., None], arguments: Sequence[Any]) -> None:
        """Run a kernel, or capture that it is run. (CuPy's streams have no such method.)"""
        if self._captured is None:
            kernel(*arguments)
            return
        kept = [_Address.of(argument) for argument in arguments]

        def again() -> None:
            kernel(
                *[argument.read() if type(argument) is _Address else argument for argument in kept]
            )

        self._captured.append(again)


class runtime:
    """A stand-in for ``cupy.cuda.runtime``: functions of CUDA."""

    @staticmethod
    def deviceSynchronize() -> None:
        """Do nothing: work is done when it is begun."""

    @staticmethod
    def pointerGetAttributes(pointer: int) -> SimpleNamespace:
        """Return what is known of an address: the number of its device."""
        return SimpleNamespace(device=0)


class Event:
    """A point in a stream's work, which is done when it is begun."""

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.disable_timing = disable_timing

    def record(self, stream: Stream | None = None) -> None:
        """Do nothing: work is done when it is begun."""

    def synchronize(self) -> None:
        """Do nothing: work is done when it is begun."""


def get_elapsed_time(begin: Event, end: Event) -> float:
    """Return the milliseconds between two events: any number."""
    return 1.0


class Graph:
    """Work that a stream captured."""

    def __init__(self, work: list[Callable[[], None]]) -> None:
        self._work = work

    def launch(self, stream: Stream | None = None) -> None:
        if (stream or get_current_stream()).is_capturing():
            raise RuntimeError("a graph within a graph is not simulated")
        for work in self._work:
            work()


def get_current_stream() -> Stream:
    """Return the stream that this thread's work goes to."""
    return getattr(_state, "stream", _default)


class _Address:
    """Where memory is that a kernel was given, without keeping it."""

    def __init__(self, memory: Any, root: np.ndarray) -> None:
        self._kind, self._size, self._dtype = type(memory), memory.size, memory.dtype
        self._pointer, self._root = memory.pointer, weakref.ref(root)

    @classmethod
    def of(cls, argument: Any) -> Any:
        """Return the address of memory whose owner is known; other arguments as they are."""
        root = owner(argument._host) if hasattr(argument, "pointer") else None
        return argument if root is None else cls(argument, root)

    def read(self) -> Any:
        """Return the memory; RuntimeError if it was freed."""
        if self._root() is None:
            raise RuntimeError("a graph works on memory that was freed")
        return self._kind.at(self._pointer, self._size, self._dtype)


def owner(array: np.ndarray) -> np.ndarray | None:
    """Return the array that has the memory which an array looks at; None if another object has."""
    base = array.base
    while base is not None:
        if not isinstance(base, np.ndarray):
            base = getattr(getattr(base, "owner", None), "_host", None)
            if base is None:
                return None
        array, base = base, base.base
    return array


_default = Stream(null=True)
