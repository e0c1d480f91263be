"""The line on stderr where compiling takes over a second: when, what, and where it is not."""

import io
import threading
import time
from types import SimpleNamespace

import pytest

from tests.support.python import run_python
from tinygrad_cg_kernels.runtime import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stderr(monkeypatch):
    """A terminal; what is said of after 50 ms."""
    monkeypatch.delenv("TINYGRAD_CG_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "AFTER", 0.05)
    monkeypatch.setattr(progress, "PAUSE", 0.02)
    monkeypatch.setattr(progress, "_row", progress._Row())
    return replace_stderr(monkeypatch, Terminal())


def replace_stderr(monkeypatch, stream):
    """Replace stderr by another stream, for the module alone: pytest has its own."""
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    return stream


def compile_for(seconds, count=1):
    with progress.compiling(count):
        time.sleep(seconds)


def test_what_takes_long_says_so_while_it_compiles(stderr):
    with progress.compiling(12):
        time.sleep(0.3)
        assert stderr.getvalue() == "tinygrad_cg: compiling 12 kernels ..."
    line, rest = stderr.getvalue().split("\n")
    assert float(line.removeprefix("tinygrad_cg: compiling 12 kernels ... ")[:-2]) >= 0.3
    assert line.endswith(" s")
    assert rest == ""


def test_what_is_quick_says_nothing(stderr):
    for _ in range(3):
        compile_for(0.001)
        time.sleep(0.03)  # longer than a pause
    time.sleep(0.1)
    assert stderr.getvalue() == ""


def test_kernels_in_a_row_count_together(stderr):
    for _ in range(30):
        compile_for(0.005)
    lines = stderr.getvalue().splitlines()
    assert 1 <= len(lines) <= 4  # each after twice the time of the one before
    assert all(line.startswith("tinygrad_cg: compiling ") for line in lines)
    counts = [int(line.split()[2]) for line in lines]
    assert counts == sorted(set(counts))
    assert 1 < counts[0] <= 12


def test_one_kernel_in_another_is_no_second_one(stderr):
    with progress.compiling(3):
        compile_for(0.2, 7)
        compile_for(0.01)
        assert stderr.getvalue() == "tinygrad_cg: compiling 3 kernels ..."
    assert stderr.getvalue().count("\n") == 1


def test_an_error_ends_the_line(stderr):
    def fail():
        with progress.compiling():
            time.sleep(0.2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert stderr.getvalue().startswith("tinygrad_cg: compiling 1 kernel ... ")
    assert stderr.getvalue().endswith(" s\n")


def test_not_every_kernel_starts_a_thread(stderr, monkeypatch):
    started = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda self: (started.append(1), start(self)))
    monkeypatch.setattr(progress, "AFTER", 0.5)
    for _ in range(20):
        compile_for(0.002)
    assert len(started) == 1
    deadline = time.monotonic() + 10
    while progress._row._is_watched and time.monotonic() < deadline:
        time.sleep(0.05)
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
def test_no_stderr(closed, monkeypatch):
    monkeypatch.delenv("TINYGRAD_CG_PROGRESS", raising=False)
    stream = io.StringIO() if closed else None
    if stream is not None:
        stream.close()
    replace_stderr(monkeypatch, stream)
    assert not progress.is_wanted()
    monkeypatch.setenv("TINYGRAD_CG_PROGRESS", "1")
    monkeypatch.setattr(progress, "AFTER", 0.01)
    monkeypatch.setattr(progress, "_row", progress._Row())
    compile_for(0.05)


CODE = """
from tinygrad_cg_kernels.runtime import progress
progress.AFTER = 0.001
import tinygrad_cg as tf
f = tf.function(tf.grad(lambda x: tf.reduce_sum(tf.exp(x) * x)))
f(tf.constant([1.0, 2.0]))
"""


@pytest.mark.parametrize("value", [None, "0", "1"])
def test_a_program_that_is_compiled(value, tmp_path, monkeypatch):
    monkeypatch.delenv("TINYGRAD_CG_PROGRESS", raising=False)
    said = {} if value is None else {"TINYGRAD_CG_PROGRESS": value}
    done = run_python(CODE, TINYGRAD_CG_CACHE_DIR=str(tmp_path), **said)
    assert done.stdout == ""
    if value == "1":
        assert "tinygrad_cg: compiling 1 kernel ..." in done.stderr
        assert done.stderr.endswith(" s\n")
    else:
        assert done.stderr == ""
