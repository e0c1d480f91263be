"""One place that splits a kernel's range over cores.

The range is cut into blocks of a fixed size, whatever the number of threads, so results
have the same bits on one thread and on many. One compiled splitter serves all kernels: it
calls a block kernel by its address (see `compile.block_address`).
"""

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from time import perf_counter_ns
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tinygrad_cg_kernels.compile import kernel

BLOCK = 16384
"""Elements in a block."""
# An OpenMP thread (GNU's, which Numba uses on Linux) that waits spins for milliseconds: beside
# a busy neighbour 1 ms of work took 12. It is told to give up its core after a few
# microseconds, unless the user chose. Read when the first parallel kernel loads the library.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

THRESHOLD = 4 * BLOCK
"""Elements from which work is done in blocks, by one thread or by several."""

WORTH = 100_000
"""Nanoseconds that the work must take on one thread to be shared: beside busy neighbours,
sharing itself took 40 to 50 us, so that two threads are never behind one. What a kernel takes for
an element is measured on the first blocks that it does, since 100,000 elements are 10 us of a sum
and 100 of an exponential."""

PROBE = 8  # blocks that are measured at a time
SAMPLES = 3  # calls in which they are: the first may wait for memory, or for another process

_config: Any = numba.config
_lock = threading.Lock()
_splitters: dict[bool, Callable] = {}
_rates: dict[int, tuple[float, int]] = {}
"""Nanoseconds for an element, the least that was measured, and in how many calls; by a kernel's
address."""
UNKNOWN = (float("inf"), 0)


def default_threads() -> int:
    """TINYGRAD_CG_NUM_THREADS, or as many threads as Numba may start."""
    available = _config.NUMBA_NUM_THREADS
    chosen = os.environ.get("TINYGRAD_CG_NUM_THREADS") or available
    try:
        return min(max(int(chosen), 1), available)
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
    available = _config.NUMBA_NUM_THREADS
    if not 1 <= count <= available:
        raise ValueError(f"set_num_threads: {count} is not between 1 and {available}")
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
    def split(address, pointers, steps, count, block):
        blocks = (count + block - 1) // block
        a, b, c, d = pointers
        step_a, step_b, step_c, step_d = steps
        for k in numba.prange(blocks):
            _call_block(
                address,
                a + k * step_a,
                b + k * step_b,
                c + k * step_c,
                d + k * step_d,
                min(block, count - k * block),
            )

    name = "split_parallel" if parallel else "split_serial"
    return kernel(split, name, parallel=parallel, nogil=True)


def _loaded(parallel: bool) -> Callable:
    """The splitter, compiled and (for threads: started) by a first call on nothing."""
    run = _splitters.get(parallel)
    if run is None:
        with _lock:
            run = _splitter(parallel)
            run(0, (0, 0, 0, 0), (0, 0, 0, 0), 0, BLOCK)
            _splitters[parallel] = run
    return run


def _guard() -> AbstractContextManager:
    # Numba's workqueue layer aborts the process when two threads enter it at once.
    return _lock if numba.threading_layer() == "workqueue" else nullcontext()


def _run_parallel(arguments: tuple[Any, ...]) -> None:
    run = _loaded(parallel=True)
    count, previous = get_num_threads(), numba.get_num_threads()
    if count == previous:
        with _guard():
            return run(*arguments)
    numba.set_num_threads(count)
    try:
        with _guard():
            run(*arguments)
    finally:
        numba.set_num_threads(previous)


def _run_serial(arguments: tuple[Any, ...]) -> None:
    _loaded(parallel=False)(*arguments)


def _after(arguments: tuple[Any, ...], blocks: int) -> tuple[Any, ...]:
    """What remains of a task when its first blocks are done."""
    address, pointers, steps, count, block = arguments
    moved = [start + step * blocks for start, step in zip(pointers, steps, strict=True)]
    return (address, tuple(moved), steps, count - blocks * block, block)


def _measure(arguments: tuple[Any, ...], weight: float) -> int:
    """Do the first blocks, in two parts, and note the pace of the faster; how many are done."""
    address, *_, count, block = arguments
    best, samples = _rates.get(address, UNKNOWN)
    size = min(PROBE, count // block // 2)
    for part in range(2):
        start = perf_counter_ns()
        _run_serial((*_after(arguments, part * size)[:3], size * block, block))
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
) -> None:
    """Call a block kernel over `count` elements, `block` at a time.

    `pointers` are up to four data addresses; `steps` say by how many bytes each moves from
    one block to the next. `weight` is how many elements of work one counts for.
    """
    unused = (0,) * (4 - len(pointers))
    arguments = (address, (*pointers, *unused), (*steps, *unused), count, block)
    if get_num_threads() == 1 or count < 2 * block:
        return _run_serial(arguments)
    if _rates.get(address, UNKNOWN)[1] < SAMPLES:
        arguments = _after(arguments, _measure(arguments, weight))
    if worth(address, arguments[3] * weight):
        return _run_parallel(arguments)
    return _run_serial(arguments)
