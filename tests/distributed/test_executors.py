"""Blocks on executors with the interface of concurrent.futures: bits, errors and pickling."""

import faulthandler
import os
import sys
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.block_losses import data, fitted, logistic, mean_logistic, read_rows
from tinygrad_cg import distributed
from tinygrad_cg.errors import BlockError
from tinygrad_cg_kernels.linear import blas
from tinygrad_cg_kernels.runtime import threads

X, Y, W = data(20_000, 8)
BLOCKS = distributed.blocks(X, Y, size=1_501)
TOTALS = {
    "sum": lambda **options: distributed.value_and_grad(logistic, **options)(W),
    "mean": lambda **options: distributed.grad(mean_logistic, reduction="mean", **options)(W),
    "hvp": lambda **options: distributed.hvp(logistic, **options)(W, W),
    "hessian": lambda **options: distributed.hessian(logistic, **options)(W),
    "jacobian": lambda **options: distributed.jacobian(fitted, **options)(W),
}


@pytest.fixture(scope="module", autouse=True)
def end_for_certain():
    """End the process if a pool hangs."""
    faulthandler.dump_traceback_later(600, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        yield pool


def assert_same(a, b):
    for x, y in zip(tf.nest.flatten(a), tf.nest.flatten(b), strict=True):
        assert type(x) is type(y)
        np.testing.assert_array_equal(x, y)


class AtOnce(Executor):
    """The least that the interface asks for: futures that are done."""

    def submit(self, fn, /, *args, **kwargs):
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.mark.parametrize("name", TOTALS)
@pytest.mark.parametrize("kind", ["threads", "processes", "at once"])
def test_each_executor_gives_the_bits_of_this_process(name, kind, processes):
    expected = TOTALS[name](over=BLOCKS)
    pools = {"threads": lambda: ThreadPoolExecutor(3), "processes": lambda: processes}
    pool = pools.get(kind, AtOnce)()
    assert_same(TOTALS[name](over=BLOCKS, executor=pool), expected)
    if pool is not processes:
        pool.shutdown()


def test_workers_read_files_themselves(processes, tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, x=X, y=Y)
    keys = [(path, start, start + 1_501) for start in range(0, len(X), 1_501)]
    reader = lambda key: (os.getpid(), *read_rows(key))  # cloudpickle sends it
    with_process = distributed.files(keys, reader)
    loss = lambda w, pid, x, y: logistic(w, x, y) + 0.0 * tf.cast(pid, w.dtype)
    total = distributed.grad(loss, over=with_process, executor=processes)(W)
    assert_same(total, distributed.grad(logistic, over=BLOCKS)(W))
    pids = distributed.map(lambda key: reader(key)[0], keys, executor=processes)
    assert os.getpid() not in pids


def test_map_runs_in_processes(processes):
    """An ensemble of least squares on bootstraps."""

    def fit(seed):
        rows = np.random.default_rng(seed).integers(len(X), size=500)
        hessian = distributed.hessian(logistic, over=[(X[rows], Y[rows])])(W)
        return np.linalg.slogdet(hessian)[1]

    assert distributed.map(fit, range(4), executor=processes) == [fit(seed) for seed in range(4)]
    with pytest.raises(BlockError, match="map: item 1 failed: ZeroDivisionError") as caught:
        distributed.map(lambda x: 1 / x, [1, 0, 1], executor=processes)
    assert "Traceback" in caught.value.__notes__[0]


def test_a_block_that_raises_in_a_process_is_named_with_its_traceback(processes):
    over = [np.zeros(3), np.zeros((2, 2)), np.zeros(3)]
    loss = lambda w, x: tf.reduce_sum(w * x)
    with pytest.raises(BlockError, match="grad: block 1 failed: InvalidArgumentError") as caught:
        distributed.grad(loss, over=over, executor=processes)(np.ones(3))
    assert caught.value.block == 1
    assert "InvalidArgumentError" in caught.value.__notes__[0]
    nan = [np.ones(3), np.full(3, np.nan)]
    with pytest.raises(
        BlockError, match="block 1 failed: FloatingPointError: its result has a NaN"
    ):
        distributed.grad(loss, over=nan, executor=processes)(np.ones(3))


def test_a_lost_process_is_an_error_that_names_a_block():
    end = lambda x: os._exit(1) if x[0] == 2 else np.asarray(x)
    loss = lambda w, x: w * tf.reduce_sum(tf.numpy_function(end, [x], tf.float64))
    over = [np.full(3, float(index)) for index in range(4)]
    words = r"grad: block \d failed: BrokenProcessPool"
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as pool,
        pytest.raises(BlockError, match=words),
    ):
        distributed.grad(loss, over=over, executor=pool)(np.array(1.0))


def test_few_blocks_are_read_ahead_of_an_executor():
    """Two for each worker: what is submitted and not yet computed."""
    read, computed = [], []

    class Late(AtOnce):
        _max_workers = 2

        def submit(self, fn, /, *args, **kwargs):
            future: Future = Future()
            future.result = lambda timeout=None: computed.append(len(read)) or fn(*args)
            return future

    def over():
        for index in range(20):
            read.append(index)
            yield np.array([1.0])

    loss = lambda w, x: w * tf.reduce_sum(x)
    assert distributed.grad(loss, over=over, executor=Late())(np.array(1.0)) == 20
    assert computed == [min(4 + index, 20) for index in range(20)]


def test_blocks_on_workers_use_one_thread_of_each_library(restore_threads):
    seen = set()

    def note(x):
        seen.add((blas.get_num_threads(), threads.get_num_threads()))
        return np.asarray(x)

    loss = lambda w, x: w * tf.reduce_sum(tf.numpy_function(note, [x], tf.float64))
    before = blas.get_num_threads(), threads.get_num_threads()
    with ThreadPoolExecutor(2) as pool:
        distributed.grad(loss, over=[np.ones(2)] * 8, executor=pool)(np.array(1.0))
    assert seen == {(1, 1)}
    assert (blas.get_num_threads(), threads.get_num_threads()) == before


def test_a_process_compiles_a_function_once(processes):
    """The number of programs that worker processes keep does not grow with the steps."""
    total = distributed.grad(logistic, over=BLOCKS, executor=processes)

    def programs(_):
        from tinygrad_cg.distributed._data_blocks import _objects

        kept = [value for value in _objects.values() if hasattr(value, "cache_size")]
        return os.getpid(), [value.cache_size for value in kept]

    total(W)
    first = dict(distributed.map(programs, range(8), executor=processes))
    for step in range(3):
        total(W + step)
    after = dict(distributed.map(programs, range(8), executor=processes))
    for process in first.keys() & after.keys():
        assert len(after[process]) <= len(first[process]) + 1
        assert all(size <= 2 for size in after[process])  # the last block is shorter


def test_captured_values_are_those_of_the_call(processes):
    scale = tf.Variable(1.0, dtype=tf.float64)
    total = distributed.grad(lambda w, x: scale * w * tf.reduce_sum(x), over=[np.ones(2)] * 2)
    remote = distributed.grad(
        lambda w, x: scale * w * tf.reduce_sum(x), over=[np.ones(2)] * 2, executor=processes
    )
    for value in (1.0, 3.0):
        scale.assign(value)
        assert total(np.array(1.0)) == remote(np.array(1.0)) == 4 * value


def test_what_cannot_be_pickled_is_an_error_that_says_what_to_do(monkeypatch, processes):
    lock = threading.Lock()
    loss = lambda w, x: w * tf.reduce_sum(x) * (1 if lock else 2)
    with pytest.raises(TypeError, match="grad: functions for other processes must be pickled"):
        distributed.grad(loss, over=[np.ones(2)], executor=processes)(np.array(1.0))
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    assert_same(TOTALS["sum"](over=BLOCKS, executor=processes), TOTALS["sum"](over=BLOCKS))
    with pytest.raises(TypeError, match="install cloudpickle, or define them in a module"):
        distributed.map(lambda x: x, [1], executor=processes)
    with ThreadPoolExecutor(1) as pool:
        assert distributed.map(lambda x: x, [1], executor=pool) == [1]
