"""Kernels that count how often their units are done, and tasks of them for a pool of threads."""

import numpy as np

from tinygrad_cg_frontend import LLVMSource
from tinygrad_cg_kernels.runtime import machine, thread_pool

# count(table, first, units) adds 1 to each of its units of the array that the table begins with;
# wait(...) does so as well, after the array's last element has become other than 0; hesitate(...)
# waits unless its units are the first.
KERNELS = """
define void @count(i64 %table, i64 %first, i64 %units) {
entry:
  %place = inttoptr i64 %table to ptr
  %array = load ptr, ptr %place
  %end = add i64 %first, %units
  br label %loop
loop:
  %i = phi i64 [%first, %entry], [%next, %loop]
  %element = getelementptr i64, ptr %array, i64 %i
  %old = load volatile i64, ptr %element
  %new = add i64 %old, 1
  store volatile i64 %new, ptr %element
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}

define void @wait(i64 %table, i64 %first, i64 %units) {
entry:
  %place = inttoptr i64 %table to ptr
  %array = load ptr, ptr %place
  %place_of_size = getelementptr i64, ptr %place, i64 1
  %size = load i64, ptr %place_of_size
  %flag = getelementptr i64, ptr %array, i64 %size
  br label %look
look:
  %word = load atomic i64, ptr %flag acquire, align 8
  %go = icmp ne i64 %word, 0
  br i1 %go, label %run, label %look
run:
  call void @count(i64 %table, i64 %first, i64 %units)
  ret void
}

define void @hesitate(i64 %table, i64 %first, i64 %units) {
  %begins = icmp eq i64 %first, 0
  br i1 %begins, label %now, label %later
now:
  call void @count(i64 %table, i64 %first, i64 %units)
  ret void
later:
  call void @wait(i64 %table, i64 %first, i64 %units)
  ret void
}
"""


def compiled() -> machine.MachineCode:
    """The kernels as machine code."""
    return machine.MachineCode(machine.compile_source(LLVMSource(KERNELS)))


def run(shared, count, array, kernel, step, first=0, units=None):
    """Do one task: the kernel on an array, in blocks of `step`; how many the caller did."""
    table = np.array([0, array.size - 1], np.int64)
    units = array.size if units is None else units
    task = (array,), kernel, table.ctypes.data, first, units, step
    return shared.share(shared.address, count, thread_pool.SPINS, *task)


def many_tasks(shared, kernel, seed, tasks, most=4):
    """Do random tasks; the tasks of which a block was not done once, and blocks left to others."""
    random = np.random.default_rng(seed)
    wrong, left = [], 0
    for _ in range(tasks):
        size, step = int(random.integers(1, 2000)), int(random.integers(1, 60))
        count, times = int(random.integers(1, most + 1)), int(random.integers(1, 4))
        array = np.zeros(size, np.int64)
        blocks = -(-size // step)
        for _ in range(times):
            own = run(shared, count, array, kernel, step)
            assert 0 <= own <= blocks
            left += blocks - own
            assert count > 1 or own == blocks
        if not (array == times).all():
            wrong.append((size, step, count, np.unique(array).tolist()))
    return wrong, left
