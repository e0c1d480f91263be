"""`python -m benchmarks.threads`: one thread's time over two threads', by size.

Each setting runs for a while before the other, since threads that wait are put to sleep and
the processor's clock follows the load; the ratio is that of the medians of several such turns.

With `--busy` compiled programs are timed while another process is at work on one of two cores, to
which it is pinned where the system can, and then without it: ours on two threads, ours on one, and
`jax.jit`, each in a separate process, in turns, by the median and the mean. A ratio is another
one's time over ours on two threads: at least 1 where two threads are not behind. `--python` names
the interpreter that has JAX, if it is not this one.

`python -m benchmarks.threads --serve PACKAGE MODE THREADS` is such a process.
"""

import argparse
import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

import tinygrad_cg as tf
from benchmarks import THREADS
from benchmarks.peers import BY_HAND, COMPILED, PEERS, Peer
from benchmarks.serving import AnsweringProcess
from benchmarks.work import Work, check, logits, matrix, vector
from tinygrad_cg._tour.console import table
from tinygrad_cg._tour.timing import settle

SIZES = (100, 1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
WORK: dict[str, Callable] = {
    "exp": tf.exp,
    "fused exp + log1p": tf.function(lambda x: tf.math.log1p(tf.exp(x)), jit_compile=True),
    "sum": tf.reduce_sum,
}


PROGRAMS = (
    Work("log1pexp, value and gradient, 10^6, f64", "log1pexp", partial(vector, 1_000_000)),
    Work("the same, f32", "log1pexp", partial(vector, 1_000_000, "float32")),
    Work("the same, (4096, 1000), f32", "log1pexp", partial(matrix, 4096, 1000)),
    Work("sin, tanh, exp, cos, 10^6, f64", "elementwise", partial(vector, 1_000_000)),
    Work("the same, (4096, 1000), f32", "elementwise", partial(matrix, 4096, 1000)),
    Work("cross-entropy, (4096, 1000), f32", "cross_entropy", partial(logits, 4096, 1000)),
)
"""What is timed next to a busy process."""
LOAD = "import os\n{pin}\nprint(flush=True)\nwhile True:\n    pass"
JAX = next(peer for peer in PEERS if (peer.package, peer.mode) == ("jax", "jit"))
Taken = list[list[list[float]]]
"""Seconds of all calls, by program and by side."""


class Side(NamedTuple):
    """Who is timed: a library in a mode, on so many threads, by an interpreter."""

    name: str
    python: str
    package: str
    mode: str
    threads: int


def rate(run: Callable[[], object], seconds: float) -> float:
    """Return calls in a second, over `seconds` after a tenth of them."""
    start = time.perf_counter()
    while time.perf_counter() < start + seconds / 10:
        run()
    calls, taken, start = 0, 0.0, time.perf_counter()
    while taken < seconds:
        run()
        calls, taken = calls + 1, time.perf_counter() - start
    return calls / taken


def gain(run: Callable[[], object], seconds: float, rounds: int) -> float:
    """Return how many times as often two threads run as one."""
    rates: dict[int, list[float]] = {1: [], 2: []}
    before = tf.get_num_threads()
    try:
        for _ in range(rounds):
            for threads, taken in rates.items():
                tf.set_num_threads(threads)
                taken.append(rate(run, seconds))
    finally:
        tf.set_num_threads(before)
    return statistics.median(rates[2]) / statistics.median(rates[1])


def serve(package: str, mode: str, threads: int) -> None:
    """Time programs as they are asked for: a line has the program's number, and seconds."""
    if package == COMPILED.package:
        tf.set_num_threads(threads)
    peer = next(peer for peer in PEERS if (peer.package, peer.mode) == (package, mode))
    runs: dict[int, Callable[[], tuple]] = {}
    for line in sys.stdin:
        number, seconds = json.loads(line)
        if number not in runs:
            runs[number] = _checked(PROGRAMS[number], peer)
        run, taken = runs[number], []
        end = time.perf_counter() + seconds
        while not taken or time.perf_counter() < end:
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
        print(json.dumps(taken), flush=True)


def _checked(work: Work, peer: Peer) -> Callable[[], tuple]:
    """Return what runs a program, which has been compiled and given the right results."""
    run, by_hand = peer.build(work), BY_HAND.build(work)
    assert run is not None
    assert by_hand is not None
    check(work, by_hand(), {peer.name: run()})
    settle(run)
    return run


@contextlib.contextmanager
def busy_process(busy: bool = True) -> Iterator[None]:
    """Keep one core busy meanwhile: the first that this process may run on, if that can be said."""
    if not busy:
        yield
        return
    pin = ""
    if hasattr(os, "sched_setaffinity"):
        pin = f"os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})"
    command = [sys.executable, "-c", LOAD.format(pin=pin)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as load:
        try:
            assert load.stdout is not None
            load.stdout.readline()  # it has begun
            yield
        finally:
            load.kill()


class Server(AnsweringProcess):
    """A process that times programs for one side."""

    def __init__(self, side: Side) -> None:
        words = ["-m", "benchmarks.threads", "--serve", side.package, side.mode, str(side.threads)]
        super().__init__([side.python, *words])

    def times(self, number: int, seconds: float) -> list[float]:
        """Return seconds of each call of a program, over so many seconds."""
        return self.answer(number, seconds)


def sides(python: str) -> list[Side]:
    """Return who is timed: JAX if an interpreter has it."""
    ours = partial(Side, python=sys.executable, package=COMPILED.package, mode=COMPILED.mode)
    sides = [ours(f"{THREADS} threads", threads=THREADS), ours("1 thread", threads=1)]
    has_jax = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('jax'))"
    if not subprocess.run([python, "-c", has_jax], check=False).returncode:
        sides.append(Side(JAX.name, python, JAX.package, JAX.mode, THREADS))
    return sides


def beside(
    busy: bool, measured: list[Side], seconds: float, rounds: int
) -> list[list[list[float]]]:
    """Return seconds of all calls, by program and side."""
    servers = [Server(side) for side in measured]
    taken: Taken = [[[] for _ in measured] for _ in PROGRAMS]
    try:
        for number in range(len(PROGRAMS)):
            for server in servers:
                server.times(number, 0.0)  # compiled, and checked
        with busy_process(busy):
            for turn in range(rounds):
                for number, row in enumerate(taken):
                    order = list(zip(servers, row, strict=True))
                    for server, times in order if turn % 2 else order[::-1]:
                        times += server.times(number, seconds)
    finally:
        for server in servers:
            server.close()
    return taken


def compare(measured: list[Side], taken: Taken) -> None:
    """Print each program's times, and their ratios to ours on all threads."""
    rows = []
    for work, row in zip(PROGRAMS, taken, strict=True):
        cells = []
        for find in (statistics.median, statistics.mean):
            ours, *others = map(find, row)
            cells.append(f"{ours * 1e6:.0f}")
            cells += [f"{other * 1e6:.0f} ({other / ours:.2f})" for other in others]
        rows.append([work.name, *cells])
    names = [side.name for side in measured]
    table(("us", *[f"{name}, {kind}" for kind in ("median", "mean") for name in names]), rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only a moment each, as a trial")
    parser.add_argument("--busy", action="store_true", help="next to a busy process, and JAX")
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has JAX")
    parser.add_argument("--rounds", type=int, default=10, help="turns of each, next to a process")
    parser.add_argument("--serve", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        package, mode, threads = chosen.serve
        return serve(package, mode, int(threads))
    if chosen.busy:
        measured = sides(chosen.python)
        seconds, rounds = (0.0, 1) if chosen.quick else (0.1, chosen.rounds)
        print(f"Python {platform.python_version()}, {THREADS} thread(s) of {os.cpu_count()} cores.")
        for busy in (True, False):
            print("\nBeside a busy process:" if busy else "\nWithout it:")
            compare(measured, beside(busy, measured, seconds, rounds))
        return None
    return gains(chosen.quick)


def gains(quick: bool) -> None:
    """Print what a second thread gains, by size."""
    seconds, rounds = (0.001, 1) if quick else (0.2, 5)
    generator = np.random.default_rng(0)
    rows = []
    for size in SIZES:
        cells = [f"{size:,}"]
        for dtype in ("float64", "float32"):
            x = tf.constant(generator.normal(size=size).astype(dtype))
            for op in WORK.values():
                cells.append(f"{gain(lambda op=op, x=x: op(x), seconds, rounds):.2f}")
        rows.append(cells)
    print("One thread's time / two threads' (1: the work is not shared, or nothing is gained).\n")
    names = [f"{name}, {dtype}" for dtype in ("f64", "f32") for name in WORK]
    table(("elements", *names), rows)


if __name__ == "__main__":
    main()
