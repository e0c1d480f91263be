"""The benchmark of blocks runs, with small data."""

import sys

import pytest

from benchmarks import distributed


def test_main(monkeypatch, capsys):
    pytest.importorskip("distributed", reason="the extra dask brings it")
    arguments = ["--blocks", "3", "--repeats", "1", "--seconds", "0.001", "--kills", "0"]
    monkeypatch.setattr(sys, "argv", ["distributed", *arguments, "--gigabytes", "0.01"])
    distributed.main()
    printed = capsys.readouterr().out
    assert "DIFFERENT" not in printed
    assert printed.count("the same") == 3  # two losses, and data in files
    assert "limit of a worker" in printed
