"""docs/behaviour.md 1.6 and decision 4: keyword tensors are inputs, all else is static."""

import inspect

import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, gradient, numbers


def slots(count):
    """A rule with `count` gradients: 10 dy, 100 dy, 1000 dy, ..."""
    return lambda dy: tuple(dy * 10.0 ** (index + 1) for index in range(count))


@tf.custom_gradient
def double(x):
    return x * 2.0, lambda dy: dy * 100.0


def test_all_by_keyword_uses_the_rule():
    """1.6: 100.0; the original ignores the rule and gives 2.0."""
    assert gradient(lambda x: double(x=x), tf.constant(1.0)) == [100.0]


@pytest.mark.parametrize("scale", [3.0, 3, True])
def test_number_by_keyword_is_static(scale):
    """1.6: f(x, scale=3.); the rule returns one gradient."""

    @tf.custom_gradient
    def f(x, scale):
        return x * float(scale), lambda dy: dy * float(scale) * 10.0

    assert gradient(lambda x: f(x, scale=scale), tf.constant(1.0)) == [10.0 * float(scale)]


def test_tensor_by_keyword_is_an_input_after_the_positional_ones():
    """Decision 4; the original gives None."""

    @tf.custom_gradient
    def f(x, w):
        return x * w, slots(2)

    x, w = tf.constant(2.0), tf.constant(3.0)
    assert gradient(lambda x, w: f(x, w=w), x, w) == [10.0, 100.0]
    assert gradient(lambda x, w: f(w=w, x=x), x, w) == [10.0, 100.0]


def test_keyword_tensors_come_in_signature_order():
    """Decision 4."""

    @tf.custom_gradient
    def f(x, a, b, *, c):
        return x * a * b * c, slots(4)

    x, a, b, c = (tf.constant(1.0) for _ in range(4))
    expected = [10.0, 100.0, 1000.0, 10000.0]
    assert gradient(lambda x, a, b, c: f(x, c=c, b=b, a=a), x, a, b, c) == expected
    assert gradient(lambda x, a, b, c: f(x, a, c=c, b=b), x, a, b, c) == expected


def test_extra_keywords_come_last_in_the_order_of_the_call():
    """Decision 4: then in the order of **kwargs."""

    @tf.custom_gradient
    def f(x, a, **more):
        return x * a * more["z"] * more["b"], slots(4)

    x, a, b, z = (tf.constant(1.0) for _ in range(4))
    assert gradient(lambda x, a, b, z: f(x, z=z, b=b, a=a), x, a, b, z) == [
        10.0,
        100.0,
        10000.0,
        1000.0,
    ]


def test_structure_of_tensors_by_keyword():
    """Decision 4, with the nest order of 1.4."""

    @tf.custom_gradient
    def f(x, weights):
        return x * weights["a"] * weights["b"], slots(3)

    x, a, b = (tf.constant(1.0) for _ in range(3))
    assert gradient(lambda x, a, b: f(x, weights={"b": b, "a": a}), x, a, b) == [
        10.0,
        100.0,
        1000.0,
    ]


def test_wrong_count_with_a_keyword_tensor_names_the_inputs():
    """1.6, the other way round: returning only the positional gradient is now an error."""

    @tf.custom_gradient
    def f(x, w):
        return x * w, lambda dy: dy

    x, w = tf.constant(2.0), tf.constant(3.0)
    words = "expected to return 2 gradients, but returned 1"
    with pytest.raises(ValueError, match=words) as caught:
        gradient(lambda x, w: f(x, w=w), x, w)
    assert "(x, w)" in str(caught.value)
    assert_next_gradient_is_right()


def test_variable_by_keyword_is_an_input_and_not_among_variables():
    """1.6: excluded from `variables`; decision 4: an input like any other."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x, w):
        assert w is v
        return x * w, slots(2)

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, w=v)
    assert numbers(tape.gradient(y, [x, v])) == [10.0, 100.0]


@pytest.mark.parametrize("static", [None, "same", abs, object()])
def test_other_keywords_are_never_converted(static):
    """1.6: None, str and callables by keyword are fine."""

    @tf.custom_gradient
    def f(x, option=1):
        assert option is static
        return x * 2.0, slots(1)

    assert gradient(lambda x: f(x, option=static), tf.constant(1.0)) == [10.0]


def test_default_of_an_absent_keyword_is_no_input():
    """Decision 4: only what is passed counts."""

    @tf.custom_gradient
    def f(x, scale=3.0, *, bias=1.0):
        return x * scale + bias, lambda dy: dy * scale

    assert gradient(f, tf.constant(2.0)) == [3.0]


def test_unknown_keyword_is_python_s_own_error():
    """A wrong call is a TypeError that names the keyword; the next gradient is right."""
    with pytest.raises(TypeError, match="nope"):
        double(tf.constant(1.0), nope=tf.constant(1.0))
    assert_next_gradient_is_right()


def test_keyword_calls_at_second_order():
    """1.14 by keyword: x**3 gives 12 and 12 at 2."""

    @tf.custom_gradient
    def cube(x):
        return x * x * x, lambda dy: 3 * x * x * dy

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = cube(x=x)
        slope = inner.gradient(y, x)
    assert (float(slope), numbers(outer.gradient(slope, x))) == (12.0, 12.0)


def test_signature_is_not_bound_without_keywords(monkeypatch):
    """Decision 4: a call without keywords is never bound through the signature."""

    def refuse(*args, **kwargs):
        raise AssertionError("bound through the signature")

    x = tf.constant(1.0)
    assert gradient(double, x) == [100.0]
    monkeypatch.setattr(inspect.Signature, "bind", refuse)
    assert gradient(double, x) == [100.0]
