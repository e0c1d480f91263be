"""Compiled functions of tensors on a GPU: what they give, and where it is."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import orders

X = np.array([0.5, 1.0, 2.0], np.float32)


def both():
    """The same values in the processor's memory and on the GPU."""
    return tf.constant(X), tf.constant(X).gpu()


def check(result, expected):
    assert result.device == "gpu:0"
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=2e-6)


def test_one_function_has_a_program_for_each_device():
    traces = []

    @tf.function
    def f(x):
        traces.append(x.device)
        return tf.sin(x) * 2.0 + tf.ones_like(x) * np.array([1.0, 2.0, 3.0], np.float32)

    x, y = both()
    for _ in range(3):  # later calls take shorter ways in
        assert f(x).device == "cpu"
        check(f(y), f(x))
    assert traces == ["cpu", "gpu:0"]
    assert f.cache_size == 2
    check(f.get_concrete_function(y)(y), f(x))


def test_gradients_of_two_orders():
    f = tf.function(lambda x: tf.sin(x) * x * x)
    x, y = both()
    for count in (2, 1) * 3:
        for actual, other in zip(orders(f, y, count), orders(f, x, count), strict=True):
            check(actual, other)


def test_gradients_inside():
    @tf.function
    def newton(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.exp(x) - 2.0
        return x - y / tape.gradient(y, x)

    x, y = both()
    for _ in range(2):
        check(newton(y), newton(x))


def test_where_the_program_runs_follows_what_it_reads():
    x, y = both()
    assert tf.function(lambda: y * 2.0)().device == "gpu:0"
    assert tf.function(lambda s: y * s)(tf.constant(3.0)).device == "gpu:0"
    zeros = tf.function(lambda: tf.zeros(3))
    for _ in range(2):
        assert zeros().device == "cpu"
        with tf.device("GPU"):
            assert zeros().device == "gpu:0"
            assert tf.function(lambda s: s * tf.ones(2))(2.0).device == "gpu:0"
    with tf.device("GPU"):
        assert tf.function(lambda x: x + 1.0)(x).device == "cpu"


def test_gradients_by_single_values_come_back_to_the_processor():
    f, s = tf.function(lambda x, s: s * x), tf.constant(2.0)
    _, y = both()
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch((s, y))
            z = f(y, s)
        by_s, by_y = tape.gradient(z, (s, y))
        assert (by_s.device, by_s.numpy()) == ("cpu", X.sum())
        check(by_y, tf.constant([2.0, 2.0, 2.0]))


def test_arrays_of_the_processor_do_not_go_along():
    x, y = both()
    f = tf.function(lambda y: x * y)
    with pytest.raises(TypeError, match=r"multiply: .*x of shape \(3,\) is on 'cpu'.*x.gpu\(\)"):
        f(y)
    check(tf.function(lambda y: x[0] * y)(y), x[0] * x)  # a single value does


def test_variables():
    v = tf.Variable(X.tolist())
    with tf.device("GPU"):
        w = tf.Variable(X.tolist())

    def step(v):
        def run(x):
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(v * v * x)
            v.assign_sub(0.1 * tape.gradient(y, v))
            return y

        return tf.function(run)

    steps = step(v), step(w)
    x, y = both()
    for _ in range(3):
        check(steps[1](y), steps[0](x))
    assert w.device == "gpu:0"
    np.testing.assert_allclose(w.numpy(), v.numpy(), rtol=1e-6)


def test_branches_and_loops():
    @tf.function
    def f(x):
        if x[0] > 0.0:
            x = x * 2.0
        count = 0
        while x[0] < 100.0:
            x = x * x + 1.0
            count += 1
        for i in tf.range(3):
            x = x * 0.5 + tf.cast(i, tf.float32)
        return x, count

    x, y = both()
    result, expected = f(y), f(x)
    check(result[0], expected[0])
    assert result[1].numpy() == expected[1].numpy()


def test_loops_start_with_tensors_that_the_function_creates():
    def fold(x):
        return tf.foldl(lambda total, row: total * 0.5 + tf.sin(row), x, tf.zeros_like(x[0]))

    def powers(x):
        start = 0, tf.constant([1.0, 2.0, 3.0])
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), start)[1]

    for function, x in (fold, tf.constant([X, X + 1.0])), (powers, tf.constant(X)):
        slope = tf.grad(lambda x, f=function: tf.reduce_sum(f(x) ** 2))
        for one in (function, slope, tf.grad(lambda x, f=slope: tf.reduce_sum(f(x)))):
            check(tf.function(one)(x.gpu()), one(x))


def test_random_numbers_are_those_of_the_processor():
    f = tf.function(lambda x: tf.random.normal((3,)) * x)
    x, y = both()
    results = []
    for tensor in (x, y):
        tf.random.set_seed(7)
        results.append([f(tensor), f(tensor)])
    for expected, result in zip(*results, strict=True):
        check(result, expected)
    assert results[1][0].numpy().tolist() != results[1][1].numpy().tolist()


def test_batches_inside_and_around():
    x, y = both()
    square = tf.function(lambda a: a * a + 1.0)
    check(tf.vectorized_map(square, y), tf.vectorized_map(square, x))
    inside = tf.function(lambda x: tf.vectorized_map(lambda a: a * tf.sin(a), x))
    check(inside(y), inside(x))
