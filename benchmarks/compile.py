"""`python -m benchmarks.compile`: the time to the first result of programs that are compiled.

Each program runs in a separate process, in our compiled mode and in each other library that
compiles. Only the first call is timed. The import, the creation of arrays and Python's compilation
of the libraries' modules do not count: a process before the first keeps their bytecode, as an
installation does. A process finds its caches on disk empty, or filled by the process before it;
ours also with the operations' own kernels and functions alone, as any earlier program leaves them,
but none of this one. Times are medians in milliseconds, elapsed and of the processor, each with its
ratio to JAX's.

`python -m benchmarks.compile --one PACKAGE MODE PROGRAM` is such a process.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from typing import Any

from benchmarks import THREADS
from benchmarks.peers import BY_HAND, COMPILED, INSTALLED, PEERS, Peer
from benchmarks.work import Work, attention, check, logistic, logits, near_one, perceptron, vector
from tinygrad_cg._tour.console import table

PROGRAMS = (
    Work("gradient of log1pexp", "log1pexp", partial(vector, 1_000)),
    Work("gradient of 40 operations", "forty_operations", partial(near_one, 1_000)),
    Work("perceptron", "perceptron", partial(perceptron, 784, 256, 10, 128), 4),
    Work("perceptron, training step", "perceptron_step", partial(perceptron, 784, 256, 10, 128), 4),
    Work("cross-entropy", "cross_entropy", partial(logits, 256, 100)),
    Work("logistic HVP", "logistic_hvp", partial(logistic, 1_000, 100)),
    Work("Rosenbrock Hessian", "rosenbrock_hessian", partial(vector, 100)),
    Work("nested rules, decorated", "decorated_twice", partial(vector, 1_000)),
    Work("nested rules, wrapped", "wrapped_twice", partial(vector, 1_000)),
    Work("200 products", "products_200", partial(near_one, 1_000)),
    Work("1,000 products", "products_1000", partial(near_one, 1_000)),
    Work("attention", "attention", partial(attention, 64, 32), 3),
)
"""Add a program here; libraries that lack it leave it empty."""

QUICK = ("gradient of log1pexp", "200 products")
EMPTY, KNOWN, FILLED = "nothing cached", "functions known", "cached"
COMPILERS = [peer for peer in INSTALLED if peer.compiles and peer.mode != "function"]
JAX = next(peer for peer in PEERS if (peer.package, peer.mode) == ("jax", "jit"))
FOLDERS = ("TINYGRAD_CG_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")
OPTIONS = {
    "PYTHONDONTWRITEBYTECODE": "",
    # JAX keeps what took it long, unless told otherwise
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
FORGET = "import tinygrad_cg; tinygrad_cg.clear_cache()"

Times = tuple[float, float]
Measured = dict[tuple[str, Peer], Times]
"""Seconds elapsed and of the processor, by what was cached, and by peer."""


class CannotError(Exception):
    """A library failed at a program."""


def measure_program(package: str, mode: str, program: str) -> dict[str, Any] | None:
    """Return seconds of a program's first call in this process, and what was not translated.

    None if the library `lacks` the program.
    """
    peer = next(peer for peer in PEERS if (peer.package, peer.mode) == (package, mode))
    work = {work.program: work for work in PROGRAMS}[program]
    run = peer.build(work)
    if run is None:
        return None
    elapsed, used = time.perf_counter(), _processor()
    results = run()
    elapsed, used = time.perf_counter() - elapsed, _processor() - used
    wanted = BY_HAND.build(work)
    assert wanted is not None
    check(work, wanted(), {peer.name: results})
    refused: list[str] = []
    if package == COMPILED.package:
        from tinygrad_cg_kernels.runtime import service

        refused = service.fallbacks
    return {"elapsed": elapsed, "used": used, "refused": refused}


def _processor() -> float:
    """Return seconds of all threads, and of compilers that were started and have ended."""
    ended = os.times()
    return time.process_time() + ended.children_user + ended.children_system


def first_results(work: Work, peer: Peer, fresh: bool = True) -> tuple[dict[str, Times], list[str]]:
    """Return seconds of a program's first call by what was cached; what was not translated.

    There are none if the library `lacks` the program. Without `fresh` the caches are those of the
    user, and count as filled.
    """
    command = [sys.executable, "-m", "benchmarks.compile", "--one", peer.package, peer.mode]
    taken, refused = {}, []
    with tempfile.TemporaryDirectory() as folder:
        own = {name: os.path.join(folder, name) for name in FOLDERS} | OPTIONS if fresh else {}
        for cached in (EMPTY, FILLED, KNOWN) if fresh else (FILLED,):
            if cached == KNOWN:
                if peer.package != COMPILED.package:
                    break
                _process([sys.executable, "-c", FORGET], own)
            result = json.loads(_process([*command, work.program], own).splitlines()[-1])
            if result is None:
                break
            taken[cached] = result["elapsed"], result["used"]
            refused += [reason for reason in result["refused"] if reason not in refused]
    return taken, refused


def _process(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)
    if done.returncode:
        raise CannotError("\n".join(done.stderr.strip().splitlines()[-10:]))
    return done.stdout


def measure(
    work: Work, peers: list[Peer], rounds: int
) -> tuple[Measured, list[str], dict[Peer, str]]:
    """Return medians of one program, what was not translated, and why libraries cannot do it."""
    taken: dict[tuple[str, Peer], list[Times]] = {}
    refused: list[str] = []
    failed: dict[Peer, str] = {}
    for _ in range(rounds):
        for peer in peers:
            if peer in failed:
                continue
            try:
                times, reasons = first_results(work, peer)
            except CannotError as error:
                failed[peer] = str(error)
                continue
            refused += [reason for reason in reasons if reason not in refused]
            for cached, pair in times.items():
                taken.setdefault((cached, peer), []).append(pair)
    medians = {
        key: (statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs))
        for key, pairs in taken.items()
    }
    return medians, refused, failed


def show(measured: dict[Work, Measured], peers: list[Peer], cached: str) -> None:
    """Print the table of what was cached; of functions known, others had nothing cached."""
    headers = [cached]
    for peer in peers:
        headers += [f"{peer.name}, ms", "CPU"]
    rows = []
    others = EMPTY if cached == KNOWN else cached
    for work, times in measured.items():
        base = times.get((others, JAX))
        cells = [work.name]
        for peer in peers:
            pair = times.get((cached if peer is COMPILED else others, peer))
            for k in range(2):
                ratio = f" ({pair[k] / base[k]:.2f})" if pair and base and peer is not JAX else ""
                cells.append(f"{pair[k] * 1e3:.0f}{ratio}" if pair else "")
        rows.append(cells)
    table(headers, rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile", description=__doc__)
    parser.add_argument("names", nargs="*", help="programs whose names contain one of these; all")
    parser.add_argument("--quick", action="store_true", help="two programs once, as a trial")
    parser.add_argument("--peers", nargs="*", metavar="PACKAGE", help="compare with these; all")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each kind")
    parser.add_argument("--one", nargs=3, metavar=("PACKAGE", "MODE", "PROGRAM"))
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure_program(*chosen.one)))
        return
    peers = [
        peer
        for peer in COMPILERS
        if peer is COMPILED or chosen.peers is None or peer.package in chosen.peers
    ]
    versions = sorted({f"{p.package} {p.version}" for p in peers if p is not COMPILED})
    print(", ".join([f"Python {platform.python_version()}", f"{THREADS} thread(s)", *versions]))
    measured: dict[Work, Measured] = {}
    wrong = False
    if not chosen.quick:
        measure(PROGRAMS[0], peers, 1)  # bytecode is written
    for work in PROGRAMS:
        if chosen.quick and work.name not in QUICK:
            continue
        if chosen.names and not any(name in work.name for name in chosen.names):
            continue
        print(work.name, file=sys.stderr)
        rounds = 1 if chosen.quick else chosen.rounds
        measured[work], refused, failed = measure(work, peers, rounds)
        for reason in refused:
            print(f"{work.name}: not translated, but compiled by Numba: {reason}")
        for peer, reason in failed.items():
            print(f"{work.name}: {peer.name} cannot:\n{reason}")
            wrong |= peer.package == COMPILED.package
    print("The first call of each program in a separate process, in milliseconds (ratio to JAX).")
    for cached in (EMPTY, KNOWN, FILLED):
        show(measured, peers, cached)
    sys.exit(wrong)


if __name__ == "__main__":
    main()
