"""custom_gradient(max_order=n): the rule serves to order n in every mode; more is an error."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.orders import (
    assert_clean_state,
    assert_nothing_is_kept_alive,
    derivative,
    gradient,
    gradient_function,
)
from tinygrad_cg.keras import ops

OrderError = tf.errors.DerivativeOrderError
POINT = np.array([0.6, 1.7])


def cube(most):
    @tf.custom_gradient(max_order=most)
    def f(x):
        return x**3, lambda dy: dy * 3.0 * x**2

    return f


def keras_cube(most):
    def f(x):
        def grad(*args, upstream):
            return ops.multiply(upstream, 3.0 * args[0] ** 2)

        return x**3, grad

    return ops.custom_gradient(f, max_order=most)


def nested_cube(most):
    """Its rule is a custom gradient of all that it depends on."""

    @tf.custom_gradient
    def product(dy, x):
        return 3.0 * x**2 * dy, lambda d: (3.0 * x**2 * d, 6.0 * x * dy * d)

    @tf.custom_gradient(max_order=most)
    def f(x):
        return x**3, lambda dy: product(dy, x)

    return f


def captured_cube(most):
    """Its rule uses what the function computed."""

    @tf.custom_gradient(max_order=most)
    def f(x):
        y = x**3
        return y, lambda dy: dy * 3.0 * y / x

    return f


FUNCTIONS = {
    "function": cube,
    "Keras": keras_cube,
    "nested": nested_cube,
    "captured": captured_cube,
}
ONES = tf.ones(2, dtype=tf.float64)
WAYS = {
    "tape": gradient_function,
    "tangent": lambda f: lambda x: tf.jvp(f, (x,), (ONES,))[1],
    "linearized": lambda f: lambda x: tf.linearize(f, x)[1](ONES),
    "jacobian": lambda f: lambda x: tf.reduce_sum(tf.jacobian(f)(x), 0),
    "columns": lambda f: lambda x: tf.reduce_sum(tf.jacobian(f, mode="forward")(x), 0),
    "batch": lambda f: lambda x: tf.vmap(tf.elementwise_grad(f))(tf.stack([x]))[0],
    "traced": lambda f: tf.function(tf.elementwise_grad(f)),
    "of a traced": lambda f: tf.elementwise_grad(tf.function(f)),
    "recomputed": lambda f: tf.elementwise_grad(tf.recompute_grad(f)),
}


def check(f, expected, ways, most):
    """`ways`, the innermost first, on a limited function and on one that is not."""
    for way in ways:
        f, expected = WAYS[way](f), WAYS[way](expected)
    x = tf.constant(POINT)
    if len(ways) <= most:
        assert_allclose(f(x), expected(x), rtol=1e-9)
    else:
        with pytest.raises(OrderError, match=rf"max_order={most} .*test_max_order.py"):
            f(x)
        assert_clean_state()


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("ways", [[way] for way in WAYS], ids=" of ".join)
def test_the_first_order_is_served(kind, most, ways):
    check(FUNCTIONS[kind](most), lambda x: x**3, ways, most)


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("ways", list(itertools.product(WAYS, repeat=2)), ids=" of ".join)
def test_the_second_order_is_served_or_refused(most, ways):
    check(cube(most), lambda x: x**3, ways, most)


@settings(max_examples=150)
@given(
    kind=st.sampled_from(list(FUNCTIONS)),
    most=st.integers(1, 3),
    ways=st.lists(
        st.sampled_from(["tape", "tangent", "linearized", "jacobian", "batch", "traced"]),
        min_size=2,
        max_size=3,
    ),
    inside=st.booleans(),
)
def test_orders_in_any_modes(kind, most, ways, inside):
    f = FUNCTIONS[kind](most)
    if inside:  # the upstream gradient depends on the input, too
        check(lambda x: tf.sin(f(x) * x), lambda x: tf.sin(x**3 * x), ways, most)
    else:
        check(f, lambda x: x**3, ways, most)


def test_other_derivatives_are_not_counted():
    f = cube(1)
    x, w = tf.constant(2.0), tf.constant(5.0)
    with tf.GradientTape() as outer:
        outer.watch(w)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x) * w**3
        first = tape.gradient(y, x)
    assert outer.gradient(first, w).numpy() == 12.0 * 75.0  # of order 1 in f, of order 2 in w


def test_the_same_order_may_be_asked_for_again():
    f = cube(2)
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        firsts = [tape.gradient(y, x) for _ in range(3)]
    assert [outer.gradient(first, x).numpy() for first in firsts * 2] == [12.0] * 6


def test_gradients_of_different_orders_in_one_target():
    f = cube(2)
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        first = tape.gradient(y, x)
        target = y + first
    assert outer.gradient(target, x).numpy() == 24.0


CONSTANT = {
    "NumPy": lambda x: lambda dy: dy * tf.constant(3.0 * x.numpy() ** 2),
    "an array": lambda x: lambda dy: 3.0 * x.numpy() ** 2,
    "a number": lambda x: lambda dy: 12.0,
    "straight through": lambda x: lambda dy: dy,
}


@pytest.mark.filterwarnings("ignore:.*takes NumPy or Python values")
@pytest.mark.parametrize(
    ("rule", "way"),
    [(rule, way) for rule in CONSTANT for way in ("tape", "tangent", "linearized", "jacobian")]
    + [("straight through", "batch")],
)
def test_a_rule_that_does_not_depend_on_the_input_is_not_taken_for_flat(rule, way):
    f = tf.custom_gradient(lambda x: (x**3, CONSTANT[rule](x)), max_order=1)
    x = tf.constant(2.0, dtype=tf.float64)
    assert gradient(f, x)[0] in (1.0, 12.0)
    ones = tf.ones((), dtype=tf.float64)
    ways = WAYS | {"tangent": lambda f: lambda x: tf.jvp(f, (x,), (ones,))[1]}
    ways |= {"linearized": lambda f: lambda x: tf.linearize(f, x)[1](ones), "jacobian": tf.jacobian}
    has_tangent = way != "tangent" or rule not in ("an array", "a number")  # not linear in dy
    with pytest.raises(OrderError if has_tangent else TypeError):
        ways[way](gradient_function(f))(x)


def test_nested_limits():
    inner = cube(2)

    @tf.custom_gradient(max_order=1)
    def outer(x):
        return inner(x) * 2.0, lambda dy: dy * 2.0 * gradient_function(inner)(x)

    assert derivative(outer, 2.0) == 24.0
    with pytest.raises(OrderError, match="`outer`"):
        derivative(outer, 2.0, 2)

    @tf.custom_gradient(max_order=5)
    def wide(x):
        return x**2, lambda dy: dy * inner(x)

    assert [derivative(wide, 2.0, order) for order in (1, 2, 3)] == [8.0, 12.0, 12.0]
    with pytest.raises(OrderError, match="`f`"):
        derivative(wide, 2.0, 4)


def test_variables_count():
    v = tf.Variable(3.0)

    @tf.custom_gradient(max_order=1)
    def f(x):
        return x * v**2, lambda dy, variables: (dy * variables[0] ** 2, [dy * x * 2.0 * v])

    @tf.custom_gradient(max_order=1)
    def of_variable(v):
        return v**2, lambda dy: dy * 2.0 * v

    x = tf.constant(2.0)
    assert gradient(f, x, sources=[x, v]) == [9.0, 12.0]
    for function, source in ((lambda: f(x), v), (lambda: of_variable(v), v)):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = function()
            first = tape.gradient(y, source)
        with pytest.raises(OrderError):
            outer.gradient(first, source)
    assert (v.numpy(), v._rec is None or v._rec.rule is None) == (3.0, True)
    assert gradient(lambda: v * v, sources=v) == 6.0


def test_several_outputs_and_structures():
    @tf.custom_gradient(max_order=1)
    def f(pair):
        x, y = pair["x"], pair["y"]
        return [x * y, x + y], lambda a, b: (a * y + b, a * x + b)

    x, y = tf.constant(2.0), tf.constant(5.0)
    assert gradient(lambda x, y: f({"x": x, "y": y})[0], x, y) == [5.0, 2.0]
    with pytest.raises(OrderError):
        tf.hessian(lambda x: f({"x": x, "y": y})[0])(x)


@pytest.mark.parametrize("compiled", [False, True])
def test_inside_a_function(compiled):
    f = cube(2)
    second = tf.function(gradient_function(gradient_function(f)), jit_compile=compiled)
    assert second(tf.constant([1.0, 2.0])).numpy().tolist() == [6.0, 12.0]
    with pytest.raises(OrderError):
        tf.function(gradient_function(second.python_function), jit_compile=compiled)(tf.ones(2))
    assert_clean_state()


def test_it_is_a_custom_gradient_in_all_else():
    assert cube(2)(tf.constant(3.0)).numpy() == 27.0
    with pytest.raises(TypeError, match=r"must return \(output, grad_fn\)"):
        gradient(tf.custom_gradient(lambda x: x, max_order=1), tf.constant(1.0))
    with pytest.raises(ValueError, match="expected to return 1 gradients, but returned 2"):
        gradient(tf.custom_gradient(lambda x: (x + 0, lambda dy: (dy, dy)), max_order=1), ONES)

    class Scaled:
        @tf.custom_gradient(max_order=1)
        def f(self, x):
            return 2.0 * x, lambda dy: 7.0 * dy

    assert gradient(Scaled().f, tf.constant(1.0)) == [7.0]


@pytest.mark.parametrize(("most", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)])
def test_wrong_orders(most, error):
    with pytest.raises(error, match="max_order"):
        tf.custom_gradient(max_order=most)


def test_nothing_is_kept_alive():
    assert_nothing_is_kept_alive(cube(2), 2.0)
