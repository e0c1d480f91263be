"""Eager work, one benchmark for each piece and each installed library."""

import pytest

from benchmarks.work import INSTALLED, WORK, check


@pytest.mark.parametrize("library", INSTALLED)
@pytest.mark.parametrize("work", WORK, ids=lambda work: work.name)
def test_work(benchmark, work, library):
    """Time the work, its values checked against the formulas in NumPy."""
    benchmark.group = work.name
    results = benchmark(work.build(library))
    check(work, {"numpy": work.build("numpy")(), library: results})
