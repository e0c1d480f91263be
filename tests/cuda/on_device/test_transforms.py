"""Transformations of functions of tensors on a GPU, compared with those on the processor."""

import numpy as np
import pytest

import tinygrad_cg as tf

X = np.array([[0.5, 1.0, 2.0], [-1.0, 3.0, 0.25]], np.float64)


def f(x):
    return tf.sin(x) * x + tf.exp(-x) / (1.0 + x * x)


def derivatives(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x)
    return y, first, outer.gradient(first, x)


def tangents(x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        y = f(x)
    return forward.jvp(y)


def product(x):
    """Forward over reverse: the Hessian times a vector."""
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        gradient = tape.gradient(y, x)
    return forward.jvp(gradient)


def jacobian(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x[0]) * x[1]
    return tape.jacobian(y, x)


def batch_jacobian(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x) * x
    return tape.batch_jacobian(y, x)


def gradient_of_each(x):
    def gradient_of_row(row):
        with tf.GradientTape() as tape:
            tape.watch(row)
            y = tf.reduce_sum(f(row) * row)
        return tape.gradient(y, row)

    return tf.vectorized_map(gradient_of_row, x)


# Custom gradients ----------------------------------------------------------------------------


@tf.custom_gradient
def log1pexp(x):
    """The document's first example."""
    e = tf.exp(x)

    def grad(upstream):
        return upstream * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


def rule_of_log1pexp(x):
    values = []
    for value in (100.0, 1.0):
        point = x * 0.0 + value
        with tf.GradientTape() as outer:
            outer.watch(point)
            with tf.GradientTape() as inner:
                inner.watch(point)
                y = log1pexp(point)
            first = inner.gradient(y, point)
        values += [y, first, outer.gradient(first, point)]
    return values


def nested_rules(x):
    """The document's second example: a rule whose own rule is given, too."""

    @tf.custom_gradient
    def fused(x):
        slope = 2.0 * x

        def first_order(dy):
            @tf.custom_gradient
            def first_order_custom(unused_x):
                return slope, lambda ddy: 7.0 * ddy

            return dy * first_order_custom(x)

        return x * x, first_order

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = fused(x)
        first = inner.gradient(y, x)
    return first, outer.gradient(first, x)


def rule_in_forward_mode(x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        y = log1pexp(x)
    return forward.jvp(y)


def rule_of_a_batch(x):
    def gradient_of_row(row):
        with tf.GradientTape() as tape:
            tape.watch(row)
            y = log1pexp(row)
        return tape.gradient(y, row)

    return tf.vectorized_map(gradient_of_row, x)


def rule_in_a_function(x):
    @tf.function
    def f(x):
        return log1pexp(x) * x

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x)
    return first, outer.gradient(first, x)


def products_of_functions(x):
    def total(a):
        return tf.reduce_sum(f(a) * a)

    _, pull = tf.vjp(f, x)
    return tf.grad(total)(x), tf.hessian(total)(x), pull(x), tf.hvp(total)(x, x)


WAYS = (
    *(derivatives, tangents, product, jacobian, batch_jacobian, gradient_of_each),
    *(rule_of_log1pexp, nested_rules, rule_in_forward_mode, rule_of_a_batch, rule_in_a_function),
    products_of_functions,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_as_on_the_processor(way):
    results, expected = way(tf.constant(X).gpu()), way(tf.constant(X))
    for result, other in zip(*map(tf.nest.flatten, (results, expected)), strict=True):
        assert result.device == "gpu:0"
        assert result.dtype == other.dtype
        np.testing.assert_allclose(result.numpy(), other.numpy(), rtol=1e-12, atol=1e-14)


def test_seeds_of_ones_are_where_the_target_is():
    for x in (tf.constant(3.0), tf.constant(3.0).gpu()):  # those of the processor are kept
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.identity(x)
        assert tape.gradient(y, x).device == x.device


# Control flow --------------------------------------------------------------------------------


def choices(x):
    return tf.cond(x[0, 0] > 0.0, lambda: x * x, lambda: x), tf.switch_case(
        tf.argmax(x[0]), [lambda: x, lambda: -x, lambda: tf.exp(x)]
    )


def repetitions(x):
    return tf.while_loop(
        lambda i, a: tf.reduce_sum(a) > 1.0, lambda i, a: (i + 1, tf.sin(a) * 0.75), (0, x)
    )[1]


def scans(x):
    return tf.scan(lambda a, b: a * b + b, x), tf.map_fn(lambda a: a * 2.0, x)


def again(x):
    return tf.recompute_grad(lambda a: tf.sin(a) * a)(x)


FLOWS = (choices, repetitions, scans, again)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.__name__)
def test_control_flow_and_its_gradient(flow, compiled):
    function = tf.function(flow) if compiled else flow
    results = []
    for x in (tf.constant(X).gpu(), tf.constant(X)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        results.append([*tf.nest.flatten(y), tape.gradient(y, x)])
    for result, expected in zip(*results, strict=True):
        assert (result.device, expected.device) == ("gpu:0", "cpu")
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-12, atol=1e-14)


def test_jacobians_of_many_elements_are_computed_on_their_diagonals():
    results = []
    for x in (tf.linspace(0.0, 1.0, 400).gpu(), tf.linspace(0.0, 1.0, 400)):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.sin(x) * x + x[::-1]
        results.append(tape.jacobian(y, x))
    assert results[0].device == "gpu:0"
    np.testing.assert_allclose(results[0].numpy(), results[1].numpy(), rtol=1e-6)


def test_rules_are_checked():
    report = tf.check_gradients(lambda a: tf.sin(a) * a, tf.constant([0.5, 1.0]).gpu())
    assert "correct up to order 2" in str(report)


def test_a_branch_by_a_captured_tensor():
    x, flag = tf.constant([1.0, 2.0]).gpu(), tf.constant(1.0).gpu()

    @tf.function
    def f(x):
        if flag > 0.0:
            return x * 2.0
        return x

    assert f(x).numpy().tolist() == [2.0, 4.0]
