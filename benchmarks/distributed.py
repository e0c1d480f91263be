"""`python -m benchmarks.distributed`: two Dask workers against one, lost workers, and peak memory.

Gradients over blocks that take a worker 50 ms each are computed by clusters of one and two
processes, which start in turns. The loss of a network reads and writes arrays of
hidden units, so that workers share the computer's memory bandwidth; a fit of a sum of exponentials
computes 24 of them for two numbers that it reads, in one loop. Blocks that only wait show what the
engine adds; two processes that share no data show what the machine allows. Then workers are killed
in the middle of sums. At last, data in files are summed up by two workers with less memory than the
data take, and by this process. `--gigabytes 4 --limit 1` has data of four times a worker's limit.
"""

import argparse
import itertools
import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tinygrad_cg as tf
from tinygrad_cg import distributed
from tinygrad_cg._tour.console import table

UNITS, COLUMNS, DECAYS = 64, 32, 24
BLOCK = 0.064  # gigabytes of a file
SECONDS = 0.05  # that a block takes at least
TURNS = 2


def loss(parameters: Any, x: Any) -> Any:
    """Return the sum of squares of a network's residuals over a block."""
    weights, outer = parameters
    hidden = tf.tanh(x @ weights)
    return tf.reduce_sum((tf.linalg.matvec(tf.tanh(hidden), outer) - x[:, 0]) ** 2)


def parameters() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(2)
    return generator.normal(size=(COLUMNS, UNITS)) / 6, generator.normal(size=UNITS) / 8


def misfit(parameters: Any, x: Any) -> Any:
    """Return the sum of squares of a sum of exponentials of the first column, less the second."""
    amounts, rates = parameters
    decays = amounts * tf.exp(-(rates**2) * x[:, :1] ** 2)
    return tf.reduce_sum((tf.reduce_sum(decays, 1) - x[:, 1]) ** 2)


def decays() -> tuple[np.ndarray, np.ndarray]:
    return np.full(DECAYS, 1 / DECAYS), np.linspace(0.1, 2.0, DECAYS)


class Work(NamedTuple):
    """A loss over blocks of some columns, at parameters."""

    name: str
    loss: Any
    parameters: tuple[np.ndarray, np.ndarray]
    columns: int


WORKS = (
    Work("network", loss, parameters(), COLUMNS),
    Work("sum of exponentials", misfit, decays(), 2),
)


def random_block(key: tuple[int, ...]) -> np.ndarray:
    """Return the block of a seed, a number of rows, and one of columns."""
    seed, rows, *columns = key
    return np.random.default_rng(seed).normal(size=(rows, *(columns or [COLUMNS])))


@contextmanager
def cluster(workers: int, limit: str = "0") -> Iterator[Any]:
    """Begin worker processes of one thread; yield their client."""
    from dask import config  # pyright: ignore[reportPrivateImportUsage]
    from dask.distributed import Client, LocalCluster

    options: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    options |= {"silence_logs": logging.CRITICAL, "memory_limit": limit}
    with (  # workers that were killed may need more than 15 seconds to start
        config.set({"distributed.deploy.lost-worker-timeout": "300s"}),
        LocalCluster(n_workers=workers, threads_per_worker=1, **options) as local,
        Client(local) as client,
    ):
        yield client


def rows_of_a_block(work: Work, seconds: float) -> int:
    """Return how many rows take this process, on one thread, at least that long."""
    before = tf.get_num_threads()
    tf.set_num_threads(1)
    rows, least = 20_000, 0.0
    while least < seconds:  # large blocks run other code than small ones
        rows = int(rows * min(1.1 * seconds / least, 8)) if least else rows
        total = distributed.value_and_grad(work.loss, over=[random_block((0, rows, work.columns))])
        times = []
        for _ in range(8):
            start = time.perf_counter()
            total(work.parameters)
            times.append(time.perf_counter() - start)
        least = min(times)
    tf.set_num_threads(before)
    return rows


class Runs(NamedTuple):
    """What calls of a gradient took in one cluster: seconds, processor time, and the results."""

    times: list[float]
    used: list[float]  # by the busiest worker, in each turn
    results: list[Any]


def busiest(client: Any) -> float:
    """Return the most processor time that a worker has used."""
    return max(client.run(time.process_time).values())


def run(total: Any, at: Any, client: Any, repeats: int, runs: Runs) -> None:
    """Call a gradient once, and so many times with a clock."""
    runs.results.append(total(at))
    before = busiest(client)
    for _ in range(repeats):
        start = time.perf_counter()
        total(at)
        runs.times.append(time.perf_counter() - start)
    runs.used.append(busiest(client) - before)


def speed(blocks: int, repeats: int, seconds: float) -> list[list[str]]:
    """Compare one worker and two, whose blocks are in their memory.

    There is one cluster at a time: processes of an idle one take some hundredths of a core.
    """
    keys = {}
    for work in WORKS:
        rows = rows_of_a_block(work, seconds)
        keys[work.name] = [(seed, rows, work.columns) for seed in range(blocks)]
    runs = {(name, count): Runs([], [], []) for name in (*keys, "waiting") for count in (1, 2)}
    waiting, limits = distributed.files([seconds] * blocks, wait_for_block), []
    for count in (1, 2) * TURNS:
        with cluster(count) as client:
            for work in WORKS:
                over = in_memory(client, keys[work.name])
                total = distributed.value_and_grad(work.loss, over=over, executor=client)
                run(total, work.parameters, client, repeats, runs[work.name, count])
                del total, over
            total = distributed.value_and_grad(loss, over=waiting, executor=client)
            run(total, parameters(), client, 1, runs["waiting", count])
            if count == 2:
                limits.append(ratio_of_the_machine(client, repeats))
    lines = []
    for work in WORKS:
        first, second = runs[work.name, 1], runs[work.name, 2]
        over = distributed.files(keys[work.name], random_block)
        here = distributed.value_and_grad(work.loss, over=over)(work.parameters)
        (_, rows, columns), *_ = keys[work.name]
        size = f"{blocks} blocks of {rows * columns * 8 / 1e6:.1f} MB"
        least, middle = min(first.times) / blocks * 1e3, ratio(first.times, second.times, np.median)
        lines += [
            [f"{work.name}: {size}, one worker", f"{least:.1f} ms a block"],
            ["time of one worker / of two, medians", f"{middle:.2f}"],
            ["least times", f"{ratio(first.times, second.times, min):.2f}"],
            [
                "processor time of the busiest worker, one / two",
                f"{ratio(first.used, second.used, min):.2f}",
            ],
            [
                "bits of one worker, of two, and of this process",
                same(here, *first.results, *second.results),
            ],
        ]
    waits = ratio(runs["waiting", 1].times, runs["waiting", 2].times, min)
    return [
        *lines,
        [f"blocks that wait {seconds * 1e3:.0f} ms: time of one / of two", f"{waits:.2f}"],
        ["two processes that share no data: time of one / of two", f"{max(limits):.2f}"],
    ]


def ratio(first: list[float], second: list[float], middle: Any) -> float:
    return middle(first) / middle(second)


def in_memory(client: Any, keys: list[tuple[int, ...]]) -> Any:
    """Return an array whose blocks are in the memory of workers, as many in each."""
    import dask.array as da
    from dask import delayed  # pyright: ignore[reportPrivateImportUsage]

    workers = itertools.cycle(client.scheduler_info()["workers"])
    chunks = [client.submit(random_block, key, workers=[next(workers)]) for key in keys]
    client.gather([client.submit(len, chunk) for chunk in chunks])
    arrays = [da.from_delayed(delayed(chunk), keys[0][1:], float) for chunk in chunks]
    return client.persist(da.concatenate(arrays))


def exponentials(count: int) -> float:
    """Return the seconds that so many exponentials of a small array take."""
    x, start = np.linspace(0, 1, 10_000), time.perf_counter()
    for _ in range(count):
        np.exp(x)
    return time.perf_counter() - start


def ratio_of_the_machine(client: Any, repeats: int) -> float:
    """Return what two processes gain that share no data: 2 if a core is as fast beside another."""
    first, second = client.scheduler_info()["workers"]
    alone, together = [], []
    for _ in range(repeats):
        run = [client.submit(exponentials, 4000, workers=[first], pure=False)]
        alone.append(max(client.gather(run)))
        run = [client.submit(exponentials, 4000, workers=[w], pure=False) for w in (first, second)]
        together.append(max(client.gather(run)))
    return 2 * min(alone) / min(together)


def wait_for_block(seconds: float) -> np.ndarray:
    time.sleep(seconds)
    return np.ones((1, COLUMNS))


def same(*results: Any) -> str:
    first, *others = [[np.asarray(leaf) for leaf in tf.nest.flatten(each)] for each in results]
    equal = all((a == b).all() for other in others for a, b in zip(first, other, strict=True))
    return "the same" if equal else "DIFFERENT"


def lost_workers(trials: int, blocks: int = 12, rows: int = 20_000) -> list[list[str]]:
    """Kill a worker in the middle of each sum, and compare bits with this process."""
    over = distributed.files([(seed, rows) for seed in range(blocks)], slow_block)
    expected = distributed.value_and_grad(loss, over=over)(parameters())
    good = lost = 0
    with cluster(2) as client:
        total = distributed.value_and_grad(loss, over=over, executor=client)
        for trial in range(trials):
            client.wait_for_workers(2, timeout=120)
            pids = [*client.run(os.getpid).values()]
            timer = threading.Timer(0.3, os.kill, (pids[trial % 2], signal.SIGKILL))
            timer.start()
            result = total(parameters())
            lost += not timer.is_alive()
            timer.join()
            good += same(result, expected) == "the same"
    return [["sums in which a worker was killed", f"{lost}"], ["with the same bits", f"{good}"]]


def slow_block(key: tuple[int, int]) -> np.ndarray:
    time.sleep(0.1)
    return random_block(key)


def peak() -> float:
    """Return the most gigabytes that this process has had in memory; NaN if nobody says."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return float("nan")
    (most,) = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(most) * 1024 / 1e9


def memory(gigabytes: float, limit: float) -> list[list[str]]:
    """Sum up files of `gigabytes` by two workers of `limit` gigabytes, and by this process."""
    rows = int(BLOCK * 1e9 / 8 / COLUMNS)
    count = max(round(gigabytes / BLOCK), 1)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{index}.npy" for index in range(count)]
        for index, path in enumerate(paths):
            np.save(path, random_block((index, rows)))
        size = sum(path.stat().st_size for path in paths) / 1e9
        over = distributed.files(paths, np.load)
        with cluster(2, f"{limit * 1e9:.0f}") as client:
            pids = client.run(os.getpid)
            result = distributed.value_and_grad(loss, over=over, executor=client)(parameters())
            peaks = client.run(peak)
            restarted = client.run(os.getpid) != pids
        before = peak()
        here = distributed.value_and_grad(loss, over=over)(parameters())
    return [
        [f"data in {count} files", f"{size:.2f} GB"],
        ["limit of a worker", f"{limit:.2f} GB"],
        *[["peak of a worker", f"{each:.2f} GB"] for each in peaks.values()],
        ["a worker was restarted", "yes" if restarted else "no"],
        ["peak of this process, before and after", f"{before:.2f} and {peak():.2f} GB"],
        ["bits of the workers and of this process", same(result, here)],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a block, at least")
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--limit", type=float, default=1.0, help="gigabytes of a worker")
    options = parser.parse_args()
    lines = []
    if options.blocks:
        lines += speed(options.blocks, options.repeats, options.seconds)
    if options.kills:
        lines += lost_workers(options.kills)
    if options.gigabytes:
        lines += memory(options.gigabytes, options.limit)
    table(["", ""], lines)


if __name__ == "__main__":
    main()
