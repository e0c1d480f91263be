"""All libraries give the same gradients of the functions in loops, and the table has a row each."""

import sys

import pytest

from benchmarks import THREADS, array_code
from benchmarks.array_functions import CASES

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other libraries


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.function.__name__)
def test_results_agree(case):
    runs = array_code.calls(case)
    assert list(runs) == [
        array_code.NUMBA,
        array_code.VALUE,
        array_code.GRADIENT,
        *array_code.PEERS,
    ]


def test_main(monkeypatch, capsys):
    arguments = ["array_code", "Thomas", "Kalman", "--quick", "--threads", str(THREADS)]
    monkeypatch.setattr(sys, "argv", arguments)
    array_code.main()
    printed = capsys.readouterr().out
    assert "Thomas solve, 1,000" in printed
    assert "Kalman filter, 500 steps" in printed
    assert "gradient / function: geometric mean" in printed
