"""docs/behaviour.md 2.2 and decision 2: gradients, recording without a tape, stop_gradient."""

import math

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, gradient, numbers, run_in_a_thread
from tests.support.rules import log1pexp

pytestmark = pytest.mark.quick


def naive_log1pexp(x):
    return tf.math.log(1 + tf.exp(x))


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def without_eager_execution():
    tf.compat.v1.disable_eager_execution()
    try:
        yield
    finally:
        tf.compat.v1.enable_eager_execution()


def repeated(function, value, order):
    """What tf.gradients gives when it is applied `order` times."""
    x = tf.constant(value)
    result = function(x)
    for _ in range(order):
        gradients = tf.gradients(result, x)
        assert isinstance(gradients, list)
        (result,) = gradients
    return float(result)


ORDERS_AT_ONE = [(1, 0.7310586), (2, 0.19661194), (3, -0.09085777)]


@pytest.mark.parametrize(("order", "expected"), ORDERS_AT_ONE)
@pytest.mark.parametrize("function", [naive_log1pexp, log1pexp])
def test_orders_at_one(graph, function, order, expected):
    """2.2."""
    assert repeated(function, 1.0, order) == pytest.approx(expected, rel=2e-6)


def test_naive_and_custom_at_100(graph):
    """2.2: naive [nan], custom [1.0], second order at 100 [nan]."""
    assert math.isnan(repeated(naive_log1pexp, 100.0, 1))
    assert repeated(log1pexp, 100.0, 1) == 1.0
    assert math.isnan(repeated(log1pexp, 100.0, 2))


@pytest.mark.parametrize(("order", "expected"), ORDERS_AT_ONE)
def test_at_a_prompt_without_eager_execution(without_eager_execution, order, expected):
    """Decision 2: every op is recorded until enable_eager_execution()."""
    assert repeated(log1pexp, 1.0, order) == pytest.approx(expected, rel=2e-6)


def assert_refused(x, y):
    with pytest.raises(RuntimeError, match="GradientTape") as caught:
        tf.gradients(y, x)
    for way in ("Graph", "disable_eager_execution", "eager"):
        assert way in str(caught.value)


def test_eager_mode_is_refused_with_the_ways_named():
    """Decision 2: with neither, a RuntimeError that names these ways and GradientTape."""
    x = tf.constant(2.0)
    assert_refused(x, x * x)
    assert_next_gradient_is_right()


def test_leaving_the_graph_ends_it():
    """Decision 2."""
    with tf.Graph().as_default():
        x = tf.constant(2.0)
        y = x * x
        assert numbers(tf.gradients(y, x)) == [4.0]
    assert_refused(x, y)


def test_enabling_eager_execution_ends_it():
    """Decision 2."""
    tf.compat.v1.disable_eager_execution()
    try:
        x = tf.constant(2.0)
        y = x * x
        assert numbers(tf.gradients(y, x)) == [4.0]
    finally:
        tf.compat.v1.enable_eager_execution()
    assert_refused(x, y)
    assert_next_gradient_is_right()


def test_an_exception_in_the_graph_ends_it():
    """Decision 2 and 6.6: state survives exceptions."""
    with pytest.raises(OSError, match="inside"), tf.Graph().as_default():
        raise OSError("inside")
    x = tf.constant(2.0)
    assert_refused(x, x * x)
    assert_next_gradient_is_right()


def test_an_exception_in_gradients_leaves_the_graph_usable(graph):
    """A rule that raises."""

    @tf.custom_gradient
    def failing(x):
        def grad(dy):
            raise OSError("rule")

        return x * 2.0, grad

    x = tf.constant(2.0)
    y = failing(x)
    with pytest.raises(OSError, match="rule"):
        tf.gradients(y, x)
    assert numbers(tf.gradients(x * x, x)) == [4.0]


def test_graph_in_graph():
    """Decision 2: each has its own end."""
    with tf.Graph().as_default():
        x = tf.constant(3.0)
        with tf.Graph().as_default():
            z = tf.constant(2.0)
            assert numbers(tf.gradients(z * z, z)) == [4.0]
        assert numbers(tf.gradients(x * x, x)) == [6.0]


def test_several_targets_are_summed(graph):
    """2.2: sum over ys, [5, 7]."""
    a, b = tf.constant(1.0), tf.constant(1.0)
    ys = [2.0 * a + 3.0 * b, 3.0 * a + 4.0 * b]
    assert numbers(tf.gradients(ys, [a, b])) == [5.0, 7.0]


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: (x,)])
def test_a_list_comes_back_for_one_source_too(graph, wrap):
    """2.2: always a list."""
    x = tf.constant(2.0)
    gradients = tf.gradients(x * x * x, wrap(x))
    assert isinstance(gradients, list)
    assert numbers(gradients) == [12.0]


def test_non_scalar_targets_are_summed_over_their_elements(graph):
    """2.2 and 2.1."""
    x = tf.constant([1.0, 2.0])
    assert numbers(tf.gradients(x * x, x)) == [[2.0, 4.0]]


def test_grad_ys(graph):
    """2.2: one upstream for each target."""
    x = tf.constant([1.0, 2.0])
    y, z = x * x, 3.0 * x
    upstream = tf.constant([10.0, 100.0])
    assert numbers(tf.gradients(y, x, grad_ys=upstream)) == [[20.0, 400.0]]
    both = tf.gradients([y, z], [x], grad_ys=[upstream, tf.ones([2])])
    assert numbers(both) == [[23.0, 403.0]]


def test_stop_gradients(graph):
    """2.2: [1, 1] with stop_gradients=[a, b], [3, 1] without."""
    a = tf.constant(0.0)
    b = 2 * a
    assert numbers(tf.gradients(a + b, [a, b], stop_gradients=[a, b])) == [1.0, 1.0]
    assert numbers(tf.gradients(a + b, [a, b])) == [3.0, 1.0]


def test_unconnected(graph):
    """2.2: [None], or [[0, 0]] with 'zero'."""
    a, b = tf.ones([1, 2]), tf.ones([3, 1])
    assert tf.gradients([b], [a]) == [None]
    assert tf.gradients([b], [a], unconnected_gradients="none") == [None]
    for zero in ("zero", tf.UnconnectedGradients.ZERO):
        assert numbers(tf.gradients([b], [a], unconnected_gradients=zero)) == [[[0.0, 0.0]]]
    with pytest.raises(ValueError, match=r"Unknown value for unconnected_gradients: 'nope'"):
        tf.gradients([b], [a], unconnected_gradients="nope")


def test_intermediates_as_sources(graph):
    """2.2: total derivatives, as on a tape."""
    x = tf.constant(2.0)
    y = x * x
    z = y * y
    assert numbers(tf.gradients(z, [x, y])) == [32.0, 8.0]


def test_variables_as_sources(graph):
    """2.2."""
    v = tf.Variable(3.0)
    assert numbers(tf.gradients(v * v, v)) == [6.0]
    assert numbers(tf.gradients(v * v, [v])) == [6.0]


def test_tape_inside_a_graph(graph):
    """One door: a tape records inside a graph, and the graph records the sweep."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x) * x**3
    slope = tape.gradient(y, x)
    (same,) = tf.gradients(y, x)
    assert float(slope) == pytest.approx(float(same), rel=1e-6)


def test_graph_and_gradients_with_a_custom_rule_and_a_variable(graph):
    """1.7 in a graph: y = v*v*x at x=2, v=3."""
    v, x = tf.Variable(3.0), tf.constant(2.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * v * v, [dy * 2 * v * x]

        return v * v * x, grad

    y = f(x)
    assert numbers(tf.gradients(y, [x, v])) == [9.0, 12.0]


# stop_gradient.


def test_stop_gradient_in_a_product():
    """2.2: z=sg(x)*x at 3 gives 3.0."""
    assert gradient(lambda x: tf.stop_gradient(x) * x, tf.constant(3.0)) == [3.0]


def test_stop_gradient_disconnects():
    """2.2: None; 'zero' gives 0."""
    x = tf.constant(3.0)

    def stopped(x):
        return tf.stop_gradient(x * x)

    assert gradient(stopped, x) == [None]
    assert gradient(stopped, x, unconnected_gradients="zero") == [0.0]
    assert numbers(stopped(x)) == 9.0


@pytest.mark.parametrize(("watched", "expected"), [(False, None), (True, [3.0, 3.0])])
def test_source_behind_stop_gradient(watched, expected):
    """2.2: None unless it is watched afterwards, then [3, 3]."""
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        stopped = tf.stop_gradient(x)
        if watched:
            tape.watch(stopped)
        y = stopped * 3.0
    assert numbers(tape.gradient(y, stopped)) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [([1.0, 2.0], [1.0, 2.0]), (np.array([1, 2]), [1, 2]), (3, 3), (2.5, 2.5)],
)
def test_stop_gradient_of_plain_values(value, expected):
    """2.2: accepts lists, numpy and ints."""
    result = tf.stop_gradient(value)
    assert isinstance(result, tf.Tensor)
    assert numbers(result) == expected


def test_straight_through_estimator():
    """2.2: x + sg(round(x) - x) on [.4, 1.6]: y [0, 2], dL(sum y^2) = [0, 4]."""

    def straight_through(x):
        return x + tf.stop_gradient(tf.round(x) - x)

    x = tf.constant([0.4, 1.6])
    np.testing.assert_allclose(straight_through(x).numpy(), [0.0, 2.0], atol=1e-7)
    (slope,) = gradient(lambda x: tf.reduce_sum(straight_through(x) ** 2), x)
    assert slope == pytest.approx([0.0, 4.0], abs=1e-6)
    assert gradient(straight_through, x) == [[1.0, 1.0]]


def test_stop_gradient_inside_a_rule_cuts_the_second_order():
    """2.2 with 1.14: the rule's x is taken for a constant."""

    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: 3 * tf.stop_gradient(x) ** 2 * dy

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = cube(x)
        slope = inner.gradient(y, x)
    assert float(slope) == 12.0
    assert outer.gradient(slope, x) is None


def test_non_scalar_gradients_with_stop_gradients_and_zero():
    """2.2: [1, 1] with stop_gradients, [3, 1] without; unconnected 'zero' gives [[0, 0]]."""
    with tf.Graph().as_default():
        a = tf.constant([0.0, 0.0])
        b = 2.0 * a
        ys = a + b
        assert numbers(tf.gradients(ys, [a, b], stop_gradients=[a, b])) == [[1.0, 1.0]] * 2
        assert numbers(tf.gradients(ys, [a, b])) == [[3.0, 3.0], [1.0, 1.0]]
        with pytest.raises(TypeError):
            tf.gradients(None, a)
        with pytest.raises(ValueError, match="has shape"):
            tf.gradients(ys, a, grad_ys=tf.ones(3))
        assert numbers(tf.gradients(ys, [a])) == [[3.0, 3.0]]
    assert_next_gradient_is_right()


def test_graph_entered_twice_keeps_listening():
    graph, v = tf.Graph(), tf.Variable(3.0)
    with graph.as_default():
        with graph.as_default():
            pass
        y = v * v
        assert tf.gradients(y, v)[0].numpy() == 6.0


def test_graph_leaves_no_trace_on_constants():
    with tf.Graph().as_default():
        tf.gradients(tf.constant(2.0) * 1.2345, [])
    assert (tf.constant(2.0) * 1.2345)._rec is None


def test_each_thread_enables_eager_execution_for_itself():
    tf.compat.v1.disable_eager_execution()
    try:
        run_in_a_thread(tf.compat.v1.enable_eager_execution)
        assert not tf.executing_eagerly()
    finally:
        tf.compat.v1.enable_eager_execution()
    assert tf.executing_eagerly()
    assert run_in_a_thread(tf.executing_eagerly)
