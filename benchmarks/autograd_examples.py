"""HIPS/autograd's example scripts: ``python -m benchmarks.autograd_examples FOLDER``.

FOLDER has the scripts (``examples/`` of autograd's repository); autograd, SciPy and matplotlib must
be installed. Each script runs three times in a separate process: with autograd; with this library's
adapter in the place of autograd and NumPy kept ("numpy"); and with `tinygrad_cg.autograd.numpy` in
the place of ``autograd.numpy`` too ("swapped"). The text of a script is changed in its sizes only:
fewer iterations, less data. A generator without a seed gets one. Images and labels are made up, no
picture is shown or stored. A script passes where each number that it prints, and each value and
gradient that it computes, is autograd's within a relative error of 1e-5 and 1e-7 of the largest.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import types
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

SIDES = ("autograd", "numpy", "swapped")
NO_SCRIPTS = {"__init__", "data", "data_mnist"}
SIZES = [  # what makes a script long, and what it becomes here
    (r"num_iters=(1000|2000|200)\b", "num_iters=6"),
    (r"num_iters = 200\b", "num_iters = 6"),
    (r"num_iters=num_epochs \* num_batches", "num_iters=4"),
    (r"num_epochs = \d+", "num_epochs = 2"),
    (r"num_iters=20\b", "num_iters=2"),
    (r"num_samples=2000\b", "num_samples=50"),
    (r"max_lines=60\b", "max_lines=8"),
    (r"num_steps=\d+", "num_steps=3"),
    (r"num_states = 20", "num_states = 3"),
    (r'method="trust-ncg"', 'method="trust-ncg", options={"maxiter": 3}'),
    (r"rtol=0\.01", "rtol=1e-9, atol=1e-9"),  # at which solvers agree to the digits compared
    (r"npr\.RandomState\(\)", "npr.RandomState(0)"),
    # rounding decides on later steps: autograd's own numbers differ from machine to machine
    (r'method="Newton-CG"', 'method="Newton-CG", options={"maxiter": 12}'),
    (r'method="CG"', 'method="CG", options={"maxiter": 4}'),
]
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?|\bnan\b|\binf\b")
ADAPTED = (
    *(
        "builtins",
        "extend",
        "test_util",
        "misc",
        "misc.flatten",
        "misc.optimizers",
        "misc.fixed_points",
    ),
    *("scipy", "scipy.special", "scipy.stats", "scipy.stats.norm", "scipy.stats.t"),
    *("scipy.stats.multivariate_normal", "scipy.signal", "scipy.linalg", "scipy.integrate"),
)
RECORDED = ("grad", "value_and_grad", "elementwise_grad", "jacobian", "hessian_vector_product")


def images() -> tuple[np.ndarray, ...]:
    """Return images and labels that look like the digits which the scripts download."""
    draws = np.random.RandomState(0)
    pictures = [draws.randint(0, 256, (count, 28, 28)).astype(np.uint8) for count in (40, 10)]
    labels = [draws.randint(0, 10, count).astype(np.uint8) for count in (40, 10)]
    return pictures[0], labels[0], pictures[1], labels[1]


def numbers(value: Any) -> list[float]:
    """Return the sum and the length of each leaf of a nested result."""
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [number for entry in value for number in numbers(entry)]
    leaf = np.asarray(value, float)
    return [float(np.sum(leaf)), float(np.sqrt(np.sum(leaf**2)))]


def install(side: str) -> list[list[float]]:
    """Make the modules that the scripts import, and return the list that derivatives go to."""
    derivatives: list[list[float]] = []
    if side == "autograd":
        home: Any = import_module("autograd")
    else:
        home = import_module("tinygrad_cg.autograd")
        library = import_module("tinygrad_cg.autograd.numpy" if side == "swapped" else "numpy")
        sys.modules["autograd"] = home
        home.numpy = sys.modules["autograd.numpy"] = library
        for name in ("random", "linalg"):
            sys.modules[f"autograd.numpy.{name}"] = getattr(library, name)
        for name in ADAPTED:
            sys.modules[f"autograd.{name}"] = import_module(f"tinygrad_cg.autograd.{name}")

    depth = 0

    def recording(transform: Any) -> Any:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            derivative = transform(*args, **kwargs)

            def run(*inputs: Any, **options: Any) -> Any:
                nonlocal depth
                depth += 1
                try:
                    result = derivative(*inputs, **options)
                finally:
                    depth -= 1
                if not depth:  # otherwise it is itself being differentiated
                    derivatives.append(numbers(result))
                return result

            return run

        return recorded

    for name in RECORDED:
        setattr(home, name, recording(getattr(home, name)))
    mnist: Any = types.ModuleType("data_mnist")
    mnist.mnist = images
    sys.modules["data_mnist"] = mnist
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    for name in ("show", "pause", "draw", "savefig"):
        setattr(plt, name, lambda *args, **kwargs: None)
    return derivatives


def run(side: str, script: Path) -> dict[str, Any]:
    """Return what a script prints and the derivatives that it computes, or why it stopped."""
    warnings.simplefilter("ignore")
    text = script.read_text(encoding="utf-8")
    for pattern, replacement in SIZES:
        text = re.sub(pattern, replacement, text)
    sys.path.insert(0, str(script.parent))
    printed, stopped = io.StringIO(), None
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(printed):
        os.chdir(folder)
        try:
            derivatives = install(side)
            np.random.seed(0)
            space = {"__name__": "__main__", "__file__": str(script)}
            exec(compile(text, str(script), "exec"), space)  # the scripts are programs
        except BaseException as error:  # whatever stops a script is the finding
            stopped = f"{type(error).__name__}: {error}".replace("\n", " ")
            derivatives = []
            if os.environ.get("AUTOGRAD_EXAMPLES_TRACE"):
                raise
        os.chdir("/")
    text = re.sub(r"shape=\([\d, ]*\)", "", printed.getvalue())  # of a tensor's text
    said = [float(number) for number in NUMBER.findall(text)]
    return {"stopped": stopped, "printed": said, "derivatives": derivatives}


def process(side: str, script: Path, seconds: float) -> dict[str, Any]:
    """Return `run` of a process of its own."""
    command = [sys.executable, "-m", "benchmarks.autograd_examples", "--side", side, str(script)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {"stopped": f"over {seconds:g} s", "printed": [], "derivatives": []}
    lines = done.stdout.splitlines() or [json.dumps({"stopped": done.stderr[-200:]})]
    return json.loads(lines[-1])


def differ(expected: dict[str, Any], got: dict[str, Any]) -> str | None:
    """Say what is not autograd's, None if all is."""
    if got["stopped"]:
        return got["stopped"]
    for what in ("printed", "derivatives"):
        theirs, ours = expected[what], got[what]
        if len(theirs) != len(ours):
            return f"{len(ours)} results ({what}), autograd has {len(theirs)}"
        for index, (wanted, value) in enumerate(zip(theirs, ours, strict=True)):
            scale = np.max(np.abs(wanted), initial=0.0)
            if np.shape(wanted) != np.shape(value) or not np.allclose(
                value, wanted, rtol=1e-5, atol=1e-7 * scale + 1e-9, equal_nan=True
            ):
                return f"{what}[{index}] is {value}, autograd has {wanted}"
    if not expected["printed"] and not expected["derivatives"]:
        return "autograd's run has no numbers to compare"
    return None


def main() -> None:
    """Run all scripts and print a line for each and the totals."""
    parser = argparse.ArgumentParser(description="HIPS/autograd's example scripts")
    parser.add_argument("folder", type=Path, help="autograd's examples/, or one script of it")
    parser.add_argument("--side", choices=SIDES, help="run one script here, and print JSON")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each run of a script")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.side:
        print(json.dumps(run(options.side, folder)))
        return
    paths = [folder] if folder.is_file() else sorted(folder.glob("*.py"))
    scripts = [script for script in paths if script.stem not in NO_SCRIPTS]
    totals = dict.fromkeys(SIDES[1:], 0)
    for script in scripts:
        expected = process("autograd", script, options.seconds)
        if expected["stopped"]:
            print(f"{script.stem}: autograd itself stops: {expected['stopped']}", flush=True)
            continue
        for side in totals:
            wrong = differ(expected, process(side, script, options.seconds))
            totals[side] += wrong is None
            print(f"{script.stem}, {side}: {wrong or 'as autograd'}", flush=True)
    for side, total in totals.items():
        print(f"{side}: {total} of {len(scripts)} scripts have autograd's numbers")


if __name__ == "__main__":
    main()
