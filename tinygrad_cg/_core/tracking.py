"""Progress of long loops, on stderr: a bar of tqdm where that is installed, lines otherwise.

Nothing is printed in the first second, nor if stderr is neither a terminal nor the output of a
notebook's cell. ``TINYGRAD_CG_PROGRESS`` (1 or 0) overrides this.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tinygrad_cg_kernels.runtime import progress

T = TypeVar("T")


def track(items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Yield `items`, and say how many are done if that takes longer than a second.

    `total` is their number, by default ``len(items)`` where they have one.
    """
    if not progress.is_wanted():
        yield from items
        return
    total = getattr(items, "__len__", lambda: None)() if total is None else total
    began, bar = time.monotonic(), None
    try:
        for done, item in enumerate(items):
            if bar is not None:
                bar.update()
            elif time.monotonic() - began >= progress.AFTER:
                bar = _tqdm(label, total, done) or ProgressLines(label, total, done, began)
            yield item
    finally:
        if bar is not None:
            bar.close()


def _tqdm(label: str, total: int | None, done: int) -> Any:
    """Return a bar of tqdm; None where that is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # in a notebook without widgets the bar is text
            tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return None
    text = f"tinygrad_cg: {label}"
    return tqdm(desc=text, total=total, initial=done, leave=False, file=sys.stderr)


class ProgressLines:
    """A line of text at once, and another whenever as much time has passed again."""

    def __init__(self, label: str, total: int | None, done: int, began: float):
        self.label = label
        self.total = "" if total is None else f" of {total}"
        self.done = done
        self.began = began
        self._say()

    def update(self) -> None:
        self.done += 1
        if time.monotonic() - self.began >= self.limit:
            self._say()

    def close(self) -> None:
        """Leave the lines as they are."""

    def _say(self) -> None:
        taken = time.monotonic() - self.began
        self.limit = 2 * taken
        with contextlib.suppress(AttributeError, OSError, ValueError):  # it is closed meanwhile
            print(
                f"tinygrad_cg: {self.label}, {self.done}{self.total} after {taken:.1f} s",
                file=sys.stderr,
                flush=True,
            )
