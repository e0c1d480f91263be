"""`python -m benchmarks.threads`: one thread's time over two threads', by size.

Each setting runs for a while before the other, since threads that wait are put to sleep and
the processor's clock follows the load; the ratio is that of the medians of several such turns.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

import tinygrad_cg as tf
from tinygrad_cg._tour.printing import table

SIZES = (100, 1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
WORK: dict[str, Callable] = {
    "exp": tf.exp,
    "fused exp + log1p": tf.function(lambda x: tf.math.log1p(tf.exp(x)), jit_compile=True),
    "sum": tf.reduce_sum,
}


def rate(run: Callable[[], object], seconds: float) -> float:
    """Return calls in a second, over `seconds` after a tenth of them."""
    start = time.perf_counter()
    while time.perf_counter() < start + seconds / 10:
        run()
    calls, start = 0, time.perf_counter()
    while (taken := time.perf_counter() - start) < seconds:
        run()
        calls += 1
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a moment each, to see that it runs")
    seconds, rounds = (0.001, 1) if parser.parse_args().quick else (0.2, 5)
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
