"""The line on stderr where compiling takes over a second: when, what, and where it is not."""

import io
import re
import threading
from types import SimpleNamespace

import pytest

from tests.support.python import run_python
from tinygrad_cg_kernels.runtime import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    """A time that passes when a test says so, for the module alone."""

    def __init__(self):
        self._now, self._wakes, self._turn = 100.0, None, threading.Condition()

    def monotonic(self):
        return self._now

    def sleep(self, seconds):
        """What the watching thread calls."""
        with self._turn:
            self._wakes = self._now + seconds
            self._turn.notify_all()
            assert self._turn.wait_for(lambda: self._now >= self._wakes, 60)
            self._wakes = None

    def pass_by(self, seconds):
        """Let time pass, until the watching thread has nothing more to do at the time."""
        with self._turn:
            self._now += seconds
            self._turn.notify_all()
            while progress._row._is_watched and (self._wakes or 0) <= self._now:
                self._turn.wait(0.001)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setattr(progress, "_row", progress._Row())
    yield clock
    clock.pass_by(1000)


@pytest.fixture
def stderr(clock, monkeypatch):
    """A terminal."""
    monkeypatch.delenv("TINYGRAD_CG_PROGRESS", raising=False)
    return replace_stderr(monkeypatch, Terminal())


def replace_stderr(monkeypatch, stream):
    """Replace stderr by another stream, for the module alone: pytest has its own."""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    return stream


@pytest.fixture
def compile_for(clock):
    def compile_for(seconds, count=1):
        with progress.compiling(count):
            clock.pass_by(seconds)

    return compile_for


def test_what_takes_long_says_so_while_it_compiles(stderr, clock):
    with progress.compiling(12):
        clock.pass_by(0.9)
        assert stderr.getvalue() == ""
        clock.pass_by(2.2)
        assert stderr.getvalue() == "tinygrad_cg: compiling 12 kernels ..."
    assert stderr.getvalue() == "tinygrad_cg: compiling 12 kernels ... 3.1 s\n"


def test_what_is_quick_says_nothing(stderr, clock, compile_for):
    for _ in range(3):
        compile_for(0.9)
        clock.pass_by(0.6)  # longer than a pause
    clock.pass_by(2)
    assert stderr.getvalue() == ""


def test_kernels_in_a_row_count_together(stderr, compile_for):
    """Each line comes after twice the time of the one before."""
    for _ in range(30):
        compile_for(0.25)
    says = "tinygrad_cg: compiling {} kernels ... {} s\n".format
    assert stderr.getvalue() == says(4, 1.0) + says(8, 2.0) + says(16, 4.0)


def test_one_kernel_in_another_is_no_second_one(stderr, compile_for):
    with progress.compiling(3):
        compile_for(2, 7)
        compile_for(0.2)
        assert stderr.getvalue() == "tinygrad_cg: compiling 3 kernels ..."
    assert stderr.getvalue().count("\n") == 1


def test_an_error_ends_the_line(stderr, clock):
    def fail():
        with progress.compiling():
            clock.pass_by(2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert stderr.getvalue() == "tinygrad_cg: compiling 1 kernel ... 2.0 s\n"


def test_not_every_kernel_starts_a_thread(stderr, clock, compile_for, monkeypatch):
    started = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda self: (started.append(1), start(self)))
    for _ in range(20):
        compile_for(0.04)
    assert len(started) == 1
    clock.pass_by(1)
    assert not progress._row._is_watched  # it ends where nothing is compiled


@pytest.mark.parametrize(
    ("value", "terminal", "expected"),
    [(None, True, True), (None, False, False), ("0", True, False), ("1", False, True)],
)
def test_where_it_is_shown(value, terminal, expected, monkeypatch):
    monkeypatch.delenv("TINYGRAD_CG_PROGRESS", raising=False)
    if value is not None:
        monkeypatch.setenv("TINYGRAD_CG_PROGRESS", value)
    replace_stderr(monkeypatch, Terminal() if terminal else io.StringIO())
    assert progress.is_wanted() is expected


def test_notebooks_show_it(monkeypatch):
    monkeypatch.delenv("TINYGRAD_CG_PROGRESS", raising=False)
    kind = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})
    replace_stderr(monkeypatch, kind())
    assert progress.is_wanted()


@pytest.mark.parametrize("closed", [False, True])
def test_no_stderr(closed, clock, compile_for, monkeypatch):
    monkeypatch.delenv("TINYGRAD_CG_PROGRESS", raising=False)
    stream = io.StringIO() if closed else None
    if stream is not None:
        stream.close()
    replace_stderr(monkeypatch, stream)
    assert not progress.is_wanted()
    monkeypatch.setenv("TINYGRAD_CG_PROGRESS", "1")
    compile_for(2)


CODE = """
import os
from tinygrad_cg_kernels.runtime import progress
progress.AFTER = 0.001
import tinygrad_cg as tf
for value, f in ((None, tf.exp), ("0", tf.sin), ("1", tf.tanh)):
    if value is not None:
        os.environ["TINYGRAD_CG_PROGRESS"] = value
    tf.function(lambda x: f(x) * x)(tf.constant([1.0, 2.0]))
"""


def test_a_program_that_is_compiled(tmp_path, monkeypatch):
    """By default nothing is said where nobody reads it, nor if the user says so."""
    monkeypatch.delenv("TINYGRAD_CG_PROGRESS", raising=False)
    done = run_python(CODE, TINYGRAD_CG_CACHE_DIR=str(tmp_path))
    assert done.stdout == ""
    assert re.fullmatch(r"tinygrad_cg: compiling 1 kernel \.\.\. \d+\.\d s\n", done.stderr)
