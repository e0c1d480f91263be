"""The benchmark of sparse derivatives runs, and its sides agree."""

import sys

import numpy as np
import pytest

from benchmarks import sparse
from benchmarks.sparse_work import STEPS, least, state

pytest.importorskip("scipy")


def test_our_work():
    work = sparse.our_work(5, state(5))
    assert all(least(getattr(work, step), 0.0) > 0 for step in STEPS)
    direction = np.ones(50)
    residuals = sparse.problems.brusselator(5).residuals
    _, expected = sparse.tf.jvp(residuals, (state(5),), (direction,))
    np.testing.assert_allclose(work.product(direction), expected)


def test_main(monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["sparse", "--quick"])
    sparse.main()
    printed = capfd.readouterr().out
    for words in ("tinygrad_cg", "least_squares, 20 points", "trust-constr", "128 unknowns"):
        assert words in printed
