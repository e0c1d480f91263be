"""docs/behaviour.md 1.11: forward by a function, backward as identity."""

import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, derivative, gradient, numbers


def test_assign_of_a_variable():
    """1.11: tf.grad_pass_through(x.assign)(z**2), z=3: y=9, dz=6, x==9."""
    x, z = tf.Variable(1.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.grad_pass_through(x.assign)(z**2)
    assert float(y) == 9.0
    assert float(tape.gradient(y, z)) == 6.0
    assert float(x) == 9.0


def test_round():
    """1.11: round([1.4, 2.6]) has gradients [1, 1]."""
    f = tf.grad_pass_through(tf.round)
    x = tf.constant([1.4, 2.6])
    assert numbers(f(x)) == [1.0, 3.0]
    assert gradient(f, x) == [[1.0, 1.0]]


def test_two_inputs_and_two_outputs():
    """1.11."""
    f = tf.grad_pass_through(lambda a, b: (tf.round(a), tf.round(b) * 3.0))
    a, b = tf.constant([1.4, 2.6]), tf.constant([1.0, 2.0])
    assert numbers(f(a, b)) == [[1.0, 3.0], [3.0, 6.0]]
    assert gradient(f, a, b) == [[1.0, 1.0], [1.0, 1.0]]
    assert gradient(lambda a, b: f(a, b)[1], a, b) == [[0.0, 0.0], [1.0, 1.0]]


def test_two_inputs_and_one_output_is_the_count_error():
    """1.11."""
    f = tf.grad_pass_through(lambda a, b: a + b)
    words = "expected to return 2 gradients, but returned 1 instead"
    with pytest.raises(ValueError, match=words):
        gradient(f, tf.constant(1.0), tf.constant(2.0))
    assert_next_gradient_is_right()


def test_captured_variables_get_none():
    """1.11: x gets 1."""
    v, x = tf.Variable(5.0), tf.constant(2.0)
    f = tf.grad_pass_through(lambda a: a * v)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert float(y) == 10.0
    assert numbers(tape.gradient(y, [x, v])) == [1.0, None]


@pytest.mark.parametrize(("order", "expected"), [(1, 0.5403), (2, -0.8415)])
def test_orders_through_sin(order, expected):
    """1.11: [0.5403, -0.8415]; the square is at 1, so its value is 1."""
    f = tf.grad_pass_through(lambda a: a * a)
    assert derivative(lambda x: tf.sin(f(x)), 1.0, order) == pytest.approx(expected, abs=5e-5)


def test_metadata():
    """The wrapped function keeps its name."""

    def quantise(x):
        return tf.round(x * 8.0) / 8.0

    assert tf.grad_pass_through(quantise).__name__ == "quantise"
    assert gradient(tf.grad_pass_through(quantise), tf.constant([0.3])) == [[1.0]]
