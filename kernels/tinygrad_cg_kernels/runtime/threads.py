"""Splitting a kernel's range over cores.

The range is cut into blocks of a fixed size, whatever the number of threads, so results
have the same bits on one thread and on many. One compiled splitter serves all kernels: it
calls a block kernel by its address (see `compile.block_address`).
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from time import perf_counter_ns
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types

from tinygrad_cg_kernels.runtime import objects
from tinygrad_cg_kernels.runtime.compile import entry, kernel
from tinygrad_cg_kernels.runtime.intrinsics import emitted
from tinygrad_cg_kernels.runtime.locks import ForkLock
from tinygrad_cg_kernels.runtime.objects import DATA, data_address
from tinygrad_cg_kernels.runtime.objects.fields import OBJECT, address_of, word, write_addresses

BLOCK = 16384
"""Elements in a block."""
THRESHOLD = 4 * BLOCK
"""Elements from which work is done in blocks, by one thread or by several."""

WORTH = 100_000
"""Nanoseconds that the work must take on one thread to be shared: with busy neighbours, sharing
itself took 40 to 50 us, so that two threads are never behind one. The time a kernel takes for an
element is measured on the first blocks that it does, since 100,000 elements are 10 us of a sum and
100 of an exponential.
"""

SPINS = "1000"
"""The number of times that a thread of GNU's OpenMP, which Numba uses on Linux, looks for work
before it sleeps. By default it looks for milliseconds: with a busy neighbour 1 ms of work took 12.
These are a few microseconds.
"""

PROBE = 8  # blocks that are measured at a time
SAMPLES = 3  # calls in which they are: the first may wait for memory, or for another process

_config: Any = numba.config
_MOST: int = _config.NUMBA_NUM_THREADS
_lock = ForkLock()
_splitters: dict[bool, Callable] = {}
_rates: dict[int, tuple[float, int]] = {}
"""Nanoseconds for an element, the least that was measured, and in how many calls; by a kernel's
address."""
UNKNOWN = (float("inf"), 0)


class Task(NamedTuple):
    """The work of a block kernel."""

    address: int
    """The kernel's; it is called with a table's address, the first unit and how many units."""
    table: int
    first: int
    units: int
    step: int
    """Units in a block."""
    weight: float
    """Elements of work in a unit."""


def default_threads() -> int:
    """Return TINYGRAD_CG_NUM_THREADS, or the number of threads that Numba may start."""
    chosen = os.environ.get("TINYGRAD_CG_NUM_THREADS") or _MOST
    try:
        return min(max(int(chosen), 1), _MOST)
    except ValueError:
        raise ValueError(f"TINYGRAD_CG_NUM_THREADS={chosen!r} is not a number") from None


class _State:
    threads = default_threads()
    forked = False


def get_num_threads() -> int:
    """Return the number of threads that large kernels use."""
    return 1 if _State.forked else _State.threads


def set_num_threads(count: int) -> None:
    """Use this many threads for large kernels, at most as many as Numba may start."""
    if not 1 <= count <= _MOST:
        raise ValueError(f"set_num_threads: {count} is not between 1 and {_MOST}")
    _State.threads = count


def _enter_child() -> None:
    # A forked child that enters an OpenMP region is killed: it stays on one thread.
    _State.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_enter_child)


@emitted(types.void(*[types.intp] * 4))
def _call_block(context, builder, address, table, first, count):
    declared = ir.FunctionType(ir.VoidType(), [table.type] * 3)
    builder.call(builder.inttoptr(address, declared.as_pointer()), [table, first, count])


def _load_splitter(parallel: bool) -> Callable:
    """Return the splitter, compiled; the threads start with a first call on nothing."""

    def split(threads, arrays, address, table, first, units, step):
        blocks = (units + step - 1) // step
        write_addresses(table, address_of(arrays))
        for part in numba.prange(threads):
            for k in range(blocks * part // threads, blocks * (part + 1) // threads):
                _call_block(address, table, first + k * step, min(step, units - k * step))

    name = "split_parallel" if parallel else "split_serial"
    with _lock, _brief_spins() if parallel else nullcontext():
        if parallel not in _splitters:
            made = kernel(split, name, parallel=parallel, nogil=True)
            run = entry(made, types.intp, OBJECT, *[types.intp] * 5)
            run(1, (), 0, 0, 0, 0, BLOCK)
            _splitters[parallel] = run
    return _splitters[parallel]


@contextmanager
def _brief_spins() -> Iterator[None]:
    """Have an OpenMP library that is loaded now, and no other, take `SPINS`.

    Unless the user chose, or has loaded it.
    """
    if "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = SPINS
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def _run_parallel(count: int, arrays: tuple[np.ndarray, ...], task: Task) -> None:
    """Call the splitter on `count` threads."""
    run = _splitters.get(True) or _load_splitter(parallel=True)
    alone = numba.threading_layer() == "workqueue"
    if count == _MOST and not alone:
        run(count, arrays, *task[:5])
        return
    previous = numba.get_num_threads()
    numba.set_num_threads(count)  # the others need not wake
    try:
        # Numba's workqueue layer aborts the process when two threads enter it at once.
        with _lock if alone else nullcontext():
            run(count, arrays, *task[:5])
    finally:
        numba.set_num_threads(previous)


def _run_serial(arrays: tuple[np.ndarray, ...], task: Task) -> None:
    run = _splitters.get(False) or _load_splitter(parallel=False)
    run(1, arrays, *task[:5])


def _after(task: Task, blocks: int) -> Task:
    """Return the rest of a task whose first blocks are done."""
    done = blocks * task.step
    return task._replace(first=task.first + done, units=task.units - done)


def _measure(arrays: tuple[np.ndarray, ...], task: Task) -> int:
    """Run the first blocks in two parts; note the faster's pace; return how many are done."""
    best, samples = _rates.get(task.address, UNKNOWN)
    size = min(PROBE, task.units // task.step // 2)
    for part in range(2):
        start = perf_counter_ns()
        _run_serial(arrays, _after(task, part * size)._replace(units=size * task.step))
        pace = (perf_counter_ns() - start) / (size * task.step * task.weight)
        best = min(best, pace)
    _rates[task.address] = best, samples + 1
    return 2 * size


def carry_out(task: Task, arrays: tuple[np.ndarray, ...] = ()) -> None:
    """Do a task, on several threads where that pays.

    The addresses of the arrays, if there are any, are written to the table's first words.
    """
    threads = get_num_threads()
    if threads == 1 or task.units < 2 * task.step:
        return _run_serial(arrays, task)
    pace, samples = _rates.get(task.address, UNKNOWN)
    if samples < SAMPLES:
        task = _after(task, _measure(arrays, task))
        pace = _rates[task.address][0]
    if pace * task.units * task.weight >= WORTH:
        return _run_parallel(threads, arrays, task)
    return _run_serial(arrays, task)


@lru_cache(maxsize=4096)
def bind(
    address: int, count: int, sizes: tuple[int, ...], units: int, work: int, block: int = BLOCK
) -> Callable[..., None]:
    """Return a function that runs all units of a block kernel on `count` arrays.

    A table tells the kernel where the arrays are and, after that, the sizes. `work` is how many
    elements are looked at in all: much work is cut into blocks of about so many elements, which
    threads share, and is done without the interpreter's lock. Tables are kept for the next call.
    """

    def new_table() -> np.ndarray:
        return np.array([0] * count + list(sizes), np.int64)

    if work < THRESHOLD and objects.supported:
        own = new_table()

        def run_small(*arrays: np.ndarray) -> None:
            (_launch or _load_launch())(address, own, units, arrays)

        return run_small

    step = max(block * units // max(work, 1), 1)
    step -= step % 4 if step > 4 else 0  # rows are reduced four at a time
    weight = work / units
    idle: list[tuple[np.ndarray, Task, Task]] = []  # that no call is using

    def run(*arrays: np.ndarray) -> None:
        try:
            entry = idle.pop()
        except IndexError:
            table = new_table()
            alone = Task(address, data_address(table), 0, units, units, weight)
            entry = table, alone, alone._replace(step=step)
        if not objects.supported:
            entry[0][:count], arrays = [*map(data_address, arrays)], ()
        if get_num_threads() == 1:
            _run_serial(arrays, entry[1])
        else:
            carry_out(entry[2], arrays)
        idle.append(entry)

    return run


_launch: Callable | None = None


def _load_launch() -> Callable:
    global _launch

    def launch(address, table, units, arrays):
        table_address = word(address_of(table), DATA)
        write_addresses(table_address, address_of(arrays))
        _call_block(address, table_address, 0, units)

    # Under the interpreter's lock: no other thread writes to the table meanwhile.
    with _lock:
        made = kernel(launch, "launch")
        _launch = _launch or entry(made, types.intp, OBJECT, types.intp, OBJECT)
    return _launch
