"""`python -m benchmarks.memory`: how much memory compiled programs hold, and how much remains.

Programs of 48 operations and their gradients, all different, so that each is compiled: made, run
once and deleted; then as many held at a time, and deleted. Megabytes are those of the process, as
the system counts them.
"""

import argparse
import gc
import os
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import tinygrad_cg as tf
from tinygrad_cg._tour.console import table

STEPS = 12  # of four operations
PROGRAMS = 200


def megabytes() -> float:
    """Return the memory of this process; NaN where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except OSError:
        return float("nan")
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def program(number: int) -> Callable[..., Any]:
    """Return a program that no other number has: its bits choose the operations."""

    def function(x: tf.Tensor) -> tf.Tensor:
        y = x
        for step in range(STEPS):
            chosen = tf.sin if number >> step & 1 else tf.cos
            y = chosen(y) * x + tf.exp(-y)
        return tf.reduce_sum(y)

    return tf.function(tf.value_and_grad(function))


def measure(count: int) -> tuple[float, float, float]:
    """Return the megabytes that `count` programs leave, that as many held take, and leave."""
    x = tf.constant(np.linspace(0.1, 1, 1_000))
    last = 2**STEPS - 1
    for number in range(5):  # what the first of them compiles stays: functions of numbers
        program(last - number)(x)
    gc.collect()
    start = megabytes()
    for number in range(count):
        program(number)(x)
    gc.collect()
    left = megabytes() - start
    start, held = megabytes(), []
    for number in range(count, 2 * count):
        held.append(program(number))
        held[-1](x)
    taken = megabytes() - start
    held.clear()
    gc.collect()
    return left, taken, megabytes() - start


def main() -> None:
    """Print the table, for as many programs as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--programs", type=int, default=PROGRAMS, metavar="N")
    count = parser.parse_args().programs
    if not 0 < count < 2 ** (STEPS - 1) - 5:
        parser.error(f"--programs must be from 1 to {2 ** (STEPS - 1) - 6}, got {count}")
    if sys.platform != "linux":
        print("the memory of a process is only known on Linux", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TINYGRAD_CG_CACHE_DIR"] = folder
        left, taken, after = measure(count)
    rows = [
        (f"{count} made, run once and deleted", f"{left:+.1f}"),
        (f"{count} held", f"{taken:+.1f}"),
        ("these deleted", f"{after:+.1f}"),
    ]
    table(("programs of 48 operations", "MB"), rows)


if __name__ == "__main__":
    main()
