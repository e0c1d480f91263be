"""The comparison of a GPU with the CPU: on two operations in Numba's simulator, and its parts."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support import device_cases, device_sweep
from tests.support.device_checks import error_on_cpu
from tests.support.simulator import ROOT, SIMULATOR

SWEEP = [sys.executable, "-m", "tests.support.device_sweep", "--largest", "20", "--processes", "1"]


@pytest.mark.skipif(sys.platform == "darwin", reason="Numba has no CUDA there")
def test_two_operations_are_compared(tmp_path):
    report = tmp_path / "report.jsonl"
    command = [*SWEEP, "--json", str(report), "own:sin", "own:sum"]
    environment = os.environ | SIMULATOR
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cases = [json.loads(line) for line in report.read_text().splitlines()]
    assert {case["task"] for case in cases} == {"own:sin", "own:sum"}
    assert {case["status"] for case in cases} == {"passed"}
    assert done.stdout.splitlines()[-1].startswith(
        f"{len(cases)} passed, 0 failed, 0 tasks skipped"
    )
    assert "Operations that ran: 2 with their examples, 0 also with larger" in done.stdout


@pytest.fixture
def compared(monkeypatch):
    """Whether a second device passes whose results have errors, where a second derivative is 0."""
    monkeypatch.setattr(device_cases, "DEVICE", "cpu")

    def compare(dtype, *errors):
        calls = iter([(0.0, 0.0, 0.0), errors])

        def function(x):
            results = zip((3.0, 2.0, float(np.finfo(dtype).eps)), next(calls), strict=True)
            return [tf.constant([result, result + error], dtype) for result, error in results]

        try:
            device_cases.compare(function, np.ones(2), orders=lambda count: [0, 1, 2])
        except device_cases.Differs:
            return False
        return True

    return compare


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_derivatives_that_are_zero_up_to_rounding_are_equal(compared, dtype):
    rounding = float(np.finfo(dtype).eps)
    assert compared(dtype, 0.0, 0.0, 16 * rounding)
    assert not compared(dtype, 0.0, 0.0, 1e3 * rounding)
    assert not compared(dtype, 0.0, 0.0, np.nan)
    assert not compared(dtype, 0.0, 1e-2, 0.0)
    assert not compared(dtype, 1e-2, 0.0, 0.0)


def test_a_sum_that_cancels_has_an_error_on_the_cpu():
    points = [np.array([1e4, 0.1, -1e4]), np.array([1.0, 2.0, 3.0])]
    error = error_on_cpu(lambda x: (x, tf.reduce_sum(x)), points, 1)
    assert 1e-5 < error < 1e-3


def test_what_takes_long_to_compile_comes_last():
    tasks = device_sweep.tasks()
    assert len(set(tasks)) == len(tasks)
    fast = [task for task in tasks if task.startswith(("own", "sizes")) and "gamma" not in task]
    assert {"own:sum", "sizes:sum", "own:softmax"} < set(fast)
    for slow in ("user_primitives", "own:igamma", "own:bessel_j", "sizes:zeta", "rest:sum"):
        assert tasks.index(slow) > tasks.index("sizes:sum"), slow
    asked = [task for task in tasks if device_sweep.is_asked(task, ["checks", "own:sum", "sin"])]
    assert {"threads", "own:sum", "rest:sin"} < set(asked)
    assert not {"sizes:sum", "own:tan"} & set(asked)
