"""Elementwise kernels in Numba's CUDA simulator: no test here runs on a GPU."""

import sys

import pytest

from tests.support.simulator import simulate

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="Numba has no CUDA there")


def test_elementwise_kernels_give_the_numbers_of_the_cpu():
    told = simulate("tests.cuda.elementwise_cases")
    assert told["differences"] == []
    assert told["cases"] > 350
    assert told["tiles"] > 10
