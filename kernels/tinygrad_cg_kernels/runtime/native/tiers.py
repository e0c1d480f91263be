"""Block kernels in two forms: one that is compiled soon, a quicker one once there is much to do.

The loops of a long formula compute several vectors at a time, which is quicker by up to a quarter
and takes LLVM twice as long. The first form computes one. When it has done `ENOUGH` another thread
compiles the better form, and the first one passes its calls on to that. Both are one text, but for
a number in a loop's mark: they give the same bits. The better form is kept on disk, where later
processes find it at once.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable
from typing import Any

from tinygrad_cg_kernels.runtime import machine
from tinygrad_cg_kernels.runtime.locks import ForkLock

LONG = 14_000  # characters of a text: of shorter ones the better form takes little longer
BRANCHES = 3
"""Branches in formulas at most. LLVM does not vectorise loops with many, as that of expint, but for
several at a time makes choices of them; products and sums of two blocks become one operation then.
"""
ENOUGH = 2**20  # elements
BETTER = "tinygrad_cg_better"
"""The symbol of the better form's address."""
_COUNT = re.compile(r'("llvm.loop.interleave.count", i32) \d+')
_ENTRY = "define i64 @entry("
_CHOICE = f"""
@{BETTER} = global ptr null
define i64 @entry(i64 %table, i64 %begin, i64 %count) {{
  %better = load atomic ptr, ptr @{BETTER} acquire, align 8
  %none = icmp eq ptr %better, null
  %form = select i1 %none, ptr @first_form, ptr %better
  %result = call i64 %form(i64 %table, i64 %begin, i64 %count)
  ret i64 %result
}}
"""

_lock = ForkLock()
if hasattr(os, "register_at_fork"):  # no thread may be compiling: a child has not got it
    os.register_at_fork(before=_lock.__enter__, after_in_parent=_lock.__exit__)


def first_form(text: machine.Text) -> machine.Text | None:
    """Return the text of a block kernel's first form; None if it is compiled soon enough."""
    if len(text.text) < LONG or not _COUNT.search(text.text) or _ENTRY not in text.text:
        return None
    own = _COUNT.sub(r"\1 1", text.text).replace(_ENTRY, "define internal i64 @first_form(", 1)
    return text._replace(text=own + _CHOICE)


class Better:
    """The better form of a block kernel, which is compiled when the first one has done enough."""

    def __init__(self, first: machine.Code, compiled: Callable[[], machine.Code | None]):
        self._place = ctypes.c_int64.from_address(first.address(BETTER))
        self._compiled = compiled
        self.code: machine.Code | None = None
        self._done = 0
        self.thread: threading.Thread | None = None

    def count(self, work: int) -> None:
        """Note so many elements more; have another thread compile the better form in time."""
        self._done += work
        if self._done >= ENOUGH and self.thread is None:
            self.thread = threading.Thread(target=self.finish, name="tinygrad_cg compiler")
            self.thread.start()

    def finish(self) -> None:
        """Compile the better form now, and have it used."""
        with _lock:
            if self.code is None:
                self.code = self._compiled()
            if self.code is not None:
                self._place.value = self.code.address("entry")


def counted(run: Callable[..., object], better: Better | None, work: int) -> Callable[..., object]:
    """Return `run`, which runs a block kernel on so many elements; they are counted."""
    if better is None:
        return run

    def run_counted(*arrays: Any) -> None:
        run(*arrays)
        if better.thread is None:
            better.count(work)

    return run_counted
