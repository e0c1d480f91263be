"""`python -m benchmarks.programs.process PACKAGE NAME`: a program, then its steps one by one.

The first answer is what the program printed, and megabytes at the peak; to a number of seconds it
answers with the time of each step that was made meanwhile.
"""

import contextlib
import importlib
import io
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import THREADS
from benchmarks.programs import STEPS, data, path

OURS = "tinygrad_cg"


def run(package: str, name: str) -> tuple[str, Callable[[], Any]]:
    """Run a program; return what it printed, and what makes one more step."""
    data.restart()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if package == "jax":
            step = importlib.import_module("benchmarks.programs.in_jax").PROGRAMS[name]()
        else:
            step = _executed(package, name)
    return printed.getvalue(), step


def _executed(package: str, name: str) -> Callable[[], Any]:
    text = path(name).read_text("utf-8")
    text = text.replace(f"import {OURS} as tf", f"import {package} as tf")
    if package == "tensorflow":
        threading = importlib.import_module(package).config.threading
        threading.set_intra_op_parallelism_threads(THREADS)
        threading.set_inter_op_parallelism_threads(THREADS)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(text, str(path(name)), "exec"), names)
    return eval(f"lambda: {STEPS[name]}", names)


def finish(result: Any) -> None:
    """Wait for a step's results."""
    for part in result if isinstance(result, (tuple, list)) else [result]:
        np.asarray(part)


def peak() -> float:
    """Return the most megabytes that this process had; NaN where the system does not say."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
    except OSError:
        return float("nan")
    return float(lines["VmHWM"].split()[0]) * 1024 / 1e6


def main() -> None:
    """Run the program, and answer."""
    printed, step = run(*sys.argv[1:])
    for line in sys.stdin:
        (seconds,) = json.loads(line)
        times: list[float] = []
        end = time.perf_counter() + seconds
        while seconds and time.perf_counter() < end:
            start = time.perf_counter()
            finish(step())
            times.append(time.perf_counter() - start)
        answer = times if seconds else {"printed": printed, "peak": peak()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
