"""A rule that names `needs_input_grad` is told which inputs need gradients."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import numbers

pytestmark = pytest.mark.quick


def product(seen, form="positional"):
    """a * b, whose rule notes what it is told, and computes no more than that."""

    def rule(a, b, dy, needs):
        seen.append(needs)
        return dy * b if needs[0] else None, dy * a if needs[1] else None

    @tf.custom_gradient
    def multiply(a, b):
        def positional(dy, needs_input_grad):
            return rule(a, b, dy, needs_input_grad)

        def keyword(dy, *, needs_input_grad):
            return rule(a, b, dy, needs_input_grad)

        def default(dy, needs_input_grad=None):
            return rule(a, b, dy, needs_input_grad)

        def keras(*args, upstream, needs_input_grad):
            return rule(*args, upstream, needs_input_grad)

        forms = {"positional": positional, "keyword": keyword, "default": default, "Keras": keras}
        return a * b, forms[form]

    return multiply


@pytest.mark.parametrize("form", ["positional", "keyword", "Keras", "default"])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("argnums", "expected", "needs"),
    [
        (0, 3.0, (True, False)),
        (1, 2.0, (False, True)),
        ((0, 1), [3.0, 2.0], (True, True)),
    ],
)
def test_first_order(form, compiled, argnums, expected, needs):
    seen = []
    gradient = tf.grad(product(seen, form), argnums)
    gradient = tf.function(gradient) if compiled else gradient
    gradients = gradient(tf.constant(2.0), tf.constant(3.0))
    assert (
        numbers(list(gradients)) if isinstance(expected, list) else float(gradients)
    ) == expected
    assert set(seen) == {needs}


@pytest.mark.parametrize("compiled", [False, True])
def test_second_order(compiled):
    """d2(ab)/da db = 1, where each sweep asks for one input."""
    seen = []
    gradient = tf.grad(tf.grad(product(seen)), 1)
    gradient = tf.function(gradient) if compiled else gradient
    assert float(gradient(tf.constant(2.0), tf.constant(3.0))) == 1.0
    assert set(seen) == {(True, False)}
    square = tf.grad(tf.grad(lambda x: product([])(x, x)))
    assert float((tf.function(square) if compiled else square)(tf.constant(2.0))) == 2.0


def test_the_tape_that_is_swept_counts_and_not_those_around_it():
    seen = []
    a, b = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch([a, b])
        with tf.GradientTape() as inner:
            inner.watch(a)
            y = product(seen)(a, b)
        gradient = inner.gradient(y, a)
    assert float(gradient) == 3.0
    assert seen == [(True, False)]
    assert numbers(outer.gradient(gradient, [a, b])) == [None, 1.0]


@pytest.mark.parametrize("order", [1, 2])
def test_batched(order):
    seen = []
    a, b = tf.constant([2.0, 5.0]), tf.constant(3.0)
    f = tf.grad(product(seen)) if order == 1 else tf.grad(tf.grad(product(seen)), 1)
    batched = tf.vmap(f, (0, None))(a, b)
    np.testing.assert_array_equal(batched, [3.0, 3.0] if order == 1 else [1.0, 1.0])
    assert set(seen) == {(True, False)}


def test_forward_mode_needs_what_has_a_tangent():
    seen = []
    a, b = tf.constant(2.0), tf.constant(3.0)
    with tf.autodiff.ForwardAccumulator(b, tf.constant(10.0)) as accumulator:
        y = product(seen)(a, b)
    assert float(accumulator.jvp(y)) == 20.0
    assert set(seen) == {(False, True)}


def test_with_max_order_and_variables():
    seen = []
    w = tf.Variable(4.0)

    @tf.custom_gradient(max_order=1)
    def weighted(a, b):
        def grad(dy, needs_input_grad, variables=None):
            seen.append((needs_input_grad, [variable.name for variable in variables]))
            return (dy * b * w, None), [dy * a * b]

        return a * b * w, grad

    a, b = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(a)
        y = weighted(a, b)
    assert numbers(tape.gradient(y, [a, w])) == [12.0, 6.0]
    assert seen == [((True, False), ["Variable:0"])]


def test_several_outputs_integers_and_numbers():
    seen = []

    @tf.custom_gradient
    def both(a, count, number, b):
        def grad(da, db, needs_input_grad):
            seen.append(needs_input_grad)
            return da, None, None, db

        return (a, b), grad

    a, b = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        first, second = both(a, tf.constant(2), 1.5, b)
        y = first * second
    assert numbers(tape.gradient(y, [a, b])) == [3.0, 2.0]
    assert seen == [(True, False, False, True)]


def test_the_operation_of_a_registered_gradient_says_it_too():
    seen = []
    multiply = tf.primitive("NeedsInputGradProduct", np.multiply, shape=lambda a, b: a.shape)

    @tf.RegisterGradient("NeedsInputGradProduct")
    def _(op, dy):
        seen.append(op.needs_input_grad)
        a, b = op.inputs
        return dy * b, dy * a

    assert float(tf.grad(multiply)(tf.constant(2.0), tf.constant(3.0))) == 3.0
    assert float(tf.grad(multiply, 1)(tf.constant(2.0), tf.constant(3.0))) == 2.0
    assert seen == [(True, False), (False, True)]


def test_a_rule_that_does_not_name_it_gets_nothing():
    @tf.custom_gradient
    def f(x):
        def grad(dy, **keywords):
            assert not keywords
            return dy

        return x * 1.0, grad

    assert float(tf.grad(f)(tf.constant(2.0))) == 1.0
