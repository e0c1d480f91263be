"""Reductions, scans, gather and scatter in Numba's CUDA simulator: no test here runs on a GPU."""

import sys

import pytest

from tests.support.simulator import simulate

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="Numba has no CUDA there")


def test_reductions_give_the_numbers_of_the_cpu_and_the_same_bits_again(monkeypatch):
    monkeypatch.setenv("SIMULATED_THREADS", "8")
    told = simulate("tests.cuda.reduction_cases")
    assert told["differences"] == []
    assert told["cases"] > 250


@pytest.mark.parametrize("threads", ["4", "8"])
def test_scans_gather_scatter_and_products_give_the_results_and_errors_of_the_cpu(
    threads, monkeypatch
):
    monkeypatch.setenv("SIMULATED_THREADS", threads)
    told = simulate("tests.cuda.move_cases")
    assert told["differences"] == []
    assert told["cases"] > 110
