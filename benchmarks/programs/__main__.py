"""`python -m benchmarks.programs`: whole programs for TensorFlow, with either import.

Each program runs in a separate process, in turns: with this library and an empty cache of
kernels, with the cache that this filled, in TensorFlow, and eight of them in JAX, which keeps its
programs on disk, too. First, their outputs must agree. A whole process is from its start to
its last result; the peak is of its memory until then. A step is one more step of the training,
in processes that have run the program. All are medians; a ratio is the peer's time divided by ours.

`--python PACKAGE=INTERPRETER` names the interpreter of a peer, if it is not this one.
"""

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks import THREADS
from benchmarks.compile import FOLDERS, OPTIONS
from benchmarks.programs import STEPS
from benchmarks.programs.process import OURS
from benchmarks.serving import AnsweringProcess
from tinygrad_cg._tour.console import table

IN_JAX = "gaussian_process", "hmc", "learned_optimizer", "neural_ode"
IN_JAX += "newton_cg", "sobolev", "svd", "transformer"
PEERS = "tensorflow", "jax"
COLUMNS = {
    "empty": ("empty, s", ".2f", 1.0),
    "filled": ("filled, s", ".2f", 1.0),
    "step": ("step, us", ".0f", 1e6),
    "peak": ("peak, MB", ".0f", 1.0),
}
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")


class Run(NamedTuple):
    """A whole process, and its answers."""

    seconds: float
    printed: list[float]
    peak: float
    process: AnsweringProcess


class Measured(NamedTuple):
    """Medians of a library at a program."""

    empty: float
    filled: float
    step: float
    peak: float


def start(python: str, package: str, name: str, environment: dict[str, str]) -> Run:
    """Run a whole program, whose process then waits for questions."""
    begin = time.perf_counter()
    command = [python, "-m", "benchmarks.programs.process", package, name]
    process = AnsweringProcess(command, os.environ | OPTIONS | environment)
    answer = process.answer(0)
    numbers = [float(number) for number in NUMBER.findall(answer["printed"])]
    return Run(time.perf_counter() - begin, numbers, answer["peak"], process)


def measure(name: str, pythons: dict[str, str], rounds: int, seconds: float) -> dict[str, Measured]:
    """Return medians of each library that has the program, after comparing what they print."""
    packages = [p for p in (OURS, *pythons) if p != "jax" or name in IN_JAX]
    taken: dict[str, list[Any]] = {package: [] for package in packages}
    steps: dict[str, list[float]] = {package: [] for package in packages}
    for _ in range(rounds):
        runs = {}
        for package in packages:
            with tempfile.TemporaryDirectory() as folder:
                own = {name: os.path.join(folder, name) for name in FOLDERS}
                python = pythons.get(package, sys.executable)
                empty = start(python, package, name, own)
                runs[package] = empty
                if package != "tensorflow":  # it keeps nothing
                    empty.process.close()
                    runs[package] = start(python, package, name, own)
            np.testing.assert_allclose(
                runs[package].printed, runs[OURS].printed, 1e-4, 1.1e-4, err_msg=package
            )
            peak = max(empty.peak, runs[package].peak)
            taken[package].append((empty.seconds, runs[package].seconds, peak))
        for turn in range(4):
            for package, run in runs.items():
                times = run.process.answer(seconds)
                steps[package] += times if turn else []  # the first turn is to get warm
        for run in runs.values():
            run.process.close()
    medians = {}
    for package, rows in taken.items():
        empty, filled, peak = map(statistics.median, zip(*rows, strict=True))
        medians[package] = Measured(empty, filled, statistics.median(steps[package]), peak)
    return medians


def show(measured: dict[str, dict[str, Measured]], peer: str | None) -> None:
    """Print the table of a peer; without one, of ours alone."""
    names = [name for name, by_package in measured.items() if (peer or OURS) in by_package]
    headers, columns = ["", *names], []
    for field, (header, form, scale) in COLUMNS.items():
        ours = [getattr(measured[name][OURS], field) for name in names]
        columns.append([header, *[f"{value * scale:{form}}" for value in ours]])
        if peer:
            theirs = [getattr(measured[name][peer], field) for name in names]
            ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
            pairs = zip(theirs, ratios, strict=True)
            columns.append([peer, *[f"{b * scale:{form}} ({ratio:.2f})" for b, ratio in pairs]])
            columns[-2] += ["", ""]
            columns[-1] += [f"({min(ratios):.2f})", f"({statistics.median(ratios):.2f})"]
    headers += ["least", "median"] if peer else []
    rows = list(zip(headers, *columns, strict=True))
    table(rows[0], rows[1:])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.programs", description=__doc__)
    parser.add_argument("names", nargs="*", help="programs; all")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each kind")
    parser.add_argument("--seconds", type=float, default=0.3, help="of steps in a turn")
    parser.add_argument("--python", action="append", default=[], metavar="PACKAGE=INTERPRETER")
    parser.add_argument("--peers", nargs="*", default=PEERS, choices=PEERS)
    chosen = parser.parse_args()
    if unknown := sorted({*chosen.names} - {*STEPS}):
        parser.error(f"no program {', '.join(unknown)}: choose from {', '.join(STEPS)}")
    others = dict(pair.split("=", 1) for pair in chosen.python)
    pythons = {}
    for peer in chosen.peers:
        python = others.get(peer, sys.executable)
        command = [python, "-c", f"import {peer}; print({peer}.__version__)"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{peer} is not installed", file=sys.stderr)
            continue
        pythons[peer] = python
        print(peer, done.stdout.strip(), end=", ")
    print(f"Python {platform.python_version()}, {THREADS} thread(s) each")
    start(sys.executable, OURS, "svd", {}).process.close()  # bytecode is written
    measured = {}
    for name in chosen.names or STEPS:
        print(name, file=sys.stderr)
        measured[name] = measure(name, pythons, chosen.rounds, chosen.seconds)
    for peer in pythons or (None,):
        if peer is None or any(peer in by_package for by_package in measured.values()):
            print()
            show(measured, peer)


if __name__ == "__main__":
    main()
