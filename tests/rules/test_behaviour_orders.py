"""BEHAVIOUR 1.0, 1.7, 1.12 and 1.14: more programs, each with the numbers of TensorFlow 2.21.

Derivatives are listed from order 0. Where the original has a zero and not None, the tensors
are connected, and that decides whether the rule of a rule serves (1.12, decision 6).
"""

import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, derivative, numbers


@tf.custom_gradient
def cube(x):
    return x**3, lambda dy: 3 * x**2 * dy


@tf.custom_gradient
def fake(x):
    return x**3, lambda dy: 100 * dy


def example_one(factor):
    @tf.custom_gradient
    def op(x):
        @tf.custom_gradient
        def grad_fn(dy):
            return 3 * x**2 * dy, lambda ddy: factor * ddy

        return x**3, grad_fn

    return op


K7, K5, K12, K1000 = (example_one(factor) for factor in (7.0, 5.0, 12.0, 1000.0))


def assert_orders(function, value, expected):
    found = [derivative(function, value, order) for order in range(len(expected))]
    assert [slope is None for slope in found] == [slope is None for slope in expected], found
    for slope, truth in zip(found, expected, strict=True):
        assert slope == (truth if truth is None else pytest.approx(truth, rel=2e-5, abs=1e-6))
    assert_next_gradient_is_right()


@pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")
@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        pytest.param(lambda x: K7(x) * 2.0, 2.0, [16.0, 24.0, 24.0], id="2 op"),
        pytest.param(lambda x: K7(x) + K7(x), 2.0, [16.0, 24.0, 24.0], id="op + op"),
        pytest.param(lambda x: K7(x) ** 3, 2.0, [512.0, 2304.0, 4032.0], id="op**3"),
        pytest.param(lambda x: K7(x) * x, 2.0, [16.0, 32.0, 19.0], id="op x"),
        pytest.param(lambda x: K7(x * x), 2.0, [64.0, 192.0, 480.0], id="op(x*x)"),
        pytest.param(
            lambda x: K7(K5(x)), 1.5, [38.443359, 230.66016, 683.4375], id="op(op), K=7, 5"
        ),
        pytest.param(
            lambda x: K1000(x) * K1000(x), 2.0, [64.0, 192.0, 24000.0, 24000.0], id="op op"
        ),
        pytest.param(
            lambda x: tf.square(K1000(x)), 2.0, [64.0, 192.0, 24000.0, 24000.0], id="square(op)"
        ),
        pytest.param(
            lambda x: tf.square(K12(x)), 2.0, [64.0, 192.0, 288.0, 288.0], id="square, K=12"
        ),
        pytest.param(
            lambda x: tf.sin(K1000(x)),
            2.0,
            [0.98935825, -1.7460004, -11872.299, 1746000.4],
            id="sin(op)",
        ),
        pytest.param(
            lambda x: tf.sin(K12(x)),
            2.0,
            [0.98935825, -1.7460004, -142.46759, 251.42406],
            id="sin(op), K=12",
        ),
        pytest.param(
            lambda x: K12(x) ** 3, 2.0, [512.0, 2304.0, 6912.0, 10368.0], id="op**3, K=12"
        ),
        pytest.param(
            lambda x: K1000(x) ** 2, 2.0, [64.0, 192.0, 24000.0, 0.0], id="op**2, third order"
        ),
        pytest.param(
            lambda x: K12(x) ** 2, 2.0, [64.0, 192.0, 288.0, 0.0], id="op**2, K=12, third order"
        ),
    ],
)
def test_example_one_further(function, value, expected):
    """1.12: compositions and third orders of the first nesting."""
    assert_orders(function, value, expected)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(lambda x: fake(x * x), [64.0, 400.0, 200.0, None], id="fake(x*x)"),
        pytest.param(lambda x: fake(fake(x)), [512.0, 10000.0, None, None], id="fake(fake)"),
        pytest.param(lambda x: fake(x) * x, [16.0, 208.0, 200.0, None], id="fake x"),
        pytest.param(
            lambda x: cube(fake(x)), [512.0, 19200.0, 480000.0, 6000000.0], id="cube(fake)"
        ),
    ],
)
def test_plain_rules_composed(function, expected):
    """1.14: a rule without x, before and after others."""
    assert_orders(function, 2.0, expected)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param(lambda x: x**2, [2.25, 3.0, 2.0, 0.0], id="x**2"),
        pytest.param(lambda x: x**1, [1.5, 1.0, 0.0], id="x**1"),
        pytest.param(lambda x: x**0, [1.0, 0.0, 0.0], id="x**0"),
        pytest.param(lambda x: x**3, [3.375, 6.75, 9.0, 6.0, 0.0], id="x**3"),
        pytest.param(tf.nn.relu, [1.5, 1.0, 0.0, 0.0], id="relu"),
        pytest.param(
            lambda x: tf.reduce_prod(tf.stack([x, x])), [2.25, 3.0, 2.0, 0.0], id="reduce_prod"
        ),
        pytest.param(tf.square, [2.25, 3.0, 2.0, None], id="square"),
        pytest.param(lambda x: x * x, [2.25, 3.0, 2.0, None], id="x*x"),
        pytest.param(tf.abs, [1.5, 1.0, 0.0, None], id="abs"),
        pytest.param(lambda x: tf.maximum(x, 0.0), [1.5, 1.0, None], id="maximum"),
    ],
)
def test_zero_or_none_at_higher_orders(function, expected):
    """1.0: which derivatives that vanish are zeros, and which are None, at 1.5."""
    assert_orders(function, 1.5, expected)


def test_rule_of_a_branch_that_captures_a_variable():
    """1.7: `variables` is passed only at the calls that read one."""
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x, captures):
        def grad(dy, variables=None):
            slopes = (dy * 10.0, None)
            return (slopes, [dy * 77.0]) if variables else slopes

        return x * v if captures else x * 2.0, grad

    for captures, expected in ((True, 77.0), (False, None), (True, 77.0)):
        x = tf.constant(1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, captures)
        assert numbers(tape.gradient(y, [x, v])) == [10.0, expected]


def test_second_order_of_a_square_with_a_captured_variable():
    """1.7 at second order: y = (x v**3)**2 at x=2, v=3."""
    v, x = tf.Variable(3.0), tf.constant(2.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * v**3, [3.0 * dy * x * v**2]

        return x * v**3, grad

    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x) ** 2
        gx, gv = inner.gradient(y, [x, v])
    assert numbers([y, gx, gv]) == [2916.0, 2916.0, 5832.0]
    assert numbers(outer.gradient(gx, [x, v])) == [1458.0, 5832.0]
    assert numbers(outer.gradient(gv, [x, v])) == [5832.0, 9720.0]


def test_one_variable_as_two_arguments():
    """1.7: both gradients, summed."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(a, b):
        return a * b, lambda dy: (dy * 10.0, dy * 100.0)

    with tf.GradientTape() as tape:
        y = f(v, v)
    assert numbers(tape.gradient(y, v)) == 110.0


def test_tape_and_custom_gradient_inside_a_function_with_a_variable():
    """1.7 and 1.14: a tape of the function's own around another custom gradient."""
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def inner(x):
        return x * v, lambda dy, variables=None: (dy * 3.0, [dy * 4.0])

    @tf.custom_gradient
    def outer(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = inner(x)
        slope = tape.gradient(y, x)
        return y * slope, lambda dy, variables=None: (dy * 5.0, [dy * 6.0])

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = outer(x)
    assert numbers([y, tape.gradient(y, [x, v])]) == [6.0, [5.0, 6.0]]


def test_rule_that_reads_a_variable_of_its_own():
    """1.7: a Variable read in the rule only is no input, but has a second-order gradient."""
    v, x = tf.Variable(2.0), tf.constant(1.0)

    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: dy * v

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        slope = inner.gradient(y, x)
    assert numbers(slope) == 2.0
    assert numbers(outer.gradient(slope, [x, v])) == [None, 1.0]


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
        with pytest.warns(tf.CustomGradientWarning, match="`f` is not used on a tape"):
            y = f(x)
        z = y * w
    assert numbers(a.gradient(z, [w, x])) == [12.0, None]
    assert numbers(b.gradient(z, [w, x])) == [None, 200.0]
    assert numbers(c.gradient(z, [w, x])) == [6.0, 200.0]


def test_recompute_grad_with_a_variable_and_two_outputs():
    """1.10: z = (v x y) (x + y) at x=3, y=4, v=2."""
    v = tf.Variable(2.0)
    f = tf.recompute_grad(lambda x, y: (v * x * y, x + y))
    x, y = tf.constant(3.0), tf.constant(4.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        product, total = f(x, y)
        z = product * total
    assert numbers(tape.gradient(z, [x, y, v])) == [80.0, 66.0, 84.0]
