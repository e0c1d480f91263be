"""The benchmark of first uses runs: each is compiled, in a process that found nothing."""

import subprocess
import sys


def run(*arguments):
    command = [sys.executable, "-m", "benchmarks.first", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_operations_by_name():
    done = run("negative", "sum", "gcd", "--start")
    assert done.returncode == 0, done.stderr
    assert done.stderr.split() == ["negative", "sum", "gcd"]
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    assert len(rows["negative"]) == len(rows["sum"]) == 4
    assert rows["gcd"] == []  # of integers
    assert float(rows["negative"][0]) > 1  # it was compiled
    assert "3 operations" in done.stdout


def test_what_is_no_operation():
    done = run("nothing")
    assert done.returncode == 1
    assert "no operation nothing: choose from " in done.stderr
