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
        tf.function(f, jit_compile=True)(tf.constant(2.0))
    message = str(caught.value)
    assert words in message
    if line is not None:
        assert line in message
        assert "refusals.py" in message


def written_while(x):
    ta, i = tf.TensorArray(tf.float32, size=0, dynamic_size=True), 0
    while x < 5.0:
        ta, i, x = ta.write(i, x), i + 1, x * 1.5
    return tf.reduce_prod(ta.stack())


def appended_while(x):
    ys = []
    while x < 5.0:
        ys.append(x)
        x = x * 1.5
    return tf.reduce_prod(tf.stack(ys))


def appended_in_a_branch(x):
    ys = [x]
    if x > 1.0:
        ys.append(x * x)
    return tf.reduce_prod(tf.stack(ys))


def appended_at_some_rounds(x):
    ys = []
    for i in tf.range(tf.cast(x, tf.int32) + 3):
        if i % 2 == 0:
            ys.append(x)
    return tf.reduce_prod(tf.stack(ys))


@pytest.mark.parametrize(
    "f", [written_while, appended_while, appended_in_a_branch, appended_at_some_rounds]
)
def test_a_length_that_values_decide_runs_operation_by_operation(f):
    compiled = tf.function(f)
    with pytest.warns(tf.errors.FunctionWarning, match="runs operation by operation") as warnings:
        compiled(tf.constant(1.2))
    assert any(f"in {f.__name__}" in str(warning.message) for warning in warnings)
    assert repr(compiled) == f"<function {f.__qualname__}, runs operation by operation>"
    for value in (0.7, 1.2, 2.0, 4.0):
        assert compiled(tf.constant(value)).numpy() == f(tf.constant(value)).numpy()
        second = tf.grad(tf.grad(compiled))(tf.constant(value))
        assert second.numpy() == tf.grad(tf.grad(f))(tf.constant(value)).numpy()
    outer = tf.function(lambda x: compiled(x) + 1.0)
    with pytest.warns(tf.errors.FunctionWarning, match="runs operation by operation"):
        assert outer(tf.constant(2.0)).numpy() == f(tf.constant(2.0)).numpy() + 1.0
    with pytest.raises(tf.errors.AutographError):
        compiled.graph(tf.constant(2.0))
