"""Machine code: compiled on all cores, the same whatever their number, with no memory lost."""

import ctypes
import gc
import itertools
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakValueDictionary

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.processes import run_in_child
from tinygrad_cg_frontend import LLVMSource
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import machine, objects, service, signatures, threads
from tinygrad_cg_kernels.runtime.service import TextSource

pytestmark = pytest.mark.skipif(not objects.supported, reason="arrays lie elsewhere in memory")
X = np.random.default_rng(0).normal(size=2 * threads.MIN_BLOCKED)


def several(x):
    """A program of some kernels, each of which needs a total of the one before."""
    for _ in range(3):
        x = tf.sin(x) * x - tf.reduce_mean(x)
    return x


@pytest.fixture
def threads_used(monkeypatch):
    """The threads that compile, where nothing is compiled yet."""
    monkeypatch.setattr(service, "_live", WeakValueDictionary())
    monkeypatch.setattr(TextSource.store, "read", lambda name: None)
    monkeypatch.setattr(TextSource.store, "has", lambda name: False)
    monkeypatch.setattr(TextSource.store, "write", lambda *args: None)
    own, compiled, threads = threading.current_thread(), machine.compile_source, []
    jobs, job, turn = [], machine.Job, threading.Condition()

    def begin(work):
        jobs.append(work)
        return job(work)

    def others_have_begun():
        return len({*threads} - {own}) >= min(machine.cores() - 1, len(jobs), 2)

    def compile_with_others(source):
        thread = threading.current_thread()
        if thread.name != "tinygrad_cg compiler":  # one of those makes optimized code
            with turn:
                threads.append(thread)
                turn.notify_all()
                assert turn.wait_for(others_have_begun, 60)
        return compiled(source)

    monkeypatch.setattr(machine, "Job", begin)
    monkeypatch.setattr(machine, "compile_source", compile_with_others)
    return threads


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_kernels_of_a_program_are_compiled_by_as_many_threads_as_cores(
    cores, threads_used, monkeypatch
):
    monkeypatch.setattr(machine, "cores", lambda: cores)
    before = len(build.compiled)
    result = tf.function(several)(tf.constant(X))
    names = build.compiled[before:]
    count = sum(name == "run" or name.startswith("thread_") for name in names)
    assert 3 <= count <= len(threads_used)  # and what these call
    own = threading.current_thread()
    assert own in threads_used
    others = [thread for thread in threads_used if thread is not own]
    assert min(cores - 1, 2) <= len(set(others)) <= cores - 1
    assert not service._precompiled
    np.testing.assert_allclose(result, several(tf.constant(X)), 1e-12)


def test_a_single_module_needs_no_thread(threads_used, monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: 2)
    tf.function(lambda x: x * 3.5 - x)(tf.constant(X[0]))
    assert threads_used == [threading.current_thread()]


def test_a_kernel_and_the_code_that_calls_it_are_two_modules(threads_used, monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: 2)
    tf.function(lambda x: x * 3.5 - x)(tf.constant(X[:5]))
    assert len(threads_used) == 2
    assert threading.current_thread() in threads_used


@pytest.fixture
def one_other_core(monkeypatch):
    """An executor with one thread, which is busy until the event is set."""
    monkeypatch.setattr(machine, "cores", lambda: 2)
    free = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(machine, "_pool", lambda count: pool)
        yield free
        free.set()


def test_who_asks_does_what_no_core_has_begun(one_other_core):
    first, begun = machine.Job(one_other_core.wait), []
    second = machine.Job(lambda: begun.append(threading.current_thread()) or len(begun))
    assert not second.is_over
    assert [second(), second()] == [1, 1]
    assert begun == [threading.current_thread()]
    one_other_core.set()
    assert first() is True
    assert first.is_over


def test_who_asks_waits_for_what_a_core_has_begun(one_other_core):
    begun = threading.Event()

    def work():
        begun.set()
        return one_other_core.wait() and threading.current_thread()

    job = machine.Job(work)
    begun.wait()
    threading.Timer(0.05, one_other_core.set).start()
    assert job() is not threading.current_thread()


def test_what_failed_is_an_error_each_time(one_other_core):
    one_other_core.set()
    job = machine.Job(lambda: 1 // 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            job()


def test_threads_make_the_same_code():
    """Many at a time, each in a context of its own."""
    texts = [
        "\n".join(
            [
                "define double @entry(double %x) {",
                *[
                    f"  %a{k} = fmul double {'%x' if not k else f'%a{k - 1}'}, {k + n}.5"
                    for k in range(60)
                ],
                "  ret double %a59",
                "}",
            ]
        )
        for n in range(12)
    ]
    alone = [machine.compile_source(LLVMSource(text)) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(machine.compile_source, map(LLVMSource, texts * 5)))
    assert together == alone * 5
    assert len(set(alone)) == 12


TEXT = """
import numpy as np
from tinygrad_cg_kernels.runtime.intrinsics import wide_vectors


def run(x, sizes):
    wide_vectors()
    x[0] = {}
    return True
"""
SIGNATURE = signatures.program([(np.dtype(float), 1)])


def test_what_is_not_translated_is_left_to_numba(threads_used, monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: 2)
    texts = [TEXT.format(expression) for expression in ("x[0] ** 2", "x[0] + 1.0", "x[0] + 2.0")]
    x, sizes = np.array([3.0]), np.zeros(1, np.int64)
    with service.compile_batch([(TextSource(text, "run"), SIGNATURE) for text in texts]):
        assert len(service._precompiled) == 2
        for text in texts:
            run, _ = service.compile(TextSource(text, "run"), SIGNATURE)
            assert run(x, sizes)
    assert x[0] == 12.0
    assert not service._precompiled


def test_what_nobody_asks_for_is_forgotten(threads_used, monkeypatch):
    monkeypatch.setattr(machine, "cores", lambda: 2)

    def fail():
        sources = [TextSource(TEXT.format(k), "run") for k in (1.0, 2.0)]
        with service.compile_batch([(source, SIGNATURE) for source in sources]):
            assert len(service._precompiled) == 2
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not service._precompiled


# Memory ------------------------------------------------------------------------------------------


class Allocated(ctypes.Structure):
    """What glibc says of its memory."""

    _fields_ = [
        *[(name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")],
        *[(name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks")],
        ("keepcost", ctypes.c_size_t),
    ]


def allocated():
    """The bytes that are in use; -1 where nobody says."""
    find = getattr(ctypes.CDLL(None), "mallinfo2", None) if os.name == "posix" else None
    if find is None:
        return -1
    find.restype = Allocated
    gc.collect()
    info = find()
    return info.uordblks + info.hblkhd


@pytest.mark.skipif(allocated() < 0, reason="needs glibc 2.33 or later")
def test_compiling_leaves_no_memory_behind():
    """Pass managers of llvmlite are not freed with their objects: a quarter of a megabyte each."""
    lines = [f"  %y{k} = fadd double %x, {k}.5\n  store double %y{k}, ptr %p" for k in range(300)]
    text = "\n".join(["define void @entry(ptr %p, double %x) {", *lines, "  ret void", "}"])
    source = LLVMSource(text)
    plain = lambda: machine.object_code(machine.optimised(machine.parsed(source)))
    for compile_it in (plain, lambda: machine.compile_source(source)):
        for _ in range(3):
            compile_it()
        before = allocated()
        for _ in range(10):
            compile_it()
        assert (allocated() - before) / 10 < 8_000


def test_memory_goes_back_after_some_code_was_freed(monkeypatch):
    calls = []
    monkeypatch.setattr(machine, "TRIM_INTERVAL", 3)
    monkeypatch.setattr(machine, "give_back", lambda: calls.append(1))
    monkeypatch.setattr(machine.MachineCode, "_freed", itertools.count(1))
    data = machine.compile_source(LLVMSource("define void @entry() {\n  ret void\n}"))
    held = [machine.MachineCode(data) for _ in range(7)]
    assert not calls
    for count in (0, 0, 1, 1, 1, 2, 2):
        held.pop()
        assert len(calls) == count


def test_memory_can_be_given_back():
    machine.give_back()
    assert machine._malloc_trim() is not None or allocated() < 0


# Forks -------------------------------------------------------------------------------------------


def test_jobs_are_done_once_the_pool_takes_none(monkeypatch):
    """As after the main thread has ended, when others go on."""
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    monkeypatch.setattr(machine, "cores", lambda: 2)
    monkeypatch.setattr(machine, "_pool", lambda count: pool)
    assert machine.Job(lambda: 5)() == 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_what_another_thread_compiles():
    locked, done = threading.Event(), threading.Event()

    def compile_slowly():
        with service.lock:
            locked.set()
            time.sleep(0.3)
            done.set()

    thread = threading.Thread(target=compile_slowly)
    thread.start()
    locked.wait()

    def is_done():
        with service.lock:
            return done.is_set()

    run_in_child(is_done)
    thread.join()
