"""Programs as users of TensorFlow write them: with the import swapped, they print its numbers."""

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.txt"))
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
OURS = {"<dtype: 'float32'>": "float32", "tg.Tensor": "tf.Tensor"}  # documented differences


def words(text):
    """What a program prints: its words, and its numbers."""
    for theirs, ours in OURS.items():
        text = text.replace(theirs, ours)
    return NUMBER.sub("#", text).split(), [float(number) for number in NUMBER.findall(text)]


def test_there_are_24():
    assert len(PROGRAMS) == 24


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_of_tensorflow_runs_with_the_import_swapped(path):
    program, _, expected = path.read_text("utf-8").partition("# What TensorFlow 2.21 prints:\n")
    program = program.replace("import tensorflow as tf", "import tinygrad_cg as tf")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(program, str(path), "exec"), {"__name__": "__main__"})
    text, numbers = words(printed.getvalue())
    wanted, references = words(re.sub("^# ", "", expected, flags=re.MULTILINE))
    assert text == wanted
    assert numbers == pytest.approx(references, rel=2e-4, abs=2e-4)
