"""A line on stderr if compiling takes over a second, in notebooks and terminals.

Kernels compiled one after the other, for example by a sequence of eager operations, count as one
row. The row gets one line, and another one if it takes more than twice as long again.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator

from tinygrad_cg_kernels.runtime.locks import ForkLock, at_fork

AFTER = 1.0  # seconds of compiling until the line appears
PAUSE = 0.5  # a pause of this many seconds ends a row
_own = threading.local()


def is_wanted() -> bool:
    """Return whether progress is shown: as TINYGRAD_CG_PROGRESS says, or where somebody reads it.

    By default it is shown if stderr is a terminal or the output of a notebook cell.
    """
    chosen = os.environ.get("TINYGRAD_CG_PROGRESS")
    if chosen:
        return chosen != "0"
    stream = sys.stderr
    try:
        return stream.isatty() or type(stream).__module__.startswith("ipykernel.")
    except (AttributeError, ValueError):  # stderr is missing or closed
        return False


@contextlib.contextmanager
def compiling(count: int = 1) -> Iterator[None]:
    """Show progress while the block compiles `count` kernels. Nested blocks do not count."""
    if getattr(_own, "is_silent", False) or not is_wanted():
        yield
        return
    _row.begin(count)
    try:
        yield
    finally:
        _row.end()


@contextlib.contextmanager
def silent() -> Iterator[None]:
    """Show nothing for what this thread compiles in the block: nobody waits for it."""
    _own.is_silent = True
    try:
        yield
    finally:
        _own.is_silent = False


class _Row:
    """A row of compilations, in all threads.

    A thread watches how long the row takes. It lives while something compiles, and for at least a
    second, so that not every kernel starts a thread.
    """

    def __init__(self) -> None:
        self._lock = ForkLock()
        self.reset()

    def reset(self) -> None:
        self._depth = self._count = self._done = 0
        self._spent = self._started = self._ended = 0.0
        self._limit = AFTER
        self._is_open = self._is_watched = False

    def begin(self, count: int) -> None:
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return
            self._started = time.monotonic()
            if self._started - self._ended > PAUSE:
                self._done, self._spent, self._limit = 0, 0.0, AFTER
            self._count = count
            if not self._is_watched:
                with contextlib.suppress(RuntimeError):  # no more threads can start, or Python ends
                    threading.Thread(target=self._watch, daemon=True).start()
                    self._is_watched = True

    def end(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth:
                return
            self._ended = time.monotonic()
            if self._seconds(self._ended) >= self._limit:
                self._say()
            self._spent = self._seconds(self._ended)
            self._done += self._count
            if self._is_open:
                self._is_open = False
                self._limit = 2 * self._spent
                _write(f" {self._spent:.1f} s\n")

    def _seconds(self, now: float) -> float:
        return self._spent + now - self._started

    def _say(self) -> None:
        if not self._is_open:
            self._is_open = True
            count = self._done + self._count
            _write(f"tinygrad_cg: compiling {count} kernel{'s' * (count > 1)} ...")

    def _watch(self) -> None:
        while True:
            with self._lock:
                if not self._depth:
                    self._is_watched = False
                    return
                left = self._limit - self._seconds(time.monotonic())
                if left <= 0:
                    self._say()
            time.sleep(left if left > 0 else AFTER)


def _write(text: str) -> None:
    with contextlib.suppress(AttributeError, OSError, ValueError):  # it was closed meanwhile
        sys.stderr.write(text)
        sys.stderr.flush()


_row = _Row()
at_fork(after_in_child=_row.reset)
