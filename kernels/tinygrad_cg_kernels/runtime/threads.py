"""One place that splits a kernel's range over cores.

The range is cut into blocks of a fixed size, whatever the number of threads, so results
have the same bits on one thread and on many. One compiled splitter serves all kernels: it
calls a block kernel by its address (see `compile.block_address`).
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from time import perf_counter_ns
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tinygrad_cg_kernels.runtime.compile import entry, kernel
from tinygrad_cg_kernels.runtime.objects import DATA, OBJECT, put, word
from tinygrad_cg_kernels.runtime.objects import address as place_of

BLOCK = 16384
"""Elements in a block."""
THRESHOLD = 4 * BLOCK
"""Elements from which work is done in blocks, by one thread or by several."""

WORTH = 100_000
"""Nanoseconds that the work must take on one thread to be shared: beside busy neighbours,
sharing itself took 40 to 50 us, so that two threads are never behind one. What a kernel takes for
an element is measured on the first blocks that it does, since 100,000 elements are 10 us of a sum
and 100 of an exponential."""

SPINS = "1000"
"""How often a thread of GNU's OpenMP, which Numba uses on Linux, looks for work before it sleeps.
By default it looks for milliseconds: beside a busy neighbour 1 ms of work took 12. These are a few
microseconds."""

PROBE = 8  # blocks that are measured at a time
SAMPLES = 3  # calls in which they are: the first may wait for memory, or for another process

_config: Any = numba.config
_MOST: int = _config.NUMBA_NUM_THREADS
_lock = threading.Lock()
_splitters: dict[bool, Callable] = {}
_rates: dict[int, tuple[float, int]] = {}
"""Nanoseconds for an element, the least that was measured, and in how many calls; by a kernel's
address."""
UNKNOWN = (float("inf"), 0)
Four = tuple[int, int, int, int]
Task = tuple[int, Four, Four, int, int]
"""A block kernel's address, four pointers, their steps, and how many elements, by how many."""
NONE = (0, None, None, None, None)
"""No arrays for `split`."""


def default_threads() -> int:
    """TINYGRAD_CG_NUM_THREADS, or as many threads as Numba may start."""
    chosen = os.environ.get("TINYGRAD_CG_NUM_THREADS") or _MOST
    try:
        return min(max(int(chosen), 1), _MOST)
    except ValueError:
        raise ValueError(f"TINYGRAD_CG_NUM_THREADS={chosen!r} is not a number") from None


class _State:
    threads = default_threads()
    forked = False


def get_num_threads() -> int:
    """How many threads large kernels use."""
    return 1 if _State.forked else _State.threads


def set_num_threads(count: int) -> None:
    """Use this many threads for large kernels, at most as many as Numba may start."""
    if not 1 <= count <= _MOST:
        raise ValueError(f"set_num_threads: {count} is not between 1 and {_MOST}")
    _State.threads = count


def _enter_child() -> None:
    # A forked child that enters an OpenMP region is killed: it stays on one thread.
    global _lock
    _lock = threading.Lock()
    _State.forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_enter_child)


@intrinsic
def _call_block(typingctx, address, a, b, c, d, count):
    def generate(context, builder, signature, arguments):
        word = context.get_value_type(types.intp)
        pointer = ir.IntType(8).as_pointer()
        declared = ir.FunctionType(ir.VoidType(), [pointer] * 4 + [word])
        function = builder.inttoptr(arguments[0], declared.as_pointer())
        pointers = [builder.inttoptr(value, pointer) for value in arguments[1:5]]
        builder.call(function, [*pointers, arguments[5]])
        return context.get_dummy_value()

    return types.void(*[types.intp] * 6), generate


def _splitter(parallel: bool) -> Callable:
    def split(threads, arrays, w, x, y, z, address, pointers, steps, count, block):
        blocks = (count + block - 1) // block
        a, b, c, d = pointers
        if arrays > 0:
            put(a, 0, word(place_of(w), DATA))
        if arrays > 1:
            put(a, 8, word(place_of(x), DATA))
        if arrays > 2:
            put(a, 16, word(place_of(y), DATA))
        if arrays > 3:
            put(a, 24, word(place_of(z), DATA))
        step_a, step_b, step_c, step_d = steps
        for part in numba.prange(threads):
            for k in range(blocks * part // threads, blocks * (part + 1) // threads):
                _call_block(
                    address,
                    a + k * step_a,
                    b + k * step_b,
                    c + k * step_c,
                    d + k * step_d,
                    min(block, count - k * block),
                )

    name = "split_parallel" if parallel else "split_serial"
    made = kernel(split, name, parallel=parallel, nogil=True)
    number, four = types.intp, types.UniTuple(types.intp, 4)
    return entry(made, number, number, *[OBJECT] * 4, number, four, four, number, number)


def _loaded(parallel: bool) -> Callable:
    """The splitter, compiled; the threads start with a first call on nothing."""
    run = _splitters.get(parallel)
    if run is None:
        with _lock, _brief_spins() if parallel else nullcontext():
            run = _splitter(parallel)
            run(1, *NONE, 0, (0, 0, 0, 0), (0, 0, 0, 0), 0, BLOCK)
            _splitters[parallel] = run
    return run


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


def _run_parallel(count: int, arrays: tuple[Any, ...], task: Task) -> None:
    """Call the splitter on `count` threads."""
    run = _splitters.get(True) or _loaded(parallel=True)
    alone = numba.threading_layer() == "workqueue"
    if count == _MOST and not alone:
        run(count, *arrays, *task)
        return
    previous = numba.get_num_threads()
    numba.set_num_threads(count)  # the others need not wake
    try:
        # Numba's workqueue layer aborts the process when two threads enter it at once.
        with _lock if alone else nullcontext():
            run(count, *arrays, *task)
    finally:
        numba.set_num_threads(previous)


def _run_serial(arrays: tuple[Any, ...], task: Task) -> None:
    run = _splitters.get(False) or _loaded(parallel=False)
    run(1, *arrays, *task)


def _after(task: Task, blocks: int) -> Task:
    """What remains of a task when its first blocks are done."""
    address, pointers, steps, count, block = task
    a, b, c, d = [start + step * blocks for start, step in zip(pointers, steps, strict=True)]
    return (address, (a, b, c, d), steps, count - blocks * block, block)


def _measure(arrays: tuple[Any, ...], task: Task, weight: float) -> int:
    """Do the first blocks, in two parts, and note the pace of the faster; how many are done."""
    address, *_, count, block = task
    best, samples = _rates.get(address, UNKNOWN)
    size = min(PROBE, count // block // 2)
    for part in range(2):
        start = perf_counter_ns()
        _run_serial(arrays, (*_after(task, part * size)[:3], size * block, block))
        pace = (perf_counter_ns() - start) / (size * block * weight)
        best = min(best, pace)
    _rates[address] = best, samples + 1
    return 2 * size


def worth(address: int, work: float) -> bool:
    """Whether threads may pay for so many elements, as far as is known."""
    return get_num_threads() > 1 and _rates.get(address, UNKNOWN)[0] * work >= WORTH


def split(
    address: int,
    pointers: Sequence[int],
    steps: Sequence[int],
    count: int,
    block: int = BLOCK,
    weight: float = 1.0,
    arrays: tuple[Any, ...] = NONE,
) -> None:
    """Call a block kernel over `count` elements, `block` at a time.

    `pointers` are up to four data addresses; `steps` say by how many bytes each moves from
    one block to the next. `weight` is how many elements of work one counts for. `arrays` are how
    many and four arrays (or None), whose data addresses are written to the first pointer's
    first words.
    """
    unused = (0,) * (4 - len(pointers))
    a, b, c, d = (*pointers, *unused)
    step_a, step_b, step_c, step_d = (*steps, *unused)
    task = (address, (a, b, c, d), (step_a, step_b, step_c, step_d), count, block)
    carry_out(task, weight, arrays)


def carry_out(task: Task, weight: float, arrays: tuple[Any, ...] = NONE) -> None:
    """As `split`, for a task that is ready: its four pointers and steps are there."""
    address, _, _, count, block = task
    threads = get_num_threads()
    if threads == 1 or count < 2 * block:
        return _run_serial(arrays, task)
    pace, samples = _rates.get(address, UNKNOWN)
    if samples < SAMPLES:
        task = _after(task, _measure(arrays, task, weight))
        pace, count = _rates[address][0], task[3]
    if pace * count * weight >= WORTH:
        return _run_parallel(threads, arrays, task)
    return _run_serial(arrays, task)
