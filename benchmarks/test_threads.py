"""The benchmark of threads runs, and its tables say what was measured."""

import os
import sys
import time

from benchmarks import THREADS
from benchmarks.peers import COMPILED
from benchmarks.threads import PROGRAMS, Server, Side, busy_process, compare, sides

OURS = Side("ours", sys.executable, COMPILED.package, COMPILED.mode, THREADS)


def test_server():
    """A process checks a program's results, and times it for as long as it is told."""
    server = Server(OURS)
    try:
        assert len(server.times(0, 0.0)) == 1
        start = time.perf_counter()
        taken = server.times(0, 0.2)
        assert len(taken) > 1
        assert 0 < sum(taken) < time.perf_counter() - start
    finally:
        server.close()


def test_sides_without_jax():
    names = [side.name for side in sides(sys.executable)]
    assert names[:2] == [f"{THREADS} threads", "1 thread"]


def test_busy_process():
    """It uses one core, until the end of the block."""

    def used():
        ended = os.times()
        return ended.children_user + ended.children_system

    before = used()
    with busy_process():
        time.sleep(0.5)
    assert used() - before > 0.02
    before = used()
    with busy_process(busy=False):
        pass
    assert used() == before


def test_table(capsys):
    """Ratios are another side's times over ours."""
    taken = [[[1.0, 1.0, 4.0], [2.0], [3.0]] for _ in PROGRAMS]
    compare([OURS, OURS._replace(name="one"), OURS._replace(name="jax")], taken)
    lines = [line for line in capsys.readouterr().out.splitlines() if PROGRAMS[0].name in line]
    rows = [line.split(PROGRAMS[0].name)[1].split() for line in lines]
    medians = ["1000000", "2000000", "(2.00)", "3000000", "(3.00)"]
    means = ["2000000", "2000000", "(1.00)", "3000000", "(1.50)"]
    assert rows == [[*medians, *means]]
