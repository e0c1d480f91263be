"""State that must survive a fork: locks, threads inside LLVM, and the garbage collector.

A forked child only has the thread that forked. Without these functions, whatever another thread
held or suspended at that moment would stay so in the child.
"""

import contextlib
import gc
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

from llvmlite.binding import ffi


def at_fork(**hooks: Callable[[], object]) -> None:
    """Register functions to call `before` a fork, `after_in_parent` or `after_in_child`."""
    if hasattr(os, "register_at_fork"):
        register: Any = os.register_at_fork
        register(**hooks)


class ForkLock:
    """A reentrant lock that is free in a forked child, which lacks the thread that held it."""

    def __init__(self) -> None:
        self._renew()
        _locks.add(self)

    def _renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *exception: Any) -> None:
        self._lock.release()


_locks: WeakSet[ForkLock] = WeakSet()


class _Depth(threading.local):
    """How often a thread is in a section."""

    depth = 0


class _Inside:
    """A section that several threads may enter at once. A fork waits until the others left."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._count = 0
        self._own = _Depth()

    def __enter__(self) -> None:
        with self._condition:
            self._count += 1
        self._own.depth += 1

    def __exit__(self, *exception: Any) -> None:
        self._own.depth -= 1
        with self._condition:
            self._count -= 1
            self._condition.notify_all()

    def close(self) -> None:
        """Wait until no other thread is inside, and keep all out."""
        self._condition.acquire()
        self._condition.wait_for(lambda: self._count == self._own.depth)

    def open(self) -> None:
        self._condition.release()


inside_llvm = _Inside()
"""The section in which threads call LLVM without llvmlite's lock."""


class _Collector:
    """Suspends the garbage collector while threads ask for it."""

    def __init__(self) -> None:
        self._lock = ForkLock()
        self._own = _Depth()
        self._count = 0
        self._was_enabled = False

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        with self._lock:
            if not self._count:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._count += 1
        self._own.depth += 1
        try:
            yield
        finally:
            self._own.depth -= 1
            with self._lock:
                self._leave(self._count - 1)

    def _leave(self, count: int) -> None:
        """Set the number of suspensions; if it drops to 0, restore the collector."""
        if self._count and not count and self._was_enabled:
            gc.enable()
        self._count = count

    def enter_child(self) -> None:
        self._leave(self._own.depth)


_collector = _Collector()
no_collection = _collector.suspended
"""A context without garbage collection: it would find almost no garbage of compilers."""


def _before_fork() -> None:
    inside_llvm.close()
    ffi.lib._lock.__enter__()


def _after_fork() -> None:
    ffi.lib._lock.__exit__(None, None, None)
    inside_llvm.open()


def _enter_child() -> None:
    for lock in _locks:
        lock._renew()
    _after_fork()
    _collector.enter_child()


at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_enter_child)
