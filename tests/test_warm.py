"""`python -m tinygrad_cg.warm`: what it compiles is found by the next process."""

import pytest

from tests.support.python import PATH, run_python
from tinygrad_cg import warm

PROGRAM = """
import numpy as np
import tinygrad_cg as tf
from tinygrad_cg_kernels.runtime import compile as build
x = tf.constant(np.ones(8))
with tf.GradientTape() as tape:
    tape.watch(x)
    y = tf.exp(x)
tape.gradient(y, x)
print(build.compiled)
"""


def test_what_is_compiled_is_found(tmp_path):
    done = run_python(
        *("-m", "tinygrad_cg.warm", "exp", "square", "--processes", "2"),
        TINYGRAD_CG_CACHE_DIR=str(tmp_path),
    )
    assert "compiling 2 operations into" in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.rglob("functions/*.code"))
    assert run_python(PROGRAM, TINYGRAD_CG_CACHE_DIR=str(tmp_path)).stdout.strip() == "[]"


def test_quiet(capfd):
    assert warm.main(["exp", "--quiet"]) == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["expo"], "no operation 'expo': choose from"),
        (["exp", "--processes", "0"], "--processes must be at least 1, got 0"),
    ],
)
def test_errors(arguments, words, capsys):
    with pytest.raises(SystemExit) as error:
        warm.main(arguments)
    assert error.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_progress_counts_the_operations_of_all_processes(unbuffered, monkeypatch, capfd):
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    counted = []

    def track(items, label, total=None):
        for item in items:
            counted.append((item.strip(), label, total))
            yield item

    monkeypatch.setattr(warm, "track", track)
    monkeypatch.setenv("PYTHONPATH", PATH)
    assert warm.main(["exp", "square", "--processes", "2"]) == 0
    assert sorted(counted) == [(name, warm.LABEL, 2) for name in ("exp", "square")]
    counted.clear()
    assert warm.main(["exp", "square", "--processes", "1"]) == 0
    assert [name for name, *_ in counted] == ["exp", "square"]
    assert capfd.readouterr().out == ""
