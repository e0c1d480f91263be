"""The programs whose first result is timed give it, in each library that compiles."""

import pytest

from benchmarks.compile import (
    COMPILERS,
    EMPTY,
    FILLED,
    JAX,
    KNOWN,
    PROGRAMS,
    first_results,
    measure,
    measure_program,
    show,
)
from benchmarks.peers import BY_HAND, COMPILED, PEERS
from benchmarks.work import Work, check, scalars

# Warnings are errors in our own code alone.
OTHERS = pytest.mark.filterwarnings("ignore")
MEASURED = [
    pytest.param(peer, id=peer.name, marks=() if peer is COMPILED else OTHERS) for peer in COMPILERS
]


@pytest.mark.parametrize("peer", MEASURED)
@pytest.mark.parametrize("work", PROGRAMS, ids=lambda work: work.name)
def test_first_result(benchmark, work, peer):
    """Time the first call in this process, its results checked against the formulas in NumPy."""
    run = peer.build(work)
    if run is None:
        pytest.skip("the library has no such program")
    benchmark.group = work.name
    results = benchmark.pedantic(run, rounds=1)
    wanted = BY_HAND.build(work)
    assert wanted is not None
    check(work, wanted(), {peer.name: results})


def test_process():
    """A process of its own says how long the first call took, with the caches of the user."""
    taken, _ = first_results(PROGRAMS[0], COMPILED, fresh=False)
    ((cached, (elapsed, used)),) = taken.items()
    assert cached == FILLED
    assert 0 < elapsed < 100
    assert used > 0


def test_library_lacks_a_program(monkeypatch):
    monkeypatch.setattr(COMPILED.library, "lacks", frozenset({"log1pexp"}))
    assert measure_program(COMPILED.package, COMPILED.mode, "log1pexp") is None
    assert measure_program(COMPILED.package, COMPILED.mode, "products_200")


def test_failure_is_told():
    """A library that fails has no times, and its last words are kept."""
    unknown = Work("a loop", "multiplications", lambda: scalars(1))
    measured, refused, failed = measure(unknown, [COMPILED], 1)
    assert not measured
    assert not refused
    assert "multiplications" in failed[COMPILED]


def test_table(capsys):
    """Each row has its ratios to JAX; with functions known, others have nothing cached."""
    torch = next(peer for peer in PEERS if peer.name == "torch compile")
    measured = {
        PROGRAMS[0]: {
            (EMPTY, COMPILED): (3.0, 4.0),
            (KNOWN, COMPILED): (0.5, 1.0),
            (FILLED, COMPILED): (0.1, 0.2),
            (EMPTY, JAX): (1.0, 2.0),
            (FILLED, JAX): (0.2, 0.2),
            (EMPTY, torch): (8.0, 8.0),
        }
    }
    for cached in (EMPTY, KNOWN, FILLED):
        show(measured, [COMPILED, JAX, torch], cached)
    lines = capsys.readouterr().out.splitlines()
    rows = [line.split("gradient of log1pexp")[1].split() for line in lines if "log1pexp" in line]
    assert rows == [
        ["3000", "(3.00)", "4000", "(2.00)", "1000", "2000", "8000", "(8.00)", "8000", "(4.00)"],
        ["500", "(0.50)", "1000", "(0.50)", "1000", "2000", "8000", "(8.00)", "8000", "(4.00)"],
        ["100", "(0.50)", "200", "(1.00)", "200", "200"],
    ]
