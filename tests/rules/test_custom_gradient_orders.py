"""docs/behaviour.md 1.14: ordinary rules at higher orders."""

import math

import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, derivative, numbers
from tests.support.rules import cube, cube_by_products, exponential, log1pexp


@tf.custom_gradient
def fake_cube(x):
    return x * x * x, lambda dy: 100 * dy


@tf.custom_gradient
def exponential_by_intermediate(x):
    e = tf.exp(x)
    return e * 1.0, lambda dy: dy * e


@pytest.mark.parametrize(
    ("function", "order", "expected"),
    [
        pytest.param(cube_by_products, 1, 12.0, id="cube 1"),
        pytest.param(cube_by_products, 2, 12.0, id="cube 2"),
        pytest.param(cube_by_products, 3, 6.0, id="cube 3"),
        pytest.param(lambda x: cube_by_products(x) ** 2, 1, 192.0, id="cube squared 1"),
        pytest.param(lambda x: cube_by_products(x) ** 2, 2, 480.0, id="cube squared 2"),
        pytest.param(lambda x: tf.sin(cube_by_products(x)), 1, -1.7460004, id="sin cube 1"),
        pytest.param(lambda x: tf.sin(cube_by_products(x)), 2, -144.21359, id="sin cube 2"),
        pytest.param(fake_cube, 1, 100.0, id="fake 1"),
        pytest.param(lambda x: fake_cube(x) ** 2, 1, 1600.0, id="fake squared 1"),
        pytest.param(lambda x: fake_cube(x) ** 2, 2, 20000.0, id="fake squared 2"),
    ],
)
def test_plain_rules_at_2(function, order, expected):
    """1.14."""
    assert derivative(function, 2.0, order) == pytest.approx(expected, rel=1e-6)


def test_fake_rule_without_x_has_no_second_order():
    """1.14: 100*dy gives None."""
    assert derivative(fake_cube, 2.0, 2) is None


@pytest.mark.parametrize("order", range(5))
@pytest.mark.parametrize("function", [exponential, exponential_by_intermediate])
def test_closing_over_an_intermediate_or_the_output(function, order):
    """1.14: exp at 1 is 2.7182817 at all orders."""
    assert derivative(function, 1.0, order) == pytest.approx(2.7182817, rel=1e-6)


@pytest.mark.parametrize("function", [exponential, exponential_by_intermediate])
def test_second_order_through_a_square_of_the_output(function):
    """1.14: (exp x)**2 at 1: 14.778 at first order, 29.556 at second."""
    assert derivative(lambda x: function(x) ** 2, 1.0, 1) == pytest.approx(14.778112, rel=1e-6)
    assert derivative(lambda x: function(x) ** 2, 1.0, 2) == pytest.approx(29.556224, rel=1e-6)


def test_custom_inside_custom_uses_the_outermost_rule_only():
    """1.14: 100.0."""

    @tf.custom_gradient
    def outer(x):
        return cube_by_products(x) * 2.0, lambda dy: 100.0 * dy

    assert derivative(outer, 2.0, 0) == 16.0
    assert derivative(outer, 2.0, 1) == 100.0


@pytest.mark.parametrize(
    ("order", "expected"), [(0, 0.8415), (1, 1.0806), (2, -1.6829), (3, -1.0806)]
)
def test_tape_inside_the_rule(order, expected):
    """1.14: a tape inside grad_fn, doubling sin's gradient; right at all orders."""

    @tf.custom_gradient
    def sine(x):
        def grad(dy):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.sin(x)
            return 2.0 * dy * tape.gradient(y, x)

        return tf.sin(x), grad

    assert derivative(sine, 1.0, order) == pytest.approx(expected, abs=5e-5)


def hand_written_product(x, y):
    @tf.custom_gradient
    def product(x, y):
        return x * x * y, lambda dz: (2 * x * y * dz, x * x * dz)

    return product(x, y)


def test_hessian_rows_by_gradients():
    """1.14: x*x*y at (2, 3): gx=12, gy=4, rows [6, 4] and [4, None]."""
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, y])
        with tf.GradientTape() as inner:
            inner.watch([x, y])
            z = hand_written_product(x, y)
        slopes = inner.gradient(z, [x, y])
    assert numbers(slopes) == [12.0, 4.0]
    rows = [numbers(outer.gradient(slope, [x, y])) for slope in slopes]
    assert rows == [[6.0, 4.0], [4.0, None]]


def test_hessian_vector_product_by_output_gradients():
    """1.14: x^3 at [1, 2] with v=[10, 100] gives [60, 1200]."""
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = cube_by_products(x)
        slope = inner.gradient(y, x)
    product = outer.gradient(slope, x, output_gradients=tf.constant([10.0, 100.0]))
    assert numbers(product) == [60.0, 1200.0]


def hessian_rows(function, x):
    """Value, gradient and rows of the Hessian of a scalar function, row by row."""
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        slopes = inner.gradient(y, x)
    rows = [
        outer.gradient(slopes, x, output_gradients=tf.constant(unit))
        for unit in ([1.0, 0.0], [0.0, 1.0])
    ]
    return numbers([y, slopes, rows])


def test_hessian_over_a_custom_gradient_by_rows():
    """1.14: sum(x^3)*x0 at [1, 2]: 9, [12, 12], [[12, 12], [12, 12]]."""

    def function(x):
        return tf.reduce_sum(cube_by_products(x)) * x[0]

    value, slopes, rows = hessian_rows(function, tf.constant([1.0, 2.0]))
    assert value == 9.0
    assert slopes == [12.0, 12.0]
    assert rows == [[12.0, 12.0], [12.0, 12.0]]


def test_jacobian_of_a_custom_gradient_by_rows():
    """1.14: a rule dy*10*x gives diag(10, 20), with one call of the rule for each row."""
    upstreams = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            upstreams.append(numbers(dy))
            return dy * 10.0 * x

        return x * x, grad

    x = tf.constant([1.0, 2.0])
    units = [[1.0, 0.0], [0.0, 1.0]]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    rows = [tape.gradient(y, x, output_gradients=tf.constant(unit)) for unit in units]
    assert numbers(rows) == [[10.0, 0.0], [0.0, 20.0]]
    assert upstreams == units


@pytest.mark.parametrize(
    ("value", "dtype", "is_nan"),
    [
        (88.72, "float32", False),
        (88.73, "float32", True),
        (709.78, "float64", False),
        (709.79, "float64", True),
    ],
)
def test_threshold_of_the_documents_rule(value, dtype, is_nan):
    """1.1: stable at first order, nan at orders 2 and 3 above 88.72 (709.78 in float64)."""
    assert derivative(log1pexp, value, 1, dtype) == 1.0
    for order in (2, 3):
        slope = derivative(log1pexp, value, order, dtype)
        assert math.isnan(slope) == is_nan


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
    derivatives = [derivative(function, value, order) for order in range(len(expected))]
    assert [slope is None for slope in derivatives] == [slope is None for slope in expected], (
        derivatives
    )
    for slope, truth in zip(derivatives, expected, strict=True):
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
