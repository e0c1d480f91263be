"""The launches of a program as one launch of a CUDA graph.

CuPy captures and launches graphs, not cuda.core: arrays and streams are CuPy's, CuPy is installed
wherever a GPU is used, and its graphs free themselves. CuPy refuses cuBLAS and cuSOLVER during a
capture, so only launches of the library's own kernels, between two operations on arrays, are
captured. They work on memory that the graph keeps. Arguments are copied there before each launch,
and results from there after it. Nothing is allocated, compiled or loaded during a capture.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any, Literal
from weakref import WeakSet

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.runtime.locks import ForkLock, no_collection

MIN_SAVED_LAUNCHES = 4
"""A graph is made if it saves this many launches. Each copy costs one launch, the graph another."""

Role = Literal["read", "written", "constant"]
"""What kernels do with an array. A constant is the same array in each call."""


def wanted() -> bool:
    """Return whether graphs are used: if TINYGRAD_CG_CUDA_GRAPHS is set, and not to 0."""
    return os.environ.get("TINYGRAD_CG_CUDA_GRAPHS", "0") not in ("", "0")


class Repeated:
    """Launches on arrays. The first call launches one by one, the second captures, others replay.

    ``launch(arrays, own)`` makes the launches; `own` is further memory, made by ``make()``.
    `arrays` have the `roles`, and the same shapes and dtypes in each call. If a graph saves too
    little, or fails, all calls launch one by one. `note` says what happens.
    """

    def __init__(
        self, launch: Callable, make: Callable[[], Any], roles: Sequence[Role], count: int
    ) -> None:
        self._launch, self._make, self._roles, self._count = launch, make, roles, count
        self._graph: _Graph | None = None
        self._lock = ForkLock()
        self._calls = 0
        self.note = f"{count} launches"
        copies = len(roles) - roles.count("constant")
        self._refused = count - copies - 1 < MIN_SAVED_LAUNCHES
        if self._refused:
            self.note += f": with {copies} copies a CUDA graph would save too few"
        _all.add(self)

    def __call__(self, arrays: Sequence[Any]) -> None:
        """Launch on these arrays, one by one or as a graph."""
        if self._calls and not self._refused and self._replay(arrays):
            return
        self._launch(arrays, self._make())
        self._calls += 1

    def _replay(self, arrays: Sequence[Any]) -> bool:
        """Launch the graph, captured now if there is none; return whether that worked."""
        with self._lock:
            stream = adapter.array_module().cuda.get_current_stream()
            # The caller may be capturing the launches, but not those of the default stream.
            if self._refused or (stream.ptr and stream.is_capturing()):
                return False
            try:
                if self._graph is None:
                    self._graph = self._capture(arrays)
                self._graph.launch(arrays)
            except Exception as error:  # any error of the driver or of CuPy
                self._graph, self._refused = None, True
                said = f"{type(error).__name__}: {error}".splitlines()[0]
                self.note = f"{self._count} launches: no CUDA graph ({said})"
                return False
        self.note = f"{self._count} launches, replayed as a CUDA graph"
        return True

    def _capture(self, arrays: Sequence[Any]) -> "_Graph":
        library = adapter.array_module()
        pairs = zip(arrays, self._roles, strict=True)
        kept = [
            array if role == "constant" else library.empty(array.shape, array.dtype)
            for array, role in pairs
        ]
        if not all(array.flags.c_contiguous for array in kept):
            raise ValueError("a constant of the program is not contiguous")
        own = self._make()
        # A blocking stream would stop the default stream.
        stream = library.cuda.Stream(non_blocking=True)
        with no_collection(), stream:
            stream.begin_capture()
            try:
                self._launch(kept, own)
            except BaseException:
                with contextlib.suppress(Exception):  # the capture is no longer valid
                    stream.end_capture()
                raise
            graph = stream.end_capture()
        return _Graph(graph, kept, own, self._roles)


class _Graph:
    """A captured graph, and the memory that its kernels work on."""

    def __init__(self, graph: Any, kept: list[Any], own: Any, roles: Sequence[Role]) -> None:
        self._graph, self._kept, self._own, self._roles = graph, kept, own, roles
        self._done = adapter.array_module().cuda.Event(disable_timing=True)

    def launch(self, arrays: Sequence[Any]) -> None:
        """Copy what is read, launch, and copy what was written, on the stream of this thread."""
        stream = adapter.array_module().cuda.get_current_stream()
        stream.wait_event(self._done)  # another thread's stream may still use the memory
        triples = list(zip(self._kept, arrays, self._roles, strict=True))
        for kept, array, role in triples:
            if kept.shape != array.shape or kept.dtype != array.dtype:
                raise ValueError(f"{array.dtype}{array.shape} came, not {kept.dtype}{kept.shape}")
            if role == "constant" and kept is not array:
                raise ValueError("a constant of the program is another array")
            if role == "read":
                kept[...] = array
        self._graph.launch(stream)
        for kept, array, role in triples:
            if role == "written":
                array[...] = kept
        self._done.record(stream)

    def __del__(self) -> None:
        """Wait for the last launch, which may still run on another stream than the memory's."""
        with contextlib.suppress(Exception):  # also at the end of the process
            self._done.synchronize()


_all: WeakSet[Repeated] = WeakSet()


def clear() -> None:
    """Free all graphs and their memory. Programs capture again when they are called."""
    for repeated in list(_all):
        repeated._graph = None
