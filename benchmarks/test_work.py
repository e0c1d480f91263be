"""One benchmark for each piece of work in each library and mode that is installed."""

import pytest

from benchmarks.peers import BY_HAND, INSTALLED
from benchmarks.work import WORK, check
from tinygrad_cg._tour.timing import settle

LARGE = 1_000_000  # elements, more than which are only worth the wait if it is timed

# Warnings are errors in our own code alone.
OTHERS = pytest.mark.filterwarnings("ignore")
MEASURED = [
    pytest.param(peer, id=peer.name, marks=() if peer.package == "tinygrad_cg" else OTHERS)
    for peer in INSTALLED
]


@pytest.mark.parametrize("peer", MEASURED)
@pytest.mark.parametrize("work", WORK, ids=lambda work: work.name)
def test_work(benchmark, work, peer):
    """Time the work, its results checked against the formulas in NumPy."""
    if benchmark.disabled and work.size > LARGE:
        pytest.skip("large, and not timed")
    run = peer.build(work)
    if run is None:
        pytest.skip("the library has no such program")
    benchmark.group = work.name
    run() if benchmark.disabled else settle(run)
    results = benchmark(run)
    wanted = BY_HAND.build(work)
    assert wanted is not None
    check(work, wanted(), {peer.name: results})
