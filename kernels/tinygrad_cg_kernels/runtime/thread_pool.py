"""A pool of threads that share the blocks of a task.

A task is published in one slot, with a generation number. Its blocks are divided into parts, one
for each thread that may take part. Each part has a claim word with the generation and the number of
blocks that are left. A thread claims a block by a compare-and-exchange that decreases this word. If
the thread is late, the word has another generation or no block left, so it never works on a task
that has changed. A task stays until all claimed blocks are done. Each thread begins with its own
part, which keeps data in the cache of its core, and goes on with the parts of others.

The caller works, too, and depends on no worker: it does all blocks that no worker claims, and then
waits for claimed blocks, not for threads. If a second thread calls meanwhile, it does its task
alone. Workers are threads without a Python state, and never take the interpreter's lock. They poll
for the next task for some microseconds, and then sleep on one of CPython's locks, which every
system has. Each thread that claims a block wakes two of them.

The system may wake a worker on the caller's core, where it does not help. This happens next to a
busy process, but also with idle cores, since a sleeping core of a virtual machine counts as taken.
From then on, the worker keeps to the other cores (on Linux). If it cannot, neither of the two spins
while it waits for the other, and a pool of two does the next tasks on one thread.

Another process may take a worker's core in the middle of a block. If the caller has one worker and
has slept for 100 us, it gives the worker its own core until the block is done (on Linux).
"""

import contextlib
import ctypes
import signal
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from tinygrad_cg_frontend import BASELINE
from tinygrad_cg_kernels.runtime import service, signatures
from tinygrad_cg_kernels.runtime import thread_pool_code as code
from tinygrad_cg_kernels.runtime.callables import NativeFunction
from tinygrad_cg_kernels.runtime.locks import ForkLock
from tinygrad_cg_kernels.runtime.thread_intrinsics import acquire_lock, has_cores

SPINS = 1000
"""How often a thread polls before it sleeps: for 20 to 40 microseconds. If it polled for longer,
others would miss its core."""

SPINS_IN_PROGRAM = 10_000
"""The same for workers after a task of a program without threads of BLAS, which has the next task
soon: a step of a transformer block took 1.13 times as long if they slept in between."""

BACKOFF = 8
"""Number of tasks that the caller does alone if its only worker could not leave the caller's core:
switching threads there took 5 us."""

OF_FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS")
"""Signals that a thread's own faults raise. Workers only take these: all others are for Python's
threads."""

_python = ctypes.pythonapi
_allocate_lock = _python.PyThread_allocate_lock
_allocate_lock.restype, _allocate_lock.argtypes = ctypes.c_void_p, []
_start_thread = _python.PyThread_start_new_thread
_start_thread.restype, _start_thread.argtypes = ctypes.c_ulong, [ctypes.c_void_p, ctypes.c_void_p]
NO_THREAD = ctypes.c_ulong(-1).value

_lock = ForkLock()


def _keep_forever(thing: Any) -> None:
    """Never free an object: threads may use it until the process ends."""
    _python.Py_IncRef(ctypes.py_object(thing))


WORDS = {"launch": 3, "share": 3, "worker": 1}
"""Number of words that each function of `thread_pool_code` takes."""


def _request(name: str) -> tuple[service.KernelSource, signatures.Signature, int]:
    """Return the source, signature and level of a function of the pool.

    Optimising the code took LLVM three times as long, and saved 30 ns per task.
    """
    title = f"thread_pool_{name}" if has_cores else f"thread_pool_{name}_without_cores"
    source = service.KernelSource(getattr(code, name), title)
    return source, signatures.words(WORDS[name]), BASELINE


@cache
def _address(name: str) -> int:
    """Return the address of a function of the pool, compiled now if needed."""
    source, signature, level = _request(name)
    entry = service.compile(source, signature, level=level)
    _keep_forever(entry.owner)
    return entry.run


def launcher(table: np.ndarray) -> Callable[..., object]:
    """Return a function of arrays that runs all of a block kernel, under the interpreter's lock.

    The table has the kernel's address, the number of units, and then the kernel's own table. This
    begins with the addresses of the arrays, which each call writes.
    """
    return _method("launch").bound(table)


@cache
def _method(name: str) -> NativeFunction:
    method = NativeFunction(name, _address(name))
    _keep_forever(method)
    return method


class Pool:
    """A pool of at most `threads` threads, including the caller.

    ``pool.share(pool.address, threads, polls, arrays, address, table, first, units, step)`` does
    the task of a block kernel on at most `threads` threads, without the interpreter's lock.
    Afterwards workers poll `polls` times for the next task. It writes the addresses of a tuple of
    arrays to the first words of the table. It returns how many blocks the caller did. `workers` is
    the number of threads that were started.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        is_begun = threads > 1 and service.begin(*_request("worker"))
        self.share = _method("share").bound(None)
        if is_begun:
            _address("worker")
        size = code.RECORDS + code.RECORD_SIZE * threads
        memory = ctypes.create_string_buffer(size + code.LINE)
        _keep_forever(memory)
        self.address = -(-ctypes.addressof(memory) // code.LINE) * code.LINE
        self.workers = 0
        finished = _taken_lock()
        if not finished:
            raise MemoryError("the system has no lock for a pool of threads")
        self._write(code.FINISHED, finished)
        self._write(code.SPINS, SPINS)
        self._write(code.BACKOFF, BACKOFF)

    def _write(self, offset: int, value: int) -> None:
        ctypes.c_int64.from_address(self.address + offset).value = value

    def start_workers(self, count: int) -> None:
        """Start threads until there are `count`, or as many as the system allows."""
        with _lock, _signals_blocked():
            while self.workers < min(count, self.threads - 1):
                if self._start_worker(self.workers + 1):
                    self.workers += 1
                    self._write(code.WORKERS, self.workers)
                else:
                    self.threads = self.workers + 1

    def _start_worker(self, index: int) -> bool:
        lock = _taken_lock()
        record = code.RECORDS + code.RECORD_SIZE * index
        self._write(record + code.POOL, self.address)
        self._write(record + code.INDEX, index)
        self._write(record + code.LOCK, lock)
        return bool(lock) and _start_thread(_address("worker"), self.address + record) != NO_THREAD


def _taken_lock() -> int:
    """Return the address of a new lock, which is taken; 0 if the system has no more."""
    lock = _allocate_lock() or 0
    if lock:
        acquire_lock(lock, 1)
    return lock


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block signals in threads that start meanwhile, except faults."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    faults = {getattr(signal, name) for name in OF_FAULTS if hasattr(signal, name)}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - faults)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
