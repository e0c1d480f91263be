"""DESIGN, 'One door', point 3: tapes inside and outside a batch."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg.batching import vmap
from tinygrad_cg.levels import state

X = np.random.default_rng(0).normal(size=(4, 3))
W = np.array([0.5, -1.0, 2.0])


def loss(w, x):
    return tf.reduce_sum(tf.tanh(w * x) ** 2)


def gradient(function, w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = function(w)
    return tape.gradient(y, w)


def each(function, batched):
    return np.stack([function(tf.constant(row)).numpy() for row in batched])


def test_values():
    w = tf.constant(W)
    found = vmap(lambda x: loss(w, x))(tf.constant(X))
    np.testing.assert_allclose(found.numpy(), each(lambda x: loss(w, x), X))


@pytest.mark.parametrize("weight", [W, W[:1], W[0]], ids=["vector", "one", "scalar"])
def test_tape_inside_gives_a_gradient_for_each_example(weight):
    """Un-broadcasting looks at logical shapes: w's gradients are not summed over the batch."""
    w = tf.constant(weight)

    def per_example(x):
        return gradient(lambda w: loss(w, x), w)

    found = vmap(per_example)(tf.constant(X))
    assert found.shape == (4, *w.shape)
    np.testing.assert_allclose(found.numpy(), each(per_example, X))


def test_tape_outside_records_what_the_batch_did():
    x = tf.constant(X)
    found = gradient(
        lambda w: tf.reduce_sum(vmap(lambda one: loss(w, one))(x)), w := tf.constant(W)
    )
    expected = sum(gradient(lambda w, row=row: loss(w, tf.constant(row)), w).numpy() for row in X)
    np.testing.assert_allclose(found.numpy(), expected)


def test_gradient_of_the_batched_operand():
    x, w = tf.constant(X), tf.constant(W)
    found = gradient(lambda x: tf.reduce_sum(vmap(lambda one: loss(w, one))(x)), x)
    np.testing.assert_allclose(
        found.numpy(), each(lambda row: gradient(lambda one: loss(w, one), row), X)
    )


def test_tapes_inside_and_outside():
    """The derivative, by w, of the squared norms of the gradients of each example."""
    x, w = tf.constant(X), tf.constant(W)

    def penalty(w, one):
        return tf.reduce_sum(gradient(lambda inner: loss(inner * w, one), one * 0.0 + 1.0) ** 2)

    found = gradient(lambda w: tf.reduce_sum(vmap(lambda one: penalty(w, one))(x)), w)
    expected = sum(
        gradient(lambda w, row=row: penalty(w, tf.constant(row)), w).numpy() for row in X
    )
    np.testing.assert_allclose(found.numpy(), expected)


def test_batch_in_batch():
    w = tf.constant(W)
    found = vmap(lambda row: vmap(lambda one: one * one)(row) * w)(tf.constant(X))
    np.testing.assert_allclose(found.numpy(), X * X * W)


def test_custom_gradient_inside_a_batch():
    @tf.custom_gradient
    def doubled(x):
        return x * 1.0, lambda dy: 2.0 * dy

    found = vmap(lambda x: gradient(lambda x: tf.reduce_sum(doubled(x) * x), x))(tf.constant(X))
    np.testing.assert_allclose(found.numpy(), 2.0 * X + X)


def test_level_ends_with_an_exception():
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: 1 / 0)(tf.constant(X))
    assert state.frame is None
    assert gradient(lambda w: w * w, tf.constant(3.0)).numpy() == 6.0


def test_values_of_one_element_cannot_be_taken():
    with pytest.raises(TypeError, match="no values yet"):
        vmap(lambda x: x.numpy())(tf.constant(X))
