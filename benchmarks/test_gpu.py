"""The benchmark of a GPU, in Numba's simulator: a row, and libraries that fail."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from benchmarks.gpu import EAGER, Failure, Subject, Worker, difference
from benchmarks.gpu_bandwidth import OPERATIONS
from benchmarks.peers import Peer
from tests.support.simulator import ROOT, SIMULATOR

MODES = ["eager", "function", "CUDA graphs"]


@pytest.mark.skipif(sys.platform == "darwin", reason="Numba has no CUDA there")
def test_a_row(tmp_path):
    path = tmp_path / "report.json"
    command = [sys.executable, "-m", "benchmarks", "--device", "gpu", "--sizes", "12"]
    done = subprocess.run(
        [*command, "--json", str(path), "x.T"],
        env=os.environ | SIMULATOR,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    report = json.loads(path.read_text())
    assert not [failure for failure in report["failures"] if failure.split(", ")[0][7:] in MODES]
    (row,) = report["rows"]
    assert row["reference"] == "ours on the CPU"
    assert row["bytes"] == 3 * 4 * 12
    assert not row["wrong"]
    assert {*MODES} <= {*row["seconds"]}
    assert report["operations"]["eager"].keys() == {"sin", "x + y", "sum", "gather"}
    assert "x.T * 2 + y" in done.stdout


@pytest.mark.skipif(sys.platform == "darwin", reason="Numba has no CUDA there")
def test_bandwidths():
    command = [sys.executable, "-m", "benchmarks.gpu_bandwidth", "--log2", "3"]
    environment = os.environ | SIMULATOR
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, cwd=ROOT
    )
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["GB/s", "ours", "torch"]
    assert len(lines) == 2 + len(OPERATIONS)


def test_failures_do_not_stop_it():
    def ask(worker, *command, seconds=60.0):
        worker.send(*command)
        return worker.answer(time.perf_counter() + seconds)

    absent = Worker(Subject("absent", Peer("absent", "eager"), "cpu"))
    assert "absent" in ask(absent, "describe").text
    absent.stop()
    worker = Worker(Subject("ours", EAGER, "cpu"))
    assert "KeyError" not in ask(worker, "describe")
    assert ask(worker, "prepare", 10_000, 1).text.startswith("IndexError")
    worker.process.kill()
    assert ask(worker, "describe") == Failure("its process died", broken=True)
    assert "cpu" in ask(worker, "describe")
    assert ask(worker, "operations", 10, seconds=0.0) == Failure("no answer in time", broken=True)
    worker.stop()


def test_wrong_results_are_seen():
    right = [np.array([1.0, -4.0], np.float32)]
    assert difference(right, right) == 0.0
    assert difference([np.array([1.0, -3.0], np.float32)], right) == 0.25
    assert difference([np.array([1.0, np.nan], np.float32)], right) == np.inf
    assert difference([np.zeros(1, np.float32)], right) == np.inf
