"""Forks, exits and exchanged files: `python -m tests.support.processes forks|exits|files [N]`.

Each prints how many were tried, and how many went wrong. `forks` forks while two threads compile:
the child has to compile, too, and to have its garbage collector. `exits` ends processes while a
thread compiles. `files` exchanges, renames and flips files of a cache, and compares results.
"""

from __future__ import annotations

import gc
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

OPERATIONS = ("sin", "cos", "exp", "tanh", "sigmoid", "sqrt", "square", "negative")
WAIT = 300  # seconds that a process may take


def run_in_child(action: Callable[[], object]) -> None:
    """Fork a child that calls `action`: it must end, without an error, and not return False."""
    child = os.fork()
    if not child:
        failed = True
        try:
            failed = action() is False
        finally:
            os._exit(failed)
    end = time.monotonic() + WAIT
    while not (waited := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError("the child hangs")
        time.sleep(0.005)
    assert waited[1] == 0


def program(seed: int) -> None:
    """Compile a program that no other seed has, with its gradient, and run it."""
    import tinygrad_cg as tf

    rng = random.Random(seed)
    names = [rng.choice(OPERATIONS) for _ in range(6)]

    def formula(x):
        for name in names:
            x = getattr(tf, name)(tf.abs(x) + 0.5)
        return tf.reduce_sum(x)

    tf.function(tf.grad(formula))(tf.constant(np.linspace(0.1, 1, 8)))


def _compile_on(first: int, stop: threading.Event) -> None:
    for seed in itertools.count(first):
        if stop.is_set():
            return
        program(seed)


def forks(count: int) -> tuple[int, int]:
    """Return how many of `count` children hung, and how many had no garbage collector."""
    stop = threading.Event()
    first = (10**6, 2 * 10**6)
    threads = [
        threading.Thread(target=_compile_on, args=(seed, stop), daemon=True) for seed in first
    ]
    program(0)
    for thread in threads:
        thread.start()
    hung = without = 0
    for k in range(count):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads
            child = os.fork()
        if not child:
            signal.alarm(WAIT)
            collects = gc.isenabled()
            program(3 * 10**6 + k)
            os._exit(0 if collects and gc.isenabled() else 3)
        _, status = os.waitpid(child, 0)
        hung += os.WIFSIGNALED(status)
        without += os.WIFEXITED(status) and os.WEXITSTATUS(status) == 3
    stop.set()
    for thread in threads:
        thread.join()
    return hung, without


_EXIT = """
import sys, threading, time
from tests.support.processes import _compile_on, program
program(0)
thread = threading.Thread(target=_compile_on, args=({seed}, threading.Event()), daemon=True)
thread.start()
time.sleep({pause})
"""


def exits(count: int) -> int:
    """Return how many of `count` processes did not end while a thread compiled."""
    rng, hung = random.Random(0), 0
    for k in range(count):
        text = _EXIT.format(seed=10**7 + 1000 * k, pause=rng.uniform(0.0, 0.15))
        try:
            subprocess.run([sys.executable, "-c", text], timeout=WAIT, check=False)
        except subprocess.TimeoutExpired:
            hung += 1
    return hung


_VALUES = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, tinygrad_cg as tf
x = np.linspace(0.1, 0.9, 5)
found = [getattr(tf, name)(x).numpy() for name in ("sin", "cos", "exp", "tanh", "sigmoid", "sqrt")]
found.append(tf.function(tf.grad(lambda x: tf.reduce_sum(tf.sin(x) * x)))(tf.constant(x)).numpy())
found.append(tf.reduce_logsumexp(x).numpy())
print(np.concatenate([np.ravel(one) for one in found]).tobytes().hex())
"""


def files(count: int) -> tuple[int, int]:
    """Return how many of `count` processes had wrong numbers, and how many crashed.

    Several files are exchanged, renamed or flipped before each process.
    """
    rng, wrong, crashed = random.Random(0), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TINYGRAD_CG_CACHE_DIR": folder}

        def values() -> str | None:
            run = subprocess.run(
                [sys.executable, "-c", _VALUES],
                env=environment,
                capture_output=True,
                text=True,
                timeout=WAIT,
            )
            return run.stdout if run.returncode == 0 else None

        expected = values()
        assert expected
        for _ in range(count):
            paths = [path for path in Path(folder).rglob("*") if path.suffix == ".code"]
            kind = rng.choice(("exchange", "rename", "flip", "cut"))
            for _ in range(max(2, len(paths) // 4)):
                first, other = rng.sample(paths, 2)
                if not (first.exists() and other.exists()):
                    continue
                if kind == "exchange":
                    data = first.read_bytes()
                    first.write_bytes(other.read_bytes())
                    other.write_bytes(data)
                elif kind == "rename":
                    os.replace(first, other)
                else:
                    data = bytearray(first.read_bytes())
                    at = rng.randrange(len(data))
                    data[at] ^= 1 << rng.randrange(8)
                    first.write_bytes(data[:at] if kind == "cut" else data)
            result = values()
            crashed += result is None
            wrong += result is not None and result != expected
    return wrong, crashed


def main() -> int:
    kind, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    start = time.monotonic()
    if kind == "forks":
        hung, without = forks(count)
        print(f"{count} forks: {hung} hung, {without} without a garbage collector", end="")
        failed = hung + without
    elif kind == "exits":
        failed = exits(count)
        print(f"{count} exits: {failed} hung", end="")
    else:
        wrong, crashed = files(count)
        print(f"{count} caches: {wrong} with wrong numbers, {crashed} crashed", end="")
        failed = wrong + crashed
    print(f" ({time.monotonic() - start:.0f} s)")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
