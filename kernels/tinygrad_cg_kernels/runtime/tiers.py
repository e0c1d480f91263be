"""Two tiers of kernels: baseline code, which compiles fast, and optimized code, which runs fast.

LLVM takes four to ten times as long for loops that compute several vectors at a time as for simple
loops over single numbers. Baseline code has simple loops. After it has done a certain amount of
work, another thread compiles optimized code, and the baseline code forwards its calls to that. Both
come from one text at two of LLVM's levels, so they give the same bits. Sums that may be
reassociated are vectorised in both tiers, because the order of additions is that of the vectors.
Optimized code is kept on disk, where later processes find it at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet, ref

import numpy as np

from tinygrad_cg_kernels.runtime import machine, progress
from tinygrad_cg_kernels.runtime.locks import ForkLock, at_fork

TIER_UP_WORK, TIER_UP_WORK_LONG = 2**31, 2**35
"""Tier-up thresholds of block kernels: elements times characters of the kernel's text. The second
is for long formulas, which compute for longer than LLVM takes for code of single numbers.
"""
TIER_UP_CALLS = 32
"""Tier-up threshold of small kernels: number of calls."""
UNLIMITED = 2**62
"""Remaining calls of a small kernel while its optimized code is being compiled."""
OPTIMIZED, LEFT, WORK = "tinygrad_cg_optimized", "tinygrad_cg_left", "tinygrad_cg_work"
"""Symbols: the optimized code's address, the number of calls until tier-up, and the number of
elements until a block kernel tiers up.
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
"""Code that counts calls. When none remain it returns None, so that the caller asks for tier-up."""


def with_choice(text: str, work: int, counts: bool) -> str:
    """Return a text with a new entry, which calls the optimized code if there is any.

    Otherwise it calls the entry of `text`. With `counts`, it also counts its calls.
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
    """The optimized code of a kernel, compiled when the baseline code has done enough work."""

    def __init__(
        self, baseline: machine.MachineCode, compiled: Callable[[], machine.MachineCode | None]
    ):
        self.enough = ctypes.c_int64.from_address(baseline.address(WORK)).value
        self._place = ctypes.c_int64.from_address(baseline.address(OPTIMIZED))
        self._left = ctypes.c_int64.from_address(baseline.address(LEFT))
        self._compiled, self._baseline = compiled, ref(baseline)
        self.code: machine.MachineCode | None = None
        self._done = 0
        self.thread: threading.Thread | None = None

    def count(self, work: int) -> None:
        """Add work that was done. At the threshold, another thread compiles optimized code."""
        self._done += work
        if self._done >= self.enough:
            self.begin()

    def wanted(self) -> bool:
        """Return whether a small kernel has reached its threshold."""
        return self._left.value <= 0 and self.thread is None and self.code is None

    def begin(self) -> None:
        """Have another thread compile the optimized code, unless one does already."""
        if self.thread is not None:
            return
        self._left.value = UNLIMITED
        baseline = (self._baseline(),)  # its memory is written to, and its kernel may be deleted
        target, name = self._finish_silently, "tinygrad_cg compiler"
        self.thread = threading.Thread(target=target, name=name, args=baseline)
        _begun.add(self)
        if not sys.is_finalizing():  # a thread could never take the interpreter's lock
            with contextlib.suppress(RuntimeError):  # no more threads can start
                self.thread.start()

    def enter_child(self) -> None:
        """Reset the state in a forked child, which has no compiling thread."""
        if self.code is None:
            self.thread, self._left.value = None, TIER_UP_CALLS

    def _finish_silently(self, baseline: machine.MachineCode | None) -> None:
        with progress.silent():
            self.finish()

    def finish(self) -> None:
        """Compile the optimized code now, and switch to it."""
        with _lock:
            if self.code is None:
                self.code = self._compiled()
            if self.code is not None:
                self._place.value = self.code.address("entry")


def wait() -> None:
    """Wait until other threads have compiled the optimized code."""
    for optimized in list(_begun):
        if optimized.thread is not None and optimized.thread.ident is not None:
            optimized.thread.join()


def counted(run: Callable[..., object], owner: Any, work: int | None = None) -> Callable:
    """Return `run`, with its work counted if `owner` is baseline code.

    `work` is the number of elements per call, by default the size of the operands.
    """
    optimized: OptimizedCode | None = getattr(owner, "optimized", None)
    if optimized is None:
        return run

    def run_counted(*operands: Any) -> None:
        if optimized.thread is None:  # it may be ready during this call
            optimized.count(sum(map(np.size, operands)) if work is None else work)
        run(*operands)

    return run_counted


def improve(owner: Any) -> bool:
    """Start to compile optimized code of a small kernel that has reached its threshold."""
    optimized = optimized_code(owner)
    if optimized is None or not optimized.wanted():
        return False
    optimized.begin()
    return True


def optimized_code(owner: Any) -> OptimizedCode | None:
    """Return a kernel's `OptimizedCode`; None if its code is optimized already."""
    return getattr(getattr(owner, "code", owner), "optimized", None)


def finish(owner: Any) -> None:
    """Compile the optimized code of a kernel now, if its code is baseline code."""
    optimized = optimized_code(owner)
    if optimized is not None:
        optimized.finish()
