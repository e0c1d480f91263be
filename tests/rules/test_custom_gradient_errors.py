"""Errors at each place where a user's function runs: the next gradient is right."""

import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, derivative, gradient, slope


class UserError(Exception):
    pass


def failing(*_, **__):
    raise UserError


def in_the_function(x):
    return tf.custom_gradient(failing)(x)


def in_the_rule(x):
    return tf.custom_gradient(lambda x: (x * 2.0, lambda dy: failing()))(x)


def in_an_inner_function(x):
    @tf.custom_gradient
    def outer(x):
        return in_the_function(x), lambda dy: dy

    return outer(x)


def in_a_paused_tape(x):
    @tf.custom_gradient
    def f(x):
        with tf.GradientTape() as tape, tape.stop_recording():
            failing()

    return f(x)


def in_a_tape_of_the_rule(x):
    def rule(dy):
        with tf.GradientTape() as tape:
            tape.watch(dy)
            failing()

    return tf.custom_gradient(lambda x: (x * 2.0, rule))(x)


def in_recompute_grad(x):
    runs = []

    def f(x):
        runs.append(1)
        return x * x if len(runs) == 1 else failing()

    return tf.recompute_grad(f)(x)


def in_grad_pass_through(x):
    return tf.grad_pass_through(failing)(x)


def in_a_graph(x):
    with tf.Graph().as_default():
        return failing(x)


def in_the_rule_of_the_rule(x):
    @tf.custom_gradient
    def f(x):
        @tf.custom_gradient
        def rule(dy):
            return 3.0 * x**2 * dy, failing

        return x**3, rule

    return f(x) ** 2


SITES = [
    in_the_function,
    in_the_rule,
    in_an_inner_function,
    in_a_paused_tape,
    in_a_tape_of_the_rule,
    in_recompute_grad,
    in_grad_pass_through,
    in_a_graph,
    in_the_rule_of_the_rule,
]


@pytest.mark.parametrize("error", [UserError, KeyboardInterrupt, StopIteration, GeneratorExit])
@pytest.mark.parametrize("site", SITES)
def test_an_error_leaves_nothing_behind(site, error, monkeypatch):
    """4.1, after any error: through two orders, the error is the user's own."""
    monkeypatch.setitem(globals(), "UserError", error)
    with pytest.raises(error):
        derivative(site, 2.0, 2)
    assert_next_gradient_is_right()
    x = tf.constant(2.0)
    with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
        outside = gradient_outside(x)
    assert outside is None
    assert derivative(lambda x: x**3, 2.0, 3) == 6.0


def gradient_outside(x):
    """A gradient by a tape that was closed before: no tape of a failed call goes on for it."""
    with tf.GradientTape() as tape:
        tape.watch(x)
    return tape.gradient(x * x, x)


def test_an_error_leaves_no_variables_behind():
    """1.7: what a failed function read is not counted for the next one."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def reading(x):
        failing(x * v)

    @tf.custom_gradient
    def ordinary(x):
        return x * 2.0, lambda dy: dy * 10.0

    with pytest.raises(UserError):
        reading(tf.constant(1.0))
    assert gradient(ordinary, tf.constant(1.0)) == [10.0]
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    "faulty",
    [
        pytest.param(lambda x: (x**3, lambda dy: (dy, dy)), id="count"),
        pytest.param(lambda x: (x**3, lambda dy: tf.ones([4])), id="shape"),
        pytest.param(lambda x: (x**3, lambda dy: "text"), id="type"),
        pytest.param(lambda x: (x**3, lambda dy: dy[5]), id="index"),
        pytest.param(lambda x: (x**3, lambda dy: dy + tf.ones([3]) + tf.ones([4])), id="shapes"),
        pytest.param(lambda x: (x**3, lambda dy: dy + None), id="None"),
        pytest.param(lambda x: (x**3, 5), id="no rule"),
        pytest.param(lambda x: x**3, id="no pair"),
        pytest.param(lambda x: (x**3, lambda: 1.0), id="no upstream"),
    ],
)
def test_faulty_rules_under_nested_tapes(faulty):
    """1.2 and 1.3 at second order: the outer tapes go on rightly after a caught error."""
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            right = x**3
            with pytest.raises((TypeError, ValueError, IndexError)):
                slope(tf.custom_gradient(faulty), x)
        first = inner.gradient(right, x)
    assert float(first) == 12.0
    assert float(outer.gradient(first, x)) == 12.0
    assert_next_gradient_is_right()
