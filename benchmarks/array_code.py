"""`python -m benchmarks.array_code`: functions written in loops as for Numba, and their gradients.

Each of ten functions (`array_functions`), compiled by `numba.njit` and by `differentiable`; its
gradient with respect to all floats that it takes; and the gradients of equivalents in JAX, under
`jit`, and in PyTorch, which work on whole arrays where rounds do not depend on each other. The last
column is PyTorch with the loops of the function itself, timed once. All return the same before they
are timed. Times are medians in microseconds, in turns, with one thread each. `ratio` is that of our
gradient to our function; `stack` are the bytes that the gradient keeps of its forward sweep; behind
the peers' times are ratios to our gradient.
"""

import argparse
import importlib
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from timeit import timeit
from typing import Any

import numpy as np
from numba import njit

import tinygrad_cg as tf
from benchmarks import THREADS
from benchmarks.array_functions import CASES, Case
from tinygrad_cg._tour.console import table
from tinygrad_cg._tour.timing import medians

NUMBA, VALUE, GRADIENT = "njit", "function", "gradient"
LOOPS = "torch loops"
PEERS = tuple(name for name in ("jax", "torch", LOOPS) if importlib.util.find_spec(name.split()[0]))


def calls(case: Case) -> dict[str, Callable[[], Any]]:
    """Return what is timed of a function, by name: calls that have all given the same results.

    Raises AssertionError where they have not.
    """
    arguments = case.arguments()
    positions = tuple(k for k, x in enumerate(arguments) if np.asarray(x).dtype.kind == "f")
    compiled, ours = njit(case.function), tf.differentiable(case.function)
    slope = tf.grad(ours, positions)
    own = [tf.constant(x, tf.float64) if k in positions else x for k, x in enumerate(arguments)]
    runs: dict[str, Callable[[], Any]] = {
        NUMBA: lambda: compiled(*arguments),
        VALUE: lambda: ours(*own),
        GRADIENT: lambda: slope(*own),
    }
    value, gradients = runs[NUMBA](), [np.asarray(x) for x in runs[GRADIENT]()]
    np.testing.assert_allclose(np.asarray(runs[VALUE]()), value, rtol=1e-10, err_msg=case.name)
    for name in PEERS:
        peer = importlib.import_module(f"benchmarks.array_functions_{name.split()[0]}")
        if name == LOOPS:
            function = peer.in_loops(case.function)
        else:
            function = getattr(peer, case.function.__name__)
        runs[name] = peer.gradient(function, arguments, positions)
        for x, y in zip(runs[name](), gradients, strict=True):
            near = 1e-9 * np.abs(y).max()
            np.testing.assert_allclose(np.asarray(x), y, 0, near, err_msg=f"{name}: {case.name}")
    return runs


def row(case: Case, rounds: int) -> dict[str, float]:
    """Return seconds of each call."""
    runs = calls(case)
    once = {LOOPS: timeit(runs.pop(LOOPS), number=1)} if LOOPS in runs else {}
    return medians(runs, float("inf"), rounds) | once


def stack_bytes(case: Case) -> int:
    """Return the bytes that a gradient saves in its forward sweep, but for arrays that it has."""
    return tf.differentiable(case.function).stack_bytes(*case.arguments())


def cells(case: Case, times: dict[str, float]) -> list[str]:
    """Return a row of the table."""
    own = [f"{times[key] * 1e6:.1f}" for key in (NUMBA, VALUE, GRADIENT)]
    ratio = f"{times[GRADIENT] / times[VALUE]:.2f}"
    peers = [f"{times[p] * 1e6:.0f} ({times[p] / times[GRADIENT]:.2f})" for p in PEERS]
    return [case.name, *own, ratio, f"{stack_bytes(case):,}", *peers]


def main() -> None:
    """Measure and print, in a process that has started with the number of threads."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.array_code", description=__doc__)
    parser.add_argument("names", nargs="*", help="functions whose names contain one of these; all")
    parser.add_argument("--quick", action="store_true", help="only three rounds, as a trial")
    parser.add_argument("--threads", type=int, default=1, help="for each library")
    parser.add_argument("--rounds", type=int, default=30, help="turns of each, in a row")
    chosen = parser.parse_args()
    if chosen.threads != THREADS:
        command = [sys.executable, "-m", "benchmarks.array_code", *sys.argv[1:]]
        environment = os.environ | {"BENCHMARK_THREADS": str(chosen.threads)}
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)
    versions = ", ".join(
        f"{name} {version(name)}" for name in ("numpy", "numba", *PEERS) if name != LOOPS
    )
    print(f"Python {platform.python_version()}, {THREADS} thread(s) each; {versions}")
    print("Medians in microseconds (ratio: the peer's time / our gradient's).")
    measured = {
        case: row(case, 3 if chosen.quick else chosen.rounds)
        for case in CASES
        if not chosen.names or any(name in case.name for name in chosen.names)
    }
    headers = (
        "",
        NUMBA,
        VALUE,
        GRADIENT,
        "ratio",
        "stack",
        *[f"{name} gradient" for name in PEERS],
    )
    table(headers, [cells(case, times) for case, times in measured.items()])
    ratios = [times[GRADIENT] / times[VALUE] for times in measured.values()]
    mean, most = statistics.geometric_mean(ratios), max(ratios)
    print(f"\ngradient / function: geometric mean {mean:.2f}, at most {most:.2f}")
    for peer in PEERS:
        ratios = [times[peer] / times[GRADIENT] for times in measured.values()]
        ahead, mean = sum(ratio > 1 for ratio in ratios), statistics.geometric_mean(ratios)
        print(
            f"{peer} / ours: geometric mean {mean:.2f}, at least {min(ratios):.2f}; "
            f"ours is ahead in {ahead} of {len(ratios)}"
        )


if __name__ == "__main__":
    main()
