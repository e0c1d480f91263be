"""Two tiers of kernels: baseline code, which is there soon, and optimized code for much to do.

Loops that compute several vectors at a time take LLVM four to ten times as long as loops over
single numbers that it does little for: baseline code has these. Once it has done enough, another
thread compiles optimized code, to which it then passes its calls on. Both are one text at two of
LLVM's levels: they give the same bits. Sums that may be put together in any order are vectors in
both, since the order is that of the vectors. Optimized code is kept on disk, where later processes
find it at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import numpy as np

from tinygrad_cg_kernels.runtime import machine, progress
from tinygrad_cg_kernels.runtime.locks import ForkLock, at_fork

TIER_UP_WORK, TIER_UP_WORK_LONG = 2**31, 2**35
"""So many elements, times the characters of a block kernel's text, are enough. The second is for
long formulas, which compute for longer than LLVM takes for code of single numbers.
"""
TIER_UP_CALLS = 32
"""So many calls of a small kernel are enough."""
UNLIMITED = 2**62
"""Calls that are left to a small kernel whose optimized code is under way."""
OPTIMIZED, LEFT, WORK = "tinygrad_cg_optimized", "tinygrad_cg_left", "tinygrad_cg_work"
"""The symbols of the optimized code's address, of the calls that are left until it is wanted, and
of the elements that are enough.
"""
_ENTRY = re.compile(r"^define (\w+) @entry\((.*)\) (.*)\{$", re.MULTILINE)

_lock = ForkLock()
_begun: WeakSet[OptimizedCode] = WeakSet()


def _forget_threads() -> None:
    for optimized in _begun:
        optimized.enter_child()
    _begun.clear()


at_fork(before=_lock.__enter__, after_in_parent=_lock.__exit__)  # a child has no compiling thread
at_fork(after_in_child=_forget_threads)


PLAIN = """
  %result = call {kind} @baseline({parameters})
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
"""After so many calls it does not serve, until somebody has seen what `OptimizedCode.wanted` is."""


def with_choice(text: str, work: int, counts: bool) -> str:
    """Return a text whose entry calls what it was, or optimized code as soon as there is some.

    It `counts` its calls if nothing else does.
    """
    head = _ENTRY.search(text)
    assert head is not None
    kind, parameters, _ = head.groups()
    first = _ENTRY.sub(r"define internal \1 @baseline(\2) \3{", text, count=1)
    choice = f"""
@{OPTIMIZED} = global ptr null
@{LEFT} = global i64 {TIER_UP_CALLS}
@{WORK} = global i64 {work}
define {kind} @entry({parameters}) {{
  %optimized = load atomic ptr, ptr @{OPTIMIZED} acquire, align 8
  %none = icmp eq ptr %optimized, null
  br i1 %none, label %own, label %quick
quick:
  %found = call {kind} %optimized({parameters})
  ret {kind} %found
own:{(COUNTED if counts else PLAIN).format(kind=kind, parameters=parameters)}}}
"""
    return first + choice


class OptimizedCode:
    """The optimized code of a kernel, made when the baseline code has done enough."""

    def __init__(
        self, baseline: machine.MachineCode, compiled: Callable[[], machine.MachineCode | None]
    ):
        self.enough = ctypes.c_int64.from_address(baseline.address(WORK)).value
        self._place = ctypes.c_int64.from_address(baseline.address(OPTIMIZED))
        self._left = ctypes.c_int64.from_address(baseline.address(LEFT))
        self._compiled = compiled
        self.code: machine.MachineCode | None = None
        self._done = 0
        self.thread: threading.Thread | None = None

    def count(self, work: int) -> None:
        """Note so many elements more; have another thread compile optimized code in time."""
        self._done += work
        if self._done >= self.enough:
            self.begin()

    def wanted(self) -> bool:
        """Return whether a small kernel's baseline code has done enough."""
        return self._left.value <= 0 and self.thread is None and self.code is None

    def begin(self) -> None:
        """Have another thread compile the optimized code, if none does."""
        if self.thread is not None:
            return
        self._left.value = UNLIMITED
        self.thread = threading.Thread(target=self._finish_silently, name="tinygrad_cg compiler")
        _begun.add(self)
        if not sys.is_finalizing():  # a thread would wait for the interpreter for ever
            with contextlib.suppress(RuntimeError):  # there are no more threads
                self.thread.start()

    def enter_child(self) -> None:
        """Let a forked child begin anew: it has none of the threads."""
        if self.code is None:
            self.thread, self._left.value = None, TIER_UP_CALLS

    def _finish_silently(self) -> None:
        with progress.silent():
            self.finish()

    def finish(self) -> None:
        """Compile the optimized code now, and have it used."""
        with _lock:
            if self.code is None:
                self.code = self._compiled()
            if self.code is not None:
                self._place.value = self.code.address("entry")


def wait() -> None:
    """Wait until the optimized code that other threads compile is there."""
    for optimized in list(_begun):
        if optimized.thread is not None and optimized.thread.ident is not None:
            optimized.thread.join()


def counted(run: Callable[..., object], owner: Any, work: int | None = None) -> Callable:
    """Return `run`, which runs a kernel on so many elements, by default those that it is given.

    They are counted if `owner` has the baseline code.
    """
    optimized: OptimizedCode | None = getattr(owner, "optimized", None)
    if optimized is None:
        return run

    def run_counted(*operands: Any) -> None:
        if optimized.thread is None:  # it may come while this call is under way
            optimized.count(sum(map(np.size, operands)) if work is None else work)
        run(*operands)

    return run_counted


def improve(owner: Any) -> bool:
    """Have optimized code made of a small kernel, if its baseline code has done enough to ask."""
    optimized = optimized_code(owner)
    if optimized is None or not optimized.wanted():
        return False
    optimized.begin()
    return True


def optimized_code(owner: Any) -> OptimizedCode | None:
    """Return the optimized code of a kernel, made or not; None if its code is that already."""
    return getattr(getattr(owner, "code", owner), "optimized", None)


def finish(owner: Any) -> None:
    """Compile the optimized code of a kernel now, if it has baseline code."""
    optimized = optimized_code(owner)
    if optimized is not None:
        optimized.finish()
