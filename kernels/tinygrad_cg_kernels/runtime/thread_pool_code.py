"""The code that the threads of a pool run (see `thread_pool`), in the kernel language.

A pool is memory: words of 8 bytes, and a record for each of its threads. The caller, whose index is
0, and the workers read and write it by the operations of `thread_intrinsics`.
"""

from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import inlined
from tinygrad_cg_kernels.runtime.objects import DATA, ITEMS, LENGTH
from tinygrad_cg_kernels.runtime.objects.fields import store, word
from tinygrad_cg_kernels.runtime.thread_intrinsics import (
    acquire_interpreter,
    acquire_lock,
    acquire_lock_timed,
    add_acq_rel,
    add_relaxed,
    call_kernel,
    choose_cores,
    compare_exchange_acq_rel,
    compare_exchange_seq_cst,
    current_core,
    exchange_seq_cst,
    integer_of,
    load_acquire,
    load_relaxed,
    load_seq_cst,
    new_integer,
    or_acq_rel,
    pause,
    read_cores,
    release_interpreter,
    release_lock,
    store_relaxed,
    store_release,
    thread_number,
)

LINE = 128  # bytes between words that different cores write: two cache lines
GENERATION = 0  # of the latest task
DONE = LINE  # blocks that are done; WAITS is added if the caller sleeps until all are
BUSY = 2 * LINE  # whether a caller uses the pool
# The task (see `threads.Task`). It only changes while no claim word has blocks left.
ADDRESS, TABLE, FIRST, UNITS, STEP, BLOCKS, PARTS = range(3 * LINE, 3 * LINE + 56, 8)
CORE = 3 * LINE + 56  # that the caller runs on
NEXT_WORKER = 4 * LINE  # to wake
NEAR = 4 * LINE + 8  # whether a worker runs on the caller's core
FINISHED = 5 * LINE  # the lock that the caller sleeps on
SPINS = 5 * LINE + 8  # see `thread_pool`, as for BACKOFF
WORKERS = 5 * LINE + 16  # how many were started
BACKOFF = 5 * LINE + 24
SKIP = 5 * LINE + 32  # how many of the next tasks the caller does alone
POLLS = 5 * LINE + 40  # how often a worker looks for the next task before it sleeps
RECORDS = 6 * LINE  # one for the caller and each worker
# The words of a record. `CLAIM` has the generation in its upper half, and in the lower half the
# number of blocks of the part that are left. `SLEEPS` is 1 if `LOCK` has to wake the thread.
CLAIM, SLEEPS, POOL, INDEX, LOCK, THREAD = 0, 64, 72, 80, 88, 96
# Sets of cores: those that the worker began with, or that another program has set since; those that
# it keeps to; and two for temporary use.
GIVEN, KEPT, NOW, OTHERS = range(LINE, 5 * LINE, LINE)
RECORD_SIZE = 5 * LINE
WAITS = 1 << 62
LEFT = (1 << 32) - 1
PATIENCE = 100  # microseconds that a caller sleeps before it helps its only worker
CORES = 128  # bytes of a set of cores, one bit each; with more cores, workers do not move
MAX_BLOCKS = 1 << 31


@jitable
def record_of(pool, index):
    """Return the address of a thread's record."""
    inlined()
    return pool + RECORDS + index * RECORD_SIZE


# --- one block, and all of them on one thread ---------------------------------------------


@jitable
def run_block(address, table, first, units, step, k):
    """Do block k of a task."""
    inlined()
    start = k * step
    call_kernel(address, table, first + start, min(units - start, step))


@jitable
def run_blocks(address, table, first, units, step, blocks):
    """Do all blocks of a task."""
    for k in range(blocks):
        run_block(address, table, first, units, step, k)


# --- work on the published task, by the caller and by workers -----------------------------


@jitable
def wake_one(pool, parts):
    """Wake the next worker, if it sleeps and may take part."""
    if load_relaxed(pool + NEXT_WORKER) < parts:
        index = add_relaxed(pool + NEXT_WORKER, 1)
        if index < parts:
            record = record_of(pool, index)
            if load_seq_cst(record + SLEEPS) == 1 and exchange_seq_cst(record + SLEEPS, 0) == 1:
                release_lock(word(record, LOCK))


@jitable
def run_part(pool, index, part):
    """Do the blocks that are left of a part of the task; return how many."""
    claim, done = record_of(pool, part) + CLAIM, 0
    while True:
        claimed = load_acquire(claim)
        left = claimed & LEFT
        if left == 0:
            break
        # The task cannot change as long as the claim word does not.
        address, table = load_relaxed(pool + ADDRESS), load_relaxed(pool + TABLE)
        first, units = load_relaxed(pool + FIRST), load_relaxed(pool + UNITS)
        step, blocks = load_relaxed(pool + STEP), load_relaxed(pool + BLOCKS)
        parts = load_relaxed(pool + PARTS)
        if index >= parts:
            break
        if compare_exchange_acq_rel(claim, claimed, claimed - 1):
            wake_one(pool, parts)
            wake_one(pool, parts)
            end = blocks * (part + 1) // parts
            run_block(address, table, first, units, step, end - left)
            done += 1
    return done


@jitable
def work(pool, index):
    """Do blocks of the thread's own part, then of the parts after it; return how many."""
    parts, done = load_acquire(pool + PARTS), 0
    if index < parts:
        for turn in range(parts):
            part = index + turn
            done += run_part(pool, index, part if part < parts else part - parts)
    if done != 0:  # from here on the task may change
        blocks = load_relaxed(pool + BLOCKS)
        if add_acq_rel(pool + DONE, done) + done == blocks | WAITS:
            release_lock(word(pool, FINISHED))
    return done


# --- cores --------------------------------------------------------------------------------


@jitable
def copy_cores(source, target):
    """Copy a set of cores."""
    for k in range(0, CORES, 8):
        store(target, k, word(source, k))


@jitable
def same_cores(x, y):
    """Return whether two sets of cores are the same."""
    for k in range(0, CORES, 8):  # noqa: SIM110 (Numba has no all)
        if word(x, k) != word(y, k):
            return False
    return True


@jitable
def exchange_core(cores, core):
    """Remove a core from a set that has it, or add it to a set that does not."""
    place = cores + 8 * (core >> 6)
    store(place, 0, word(place, 0) ^ (1 << (core & 63)))


@jitable
def leave_core(record, core):
    """Move this worker to the other cores that it may use."""
    now, chosen, kept, others = record + NOW, record + GIVEN, record + KEPT, record + OTHERS
    if read_cores(0, CORES, now) >= 0:
        if not same_cores(now, kept):
            copy_cores(now, chosen)
        copy_cores(chosen, others)
        exchange_core(others, core)
        copy_cores(others if choose_cores(0, CORES, others) == 0 else now, kept)


@jitable
def wait_for_one(pool, lock):
    """Sleep until the only worker has done its block.

    If that takes long, the worker may wait behind other processes. It then gets this thread's core,
    which is idle meanwhile.
    """
    if acquire_lock_timed(lock, PATIENCE, 0) != 1:
        thread, core = load_acquire(record_of(pool, 1) + THREAD), current_core()
        own, here = record_of(pool, 0) + KEPT, record_of(pool, 0) + NOW
        if 0 <= core < 8 * CORES and read_cores(thread, CORES, own) >= 0:
            for k in range(0, CORES, 8):
                store(here, k, 0)
            exchange_core(here, core)
            choose_cores(thread, CORES, here)
            acquire_lock(lock, 1)
            choose_cores(thread, CORES, own)
        else:
            acquire_lock(lock, 1)


# --- a worker's life ----------------------------------------------------------------------


@jitable
def is_close(record, pool):
    """Return whether a worker runs on the caller's core and cannot leave it."""
    core, here = load_relaxed(pool + CORE), current_core()
    if here != core or here < 0 or here >= 8 * CORES:
        return False
    leave_core(record, here)
    return current_core() == here


def worker(record):
    """Work on one task after the other, forever."""
    pool, index, lock = word(record, POOL), word(record, INDEX), word(record, LOCK)
    read_cores(0, CORES, record + GIVEN)
    copy_cores(record + GIVEN, record + KEPT)
    store_release(record + THREAD, thread_number())
    seen = spun = 0
    while seen >= 0:
        generation, polls = load_acquire(pool + GENERATION), load_relaxed(pool + POLLS)
        if generation != seen:
            seen = generation
            if is_close(record, pool):
                # Polling would take the core from the other thread.
                store_relaxed(pool + NEAR, 1)
                work(pool, index)
                spun = polls
            elif work(pool, index) != 0:
                spun = 0
        elif spun < polls:
            spun += 1
            pause()
        else:
            # A task that was published before others saw SLEEPS is not missed.
            exchange_seq_cst(record + SLEEPS, 1)
            came = load_seq_cst(pool + GENERATION) != seen
            if not (came and compare_exchange_seq_cst(record + SLEEPS, 1, 0)):
                acquire_lock(lock, 1)
            spun = 0
    return 0


# --- what Python calls --------------------------------------------------------------------


@jitable
def integer_argument(arguments, k):
    """Return the value of an int among the arguments."""
    inlined()
    return integer_of(word(arguments, 8 * k))


@jitable
def write_addresses(table, arrays, count):
    """Write the addresses of arrays' elements to the first words of a table."""
    inlined()
    for k in range(0, 8 * count, 8):
        store(table, k, word(word(arrays, k), DATA))


@jitable
def enter(pool, parts):
    """Try to take the pool for a task of `parts` parts; return whether that worked."""
    if not compare_exchange_acq_rel(pool + BUSY, 0, 1):
        return False
    skip = word(pool, SKIP)
    if skip > 0 and parts == 2:
        store(pool, SKIP, skip - 1)
        store_release(pool + BUSY, 0)
        return False
    return True


@jitable
def publish(pool, address, table, first, units, step, blocks, parts, polls):
    """Publish a task for workers."""
    store_relaxed(pool + POLLS, polls)
    store_relaxed(pool + ADDRESS, address)
    store_relaxed(pool + TABLE, table)
    store_relaxed(pool + FIRST, first)
    store_relaxed(pool + UNITS, units)
    store_relaxed(pool + STEP, step)
    store_relaxed(pool + BLOCKS, blocks)
    store_relaxed(pool + PARTS, parts)
    store_relaxed(pool + NEXT_WORKER, 1)
    store_relaxed(pool + CORE, current_core())
    store_relaxed(pool + NEAR, 0)
    store_relaxed(pool + DONE, 0)
    generation, begin = load_relaxed(pool + GENERATION) + 1, 0
    for part in range(parts):
        end = blocks * (part + 1) // parts
        store_release(record_of(pool, part) + CLAIM, (generation << 32) | (end - begin))
        begin = end
    exchange_seq_cst(pool + GENERATION, generation)


@jitable
def await_others(pool, blocks, parts):
    """Wait until the blocks that workers claimed are done."""
    spun, spins, lock = 0, load_relaxed(pool + SPINS), word(pool, FINISHED)
    while load_acquire(pool + DONE) != blocks:
        spun += 1
        if spun <= spins and load_relaxed(pool + NEAR) == 0:
            pause()
            continue
        if or_acq_rel(pool + DONE, WAITS) != blocks:
            if parts == 2:
                wait_for_one(pool, lock)
            else:
                acquire_lock(lock, 1)
        break


@jitable
def leave(pool, parts):
    """Release the pool to other callers."""
    near = load_relaxed(pool + NEAR)
    store(pool, SKIP, near * word(pool, BACKOFF) if parts == 2 else 0)
    store_release(pool + BUSY, 0)


def share(owner, arguments, count):
    """``share(pool, threads, polls, arrays, *task)``, see `thread_pool`."""
    pool, threads = integer_argument(arguments, 0), integer_argument(arguments, 1)
    polls, arrays = integer_argument(arguments, 2), word(arguments, 24)
    address, table = integer_argument(arguments, 4), integer_argument(arguments, 5)
    first, units = integer_argument(arguments, 6), integer_argument(arguments, 7)
    step = integer_argument(arguments, 8)
    write_addresses(table, arrays + ITEMS, word(arrays, LENGTH))
    blocks = (units + step - 1) // step
    state = release_interpreter()
    parts, done = min(threads, blocks, word(pool, WORKERS) + 1), blocks
    if parts > 1 and blocks < MAX_BLOCKS and enter(pool, parts):
        publish(pool, address, table, first, units, step, blocks, parts, polls)
        done = work(pool, 0)
        await_others(pool, blocks, parts)
        leave(pool, parts)
    else:
        run_blocks(address, table, first, units, step, blocks)
    acquire_interpreter(state)
    return new_integer(done)


def launch(owner, arrays, count):
    """``launch(*arrays)``, see `thread_pool`.

    It runs under the interpreter's lock, so no other thread writes to the table meanwhile.
    """
    table = word(owner, DATA)
    write_addresses(table + 16, arrays, count)
    call_kernel(word(table, 0), table + 16, 0, word(table, 8))
    return new_integer(0)
