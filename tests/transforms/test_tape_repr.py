"""repr(tape): what it watches, and what it has recorded."""

import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.quick


def test_a_tape_that_was_never_entered():
    assert repr(tf.GradientTape()) == "<tg.GradientTape: closed; recorded nothing>"


def test_while_it_records_and_afterwards():
    x, w = tf.constant([1.0, 2.0]), tf.Variable(2.0, name="w")
    with tf.GradientTape() as tape:
        assert repr(tape) == "<tg.GradientTape: recording; recorded nothing>"
        tape.watch(x)
        assert repr(tape) == (
            "<tg.GradientTape: recording; watches float32 of shape (2,); recorded nothing>"
        )
        y = x * w
        z = tf.reduce_sum(tf.sin(y) * y)
    assert repr(tape) == (
        "<tg.GradientTape: closed; watches float32 of shape (2,), Variable 'w:0'; "
        "recorded 4 operations (2 multiply, 1 sin, 1 sum)>"
    )
    assert tape.gradient(z, x) is not None
    assert repr(tape) == (
        "<tg.GradientTape: closed; watches Variable 'w:0'; gradient() has freed its record>"
    )


def test_a_persistent_tape_keeps_its_record():
    xs = [tf.constant(1.0, dtype=tf.float64) for _ in range(3)]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(xs)
        y = xs[0] * xs[1]
    assert tape.gradient(y, xs[0]) is not None
    assert repr(tape) == (
        "<tg.GradientTape: closed, persistent; watches 3 x float64 of shape (); "
        "recorded 1 operation (1 multiply)>"
    )


def test_rules_have_their_functions_names():
    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: 3 * x**2 * dy

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = cube(x)
        first = repr(inner)
        gradient = inner.gradient(y, x)
    assert "1 cube" in first
    assert "1 cube" in repr(outer)
    assert "multiply" in repr(outer)  # operations of the rule, at second order
    assert float(outer.gradient(gradient, x)) == 12.0


def test_other_tapes_are_not_counted():
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        y = x * x
        with tf.GradientTape() as inner:
            inner.watch(y)
            z = tf.sin(y)
    assert "recorded 1 operation (1 sin)" in repr(inner)
    assert "recorded 2 operations (1 multiply, 1 sin)" in repr(outer)
    del z


def test_what_nobody_holds_is_not_there_any_more():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert "1 multiply" in repr(tape)
        del y
    assert "recorded nothing" in repr(tape)


def test_many_kinds_are_shortened():
    x = tf.constant(0.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tanh(tf.exp(tf.sin(tf.cos(tf.sqrt(tf.square(tf.sigmoid(tf.atan(x))))))))
    assert "recorded 8 operations (" in repr(tape)
    assert repr(tape).endswith(", ...)>")
    del y


def test_in_a_batch_and_in_a_trace():
    seen = []

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        seen.append(repr(tape))
        return tape.gradient(y, x)

    tf.vmap(f)(tf.constant([1.0, 2.0]))
    tf.function(f)(tf.constant(1.0))
    assert all("watches float32 of shape ()" in text and "1 multiply" in text for text in seen)
