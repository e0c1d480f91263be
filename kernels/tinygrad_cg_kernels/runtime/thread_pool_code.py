"""The machine code of the pool (see `thread_pool`), compiled from the text `thread_pool.ll`.

The memory of a pool, its fields and those of the records of its threads are words of 8 bytes.
"""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import llvmlite.binding as llvm

from tinygrad_cg_frontend import LLVMSource
from tinygrad_cg_kernels.runtime import machine, objects
from tinygrad_cg_kernels.runtime.store import Store

LINE = 128  # bytes that one core writes and another one does not: two lines of a cache
FIELDS = {
    "generation": 0,  # of the latest task
    "done": LINE,  # its blocks that are; WAITS is added if the caller sleeps until all are
    "busy": 2 * LINE,  # whether a thread has the pool
    # The task; see `threads.Task`. It changes while no claim word has blocks left.
    "address": 3 * LINE,
    "table": 3 * LINE + 8,
    "first": 3 * LINE + 16,
    "units": 3 * LINE + 24,
    "step": 3 * LINE + 32,
    "blocks": 3 * LINE + 40,
    "parts": 3 * LINE + 48,
    "core": 3 * LINE + 56,  # that the caller runs on
    "next_worker": 4 * LINE,  # to wake
    "near": 4 * LINE + 8,  # whether a worker was seen on that core
    "finished": 5 * LINE,  # the lock that the caller sleeps on
    "spins": 5 * LINE + 8,  # see `thread_pool`, as for the next but one
    "workers": 5 * LINE + 16,  # how many have started
    "backoff": 5 * LINE + 24,
    "skip": 5 * LINE + 32,  # how many tasks are yet to be done alone
    "records": 6 * LINE,  # one for the caller and each worker
}
RECORD = {"claim": 0, "sleeps": 64, "pool": 72, "index": 80, "lock": 88, "thread": 96}
"""A claim word has the generation in its upper half; `sleeps` is 1 for whom `lock` must wake."""
WAITS = 1 << 62

TEXT = Template((Path(__file__).parent / "thread_pool.ll").read_text(encoding="utf-8"))

NAMES = {
    "acquire": "PyThread_acquire_lock",
    "acquire_timed": "PyThread_acquire_lock_timed",
    "release": "PyThread_release_lock",
    "save_thread": "PyEval_SaveThread",
    "restore_thread": "PyEval_RestoreThread",
    "as_integer": "PyLong_AsSsize_t",
    "from_integer": "PyLong_FromSsize_t",
}
PAUSES = {  # by processor, what a loop that waits executes: a declaration, and a call
    "x86": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "arm": ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)"),
    "other": ("", "fence seq_cst"),
}
OF_CORES = {
    "getcpu": f"i32 @{objects.PREFIX}getcpu()",
    "getaffinity": f"i32 @{objects.PREFIX}getaffinity(i32, i64, ptr)",
    "setaffinity": f"i32 @{objects.PREFIX}setaffinity(i32, i64, ptr)",
    "gettid": f"i32 @{objects.PREFIX}gettid()",
}
"""Linux's functions by which a worker sees that it is on the caller's core, and leaves it."""
NOTHING = " {\n  ret i32 -1\n}"
PATIENCE = 100  # microseconds that a caller sleeps before it looks for its one worker
CORES = 128  # bytes of a set of cores, a bit each; if the system has more, workers do not move

_store = Store("pool")


def load() -> machine.Code:
    """Return the machine code, from the disk cache or compiled now."""
    used = {name: getattr(ctypes.pythonapi, function) for name, function in NAMES.items()}
    for name, function in {**used, **_of_cores()}.items():
        address = ctypes.cast(function, ctypes.c_void_p).value
        llvm.add_symbol(f"{objects.PREFIX}{name}", address)
    text = _text()
    known = _store.read(text)
    if known is not None:
        return machine.Code(known[1])
    data = machine.compile_source(_module(text))
    _store.write(text, {}, data)
    return machine.Code(data)


def compile_with(
    compiled: Callable[[list[LLVMSource]], list[bytes]], texts: list[LLVMSource]
) -> list[bytes]:
    """Return what `compiled` makes of modules, with the pool's among them if it is not cached.

    Block kernels need the pool: the first of them and the pool are compiled at the same time.
    """
    text = _text()
    if _store.folder() is None or _store.has(text):
        return compiled(texts)
    *codes, own = compiled([*texts, _module(text)])
    _store.write(text, {}, own)
    return codes


def _module(text: str) -> LLVMSource:
    """Return the module, to be taken as it is written: to optimise it took most of its time."""
    return LLVMSource(text)


def _text() -> str:
    """Return the module's text for this processor."""
    name = llvm.get_process_triple().partition("-")[0]
    arm = name in ("aarch64", "arm64")
    kind = "x86" if name in ("x86_64", "i686") else "arm" if arm else "other"
    offsets = {"LENGTH": objects.LENGTH, "ITEMS": objects.ITEMS, "DATA": objects.DATA}
    declared, pause = PAUSES[kind]
    cores = "declare" if _of_cores() else "define internal"
    lines = [f"{cores} {line}{'' if _of_cores() else NOTHING}" for line in OF_CORES.values()]
    words = {"declarations": "\n".join([declared, *lines]), "pause": pause}
    words |= {"LINE": LINE, "WAITS": WAITS, "CORES": CORES}
    words |= {"PATIENCE": PATIENCE, "most_cores": 8 * CORES}
    count = CORES // 8
    words |= {"set": f"<{count} x i64>", "bits": f"<{count} x i1>", "mask": f"v{count}i1"}
    return TEXT.substitute(FIELDS, **RECORD, **offsets, **words)


def _of_cores() -> dict[str, Any]:
    """Return the system's functions of cores, in the C library's names; none if it lacks one."""
    if os.name != "posix":
        return {}
    library = ctypes.CDLL(None)
    found = {
        name: getattr(library, f"sched_{name}" if name != "gettid" else name, None)
        for name in OF_CORES
    }
    return {} if None in found.values() else found
