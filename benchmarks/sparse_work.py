"""What is timed of sparse Jacobians, and the process that times it line by line."""

import json
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Timed(NamedTuple):
    """One side's work for the Brusselator of some size."""

    detect: Callable[[], object] | None
    color: Callable[[], object]
    evaluate: Callable[[], object]
    value: Callable[[], object]
    colors: int | None
    product: Callable[[np.ndarray], np.ndarray]  # the Jacobian times a vector


STEPS = ("detect", "color", "evaluate", "value")


def state(n: int) -> np.ndarray:
    """Return the point at which all sides evaluate."""
    return np.random.default_rng(n).uniform(0.5, 1.5, 2 * n * n)


def least(run: Callable[[], object], seconds: float) -> float:
    """Return the least time of a call, over so many seconds and at least one call."""
    best, end = float("inf"), time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() >= end:
            return best


def answer(make: Callable[[int, np.ndarray], Timed]) -> None:
    """Answer lines: a size and a step with seconds; the first line for a size makes the work."""
    work: dict[int, Timed] = {}
    for line in sys.stdin:
        n, step, seconds = json.loads(line)
        if n not in work:
            work.clear()
            work[n] = make(n, state(n))
        if step == "check":
            direction = np.random.default_rng(1).normal(size=2 * n * n)
            result: object = [work[n].colors, work[n].product(direction).tolist()]
        else:
            run = getattr(work[n], step)
            result = None if run is None else least(run, seconds)
        print(json.dumps(result), flush=True)
