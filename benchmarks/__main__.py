"""`python -m benchmarks`: check that all libraries agree, then time them in turns."""

import argparse
import os
import platform
import statistics
import subprocess
import sys
from importlib.metadata import version

from benchmarks import THREADS
from benchmarks.work import INSTALLED, WORK, Work, check
from tinygrad_cg.tour.text import table
from tinygrad_cg.tour.timing import medians

_TIMED = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"
PEERS = tuple(name for name in INSTALLED if name != "tinygrad_cg")


def row(work: Work, seconds: float, rounds: int) -> tuple[str, ...]:
    """Median times of one piece of work, and each peer's as a multiple of ours."""
    runs = {library: work.build(library) for library in INSTALLED}
    check(work, {library: run() for library, run in runs.items()})
    taken = medians(runs, seconds, rounds)
    ours = taken["tinygrad_cg"]
    cells = [f"{taken[peer] * 1e6:.1f} ({taken[peer] / ours:.2f}x)" for peer in PEERS]
    return (work.name, f"{ours * 1e6:.1f}", *cells)


def import_times(rounds: int) -> dict[str, float]:
    """The median time to import each of two modules, in fresh processes taken in turns.

    The first round is for Python to write its bytecode, which it keeps as usual.
    """
    modules = ("numba", "tinygrad_cg")
    times: dict[str, list[float]] = {module: [] for module in modules}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(rounds + 1):
        for module in modules:
            command = [sys.executable, "-c", _TIMED.format(module)]
            done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE)
            times[module].append(float(done.stdout))
    return {module: statistics.median(taken[1:]) for module, taken in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few rounds, to see that it runs")
    quick = parser.parse_args().quick
    seconds, rounds = (0.0, 3) if quick else (3.0, 1000)
    versions = ", ".join(f"{name} {version(name)}" for name in PEERS)
    print(f"Python {platform.python_version()}, {versions}; {THREADS} threads each, float64.")
    print("Medians in microseconds, rounds in turn; (ratio: the peer's time / ours).")
    headers = ("", "tinygrad_cg", *PEERS)
    table(headers, [row(work, seconds, rounds) for work in WORK])
    print("\nImports in fresh processes, medians in seconds:")
    taken = import_times(1 if quick else 9)
    more = taken["tinygrad_cg"] - taken["numba"]
    print(f"numba {taken['numba']:.3f}, tinygrad_cg {taken['tinygrad_cg']:.3f} ({more:+.3f})")


if __name__ == "__main__":
    main()
