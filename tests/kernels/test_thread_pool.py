"""The pool of threads: each block is done once, whoever comes, whenever, and from where."""

import ctypes
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.support.orders import run_in_threads
from tests.support.pool_tasks import compiled, many_tasks, run
from tests.support.python import run_python
from tinygrad_cg_kernels.runtime import generated, service, thread_pool, thread_pool_code
from tinygrad_cg_kernels.runtime.thread_pool import Pool


@pytest.fixture(scope="module")
def code():
    return compiled()


@pytest.fixture(scope="module")
def four():
    """A pool of four threads, whatever the number of cores."""
    pool = Pool(4)
    pool.start_workers(3)
    assert pool.workers == 3
    return pool


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_each_block_is_done_once(four, code, most):
    end = time.monotonic() + 60
    wrong, left = many_tasks(four, code.address("count"), most, 3000, most)
    while most > 1 and not left and not wrong:  # other processes have the other cores
        assert time.monotonic() < end
        wrong, left = many_tasks(four, code.address("count"), most, 3000, most)
    assert not wrong
    assert (left > 0) == (most > 1)


def test_each_block_is_done_once_after_pauses(four, code):
    """Workers sleep meanwhile, and are woken."""
    array = np.zeros(20_000, np.int64)
    for _ in range(50):
        time.sleep(0.002)
        run(four, 4, array, code.address("count"), 10)
    assert (array == 50).all()


def test_several_callers(four, code):
    kernel = code.address("count")
    results = run_in_threads(*[partial(many_tasks, four, kernel, k, 2000) for k in range(4)])
    assert [wrong for wrong, _ in results] == [[]] * 4


def test_a_range_that_does_not_begin_at_0(four, code):
    array = np.zeros(1000, np.int64)
    run(four, 4, array, code.address("count"), 7, first=100, units=801)
    assert (array == np.repeat([0, 1, 0], [100, 801, 99])).all()


def test_nothing_to_do(four, code):
    assert run(four, 4, np.zeros(5, np.int64), code.address("count"), 3, units=0) == 0


# Two words that no field has: workers wait while one is 0, and say by the other that they do.
GATE = thread_pool_code.POLLS + 8
ARRIVED = GATE + 8
CLAIM = "        if compare_exchange_acq_rel(claim"
HALT = f"""        if index != 0:
            store_release(pool + {ARRIVED}, 1)
            while load_acquire(pool + {GATE}) == 0:
                pause()
"""


@pytest.fixture
def changed(monkeypatch):
    """Return a function that makes a pool of two of a changed text, and tells its worker's name."""

    def make(old, new):
        text = Path(thread_pool_code.__file__).read_text(encoding="utf-8")
        assert text.count(old) == 1
        monkeypatch.setattr(thread_pool, "code", generated.load(text.replace(old, new)))
        forget()
        pool = Pool(2)
        before = threads_of_system()
        pool.start_workers(1)
        return pool, threads_of_system() - before

    yield make
    forget()


def forget():
    """Forget what is compiled."""
    thread_pool._address.cache_clear()
    thread_pool._method.cache_clear()


def threads_of_system():
    tasks = Path("/proc/self/task")
    return {int(name) for name in os.listdir(tasks)} if tasks.exists() else set()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads Linux's own files")
def test_a_worker_leaves_the_core_of_the_caller(changed, code):
    """For others that it may run on, and for none if there is no other."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) == 1:
        pytest.skip("there is one core")
    restless, (worker,) = changed("if here != core or ", "if ")  # each core is taken for it
    array = np.zeros(1000, np.int64)

    def cores_after_tasks():
        for _ in range(30):
            time.sleep(0.001)
            run(restless, 2, array, code.address("count"), 10)
        return os.sched_getaffinity(worker)

    end = time.monotonic() + 60
    while cores_after_tasks() == allowed:
        assert time.monotonic() < end
    for _ in range(5):
        kept = cores_after_tasks()
        assert kept < allowed
        assert len(kept) == len(allowed) - 1

    def stays_where_it_is_put():
        left = allowed - os.sched_getaffinity(worker)
        os.sched_setaffinity(worker, left)
        return cores_after_tasks() == left

    assert any(stays_where_it_is_put() for _ in range(20))  # unless it is just about to leave
    assert len(set(array.tolist())) == 1


def test_a_worker_that_is_late_claims_no_block_of_the_next_task(changed, code):
    """It has looked at one task; the next has as many blocks left where it claims one."""
    assert thread_pool_code.RECORDS >= GATE + 16
    halted, _ = changed(CLAIM, HALT + CLAIM)
    gate, arrived = (ctypes.c_int64.from_address(halted.address + word) for word in (GATE, ARRIVED))
    first, second, calls = np.zeros(200_000, np.int64), np.zeros(3, np.int64), 0
    end = time.monotonic() + 60
    while not arrived.value:  # until it comes before the caller has done both blocks
        assert time.monotonic() < end
        assert run(halted, 2, first, code.address("count"), 100_000) == 2
        calls += 1
    ctypes.c_int64.from_address(halted.address + thread_pool_code.SKIP).value = 0
    kernel = code.address("wait")
    caller = threading.Thread(target=run, args=(halted, 2, second, kernel, 1, 0, 2))
    caller.start()
    wait_until_busy(halted)
    gate.value = 1
    time.sleep(0.05)
    assert not second.any()
    second[2] = 1
    caller.join()
    assert (second == 1).all()
    assert (first == calls).all()


def test_a_caller_waits_for_a_block_that_takes_long(code):
    """Longer than it spins, and than it sleeps before it looks for the worker."""
    two, array, waited, tries = Pool(2), np.zeros(200_001, np.int64), 0, 0
    two.start_workers(1)
    end = time.monotonic() + 60
    while waited < 5:  # until the worker has come to the second block before the caller
        assert time.monotonic() < end
        array[-1] = 0
        timer = threading.Timer(0.003, array.__setitem__, (-1, 1))
        timer.start()
        waited += run(two, 2, array, code.address("hesitate"), 100_000, units=200_000) == 1
        timer.join()
        tries += 1
        assert array[-1] == 1
    assert (array[:-1] == tries).all()


def wait_until_busy(shared):
    """Wait until a caller has a pool."""
    word = ctypes.c_int64.from_address(shared.address + thread_pool_code.BUSY)
    end = time.monotonic() + 60
    while not word.value:
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_second_caller_does_its_work_alone(four, code):
    """It waits neither for the pool nor for the first caller."""
    first, second = np.zeros(9, np.int64), np.zeros(1000, np.int64)
    kernel = code.address("wait")
    caller = threading.Thread(target=run, args=(four, 4, first, kernel, 1, 0, 8))
    caller.start()
    wait_until_busy(four)
    assert run(four, 4, second, code.address("count"), 1) == 1000
    assert (second == 1).all()
    assert caller.is_alive()
    assert not first.any()
    first[8] = 1
    caller.join()
    assert (first == 1).all()


def test_the_caller_needs_nobody(code):
    """Workers that are expected, and never come, are not waited for."""
    lonely = Pool(4)
    lonely._write(thread_pool_code.WORKERS, 3)
    array = np.zeros(1000, np.int64)
    assert run(lonely, 4, array, code.address("count"), 10) == 100
    assert (array == 1).all()


def test_threads_that_the_system_does_not_give(code, monkeypatch):
    asked = []

    def refuse(*args):
        asked.append(args)
        return thread_pool.NO_THREAD

    monkeypatch.setattr(thread_pool, "_start_thread", refuse)
    poor = Pool(4)
    for _ in range(3):
        poor.start_workers(3)
    assert len(asked) == 1
    assert (poor.workers, poor.threads) == (0, 1)
    assert run(poor, 4, np.zeros(1000, np.int64), code.address("count"), 10) == 100


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads Linux's own files")
def test_workers_leave_signals_to_others():
    before = threads_of_system()
    Pool(2).start_workers(1)
    (worker,) = threads_of_system() - before

    def taken():
        status = Path(f"/proc/self/task/{worker}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("SigBlk")]
        blocked = int(line.split()[1], 16)
        return {number for number in signal.valid_signals() if not blocked >> (number - 1) & 1}

    end = time.monotonic() + 30  # a thread that begins blocks everything
    while not taken() >= {signal.SIGSEGV, signal.SIGFPE}:
        assert time.monotonic() < end
    assert not taken() & {signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1}


def program(text, *arguments, **environment):
    """A program in a process of its own."""
    begin = (
        "import os, sys, threading, time\nimport numpy as np\n"
        "from tests.support.pool_tasks import compiled, many_tasks, run\n"
        "from tinygrad_cg_kernels.runtime.thread_pool import Pool\n"
    )
    options = ("-X", "faulthandler", "-c", begin + text)
    return run_python(*options, *arguments, check=False, **environment)


ONE_CORE = """
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
made, code = Pool(4), compiled()
made.start_workers(3)
wrong, left = many_tasks(made, code.address("count"), 0, 1000)
print(wrong)
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system chooses the core")
def test_all_threads_on_one_core():
    assert program(ONE_CORE).stdout.strip() == "[]"


EXIT = """
made, code = Pool(4), compiled()
made.start_workers(3)
array = np.zeros(100_000, np.int64)
kernel = code.address("count")

def work():
    while True:
        run(made, 4, array, kernel, 100)

run(made, 4, array, kernel, 100)
if sys.argv[1] == "daemon":
    threading.Thread(target=work, daemon=True).start()
    time.sleep(0.01)
if sys.argv[1] == "asleep":
    time.sleep(0.05)
"""


@pytest.mark.parametrize("workers", ["awake", "asleep", "daemon"])
def test_the_interpreter_ends_in_silence(workers):
    for _ in range(2):
        done = program(EXIT, workers)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


FORK = """
made, code = Pool(4), compiled()
made.start_workers(3)
kernel = code.address("count")
stop = threading.Event()

def work():
    array = np.zeros(10_000, np.int64)
    while not stop.is_set():
        run(made, 4, array, kernel, 10)

caller = threading.Thread(target=work)
caller.start()
codes = []
for _ in range(20):
    child = os.fork()
    if not child:
        array = np.zeros(1000, np.int64)
        good = run(made, 4, array, kernel, 10) == 100 and (array == 1).all()
        os._exit(0 if good else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
caller.join()
print(codes == [0] * 20, many_tasks(made, kernel, 0, 100)[0])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_forked_child_works_alone():
    """Its pool is a copy, taken in the middle of tasks, and has no workers."""
    done = program(FORK)
    assert done.stdout.strip() == "True []", done.stderr


CACHED = """
made, code = Pool(2), compiled()
made.start_workers(1)
print(many_tasks(made, code.address("count"), 0, 10)[0])
"""


@pytest.mark.skipif(service.uses_numba(), reason="Numba's code is not kept")
def test_damaged_code_is_compiled_anew(tmp_path):
    def loaded():
        done = program(CACHED, TINYGRAD_CG_CACHE_DIR=str(tmp_path))
        assert done.stdout.strip() == "[]", done.stderr
        return done.stderr

    assert not loaded()
    paths = [*tmp_path.glob("*/kernels/*.code")]
    assert len(paths) == 2
    for path in paths:
        data = bytearray(path.read_bytes())
        data[-100] ^= 1
        path.write_bytes(data)
    assert "is damaged" in loaded()
    assert not loaded()
