"""docs/behaviour.md 1.8, decisions 5, 15 and 20: Tensors that a function takes from around it."""

import pytest

import tinygrad_cg as tf
from tests.support.orders import (
    custom_gradient_warnings,
    derivative,
    gradient,
    numbers,
)


def test_captured_tensor_with_a_watched_argument_gets_none():
    """1.8: the custom rule is used, w gets None, silently."""
    w = tf.constant(3.0)

    @tf.custom_gradient
    def f(x):
        return x * w, lambda dy: dy * 100.0

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = f(x)
    assert numbers(tape.gradient(y, [x, w])) == [100.0, None]


def test_only_the_captured_tensor_is_watched():
    """1.8 and decision 5: the natural gradient 2.0, and a warning that says so."""
    w = tf.constant(3.0)

    @tf.custom_gradient
    def only_captured(x):
        return x * w, lambda dy: dy * 100.0

    def natural_gradient():
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = only_captured(tf.constant(2.0))
        return float(tape.gradient(y, w))

    with pytest.warns(tf.CustomGradientWarning, match="only_captured"):
        assert natural_gradient() == 2.0


def test_the_warning_is_given_once_per_definition():
    """Decision 5."""
    w = tf.constant(3.0)

    @tf.custom_gradient
    def first(x):
        return x * w, lambda dy: dy * 100.0

    @tf.custom_gradient
    def second(x):
        return x * w, lambda dy: dy * 100.0

    def differentiate(f):
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = f(tf.constant(2.0))
        return float(tape.gradient(y, w))

    with custom_gradient_warnings() as texts:
        assert [differentiate(first) for _ in range(3)] == [2.0] * 3
        assert [differentiate(second) for _ in range(3)] == [2.0] * 3
    assert len(texts) == 2
    assert "first" in texts[0]
    assert "second" in texts[1]


def test_nothing_is_said_where_no_tape_watches_anything_of_it():
    """Decision 5: no bypass, no warning."""
    w = tf.constant(3.0)

    @tf.custom_gradient
    def f(x):
        return x * w, lambda dy: dy * 100.0

    with custom_gradient_warnings() as texts:
        f(tf.constant(2.0))
        with tf.GradientTape() as tape:
            other = tf.constant(4.0)
            tape.watch(other)
            f(tf.constant(2.0))
            y = other * other
        assert float(tape.gradient(y, other)) == 8.0
    assert texts == []


@pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")
def test_which_rule_serves_is_decided_per_tape():
    """Decision 20: one output; 3.0 and 100."""
    w = tf.constant(2.0)

    @tf.custom_gradient
    def f(x):
        return x * w, lambda dy: dy * 100.0

    x = tf.constant(3.0)
    with tf.GradientTape() as natural, tf.GradientTape() as custom:
        natural.watch(w)
        custom.watch(x)
        y = f(x)
    assert float(y) == 6.0
    assert float(natural.gradient(y, w)) == 3.0
    assert float(custom.gradient(y, x)) == 100.0


@pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")
def test_per_tape_rules_hold_for_what_is_computed_from_the_output():
    """Decision 20, further down: 2 y (dy/dw) and 2 y * 100 with y = 6."""
    w, x = tf.constant(2.0), tf.constant(3.0)

    @tf.custom_gradient
    def f(x):
        return x * w, lambda dy: dy * 100.0

    with tf.GradientTape() as natural, tf.GradientTape() as custom:
        natural.watch(w)
        custom.watch([x, w])
        z = f(x) ** 2
    assert float(natural.gradient(z, w)) == 36.0
    assert numbers(custom.gradient(z, [x, w])) == [1200.0, None]


def test_intermediate_leaked_out_of_the_function_differentiates_naturally():
    """1.8."""
    leaked = []

    @tf.custom_gradient
    def f(x):
        square = x * x
        leaked.append(square)
        return square * x, lambda dy: dy * 100.0

    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
        z = leaked[0] * 2.0
    assert float(tape.gradient(y, x)) == 100.0
    assert float(tape.gradient(leaked[0], x)) == 6.0
    assert float(tape.gradient(z, x)) == 12.0


def test_rule_may_depend_on_a_watched_captured_tensor_at_second_order():
    """1.0: grad_fn runs while outer tapes record, whatever it closes over."""
    w = tf.constant(3.0)

    @tf.custom_gradient
    def f(x):
        return x * w, lambda dy: dy * w * w

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch([x, w])
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        slope = inner.gradient(y, x)
    assert float(slope) == 9.0
    assert numbers(outer.gradient(slope, [x, w])) == [None, 6.0]


def detached(x):
    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: float(3 * x.numpy() ** 2) * dy

    return cube(x)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rule_detached_through_numpy():
    """1.14: None for f, 288 for f**2 at second order (480 is true)."""
    assert derivative(detached, 2.0, 1) == 12.0
    assert derivative(detached, 2.0, 2) is None
    assert derivative(lambda x: detached(x) ** 2, 2.0, 1) == 192.0
    assert derivative(lambda x: detached(x) ** 2, 2.0, 2) == 288.0


def test_detaching_inside_a_rule_warns_once_per_line():
    """Decision 15: `.numpy()` of a watched tensor inside a custom rule."""

    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: 2.0 * float(x.numpy()) * dy

    with pytest.warns(UserWarning, match=r"numpy") as caught:
        assert [derivative(square, 3.0, 2) for _ in range(2)] == [None, None]
    assert len(caught) == 1


def test_printing_under_a_tape_is_silent():
    """Decision 15: people print losses in ordinary code."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert (float(y), y.numpy().item()) == (9.0, 9.0)
    assert float(tape.gradient(y, x)) == 6.0


def test_constants_captured_from_around_are_no_inputs():
    """1.8: an unwatched captured tensor needs no slot."""
    w = tf.constant(3.0)

    @tf.custom_gradient
    def f(x):
        return x * w, lambda dy: dy * w

    assert gradient(f, tf.constant(2.0)) == [3.0]


def test_two_definitions_of_one_name_inside_a_function_warn_each():
    """Decision 5: once per definition, not once per name; both are called lambda here."""
    w = tf.constant(3.0)

    @tf.custom_gradient
    def around(x):
        first = tf.custom_gradient(lambda t: (t * w, lambda dy: dy * 100.0))
        second = tf.custom_gradient(lambda t: (t * w * 2.0, lambda dy: dy * 100.0))
        return first(tf.constant(2.0)) + second(tf.constant(2.0)) + x, lambda dy: dy

    def differentiate():
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = around(tf.constant(1.0))
        return float(tape.gradient(y, w))

    with custom_gradient_warnings() as texts:
        assert [differentiate() for _ in range(2)] == [6.0, 6.0]
    assert len([text for text in texts if "lambda" in text]) == 2


def test_three_tapes_that_watch_differently():
    """Decision 20: y = f(x) w at x=3, w=2, with f(x) = x w and the rule 100 dy."""
    w, x = tf.constant(2.0), tf.constant(3.0)

    @tf.custom_gradient
    def f(x):
        return x * w, lambda dy: dy * 100.0

    with tf.GradientTape() as a, tf.GradientTape() as b, tf.GradientTape() as c:
        a.watch(w)
        b.watch(x)
        c.watch([x, w])
        with pytest.warns(tf.CustomGradientWarning, match="`f` is not used: a tape"):
            y = f(x)
        z = y * w
    assert numbers(a.gradient(z, [w, x])) == [12.0, None]
    assert numbers(b.gradient(z, [w, x])) == [None, 200.0]
    assert numbers(c.gradient(z, [w, x])) == [6.0, 200.0]
