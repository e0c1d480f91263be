"""The examples of the documents compiled: tapes around the program, and tapes inside it."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.project import test_documents as documents
from tests.rules import test_nested as nested
from tests.support.compiled import unfused
from tests.support.orders import custom_gradient_warnings, derivative

ignore_bypass = pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")


def outside(function, value, order):
    return derivative(unfused(function), value, order)


def inside(function, value, order):
    def differentiate(x, remaining):
        if not remaining:
            return function(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = differentiate(x, remaining - 1)
        return None if result is None else tape.gradient(result, x)

    result = unfused(lambda x: differentiate(x, order))(tf.constant(value))
    return None if result is None else float(result)


def between(function, value, order):
    """One tape inside, the others outside."""
    if not order:
        return outside(function, value, 0)

    @unfused
    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    return derivative(first, value, order - 1)


WAYS = pytest.mark.parametrize("way", [outside, inside, between])


def cases(test):
    """The arguments of a parametrized test."""
    (mark,) = [mark for mark in test.pytestmark if mark.name == "parametrize"]
    return pytest.mark.parametrize(*mark.args, **mark.kwargs)


@WAYS
@pytest.mark.parametrize("block", documents.by_name(documents.KERAS_BLOCKS))
def test_keras_blocks(way, block):
    function = documents.run_keras(block)
    expected = [1.3132616, 0.7310586, 0.1966119, -0.0908578]
    derivatives = [way(function, 1.0, order) for order in range(4)]
    assert derivatives == pytest.approx(expected, rel=1e-5)
    assert way(function, 100.0, 1) == 1.0


@WAYS
def test_naive_and_custom_log1pexp(way):
    naive = documents.run(documents.NAIVE)["log1pexp"]
    custom = documents.run(documents.CUSTOM)["log1pexp"]
    assert np.isnan(way(naive, 100.0, 1))
    assert way(custom, 100.0, 1) == 1.0
    assert way(custom, 100.0, 0) == np.inf
    expected = [derivative(custom, 1.0, order) for order in range(4)]
    derivatives = [way(custom, 1.0, order) for order in range(4)]
    assert derivatives == pytest.approx(expected, rel=1e-6)
    assert np.isnan(way(custom, 100.0, 2))


@pytest.mark.parametrize("compiled", [True, False])
def test_bar(compiled):
    names = documents.run(documents.BAR[: documents.BAR.index("x = tf.constant")])
    bar = unfused(names["bar"]) if compiled else names["bar"]
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = bar(x, y)
    assert [tensor.numpy() for tensor in (z, tape.gradient(z, x), tape.gradient(z, y))] == [6, 3, 2]


@WAYS
@ignore_bypass
@cases(nested.test_example_one)
def test_example_one(way, outer, factor, expected):
    op = nested.example_one(factor)
    for order, value in enumerate(expected):
        result = way(lambda x: outer(op(x)), 2.0, order)
        assert result == pytest.approx(value, rel=1e-5)


@WAYS
@cases(nested.test_example_two)
def test_example_two(way, op, order, expected):
    assert way(op, 2.0, order) == expected


@WAYS
@cases(nested.test_square_of_example_two)
def test_square_of_example_two(way, op, expected):
    assert [way(lambda x: op(x) ** 2, 2.0, order) for order in (1, 2)] == expected


@WAYS
def test_verbatim_example_two_has_the_wrong_count(way):
    with pytest.raises(ValueError, match="expected to return 1 gradients, but returned 2 instead"):
        way(nested.VERBATIM, 2.0, 2)
    assert way(nested.VERBATIM, 2.0, 1) == 12.0


@WAYS
def test_a_rule_that_is_bypassed_is_said(way):
    """docs/behaviour.md, decision 5."""
    with custom_gradient_warnings() as texts:
        way(nested.example_one(1000.0), 2.0, 2)
    assert any("grad_fn" in text for text in texts)
    with custom_gradient_warnings() as texts:
        way(nested.TWO_TRUE, 2.0, 3)
        way(nested.ONE_TRUE, 2.0, 2)
    assert texts == []
