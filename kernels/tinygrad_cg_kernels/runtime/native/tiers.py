"""Kernels in two forms: one that is compiled soon, and a better one once there is much to do.

Loops that compute several vectors at a time take LLVM four to ten times as long as loops over
single numbers that it does little for: the first form has these. Once it has done enough, another
thread compiles the better one, to which the first one then passes its calls on. Both are one text
at two of LLVM's levels: they give the same bits. Sums that may be put together in any order are
vectors in both, since the order is that of the vectors. The better form is kept on disk, where
later processes find it at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import numpy as np

from tinygrad_cg_kernels.runtime import machine, progress
from tinygrad_cg_kernels.runtime.locks import ForkLock

HEAVY = 50_000
"""Characters of a block kernel's text: a longer formula computes for longer than LLVM needs to make
better code of single numbers.
"""
ENOUGH, ENOUGH_HEAVY = 2**31, 2**35
"""So many elements, times the characters of a block kernel's text, are enough."""
CALLS = 32
"""So many calls of a small kernel are enough."""
MANY = 2**62
"""Calls that are left to a small kernel whose better form is under way."""
BETTER, LEFT, WORK = "tinygrad_cg_better", "tinygrad_cg_left", "tinygrad_cg_work"
"""The symbols of the better form's address, of the calls that are left until it is wanted, and of
the elements that are enough.
"""
_ENTRY = re.compile(r"^define (\w+) @entry\((.*)\) (.*)\{$", re.MULTILINE)

_lock = ForkLock()
_begun: WeakSet[Better] = WeakSet()


def _forget_threads() -> None:
    for one in _begun:
        one.enter_child()
    _begun.clear()


if hasattr(os, "register_at_fork"):  # no thread may be compiling: a child has not got it
    os.register_at_fork(before=_lock.__enter__, after_in_parent=_lock.__exit__)
    os.register_at_fork(after_in_child=_forget_threads)


PLAIN = """
  %result = call {kind} @first_form({given})
  ret {kind} %result
"""
COUNTED = f"""
  %left = load i64, ptr @{LEFT}
  %less = sub i64 %left, 1
  store i64 %less, ptr @{LEFT}
  %asks = icmp sle i64 %less, 0
  br i1 %asks, label %ask, label %run
ask:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
run:{PLAIN}"""
"""After so many calls it does not serve, until somebody has seen that `Better.wanted` is true."""


def with_choice(text: str, work: int, own: str = PLAIN) -> str:
    """Return a text whose entry calls what it was, or the better form as soon as there is one."""
    found = _ENTRY.search(text)
    assert found is not None
    kind, given, _ = found.groups()
    first = _ENTRY.sub(r"define internal \1 @first_form(\2) \3{", text, count=1)
    choice = f"""
@{BETTER} = global ptr null
@{LEFT} = global i64 {CALLS}
@{WORK} = global i64 {work}
define {kind} @entry({given}) {{
  %better = load atomic ptr, ptr @{BETTER} acquire, align 8
  %none = icmp eq ptr %better, null
  br i1 %none, label %own, label %quick
quick:
  %found = call {kind} %better({given})
  ret {kind} %found
own:{own.format(kind=kind, given=given)}}}
"""
    return first + choice


class Better:
    """The better form of a kernel, which is compiled when the first one has done enough."""

    def __init__(self, first: machine.Code, compiled: Callable[[], machine.Code | None]):
        self.enough = ctypes.c_int64.from_address(first.address(WORK)).value
        self._place = ctypes.c_int64.from_address(first.address(BETTER))
        self._left = ctypes.c_int64.from_address(first.address(LEFT))
        self._compiled = compiled
        self.code: machine.Code | None = None
        self._done = 0
        self.thread: threading.Thread | None = None

    def count(self, work: int) -> None:
        """Note so many elements more; have another thread compile the better form in time."""
        self._done += work
        if self._done >= self.enough:
            self.begin()

    def wanted(self) -> bool:
        """Return whether a small kernel's first form has done enough."""
        return self._left.value <= 0 and self.thread is None and self.code is None

    def begin(self) -> None:
        """Have another thread compile the better form, if none does."""
        if self.thread is not None:
            return
        self._left.value = MANY
        self.thread = threading.Thread(target=self._finish_silently, name="tinygrad_cg compiler")
        _begun.add(self)
        if not sys.is_finalizing():  # a thread would wait for the interpreter for ever
            with contextlib.suppress(RuntimeError):  # there are no more threads
                self.thread.start()

    def enter_child(self) -> None:
        """Let a forked child begin anew: it has none of the threads."""
        if self.code is None:
            self.thread, self._left.value = None, CALLS

    def _finish_silently(self) -> None:
        with progress.silent():
            self.finish()

    def finish(self) -> None:
        """Compile the better form now, and have it used."""
        with _lock:
            if self.code is None:
                self.code = self._compiled()
            if self.code is not None:
                self._place.value = self.code.address("entry")


def wait() -> None:
    """Wait until the better forms that other threads compile are there."""
    for one in list(_begun):
        if one.thread is not None and one.thread.ident is not None:
            one.thread.join()


def counted(
    run: Callable[..., object], better: Better | None, work: int | None = None
) -> Callable[..., object]:
    """Return `run`, which runs a kernel on so many elements, by default those that it is given.

    They are counted.
    """
    if better is None:
        return run

    def run_counted(*operands: Any) -> None:
        if better.thread is None:  # the better form may come while this call is under way
            better.count(sum(map(np.size, operands)) if work is None else work)
        run(*operands)

    return run_counted
