"""Gradients through assignments and optimizers' steps, where a program asks for them."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf

recorded = tf.experimental.recorded_assignments
START = np.array([1.0, -2.0, 0.5])


def loss(w):
    return tf.reduce_sum(w**3 - w)


def meta(w):
    return tf.reduce_sum(w**2)


def slope(w):
    return 3.0 * w**2 - 1.0


def test_by_default_assignments_are_not_differentiated():
    """4.3: y = v * v after v.assign(v * 2) at 3 has the gradient 12, as in TensorFlow."""
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        v.assign(v * 2.0)
        y = v * v
    assert float(tape.gradient(y, v)) == 12.0


def test_what_was_assigned_has_the_gradient():
    x, v = tf.constant(3.0), tf.Variable(1.0)
    with tf.GradientTape() as tape, recorded():
        tape.watch(x)
        v.assign(x * 2.0)
        v.assign_add(x)
        v.assign_sub(1.0)
        y = v * v
    assert float(v) == 8.0
    assert float(tape.gradient(y, x)) == 2 * 8.0 * 3.0
    after = tf.Variable(v)
    with tf.GradientTape() as tape:
        y = after * v
    assert [float(gradient) for gradient in tape.gradient(y, [after, v])] == [8.0, 8.0]


def test_slices():
    x = tf.constant([3.0, 4.0])
    v = tf.Variable([1.0, 2.0, 5.0])
    with tf.GradientTape() as tape, recorded():
        tape.watch(x)
        v[:2].assign(x * x)
        v[1:].assign_add(x)
        y = tf.reduce_sum(v * v)
    assert v.numpy().tolist() == [9.0, 19.0, 9.0]
    assert tape.gradient(y, x).numpy().tolist() == [2 * 9 * 6 + 2 * 19, 2 * 19 * 8 + 2 * 9]
    with tf.GradientTape() as tape, recorded():
        tape.watch(x)
        v[0].assign_sub(x[0] * x[1])
        y = v[0] * 5.0
    assert v.numpy().tolist() == [-3.0, 19.0, 9.0]
    assert tape.gradient(y, x).numpy().tolist() == [-20.0, -15.0]


@pytest.mark.parametrize("dtype", [tf.float64, tf.float32])
def test_lists_of_tensors_are_assigned_as_one_tensor(dtype):
    """Whichever way values come into a Variable: at x = 3 it is [2x, x] at the end."""
    changes = {
        "assign": lambda v, x: v.assign([x * 2.0, x]),
        "assign_add": lambda v, x: v.assign_add((x * 2.0 - 1.0, x - 1.0)),
        "assign_sub": lambda v, x: v.assign_sub([1.0 - 2.0 * x, 1.0 - x]),
        "slice": lambda v, x: v[0:2].assign([x * 2.0, x]),
        "slice, added": lambda v, x: v[0:2].assign_add([x * 2.0 - 1.0, x - 1.0]),
        "nested": lambda v, x: v[None, :].assign([[x * 2.0, x]]),
        "a new one": lambda v, x: tf.Variable([x * 2.0, x]),
        "of another dtype": lambda v, x: tf.Variable([x * 2.0, x], dtype=tf.float64),
        "of a Variable": lambda v, x: tf.Variable(tf.Variable([x * 2.0, x])),
    }
    for name, change in changes.items():
        x, v = tf.constant(3.0, dtype), tf.Variable([1.0, 1.0], dtype=tf.float64)
        with tf.GradientTape() as tape, recorded():
            tape.watch(x)
            y = tf.reduce_sum(change(v, x) ** 2)
        assert (float(y), float(tape.gradient(y, x))) == (45.0, 30.0), name
    u = tf.Variable([1.0, 1.0])
    assigned = tf.function(lambda x: (u.assign([x, 2.0 * x]), u[:1].assign_sub([x]), u * 1.0)[-1])
    assert assigned(tf.constant(3.0)).numpy().tolist() == u.numpy().tolist() == [0.0, 6.0]
    assert u.assign([tf.constant(1, tf.int64), 2]).numpy().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"use cast\(tensor, variable.dtype\)"):
        tf.Variable([1, 2]).assign([tf.constant(2**40), 2])
    with pytest.raises(ValueError, match="Shape mismatch"):
        u.assign([tf.constant(1.0)] * 3)


def by_hand(make, rate):
    """Two steps of an optimizer as a function of the start and the rate, in plain operations."""

    def steps(w, rate):
        first, second = tf.zeros_like(w), tf.zeros_like(w)
        for t in (1, 2):
            g = slope(w)
            if make is tf.optimizers.SGD:
                w = w - rate * g
                continue
            first = first + (g - first) * 0.1
            second = second + (g * g - second) * 0.001
            beta_1, beta_2 = float(np.float32(0.9)), float(np.float32(0.999))  # as in Keras
            scale = np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
            w = w - rate * scale * first / (tf.sqrt(second) + 1e-7)
        return meta(w)

    arguments = (tf.constant(START), tf.constant(rate, tf.float64))
    return steps(*arguments), tf.grad(steps, argnums=(0, 1))(*arguments)


@pytest.mark.parametrize("make", [tf.optimizers.SGD, tf.optimizers.Adam])
def test_meta_learning_by_variables(make):
    v, rate = tf.Variable(START), tf.Variable(0.05, dtype=tf.float64)
    optimizer = make(rate)
    with tf.GradientTape() as outer:
        with recorded(restore=True):
            for _ in range(2):
                with tf.GradientTape() as inner:
                    y = loss(v)
                optimizer.apply([inner.gradient(y, v)], [v])
            z = meta(v)
        assert v.numpy().tolist() == START.tolist()
        assert int(optimizer.iterations) == 0
    value, gradients = by_hand(make, 0.05)
    assert_allclose(float(z), float(value), rtol=1e-12)
    for gradient, expected in zip(outer.gradient(z, [v, rate]), gradients, strict=True):
        assert_allclose(gradient.numpy(), expected.numpy(), rtol=1e-9)


@pytest.mark.parametrize("make", [tf.optimizers.SGD, tf.optimizers.Adam])
def test_meta_learning_by_values(make):
    v, rate = tf.Variable(START), tf.Variable(0.05, dtype=tf.float64)
    optimizer = make(rate)
    optimizer.build([v])
    before = [variable.numpy() for variable in optimizer.variables]

    def steps(w):
        own = optimizer.variables
        for _ in range(2):
            (w,), own = optimizer.stateless_apply(own, [slope(w)], [w])
        return meta(w)

    value, gradients = by_hand(make, 0.05)
    assert_allclose(float(steps(tf.constant(START))), float(value), rtol=1e-12)
    assert_allclose(tf.grad(steps)(tf.constant(START)), gradients[0], rtol=1e-9)
    tangent = tf.jvp(steps, (tf.constant(START),), (tf.ones_like(START),))[1]
    assert_allclose(float(tangent), float(tf.reduce_sum(gradients[0])), rtol=1e-9)
    assert v.numpy().tolist() == START.tolist()
    for variable, old in zip(optimizer.variables, before, strict=True):
        assert np.array_equal(variable, old)
    with pytest.raises(ValueError, match="grads has 0 values, the optimizer was built for 1"):
        optimizer.stateless_apply(optimizer.variables, [], [START])


def test_an_exception_restores():
    v = tf.Variable(1.0)

    def fail():
        with recorded(restore=True):
            v.assign(2.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert float(v) == 1.0
    with pytest.raises(ValueError, match="Shape mismatch"), recorded():
        v.assign([1.0, 2.0])
    assert float(v) == 1.0
    with recorded(restore=True), recorded():
        v.assign(2.0)
    assert float(v) == 1.0


def test_inside_a_function():
    v = tf.Variable(START)

    @tf.function
    def steps(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with recorded(restore=True):
                v.assign(x)
                with tf.GradientTape() as inner:
                    y = loss(v)
                v.assign_sub(inner.gradient(y, v) * 0.05)
                z = meta(v)
        return outer.gradient(z, x)

    expected = tf.grad(lambda w: meta(w - slope(w) * 0.05))(tf.constant(START))
    for _ in range(2):
        assert_allclose(steps(tf.constant(START)), expected, rtol=1e-12)
        assert v.numpy().tolist() == START.tolist()


def test_a_function_that_assigns_is_recorded_when_it_is_called():
    v, x = tf.Variable(2.0), tf.constant(3.0)
    step = tf.function(lambda x: v.assign(v * x) * 1.0)
    for _ in range(2):  # when it is traced, and later
        with tf.GradientTape() as tape:
            tape.watch(x)
            with recorded(restore=True):
                step(x)
                y = v * v
        assert [float(gradient) for gradient in tape.gradient(y, [x, v])] == [24.0, 36.0]
        assert float(v) == 2.0
    for _ in range(2):
        step(x)
    with recorded(restore=True):
        step(x)
    assert float(v) == 18.0
    step(x)
    assert float(v) == 54.0


def test_an_optimizer_without_a_step_cannot_be_made():
    class Half(tf.optimizers.Optimizer):
        def update_step(self, gradient, variable, learning_rate):
            variable.assign_sub(gradient * learning_rate * 0.5)

    v = tf.Variable(1.0)
    make: Any = tf.optimizers.Optimizer
    Half(0.5).apply([1.0], [v])
    assert float(v) == 0.75
    with pytest.raises(TypeError, match="update_step"):
        make(0.1)
