"""What cannot be transformed is an error that names the line, and says what to do."""

import pytest

import tinygrad_cg as tf
from tests.autograph.refusals import CASES


def test_there_are_fifteen():
    assert len({f.__name__ for f, *_ in CASES}) == len(CASES) >= 15


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_the_error_names_the_line(case):
    f, words, line, kind = case
    with pytest.raises(kind) as caught:
        tf.function(f)(tf.constant(2.0))
    message = str(caught.value)
    assert words in message
    if line is not None:
        assert line in message
        assert "refusals.py" in message
