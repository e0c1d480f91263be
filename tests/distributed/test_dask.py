"""Blocks on a Dask cluster of two worker processes: data that stay there, bits, lost workers."""

import faulthandler
import logging
import os
import signal
import threading
import time

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.distributed.test_executors import BLOCKS, TOTALS, W, X, Y, assert_same
from tests.support.block_losses import fitted, logistic, read_rows
from tinygrad_cg import distributed
from tinygrad_cg.errors import BlockError, InvalidArgumentError

pytest.importorskip("distributed", reason="the extra dask brings it")
import dask
import dask.array as da
from dask.distributed import Client, LocalCluster, wait

SIZE = 1_501


@pytest.fixture(scope="module", autouse=True)
def end_for_certain():
    """End the process, and with it the workers, if the cluster hangs."""
    faulthandler.dump_traceback_later(900, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def cluster():
    options = {
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": logging.CRITICAL,
    }
    with (  # a computer with other work may need more than 15 seconds to start a worker again
        dask.config.set({"distributed.deploy.lost-worker-timeout": "300s"}),
        LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster, timeout=120) as client:
        yield client


@pytest.fixture(scope="module")
def arrays(client):
    return tuple(client.persist([da.from_array(X, (SIZE, -1)), da.from_array(Y, SIZE)]))


@pytest.mark.parametrize("name", TOTALS)
def test_each_way_to_a_cluster_gives_the_bits_of_this_process(name, client, arrays):
    expected = TOTALS[name](over=BLOCKS)
    assert_same(TOTALS[name](over=arrays), expected)  # by the current client
    assert_same(TOTALS[name](over=arrays, executor=client), expected)
    assert_same(TOTALS[name](over=BLOCKS, executor=client), expected)
    assert_same(TOTALS[name](over=BLOCKS, executor=client.get_executor(pure=False)), expected)


def test_collections_need_no_cluster():
    arrays = da.from_array(X, (SIZE, -1)), da.from_array(Y, SIZE)
    script = distributed.grad(logistic, over=arrays, executor=None)
    with dask.config.set(scheduler="synchronous"):
        assert_same(script(W), distributed.grad(logistic, over=BLOCKS)(W))


def test_blocks_stay_on_the_workers(client, arrays, monkeypatch):
    """The workers may copy a block from each other; the client receives the gradient alone."""
    wait(arrays)
    results = []
    gather = client.gather

    def recording(*arguments, **options):
        results.append(gather(*arguments, **options))
        return results[-1]

    monkeypatch.setattr(client, "gather", recording)
    gradient = distributed.grad(logistic, over=arrays)(W)
    assert {np.shape(x) for x in tf.nest.flatten(results)} <= {gradient.shape, ()}
    assert len(results) == 1
    held = client.who_has(arrays[0])
    assert len(held) == 14
    assert all(held.values())


def test_persisted_data_are_kept(client):
    over = tuple(client.persist([da.from_array(X + 1, (SIZE, -1)), da.from_array(Y, SIZE)]))
    total = distributed.grad(logistic, over=over)
    expected = distributed.grad(logistic, over=distributed.blocks(X + 1, Y, size=SIZE))(W)
    del over
    for _ in range(2):
        assert_same(total(W), expected)


@pytest.mark.parametrize("count", [2, 9, 21, 70])
def test_sums_of_many_blocks_have_the_bits_of_this_process(client, count):
    terms = np.random.default_rng(count).normal(size=count) * 10.0 ** (np.arange(count) % 7)
    loss, w = lambda w, x: tf.reduce_sum(w * x), np.array(1.0)
    on_workers = distributed.grad(loss, over=da.from_array(terms, 1), executor=client)
    assert_same(on_workers(w), distributed.grad(loss, over=[*terms[:, None]])(w))


def test_files_are_read_by_the_workers(client, tmp_path):
    path = tmp_path / "data.npz"
    np.savez(path, x=X, y=Y)
    keys = [(path, start, start + SIZE) for start in range(0, len(X), SIZE)]
    assert_same(
        distributed.grad(logistic, over=distributed.files(keys, read_rows), executor=client)(W),
        distributed.grad(logistic, over=BLOCKS)(W),
    )
    missing = distributed.files([keys[0], (tmp_path / "no.npz", 0, 1)], read_rows)
    with pytest.raises(BlockError, match="grad: block 1 failed: FileNotFoundError") as caught:
        distributed.grad(logistic, over=missing, executor=client)(W)
    assert caught.value.block == 1


def test_partitions_of_bags_are_stacked(client):
    import dask.bag

    pairs = [(float(x), float(2 * x)) for x in range(10)]
    bag = dask.bag.from_sequence(pairs, npartitions=3)
    loss = lambda w, x, y: w * tf.reduce_sum(x * y)
    assert distributed.grad(loss, over=bag)(np.array(1.0)) == sum(x * y for x, y in pairs)
    few = bag.filter(lambda pair: pair[0] > 8)  # two partitions are empty
    assert distributed.grad(loss, over=few)(np.array(1.0)) == 9 * 18


def test_partitions_of_dataframes_are_dicts_of_columns(client):
    dataframe = pytest.importorskip("dask.dataframe", reason="it needs pandas and pyarrow")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": np.arange(10.0), "y": np.arange(10.0) ** 2})
    parts = dataframe.from_pandas(frame, npartitions=3)
    loss = lambda w, block: w * tf.reduce_sum(block["x"] * block["y"])
    assert distributed.grad(loss, over=parts)(np.array(1.0)) == (np.arange(10.0) ** 3).sum()


def test_collections_that_do_not_fit_are_refused():
    x, y = da.from_array(X, (SIZE, -1)), da.from_array(Y, SIZE)
    for over, words in [
        (
            (x, y.rechunk(1_000)),
            r"the same partitions, got \([\d, ]+\) and \([\d, ]+\): use rechunk",
        ),
        (da.from_array(X, (SIZE, 4)), r"divided along its first axis only, got \(14, 2\) chunks"),
        (da.from_array(np.array(1.0)), r"divided along its first axis only, got \(\) chunks"),
    ]:
        with pytest.raises(InvalidArgumentError, match=words):
            distributed.grad(logistic, over=over)
    with pytest.raises(TypeError, match="a tuple must have only Dask collections"):
        distributed.grad(logistic, over=(x, [Y]))
    with pytest.raises(
        TypeError, match=r"got DelayedLeaf: use dask.bag.from_delayed, or files\(\)"
    ):
        distributed.grad(logistic, over=dask.delayed(X))


def test_a_block_that_raises_is_named(client, arrays):
    nan = da.from_array(np.where(np.arange(len(X)) == 4 * SIZE, np.nan, Y), SIZE)
    with pytest.raises(
        BlockError, match="grad: block 4 failed: FloatingPointError: its result has"
    ):
        distributed.grad(logistic, over=(arrays[0], nan))(W)
    broken = arrays[1].map_blocks(
        lambda y, block_id: y * (1 / int(block_id[0] != 5)), dtype=Y.dtype
    )
    with pytest.raises(BlockError, match="block 5 failed: ZeroDivisionError") as caught:
        distributed.jacobian(fitted, over=(arrays[0], broken))(W)
    assert caught.value.block == 5


def test_map_runs_on_the_workers(client):
    pids = distributed.map(lambda _: os.getpid(), range(8), executor=client)
    assert os.getpid() not in pids
    with pytest.raises(BlockError, match="map: item 3 failed: ZeroDivisionError"):
        distributed.map(lambda x: 1 / (x - 3), range(8), executor=client)


def test_large_parameters_are_no_large_graph(client):
    """Dask warns of graphs over 10 MB, and warnings are errors here."""
    w = np.ones(2_000_000)
    over = da.ones((6, 1), chunks=(2, 1))
    gradient = distributed.grad(lambda w, x: tf.reduce_sum(x) * tf.reduce_sum(w), over=over)(w)
    assert (gradient == 6).all()


def slowly(w, x, y):
    wait = lambda x: time.sleep(0.1) or np.asarray(x)
    return logistic(w, tf.ensure_shape(tf.numpy_function(wait, [x], tf.float64), x.shape), y)


def test_a_lost_worker_leaves_the_bits(client):
    """Workers are killed in the middle of sums, and Dask starts others.

    ``python -m benchmarks.distributed --kills 20`` has more trials.
    """
    expected = distributed.value_and_grad(logistic, over=BLOCKS)(W)
    arrays = da.from_array(X, (SIZE, -1)), da.from_array(Y, SIZE)
    total = distributed.value_and_grad(slowly, over=arrays)
    assert_same(total(W), expected)
    for trial in range(3):
        client.wait_for_workers(2, timeout=120)
        pids = [*client.run(os.getpid).values()]
        kill = threading.Timer(0.2, os.kill, (pids[trial % 2], signal.SIGKILL))
        kill.start()
        result = total(W)
        assert not kill.is_alive()
        assert_same(result, expected)


def test_a_block_that_ends_its_workers_is_named(client):
    """After the retries of the engine, of which there are none here, or a block beside it."""

    def set_retries(count, dask_scheduler):
        dask_scheduler.allowed_failures = count

    client.run_on_scheduler(set_retries, 0)
    end = lambda x: os._exit(1) if x[0] == 2 else np.asarray(x)
    loss = lambda w, x: w * tf.reduce_sum(tf.numpy_function(end, [x], tf.float64))
    over = da.from_array(np.repeat(np.arange(4.0), 3), 3)
    client.wait_for_workers(2, timeout=120)
    with pytest.raises(BlockError, match=r"grad: block [0-3] failed: KilledWorker") as caught:
        distributed.grad(loss, over=over)(np.array(1.0))
    client.run_on_scheduler(set_retries, 3)
    assert caught.value.block in range(4)  # all tasks of a lost worker are suspected
