"""Progress of long loops: who sees it, and what."""

import io
import itertools
import sys
import types

import pytest

import tinygrad_cg as tf
from tinygrad_cg._core import tracking
from tinygrad_cg_kernels.runtime import progress

pytestmark = pytest.mark.quick


class Terminal(io.StringIO):
    def isatty(self):
        return True


def write_to(stream, monkeypatch):
    """Have progress written to a stream; pytest's capture changes `sys.stderr` itself."""
    for module in (progress, tracking):
        monkeypatch.setattr(module, "sys", types.SimpleNamespace(stderr=stream))
    return stream


@pytest.fixture
def terminal(monkeypatch):
    """A terminal as stderr, a clock that goes on by half a second, and no tqdm."""
    monkeypatch.delenv("TINYGRAD_CG_PROGRESS", raising=False)
    stream = write_to(Terminal(), monkeypatch)
    ticks = iter(range(10_000))
    clock = types.SimpleNamespace(monotonic=lambda: next(ticks) / 2)
    monkeypatch.setattr(tracking, "time", clock)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    return stream


def test_lines_come_whenever_as_much_time_has_passed_again(terminal):
    assert list(tracking.track([*"abcdefghijklmnop"], "letters")) == [*"abcdefghijklmnop"]
    lines = terminal.getvalue().splitlines()
    assert lines[0] == "tinygrad_cg: letters, 1 of 16 after 1.5 s"
    seconds = [float(line.split()[-2]) for line in lines]
    assert all(b >= 2 * a for a, b in itertools.pairwise(seconds))
    assert 2 <= len(lines) <= 4


def test_items_without_a_length_have_a_total_if_it_is_given(terminal):
    assert sum(tracking.track(iter(range(5)), "numbers")) == 10
    assert " 1 after" in terminal.getvalue()
    assert sum(tracking.track(iter(range(5)), "numbers", 5)) == 10
    assert " 1 of 5 after" in terminal.getvalue()


def test_a_loop_of_less_than_a_second_says_nothing(terminal, monkeypatch):
    monkeypatch.setattr(progress, "AFTER", 1e9)
    assert list(tracking.track([1, 2, 3], "numbers")) == [1, 2, 3]
    assert terminal.getvalue() == ""


def test_nothing_is_said_where_nobody_reads_it(terminal, monkeypatch):
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setenv("TINYGRAD_CG_PROGRESS", "0")
    assert list(tracking.track([1, 2], "numbers")) == [1, 2]
    monkeypatch.delenv("TINYGRAD_CG_PROGRESS")
    file = write_to(io.StringIO(), monkeypatch)
    assert list(tracking.track([1, 2], "numbers")) == [1, 2]
    assert (terminal.getvalue(), file.getvalue()) == ("", "")


def test_tqdm_draws_a_bar_where_it_is_installed(terminal, monkeypatch):
    bars = []

    class Bar:
        def __init__(self, **options):
            self.options, self.n, self.closed = options, options["initial"], False
            bars.append(self)

        def update(self):
            self.n += 1

        def close(self):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))

    def stop_at(items, last):
        for item in items:
            if item == last:
                raise KeyError(item)

    with pytest.raises(KeyError):
        stop_at(tracking.track(range(9), "numbers"), 6)
    (bar,) = bars
    assert (bar.options["desc"], bar.options["total"]) == ("tinygrad_cg: numbers", 9)
    assert (bar.n, bar.closed) == (6, True)  # so many are done
    assert terminal.getvalue() == ""


def test_the_bar_of_tqdm_itself(terminal, monkeypatch):
    monkeypatch.undo()
    pytest.importorskip("tqdm")
    stream = write_to(Terminal(), monkeypatch)
    monkeypatch.setattr(progress, "AFTER", 0.0)
    assert list(tracking.track([1, 2, 3], "numbers")) == [1, 2, 3]
    assert "tinygrad_cg: numbers" in stream.getvalue()


def test_a_full_check_says_how_far_it_is(terminal):
    x = tf.constant([[0.3, -0.7, 1.1], [0.2, 0.5, 0.9]])
    assert tf.check_gradients(lambda x: tf.sin(x) * x, x, full=True).ok
    said = terminal.getvalue()
    assert "tinygrad_cg: check_gradients: differences of order 1, 1 of 6" in said
    assert "check_gradients: derivatives of order 2, 1 of 6" in said
