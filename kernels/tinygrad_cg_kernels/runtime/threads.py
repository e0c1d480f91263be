"""Splitting the range of a kernel over cores.

The range is cut into blocks of a fixed size, which does not depend on the number of threads, so
results have the same bits on any number. A block kernel is called by its address (see
`signatures.BLOCKS`). `thread_pool` has the threads.
"""

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime import machine, objects, service
from tinygrad_cg_kernels.runtime.locks import ForkLock, at_fork
from tinygrad_cg_kernels.runtime.objects import data_address
from tinygrad_cg_kernels.runtime.thread_pool import SPINS, SPINS_IN_PROGRAM, Pool, launcher

BLOCK = 16384
"""Elements in a block."""
MIN_BLOCKED = 4 * BLOCK
"""Elements: work of at least this size is done in blocks, by one thread or by several."""

MIN_PARALLEL_NS = 160_000
"""Work is shared by several threads if one thread needs at least this time for it. Waking a thread
that had slept for 1 ms took 28 to 45 us, and threads then read what others wrote. With a limit
of 60 us, an eager gradient of 100,000 elements took 1.25 times as long, and a step of a transformer
block 1.06 times. A kernel's time per element is measured on its first blocks: a sum of 100,000
elements takes 10 us, their exponentials 60.
"""

MIN_AWAKE_NS = 60_000
"""The same in a program without threads of BLAS: none keeps a core busy, and threads that shared a
kernel are awake for the next one."""

MIN_CERTAIN_NS = 10 * MIN_PARALLEL_NS
"""Work of at least this time is shared although only one block, or one call, was measured."""

MAX_PROBED_BLOCKS = 8
"""A measurement takes at most this many blocks."""
MIN_SAMPLES = 3
"""This many calls of a kernel are measured: the first may wait for memory or another process."""

_MAX_THREADS = int(os.environ.get("NUMBA_NUM_THREADS") or 0) or machine.cores()
_rates: dict[int, tuple[float, int]] = {}
"""By a kernel's address: the least time per element that was measured, in nanoseconds, and the
number of calls that were measured."""
UNKNOWN = (float("inf"), 0)


class Task(NamedTuple):
    """The work of a block kernel."""

    address: int
    """Address of the kernel, which takes the address of a table, the first unit and the count."""
    table: int
    first: int
    units: int
    step: int
    """Units in a block."""
    weight: float
    """Elements of work in a unit."""
    is_alone: bool = False
    """Whether the work is a part of a program without threads of BLAS."""


def default_threads() -> int:
    """Return TINYGRAD_CG_NUM_THREADS, or by default the most threads that may be used."""
    chosen = os.environ.get("TINYGRAD_CG_NUM_THREADS") or _MAX_THREADS
    try:
        return min(max(int(chosen), 1), _MAX_THREADS)
    except ValueError:
        raise ValueError(f"TINYGRAD_CG_NUM_THREADS={chosen!r} is not a number") from None


class _State:
    threads = default_threads()
    forked = False
    pool: Pool | None = None


def get_num_threads() -> int:
    """Return the number of threads that large kernels use."""
    return 1 if _State.forked else _State.threads


def set_num_threads(count: int) -> None:
    """Use this many threads for large kernels; the limit is NUMBA_NUM_THREADS or all cores."""
    if not 1 <= count <= _MAX_THREADS:
        raise ValueError(f"set_num_threads: {count} is not between 1 and {_MAX_THREADS}")
    _State.threads = count


class SingleThread:
    """A context in which a library computes with one thread.

    Threads of Python may be in it at the same time: the last one that leaves it sets the number
    back.
    """

    def __init__(self, get_number: Callable[[], int], set_number: Callable[[int], None]):
        self._get_number, self._set_number = get_number, set_number
        self._inside, self._before, self._lock = 0, 1, ForkLock()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before = self._get_number()
                self._set_number(1)
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._set_number(self._before)


single_thread = SingleThread(get_num_threads, set_num_threads)


def _enter_child() -> None:
    # A forked child lacks the pool's threads: it stays on one.
    _State.forked = True


at_fork(after_in_child=_enter_child)


def _pool() -> Pool:
    if _State.pool is None:
        with service.lock:
            _State.pool = _State.pool or Pool(_MAX_THREADS)
    return _State.pool


def _run_parallel(count: int, arrays: tuple[np.ndarray, ...], task: Task) -> None:
    """Do a task on `count` threads."""
    pool = _pool()
    if pool.workers < min(count, pool.threads) - 1:
        pool.start_workers(count - 1)
    polls = SPINS_IN_PROGRAM if task.is_alone else SPINS
    pool.share(pool.address, count, polls, arrays, *task[:5])


def _run_serial(arrays: tuple[np.ndarray, ...], task: Task) -> None:
    pool = _pool()
    pool.share(pool.address, 1, 0, arrays, *task[:5])


def _after(task: Task, blocks: int) -> Task:
    """Return the rest of a task whose first blocks are done."""
    done = blocks * task.step
    return task._replace(first=task.first + done, units=task.units - done)


def _measure(arrays: tuple[np.ndarray, ...], task: Task) -> int:
    """Run the first blocks, in parts; note the pace of the fastest part; return how many are done.

    If the first block already shows that the rest takes long, it is the only one.
    """
    best, samples = _rates.get(task.address, UNKNOWN)
    size, done = min(MAX_PROBED_BLOCKS, task.units // task.step // 2), 0
    for blocks in (1, size, size - 1):
        part = _after(task, done)
        if not blocks or (done and best * part.units * task.weight >= MIN_CERTAIN_NS):
            break
        start = perf_counter_ns()
        _run_serial(arrays, part._replace(units=blocks * task.step))
        pace = (perf_counter_ns() - start) / (blocks * task.step * task.weight)
        best, done = min(best, pace), done + blocks
    _rates[task.address] = best, samples + 1
    return done


def carry_out(task: Task, arrays: tuple[np.ndarray, ...] = ()) -> None:
    """Do a task, on several threads if that is faster.

    The addresses of the arrays are written to the first words of the table.
    """
    threads = get_num_threads()
    if threads == 1 or task.units < 2 * task.step:
        return _run_serial(arrays, task)
    pace, samples = _rates.get(task.address, UNKNOWN)
    work = task.units * task.weight
    if samples and samples < MIN_SAMPLES and pace * work >= MIN_CERTAIN_NS:
        start = perf_counter_ns()
        _run_parallel(threads, arrays, task)
        pace = min(pace, (perf_counter_ns() - start) * threads / work)
        _rates[task.address] = pace, samples + 1
        return None
    if samples < MIN_SAMPLES:
        task = _after(task, _measure(arrays, task))
        pace = _rates[task.address][0]
    least = MIN_AWAKE_NS if task.is_alone else MIN_PARALLEL_NS
    if pace * task.units * task.weight >= least:
        return _run_parallel(threads, arrays, task)
    start = perf_counter_ns()
    _run_serial(arrays, task)
    if perf_counter_ns() - start > 2 * least:  # another, faster kernel had this address
        _rates.pop(task.address, None)
    return None


@lru_cache(maxsize=4096)
def bind(
    address: int,
    count: int,
    sizes: tuple[int, ...],
    units: int,
    work: int,
    block: int = BLOCK,
    is_alone: bool = False,
) -> Callable[..., object]:
    """Return a function that runs all units of a block kernel on `count` arrays.

    The kernel's table has the addresses of the arrays, and then the sizes. `work` is the number of
    elements that all units process. If it is large, the work is cut into blocks of about `block`
    elements, which threads share without the interpreter's lock. Tables are kept for later calls.
    """

    if work < MIN_BLOCKED and objects.supported:
        return launcher(np.array([address, units, *[0] * count, *sizes], np.int64))

    step = max(block * units // max(work, 1), 1)
    step -= step % 4 if step > 4 else 0  # because rows are reduced four at a time
    task = Task(address, 0, 0, units, step, work / units, is_alone)
    return runner(count, sizes, task, task._replace(step=units))


def runner(count: int, sizes: Iterable[int], task: Task, on_one: Task) -> Callable[..., object]:
    """Return a function of `count` arrays that does a task, or another one on a single thread.

    Their table has the addresses of the arrays, and then the sizes.
    """
    _pool()  # compiled now, before the first call starts to compile optimized code
    words = [0] * count + [*sizes]
    idle: list[tuple[np.ndarray, Task, Task]] = []  # tables that no call uses

    def run(*arrays: np.ndarray) -> None:
        try:
            entry = idle.pop()
        except IndexError:
            table = np.array(words, np.int64)
            address = data_address(table)
            entry = table, task._replace(table=address), on_one._replace(table=address)
        if not objects.supported:
            entry[0][:count], arrays = [*map(data_address, arrays)], ()
        if get_num_threads() == 1:
            _run_serial(arrays, entry[2])
        else:
            carry_out(entry[1], arrays)
        idle.append(entry)

    return run
