"""A lock that a forked child can take, whoever held it at the fork."""

import os
import threading
from typing import Any
from weakref import WeakSet


class ForkLock:
    """A reentrant lock, free again in a child process: the thread that held it is not there."""

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


def _renew_all() -> None:
    for lock in _locks:
        lock._renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
