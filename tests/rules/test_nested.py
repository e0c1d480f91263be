"""docs/behaviour.md 1.12 and 1.13: custom gradients inside custom gradients.

The numbers are those of the original: they follow the rules as written, and the tables of
the section say where that is not the true derivative. All at x = 2 with op(x) = x**3.
"""

import pytest

import tinygrad_cg as tf
from tests.support.orders import (
    assert_next_gradient_is_right,
    custom_gradient_warnings,
    derivative,
    numbers,
)

pytestmark = pytest.mark.quick

ignore_bypass = pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")


def example_one(factor, calls=None):
    """The document's first nesting: op3 = factor * ddy is the rule of the rule."""

    @tf.custom_gradient
    def op(x):
        y = x**3

        @tf.custom_gradient
        def grad_fn(dy):
            def grad_grad_fn(ddy):
                if calls is not None:
                    calls.append(float(ddy))
                return factor * ddy

            return 3 * x**2 * dy, grad_grad_fn

        return y, grad_fn

    return op


@ignore_bypass
@pytest.mark.parametrize(
    ("outer", "factor", "expected"),
    [
        pytest.param(lambda y: y, 1000.0, [8.0, 12.0, 12.0, 6.0], id="op"),
        pytest.param(lambda y: y, 12.0, [8.0, 12.0, 12.0, 6.0], id="op, K=12"),
        pytest.param(lambda y: 1.0 * y, 1000.0, [8.0, 12.0, 12.0, 6.0], id="1.0*op"),
        pytest.param(lambda y: y**2, 1000.0, [64.0, 192.0, 24000.0], id="op**2"),
        pytest.param(lambda y: y**2, 12.0, [64.0, 192.0, 288.0], id="op**2, K=12"),
        pytest.param(tf.sin, 1000.0, [0.98935825, -1.7460004, -11872.299], id="sin(op)"),
        pytest.param(tf.sin, 12.0, [0.98935825, -1.7460004, -142.46759], id="sin(op), K=12"),
    ],
)
def test_example_one(outer, factor, expected):
    """1.12: d2 = op2(x, y, h''(y) * op3(1)) where dy depends on x, else op2's own."""
    op = example_one(factor)
    for order, value in enumerate(expected):
        result = derivative(lambda x: outer(op(x)), 2.0, order)
        assert result == pytest.approx(value, rel=1e-5)


@ignore_bypass
def test_example_one_never_calls_op3_where_dy_is_not_watched():
    """1.12: L=op(x)."""
    calls = []
    op = example_one(1000.0, calls)
    assert derivative(op, 2.0, 3) == 6.0
    assert calls == []
    assert derivative(lambda x: op(x) ** 2, 2.0, 2) == 24000.0
    assert calls != []


def test_example_one_says_that_the_rule_of_the_rule_was_not_used():
    """Decision 5: with an unwatched dy, once per definition."""

    @tf.custom_gradient
    def op(x):
        @tf.custom_gradient
        def unused_rule(dy):
            return 3 * x**2 * dy, lambda ddy: 1000.0 * ddy

        return x**3, unused_rule

    with custom_gradient_warnings() as texts:
        for _ in range(3):
            assert derivative(op, 2.0, 2) == 12.0
    assert len(texts) == 1
    assert "unused_rule" in texts[0]


def test_first_order_of_example_one_is_silent():
    """Decision 5: nothing is bypassed as long as nobody asks for the second order."""
    with custom_gradient_warnings() as texts:
        assert derivative(example_one(1000.0), 2.0, 1) == 12.0
    assert texts == []


def test_example_one_where_the_rule_serves_is_silent():
    """Decision 5: op**2 uses the rule of the rule."""

    @tf.custom_gradient
    def op(x):
        @tf.custom_gradient
        def used_rule(dy):
            return 3 * x**2 * dy, lambda ddy: 1000.0 * ddy

        return x**3, used_rule

    with custom_gradient_warnings() as texts:
        assert derivative(lambda x: op(x) ** 2, 2.0, 2) == 24000.0
    assert texts == []


@pytest.mark.parametrize(("watch_x", "expected"), [(False, [None, 1000.0]), (True, [None, 1000.0])])
def test_example_one_for_its_upstream(watch_x, expected):
    """1.12: output_gradients=dy=1.5 watched: g=18, d g/d dy = op3(1) = 1000, x gets None."""
    op = example_one(1000.0)
    x, dy = tf.constant(2.0), tf.constant(1.5)
    with tf.GradientTape() as outer:
        outer.watch([x, dy] if watch_x else dy)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = op(x)
        g = inner.gradient(y, x, output_gradients=dy)
    assert float(g) == 18.0
    assert numbers(outer.gradient(g, [x, dy])) == expected


@ignore_bypass
def test_rule_without_x_gives_none():
    """1.12: the version with dy*5 has no x in op2."""

    @tf.custom_gradient
    def op(x):
        @tf.custom_gradient
        def grad_fn(dy):
            return dy * 5.0, lambda ddy: 7.0 * ddy

        return x**3, grad_fn

    assert derivative(op, 2.0, 1) == 5.0
    assert derivative(op, 2.0, 2) is None
    assert derivative(lambda x: op(x) ** 2, 2.0, 1) == 80.0
    assert derivative(lambda x: op(x) ** 2, 2.0, 2) == 70.0


def fused(second_order):
    """The document's second nesting with one argument, mended: one gradient for one input."""

    @tf.custom_gradient
    def op(x):
        y, x_grad = x**3, 3 * x**2

        def first_order_gradient(dy):
            @tf.custom_gradient
            def first_order_custom(unused_x):
                return x_grad, lambda ddy: second_order(x, ddy)

            return dy * first_order_custom(x)

        return y, first_order_gradient

    return op


def fused_with_upstream():
    """The second nesting with the additional argument that the document speaks of."""

    @tf.custom_gradient
    def op(x):
        y, x_grad = x**3, 3 * x**2

        def first_order_gradient(dy):
            @tf.custom_gradient
            def first_order_custom(unused_x, dy):
                return dy * x_grad, lambda ddy: (6 * x * dy * ddy, x_grad * ddy)

            return first_order_custom(x, dy)

        return y, first_order_gradient

    return op


ONE_TRUE = fused(lambda x, ddy: 6 * x * ddy)
ONE_FAKE = fused(lambda x, ddy: 1000 * ddy)
TWO_TRUE = fused_with_upstream()
VERBATIM = fused(lambda x, ddy: (6 * x * ddy, 3 * x**2 * ddy))


@pytest.mark.parametrize(
    ("op", "order", "expected"),
    [
        pytest.param(ONE_TRUE, 1, 12.0, id="one arg, true, d1"),
        pytest.param(ONE_TRUE, 2, 12.0, id="one arg, true, d2"),
        pytest.param(ONE_TRUE, 3, 6.0, id="one arg, true, d3"),
        pytest.param(ONE_FAKE, 1, 12.0, id="one arg, fake, d1"),
        pytest.param(ONE_FAKE, 2, 1000.0, id="one arg, fake, d2"),
        pytest.param(ONE_FAKE, 3, None, id="one arg, fake, d3"),
        pytest.param(TWO_TRUE, 1, 12.0, id="two args, d1"),
        pytest.param(TWO_TRUE, 2, 12.0, id="two args, d2"),
        pytest.param(TWO_TRUE, 3, 6.0, id="two args, d3"),
        pytest.param(VERBATIM, 1, 12.0, id="verbatim, d1"),
    ],
)
def test_example_two(op, order, expected):
    """1.13."""
    assert derivative(op, 2.0, order) == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        pytest.param(ONE_TRUE, [192.0, 480.0], id="one arg, true"),
        pytest.param(ONE_FAKE, [192.0, 16288.0], id="one arg, fake"),
        pytest.param(TWO_TRUE, [192.0, 480.0], id="two args"),
    ],
)
def test_square_of_example_two(op, expected):
    """1.13: 16288 = 1000*16 + 12*24."""
    assert [derivative(lambda x: op(x) ** 2, 2.0, order) for order in (1, 2)] == expected


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("outer", [lambda y: y, lambda y: y**2])
def test_verbatim_example_two_has_the_wrong_count(outer, order):
    """1.13: one argument, two returned gradients."""
    words = "expected to return 1 gradients, but returned 2 instead"
    with pytest.raises(ValueError, match=words) as caught:
        derivative(lambda x: outer(VERBATIM(x)), 2.0, order)
    assert "first_order_custom" in str(caught.value)
    assert derivative(VERBATIM, 2.0, 1) == 12.0
    assert_next_gradient_is_right()


def test_example_two_is_silent():
    """Decision 5: its inner function takes x, which is watched, so its rule serves."""
    with custom_gradient_warnings() as texts:
        assert derivative(TWO_TRUE, 2.0, 3) == 6.0
        assert derivative(ONE_TRUE, 2.0, 2) == 12.0
    assert texts == []


def issue_34503():
    """The function of TensorFlow's issue 34503: y = 5 x, and a rule with a rule."""

    @tf.custom_gradient
    def op(x):
        @tf.custom_gradient
        def inner_rule(dy):
            return dy * 5.0, lambda ddy: 5.0 * ddy

        return x * 5.0, inner_rule

    return op


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "compiled"])
def test_a_rule_of_a_rule_that_captures_nothing_says_that_it_was_not_used(wrap):
    """Decision 5: TensorFlow's issue 34503, where the second order is None without a word."""
    with custom_gradient_warnings() as texts:
        assert derivative(wrap(issue_34503()), 2.0, 2) is None
    [text] = texts
    assert "`inner_rule`, which is the rule of `op`, is not used" in text
    assert "Pass the inputs of `op` as arguments" in text


@pytest.mark.parametrize("in_batch", [tf.vmap, lambda f: tf.vmap(lambda x: f(x))])
def test_it_says_so_in_a_batch_too(in_batch):
    with custom_gradient_warnings() as texts:
        second = in_batch(tf.grad(tf.grad(issue_34503())))(tf.constant([1.0, 2.0]))
    assert second.numpy().tolist() == [0.0, 0.0]
    assert len(texts) == 1


def test_it_says_so_where_the_sweep_runs_in_a_batch():
    x = tf.constant([1.0, 2.0])
    with custom_gradient_warnings() as texts, tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = issue_34503()(x)
        jacobian = inner.jacobian(y, x)
    assert outer.gradient(jacobian, x) is None
    assert len(texts) == 1


@pytest.mark.parametrize(
    "compute",
    [
        lambda op: derivative(op, 2.0, 1),
        lambda op: derivative(lambda x: op(x) ** 2, 2.0, 2),  # dy depends on x: the rule serves
        lambda op: derivative(lambda z: tf.grad(op)(tf.constant(1.0)) * z, 2.0, 1),
    ],
    ids=["order 1", "used", "another tape watches another tensor"],
)
def test_it_is_silent_where_nothing_was_bypassed(compute):
    with custom_gradient_warnings() as texts:
        compute(issue_34503())
    assert texts == []


def test_the_remedy_of_issue_34503_is_right():
    """What the warning says to write: the inputs are arguments of the inner rule."""

    @tf.custom_gradient
    def op(x):
        @tf.custom_gradient
        def inner_rule(x, dy):
            return dy * 5.0, lambda ddy: (ddy * 7.0, 5.0 * ddy)

        return x * 5.0, lambda dy: inner_rule(x, dy)

    with custom_gradient_warnings() as texts:
        assert derivative(op, 2.0, 2) == 7.0
    assert texts == []
