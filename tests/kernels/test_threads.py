"""Splitting over threads: the same bits, forks, and threads of the caller's own."""

import os
from functools import partial

import numpy as np
import pytest

from tests.support import pool_tasks
from tests.support.orders import run_in_threads
from tests.support.python import run_python
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.reduce import moments, reduction, scan, softmax
from tinygrad_cg_kernels.runtime import objects, threads

exp = Elementwise("exp", elementary.exp, 1, "float")
multiply = Elementwise("multiply", elementary.multiply, 2)
LARGE = np.random.default_rng(0).normal(size=threads.MIN_BLOCKED * 3 + 5)
MATRIX = np.random.default_rng(1).normal(size=(500, 700))

pytestmark = pytest.mark.usefixtures("restore_threads")


def results():
    return [
        exp(LARGE).tobytes(),
        multiply(LARGE, LARGE).tobytes(),
        reduction.sum(LARGE, (0,)).tobytes(),
        reduction.sum(LARGE.astype(np.float32), (0,)).tobytes(),
        reduction.max(LARGE, (0,)).tobytes(),
        *[reduction.sum(MATRIX, (axis,)).tobytes() for axis in (0, 1)],
        reduction.sum(MATRIX.T[:, ::2], (0,)).tobytes(),
        multiply(MATRIX, MATRIX[:, :1]).tobytes(),
        multiply(MATRIX.T, MATRIX.T[0]).tobytes(),
        *[softmax.softmax(MATRIX, axis).tobytes() for axis in (0, 1)],
        *[softmax.logsumexp(MATRIX, (axis,)).tobytes() for axis in (0, 1)],
        *[scan.cumsum(MATRIX, axis).tobytes() for axis in (0, 1)],
        *[moments.variance(MATRIX, axes).tobytes() for axes in ((0,), (1,), (0, 1))],
    ]


def test_the_same_bits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(threads, "MIN_PARALLEL_NS", 0)
    everything = results()
    threads.set_num_threads(1)
    assert results() == everything


def test_the_same_bits_on_more_threads_than_cores(monkeypatch):
    """Three threads, on any machine."""
    everything = results()
    monkeypatch.setattr(threads, "MIN_PARALLEL_NS", 0)
    monkeypatch.setattr(threads, "_MAX_THREADS", 3)
    monkeypatch.setattr(threads._State, "pool", None)
    for count in (2, 3):
        threads.set_num_threads(count)
        assert results() == everything
    pool = threads._State.pool
    assert pool is not None
    assert pool.workers == 2
    threads.set_num_threads(1)


def test_the_same_bits_as_in_small_pieces():
    pieces = np.concatenate([exp(part) for part in np.array_split(LARGE, 50)])
    assert exp(LARGE).tobytes() == pieces.tobytes()


def test_the_same_bits_where_objects_are_not_looked_into(monkeypatch):
    everything = results()
    monkeypatch.setattr(objects, "supported", False)
    threads.bind.cache_clear()
    assert results() == everything
    threads.bind.cache_clear()


def test_small_work_is_not_shared(monkeypatch):
    if threads.default_threads() == 1:
        pytest.skip("there is one thread")
    shared = []
    parallel = threads._run_parallel
    monkeypatch.setattr(threads, "_run_parallel", lambda *run: (shared.append(run), parallel(*run)))
    for worth, expected in ((1e15, 0), (0, 1)):
        monkeypatch.setattr(threads, "MIN_PARALLEL_NS", worth)
        for _ in range(2):  # what the first blocks take is measured, then known
            shared.clear()
            monkeypatch.setattr(threads, "_rates", {})
            np.testing.assert_array_equal(multiply(LARGE, LARGE), LARGE * LARGE)
            assert len(shared) == (expected if LARGE.size > 5 * threads.BLOCK else 0)


@pytest.mark.parametrize("is_alone", [False, True])
def test_less_work_is_shared_in_programs_of_kernels_alone(monkeypatch, is_alone):
    shared = []
    monkeypatch.setattr(threads, "_run_parallel", lambda *run: shared.append(run))
    monkeypatch.setattr(threads, "_run_serial", lambda *run: None)
    monkeypatch.setattr(threads._State, "threads", 2)
    work = (threads.MIN_AWAKE_NS + threads.MIN_PARALLEL_NS) // 2
    task = threads.Task(1, 0, 0, work, 1, 1.0, is_alone)
    monkeypatch.setattr(threads, "_rates", {1: (1.0, threads.MIN_SAMPLES)})
    threads.carry_out(task)
    assert len(shared) == is_alone


def test_a_pace_that_is_no_longer_true_is_measured_again(monkeypatch):
    """Code is freed, and slower code comes to its address."""
    code = pool_tasks.compiled()
    array, table = np.zeros(1000, np.int64), np.zeros(2, np.int64)
    task = threads.Task(code.address("count"), table.ctypes.data, 0, 1000, 10, 1.0)
    monkeypatch.setattr(threads, "_rates", {task.address: (1e-9, threads.MIN_SAMPLES)})
    monkeypatch.setattr(threads, "MIN_PARALLEL_NS", 10)
    monkeypatch.setattr(threads._State, "threads", 2)
    threads.carry_out(task, (array,))
    assert not threads._rates
    threads.carry_out(task, (array,))
    pace, samples = threads._rates[task.address]
    assert pace > 1e-6
    assert samples == 1
    assert (array == 2).all()


class Paced:
    """A task of six blocks of ten units; what runs takes the time that it is told to."""

    def __init__(self, monkeypatch):
        self.code = pool_tasks.compiled()
        self.array, self.table = np.zeros(60, np.int64), np.zeros(2, np.int64)
        address = self.code.address("count")
        self.task = threads.Task(address, self.table.ctypes.data, 0, 60, 10, 1.0)
        self.now, self.block, self.alone, self.shared = 0, 0, [], []
        serial, parallel = threads._run_serial, threads._run_parallel

        def run_serial(arrays, part):
            self.now += self.block * part.units // part.step
            self.alone += [part.units] if part.units else []
            serial(arrays, part)

        def run_parallel(count, arrays, part):
            self.now += self.block * part.units // part.step // count
            self.shared.append(part.units)
            parallel(count, arrays, part)

        monkeypatch.setattr(threads, "_rates", {})
        monkeypatch.setattr(threads, "_run_serial", run_serial)
        monkeypatch.setattr(threads, "_run_parallel", run_parallel)
        monkeypatch.setattr(threads, "perf_counter_ns", lambda: self.now)
        monkeypatch.setattr(threads._State, "threads", 2)

    def run(self, block):
        """Run the task, where a block takes so many nanoseconds; return the pace that is known."""
        self.block = block
        self.alone.clear()
        self.shared.clear()
        threads.carry_out(self.task, (self.array,))
        return threads._rates[self.task.address]


@pytest.mark.parametrize(("block", "alone"), [(1_000_000, [10]), (1_000, [10, 30, 20])])
def test_long_work_is_shared_after_one_block(monkeypatch, block, alone):
    """Of six blocks, each of which takes so many nanoseconds, these are done by one thread."""
    paced = Paced(monkeypatch)
    assert paced.run(block) == (block / 10, 1)
    assert paced.alone == alone
    assert (paced.array == 1).all()


def test_work_that_is_known_to_take_long_is_shared_as_a_whole(monkeypatch):
    """Where the first call had to wait for something the second one shows it."""
    paced = Paced(monkeypatch)
    paced.run(1_000_000)
    assert paced.run(1_000_000) == (100_000, 2)
    assert (paced.alone, paced.shared) == ([], [60])
    assert paced.run(1_000) == (100, 3)
    assert (paced.alone, paced.shared) == ([], [60])
    assert paced.run(1_000) == (100, 3)
    assert (paced.alone, paced.shared) == ([60], [])
    assert (paced.array == 4).all()


def test_settings():
    threads.set_num_threads(1)
    assert threads.get_num_threads() == 1
    for bad in (0, -1, 10**6):
        with pytest.raises(ValueError, match=f"set_num_threads: {bad} is not between 1 and"):
            threads.set_num_threads(bad)


run = partial(run_python, check=False)


def test_the_environment_sets_the_number():
    program = "from tinygrad_cg_kernels.runtime import threads\nprint(threads.get_num_threads())"
    assert run(program, TINYGRAD_CG_NUM_THREADS="1").stdout.strip() == "1"
    assert "is not a number" in run(program, TINYGRAD_CG_NUM_THREADS="two").stderr


STARTED = """
import os
import sys
import threading
import numpy as np
from tinygrad_cg_kernels.reduce import reduction
from tinygrad_cg_kernels.runtime import compile, threads

threads.MIN_PARALLEL_NS = 0
before = dict(os.environ)
reduction.sum(np.ones((1000, 1000)), (0,))
assert threads._State.pool.workers == threads.get_num_threads() - 1
assert dict(os.environ) == before
print([name for name in sys.modules if name.endswith(("omppool", "tbbpool", "workqueue"))])
print(*[thread.name for thread in threading.enumerate() if "compiler" not in thread.name])
names = compile.compiled + compile.loaded
print(*[name for name in names if "sum" not in name and "thread_pool" not in name])
"""


@pytest.mark.skipif(threads.default_threads() == 1, reason="there is one thread")
def test_threads_need_no_library_and_no_kernel_of_numba():
    """Neither OpenMP nor TBB is loaded, the environment is as it was, and no more is compiled."""
    assert run(STARTED).stdout.split() == ["[]", "MainThread"]


FORK = """
import os, sys
import numpy as np
from tinygrad_cg_kernels.reduce import reduction
from tinygrad_cg_kernels.runtime import threads

threads.MIN_PARALLEL_NS = 0
x = np.ones(threads.MIN_BLOCKED * 2)
want = reduction.sum(x, (0,))
child = os.fork()
if child == 0:
    good = threads.get_num_threads() == 1 and reduction.sum(x, (0,)) == want
    os._exit(0 if good else 1)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), reduction.sum(x, (0,)) == want)
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_stays_on_one_thread():
    if hasattr(os, "fork"):
        assert run(FORK).stdout.split() == ["0", "True"]


CALLERS = """
import threading
import numpy as np
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.reduce import moments, reduction, scan, softmax
from tinygrad_cg_kernels.runtime import threads
from tinygrad_cg_kernels.loops.engine import Elementwise

exp = Elementwise("exp", elementary.exp, 1, "float")
threads.MIN_PARALLEL_NS = 0
x = np.linspace(-1, 1, threads.MIN_BLOCKED * 2)
want, good = exp(x), []

def work():
    good.append(all((exp(x) == want).all() for _ in range(20)))

workers = [threading.Thread(target=work) for _ in range(4)]
[worker.start() for worker in workers]
[worker.join() for worker in workers]
print(good)
"""


@pytest.mark.parametrize("layer", ["default", "workqueue"])
def test_callers_with_threads_of_their_own(layer):
    done = run(CALLERS, NUMBA_THREADING_LAYER=layer)
    assert done.stdout.strip() == str([True] * 4), done.stderr


def test_first_use_from_many_threads_at_once():
    square = Elementwise("square", elementary.square, 1)
    x = np.arange(5.0)
    results = run_in_threads(*[lambda: square(x).tolist()] * 8)
    assert results == [[0, 1, 4, 9, 16]] * 8
