"""The benchmark of calls from Numba code prints its rows."""

import sys

import pytest

from benchmarks import numba_calls


def test_main(monkeypatch, capsys):
    pytest.importorskip("scipy")
    monkeypatch.setattr(sys, "argv", ["numba_calls", "--seconds", "0"])
    numba_calls.main()
    printed = capsys.readouterr().out.splitlines()
    assert "compiled" in printed[1]
    names = [line.strip().partition("  ")[0] for line in printed[3:]]
    assert names[0] == "log1pexp, a number"
    assert names[-1] == "quad of a derivative"
    assert all(float(line.split()[-1]) > 0 for line in printed[3:])
