"""What operations on a GPU cost the processor is printed for each piece of work."""

import subprocess
import sys


def test_table():
    command = [sys.executable, "-m", "benchmarks.gpu_host", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    head, *rows = done.stdout.splitlines()
    assert head.split() == ["us", "calls"]
    calls = {row[:24].strip(): int(row.split()[-1]) for row in rows}
    assert list(calls) == [
        *("sin", "x + y", "sum", "gather", "gradient of log1pexp", "a program of function")
    ]
    assert 5 < calls["sin"] <= 25
    assert 5 < calls["x + y"] <= 25
