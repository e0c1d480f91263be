"""Transformations of functions of tensors on a GPU, compared with those on the processor."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import orders
from tests.support.composites import nested, rule_in_rule_in_rule
from tests.support.rules import log1pexp

X = np.array([[0.5, 1.0, 2.0], [-1.0, 3.0, 0.25]], np.float64)


def f(x):
    return tf.sin(x) * x + tf.exp(-x) / (1.0 + x * x)


def total(x):
    return tf.reduce_sum(f(x) * x)


def tangent(function, x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        y = function(x)
    return forward.jvp(y)


def jacobians(x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x[0]) * x[1]
        z = f(x) * x
    return tape.jacobian(y, x), tape.batch_jacobian(z, x)


def choices(x):
    return tf.cond(x[0, 0] > 0.0, lambda: x * x, lambda: x), tf.switch_case(
        tf.argmax(x[0]), [lambda: x, lambda: -x, lambda: tf.exp(x)]
    )


def repetitions(x):
    return tf.while_loop(
        lambda i, a: tf.reduce_sum(a) > 1.0, lambda i, a: (i + 1, tf.sin(a) * 0.75), (0, x)
    )[1]


WAYS = {
    "derivatives": lambda x: orders(f, x, 2),
    "tangent": lambda x: tangent(f, x),
    "forward over reverse": lambda x: tangent(tf.grad(total), x),
    "jacobians": jacobians,
    "gradient of each": lambda x: tf.vectorized_map(tf.grad(total), x),
    "functions": lambda x: (tf.grad(total)(x), tf.hessian(total)(x), tf.hvp(total)(x, x)),
    "vjp": lambda x: tf.vjp(f, x)[1](x),
    "rule": lambda x: [orders(log1pexp, x * 0.0 + value, 2) for value in (100.0, 1.0)],
    "rule with a rule": lambda x: orders(nested(lambda x, ddy: 7.0 * ddy), x, 2),
    "rules in rules": lambda x: orders(rule_in_rule_in_rule, x, 3),
    "rule in forward mode": lambda x: tangent(log1pexp, x),
    "rule of a batch": lambda x: tf.vectorized_map(tf.elementwise_grad(log1pexp), x),
    "rule in a function": lambda x: orders(tf.function(lambda x: log1pexp(x) * x), x, 2),
}
FLOWS = {
    "choices": choices,
    "repetitions": repetitions,
    "scans": lambda x: (tf.scan(lambda a, b: a * b + b, x), tf.map_fn(lambda a: a * 2.0, x)),
    "recomputed": tf.recompute_grad(lambda a: tf.sin(a) * a),
}


def with_gradient(function):
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return y, tape.gradient(y, x)

    return run


WAYS |= {name: with_gradient(flow) for name, flow in FLOWS.items()}
WAYS |= {f"{name}, compiled": with_gradient(tf.function(flow)) for name, flow in FLOWS.items()}


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")
def test_as_on_the_processor(name):
    results, expected = (WAYS[name](x) for x in (tf.constant(X).gpu(), tf.constant(X)))
    for result, other in zip(*map(tf.nest.flatten, (results, expected)), strict=True):
        assert (result.device, other.device) == ("gpu:0", "cpu")
        assert result.dtype == other.dtype
        np.testing.assert_allclose(result.numpy(), other.numpy(), rtol=1e-12, atol=1e-14)


def test_seeds_of_ones_are_where_the_target_is():
    for x in (tf.constant(3.0), tf.constant(3.0).gpu()):  # those of the processor are kept
        assert with_gradient(tf.identity)(x)[1].device == x.device


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
