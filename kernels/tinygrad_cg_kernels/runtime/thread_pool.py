"""Threads that share the blocks of a task.

A task is published in one slot, with a generation. Its blocks lie in as many parts as threads may
take part. Each part has a word: the generation, and how many of its blocks nobody has claimed. A
thread claims a block by taking 1 from that word, if it still is what it was when the thread read
the task. So a thread that comes late finds another generation or no block left, and never works on
a task that has changed: a task stays until all claimed blocks are done. Each thread begins with its
own part, which keeps data in the cache of its core, and goes on with the parts of others.

The caller works as well and depends on nobody: it does the blocks that no worker has claimed, then
waits for blocks that are claimed, not for threads. A second thread that calls meanwhile does its
work alone. Workers are threads without a Python state, and take no lock of the interpreter's. They
look for the next task for some microseconds and then sleep on a lock of CPython's, which every
system has; whoever claims a block wakes two of them.

The system may wake a worker on the caller's core, where it gains nothing: next to a busy process,
but also with idle cores, since a virtual machine's count as taken while they sleep. A worker that
finds itself there keeps to the other cores from then on (on Linux). If it may not, neither of the
two spins while it waits for the other, and a pool of two does the next tasks on one thread.

A worker may be kept from its core, by another process, in the middle of a block. A caller that has
one worker and has slept for 100 us then gives it its own core until the block is done (on Linux).
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
"""How often a thread looks for a task, or whether one is done, before it sleeps: some 20 to 40
microseconds. A core that looks for longer is missing to others."""

BACKOFF = 8
"""How many tasks the caller does alone after its one worker could not leave its core: changing
threads there took 5 us."""

OF_FAULTS = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT", "SIGTRAP", "SIGSYS")
"""Signals of a thread's own faults. Workers take these and no others: Python's are for its own
threads."""

_python = ctypes.pythonapi
_allocate_lock = _python.PyThread_allocate_lock
_allocate_lock.restype, _allocate_lock.argtypes = ctypes.c_void_p, []
_start_thread = _python.PyThread_start_new_thread
_start_thread.restype, _start_thread.argtypes = ctypes.c_ulong, [ctypes.c_void_p, ctypes.c_void_p]
NO_THREAD = ctypes.c_ulong(-1).value

_lock = ForkLock()


def _keep_forever(thing: Any) -> None:
    """Keep an object beyond the end of the interpreter: threads may be in it until the last."""
    _python.Py_IncRef(ctypes.py_object(thing))


WORDS = {"launch": 3, "share": 3, "worker": 1}
"""How many words the functions of `thread_pool_code` take."""


def _request(name: str) -> tuple[service.KernelSource, signatures.Signature, int]:
    """Return what the compile service is asked for.

    To optimise the code took LLVM three times as long, and made a task 30 ns quicker.
    """
    title = f"thread_pool_{name}" if has_cores else f"thread_pool_{name}_without_cores"
    source = service.KernelSource(getattr(code, name), title)
    return source, signatures.words(WORDS[name]), BASELINE


@cache
def _address(name: str) -> int:
    """Return the address of a function of the pool's, which is compiled now if need be."""
    source, signature, level = _request(name)
    entry = service.compile(source, signature, level=level)
    _keep_forever(entry.owner)
    return entry.run


def launcher(table: np.ndarray) -> Callable[..., object]:
    """Return a function of arrays that runs a block kernel in one go, under Python's lock.

    The table has the kernel's address, how many units there are, and then the words that the
    kernel is given: first the arrays' addresses, which are written at each call.
    """
    return _method("launch").bound(table)


@cache
def _method(name: str) -> NativeFunction:
    method = NativeFunction(name, _address(name))
    _keep_forever(method)
    return method


class Pool:
    """At most so many threads, the caller one of them.

    ``pool.share(pool.address, threads, arrays, address, table, first, units, step)`` does the task
    of a block kernel, with at most `threads` threads, without Python's lock. The addresses of a
    tuple of arrays are written to the table's first words. It returns how many blocks the caller
    did. `workers` is how many threads have been started.
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
        """Start threads until there are so many, or as many as the system allows."""
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
    """Return the address of a lock that is taken; 0 if the system has no more."""
    lock = _allocate_lock() or 0
    if lock:
        acquire_lock(lock, 1)
    return lock


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    """Have threads that start meanwhile leave signals to others."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    faults = {getattr(signal, name) for name in OF_FAULTS if hasattr(signal, name)}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - faults)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
