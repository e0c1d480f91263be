"""The comparison of a GPU with the CPU, on two operations in Numba's simulator."""

import json
import os
import subprocess
import sys

import pytest

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
