"""`python -m benchmarks`: check that all libraries agree, then time them in turns.

Each piece of work in each library that is installed: eager modes against ours, and what compiles
against ours compiled. Times are medians in microseconds, each peer's with its ratio to ours, and
"least" is the least ratio of its row (of libraries, where the formulas in NumPy have no tape to
compete with). Then the times of imports and first gradients, and a figure of time against size, if
Matplotlib is installed. With `--device gpu`, other work is timed on a GPU: see `benchmarks.gpu`.
"""

import argparse
import gc
import importlib
import importlib.util
import math
import os
import platform
import subprocess
import sys
from pathlib import Path

from benchmarks import THREADS
from benchmarks.peers import BY_HAND, COMPILED, EAGER, INSTALLED, TORCH, Peer
from benchmarks.start import import_times, start_times
from benchmarks.work import WORK, Work, check
from tinygrad_cg._tour.console import table
from tinygrad_cg._tour.timing import medians

Times = dict[Peer, float]
FIGURE = Path(__file__).with_name("figure.svg")
QUICK = 1_000_000  # elements, the most in a quick run


def measure(work: Work, rounds: int) -> Times:
    """Return seconds of one piece of work in each library that has it and can do it."""
    runs, results = {}, {}
    for peer in INSTALLED:
        try:
            run = peer.build(work)
            if run is None:
                continue
            results[peer.name], runs[peer.name] = run(), run
        except Exception as error:
            if peer.package in ("tinygrad_cg", "numpy"):
                raise
            print(f"{work.name}: {peer.name} cannot, {error!r:.200}", file=sys.stderr)
    check(work, results[BY_HAND.name], results)
    gc.collect()
    gc.freeze()  # else full collections walk the objects of all libraries
    taken = medians(runs, math.inf, rounds)
    gc.unfreeze()
    return {peer: taken[peer.name] for peer in INSTALLED if peer.name in taken}


def compare(measured: dict[Work, Times], ours: Peer, peers: list[Peer]) -> None:
    """Print a table of one of our modes and its peers."""
    rows = []
    for work, times in measured.items():
        if ours not in times:
            continue
        ratios = {peer: times[peer] / times[ours] for peer in peers if peer in times}
        rivals = [r for peer, r in ratios.items() if ours.compiles or peer is not BY_HAND]
        least = f"{min(rivals):.2f}" if rivals else ""
        cells = [
            f"{times[peer] * 1e6:.1f} ({ratio:.2f})" if (ratio := ratios.get(peer)) else ""
            for peer in peers
        ]
        rows.append((work.name, f"{times[ours] * 1e6:.1f}", least, *cells))
    table((ours.name, "us", "least", *[peer.name for peer in peers]), rows)


def beginnings(quick: bool) -> None:
    """Print how long imports and first gradients take."""
    taken = import_times(1 if quick else 9)
    more = taken["tinygrad_cg"] - taken["numpy"]
    print("\nStart, in new processes, in seconds. Imports, medians:")
    both = f"numpy {taken['numpy']:.3f}, numba {taken['numba']:.3f}"
    print(f"{both}, tinygrad_cg {taken['tinygrad_cg']:.3f} ({more:+.3f} to NumPy).")
    print("The first gradient of log1pexp, n = 1,000; compilers compiled another function before:")
    peers = [EAGER, COMPILED] if quick else [p for p in INSTALLED if p.package != "numpy"]
    rows = [(peer.name, *[f"{t:.3f}" for t in start_times(peer, not quick)]) for peer in peers]
    first = "from the cache" if quick else "nothing cached"
    table(("", "import", first, "second process"), rows)


def draw(measured: dict[Work, Times], path: Path) -> None:
    """Draw the rows of log1pexp that differ in size alone."""
    if not importlib.util.find_spec("matplotlib"):
        print("\nNo figure: Matplotlib is not installed.")
        return
    rows = {work: t for work, t in measured.items() if work.name.endswith(" f64") and work.size}
    rows = {work: times for work, times in rows.items() if work.program == "log1pexp"}
    importlib.import_module("benchmarks.figure").draw(rows, path)
    print(f"\nTime against size: {path}")


def main() -> None:
    """Measure and print, in a process that has started with the number of threads."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="rows whose names contain one of these; all")
    parser.add_argument("--quick", action="store_true", help="only three rounds, as a trial")
    parser.add_argument("--threads", type=int, default=THREADS, help="for each library")
    parser.add_argument("--rounds", type=int, default=30, help="turns of each library, in a row")
    parser.add_argument("--figure", type=Path, metavar="FILE", help=f"{FIGURE}, if all rows run")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--seconds", type=float, default=90.0, help="on a GPU, for all rows")
    parser.add_argument("--sizes", type=int, nargs="+", help="on a GPU, numbers of elements")
    parser.add_argument("--json", type=Path, metavar="FILE", help="on a GPU, all that was measured")
    chosen = parser.parse_args()
    if chosen.threads != THREADS:
        command = [sys.executable, "-m", "benchmarks", *sys.argv[1:]]
        environment = os.environ | {"BENCHMARK_THREADS": str(chosen.threads)}
        sys.exit(subprocess.run(command, env=environment, check=False).returncode)
    if chosen.device == "gpu":
        gpu = importlib.import_module("benchmarks.gpu")
        gpu.main(chosen.names, chosen.seconds, chosen.json, chosen.sizes or gpu.SIZES)
        return
    versions = {f"{p.package} {p.version}" for p in INSTALLED if p.package != "tinygrad_cg"}
    print(f"Python {platform.python_version()}, {THREADS} thread(s) each;", end=" ")
    print(", ".join(sorted(versions)))
    rows = [
        work
        for work in WORK
        if not (chosen.quick and work.size > QUICK)
        and (not chosen.names or any(name in work.name for name in chosen.names))
    ]
    measured = {}
    for work in rows:
        print(work.name, file=sys.stderr)
        measured[work] = measure(work, 3 if chosen.quick else chosen.rounds)
    others = [peer for peer in INSTALLED if peer.package != "tinygrad_cg"]
    print("Medians in microseconds (ratio: the peer's time / ours).")
    compare(measured, EAGER, [peer for peer in others if not peer.compiles])
    compare(measured, COMPILED, [p for p in others if p.compiles or p in (TORCH, BY_HAND)])
    if not chosen.names:
        beginnings(chosen.quick)
    if chosen.figure or not (chosen.names or chosen.quick):
        draw(measured, chosen.figure or FIGURE)


if __name__ == "__main__":
    main()
