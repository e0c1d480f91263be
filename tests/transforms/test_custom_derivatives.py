"""custom_derivatives: declared derivatives serve at their orders, and nothing else does."""

import itertools
import math
import pickle

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

WAY = tf.constant([0.3, -1.2])
POINT = tf.constant([0.7, 1.9])
OrderError = tf.errors.DerivativeOrderError


def steep(beyond="error", orders=3):
    """A function of which no derivative is the true one: it is told by its numbers."""
    slopes = [lambda x, k=k: 10.0**k * x**2 for k in range(1, orders + 1)]
    return tf.custom_derivatives(lambda x: x**2, *slopes, beyond=beyond)


# Elementwise ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_each_order_is_the_declared_one(dtype):
    derivatives = [derivative(steep(), 2.0, order, dtype) for order in range(4)]
    assert derivatives == [4.0, 40.0, 400.0, 4000.0]


def test_beyond_the_last_order_is_an_error_that_says_what_to_do():
    with pytest.raises(OrderError, match=r"of order 4 was requested, but the last .* order 3") as e:
        derivative(steep(), 2.0, 4)
    assert "beyond='differentiate'" in str(e.value)
    assert "test_custom_derivatives.py" in str(e.value)
    assert_clean_state()


def test_beyond_the_last_order_the_last_one_is_differentiated_where_the_user_chose_so():
    derivatives = [derivative(steep("differentiate"), 2.0, order) for order in range(7)]
    assert derivatives == [4.0, 40.0, 400.0, 4000.0, 4000.0, 2000.0, 0.0]


def test_without_a_derivative_there_is_a_value():
    f = tf.custom_derivatives(lambda x: x**2)
    assert f(3.0).numpy() == 9.0
    with pytest.raises(OrderError, match="none is declared"):
        derivative(f, 3.0)


def test_a_derivative_that_nobody_asks_for_is_no_error():
    f = tf.custom_derivatives(lambda x, y: x * y, lambda x, y: (y, x))
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(y)  # and not x, nor what depends on it
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = f(x, tf.constant(3.0)) * y
        first = tape.gradient(z, x)
    assert (first.numpy(), outer.gradient(first, y).numpy()) == (9.0, 3.0)


def test_recursive_rules_serve_at_every_order():
    sine = tf.custom_derivatives(tf.sin, lambda x: cosine(x), beyond="differentiate")
    cosine = tf.custom_derivatives(tf.cos, lambda x: -sine(x), beyond="differentiate")
    for order in range(9):
        result = derivative(sine, 0.4, order, "float64")
        assert_allclose(result, math.sin(0.4 + order * math.pi / 2), rtol=1e-14)


def test_a_declared_derivative_with_rules_of_its_own_goes_on_with_them():
    inner = tf.custom_derivatives(tf.cos, lambda x: -7.0 * x)
    f = tf.custom_derivatives(tf.sin, inner)
    assert_allclose(derivative(f, 0.5, 2, "float64"), -3.5)
    with pytest.raises(OrderError):
        derivative(f, 0.5, 3)

    @tf.custom_gradient
    def ruled(x):
        return tf.cos(x), lambda dy: 100.0 * dy

    assert derivative(tf.custom_derivatives(tf.sin, ruled), 0.5, 2) == 100.0


def test_derivatives_need_not_be_operations():
    def by_numpy(function):
        return lambda x: tf.constant(function(x.numpy()))

    f = tf.custom_derivatives(*map(by_numpy, (np.sinh, np.cosh, np.sinh)))
    for order in range(3):
        function = (np.sinh, np.cosh)[order % 2]
        assert_allclose(derivative(f, 0.3, order, "float64"), function(0.3), rtol=1e-15)
    assert_allclose(tf.hvp(lambda x: tf.reduce_sum(f(x)))(POINT, WAY), np.sinh(POINT) * WAY, 1e-6)


def test_stable_where_the_natural_derivative_is_not():
    sigmoid = tf.custom_derivatives(
        tf.sigmoid, lambda x: tf.sigmoid(x) * tf.sigmoid(-x), beyond="differentiate"
    )
    softplus = tf.custom_derivatives(
        lambda x: tf.maximum(x, 0.0) + tf.math.log1p(tf.exp(-tf.abs(x))), sigmoid
    )
    assert [derivative(softplus, 1000.0, order) for order in range(4)] == [1000.0, 1.0, 0.0, 0.0]


# Several arguments ----------------------------------------------------------------------------

FORMS = {
    "a function to a tuple": (
        lambda x, y: (2 * x * y**3, 3 * x**2 * y**2),
        lambda x, y: ((2 * y**3, 6 * x * y**2), (6 * x * y**2, 6 * x**2 * y)),
    ),
    "a tuple of functions": (
        (lambda x, y: 2 * x * y**3, lambda x, y: 3 * x**2 * y**2),
        (
            (lambda x, y: 2 * y**3, lambda x, y: 6 * x * y**2),
            [lambda x, y: 6 * x * y**2, lambda x, y: 6 * x**2 * y],
        ),
    ),
    "both": (
        (lambda x, y: 2 * x * y**3, lambda x, y: 3 * x**2 * y**2),
        (
            lambda x, y: [2 * y**3, 6 * x * y**2],
            (lambda x, y: 6 * x * y**2, lambda x, y: 6 * x**2 * y),
        ),
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shapes", [((), ()), ((3,), (3,)), ((2, 1), (3,)), ((), (2, 2))])
def test_partial_derivatives_of_arguments_that_broadcast(form, shapes):
    rng = np.random.default_rng(0)
    x, y = [tf.constant(rng.uniform(0.5, 2.0, shape)) for shape in shapes]
    f = tf.custom_derivatives(lambda x, y: x**2 * y**3, *FORMS[form])

    def loss(function):
        return lambda x, y: tf.reduce_sum(tf.sin(function(x, y)))

    result = tf.hessian(loss(f), argnums=(0, 1))(x, y)
    expected = tf.hessian(loss(lambda x, y: x**2 * y**3), argnums=(0, 1))(x, y)
    for row, wanted in zip(result, expected, strict=True):
        for element, other in zip(row, wanted, strict=True):
            assert_allclose(element, other, rtol=1e-10)


def test_a_partial_of_none_is_no_derivative():
    f = tf.custom_derivatives(lambda x, n: x * n, lambda x, n: (n, None))
    assert gradient(f, tf.constant(2.0), tf.constant(3.0)) == [3.0, None]
    assert gradient(lambda x: f(x, 4), tf.constant(2.0)) == [4.0]
    integers = tf.constant(3)
    assert gradient(lambda x: f(x, tf.cast(integers, tf.float32)), tf.constant(2.0)) == [3.0]


def test_options_and_static_arguments_reach_every_function():
    seen = []

    def f(x, mode, scale=1.0):
        seen.append((mode, scale))
        return x * scale

    def df(x, mode, scale=1.0):
        seen.append((mode, scale))
        return scale

    declared = tf.custom_derivatives(f, df)
    assert gradient(lambda x: declared(x, "m", scale=3.0), tf.constant(2.0)) == [3.0]
    assert seen == [("m", 3.0)] * 2


def test_a_method_keeps_its_instance():
    class Scaled:
        factor = 4.0

        @tf.custom_derivatives
        def f(self, x):
            return self.factor * x

        f.derivative(lambda self, x: self.factor)

    assert gradient(Scaled().f, tf.constant(2.0)) == [4.0]


def test_decorators():
    @tf.custom_derivatives
    def f(x):
        """Its docstring."""
        return x**2

    @f.derivative
    def slope(x):
        return 2 * x

    assert (f.__name__, f.__doc__, derivative(f, 3.0)) == ("f", "Its docstring.", 6.0)
    assert slope(1.0) == 2.0

    @tf.custom_derivatives(beyond="differentiate")
    def g(x):
        return x**2

    g.derivative(slope)
    assert derivative(g, 3.0, 2) == 2.0

    @tf.custom_derivatives(vjp=lambda dy, x: 5.0 * dy * x)
    def h(x):
        return x**2

    assert derivative(h, 3.0) == 15.0
    assert [repr(function) for function in (f, h)] == [
        "<f with derivatives to order 1>",
        "<h with derivatives to order 1>",
    ]


def test_complex_arguments_get_the_complex_derivative():
    f = tf.custom_derivatives(lambda z: z**3, lambda z: 3 * z**2, lambda z: 6 * z)
    z = tf.constant(0.5 - 0.8j)

    def twice(function):
        def loss(z):
            first = gradient_function(function)(z)
            return tf.math.real(first * tf.math.conj(first))

        return gradient_function(loss)(z)

    assert_allclose(gradient_function(f)(z), gradient_function(lambda z: z**3)(z), rtol=1e-12)
    assert_allclose(twice(f), twice(lambda z: z**3), rtol=1e-12)
    accumulated = tf.autodiff.ForwardAccumulator(z, tf.constant(1.0 + 2.0j))
    with accumulated:
        y = f(z)
    assert_allclose(accumulated.jvp(y), 3 * (0.5 - 0.8j) ** 2 * (1 + 2j), rtol=1e-12)


def test_a_real_argument_of_a_complex_function():
    f = tf.custom_derivatives(
        lambda x: tf.exp(1j * tf.cast(x, tf.complex128)),
        lambda x: 1j * tf.exp(1j * tf.cast(x, tf.complex128)),
    )
    x = tf.constant(0.4, dtype=tf.float64)
    assert_allclose(gradient(lambda x: tf.math.real(f(x)), x), [-math.sin(0.4)], rtol=1e-12)


def test_variables_are_arguments():
    f = tf.custom_derivatives(lambda x, v: x * v, lambda x, v: (10.0, 20.0))
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = f(2.0, v)
    v.assign(5.0)
    assert (float(y), float(tape.gradient(y, v))) == (6.0, 20.0)


# Wrong declarations ---------------------------------------------------------------------------


def test_a_captured_tensor_that_is_watched_is_refused():
    w, v = tf.constant(3.0), tf.Variable(4.0)
    for captured in (w, v):
        f = tf.custom_derivatives(lambda x, c=captured: x * c, lambda x, c=captured: c + 0.0)
        assert f(2.0).numpy() == 2.0 * captured.numpy()
        with tf.GradientTape() as tape:
            tape.watch(captured)
            with pytest.raises(TypeError, match="pass it as an argument"):
                f(tf.constant(2.0))
    with pytest.raises(TypeError, match="'c' was passed by keyword"):
        tf.custom_derivatives(lambda x, c: x * c, lambda x, c: c)(1.0, c=w)
    assert_clean_state()


def test_a_tape_inside_a_declared_derivative_is_no_captured_tensor():
    f = tf.custom_derivatives(tf.sin, gradient_function(tf.sin), lambda x: -tf.sin(x))
    for order in range(3):
        assert_allclose(
            derivative(f, 0.4, order, "float64"), math.sin(0.4 + order * math.pi / 2), rtol=1e-14
        )


WRONG = {
    "not elementwise": (lambda: tf.custom_derivatives(tf.reduce_sum), ValueError, "Declare vjp"),
    "two results": (
        lambda: tf.custom_derivatives(lambda x: (x, x), lambda x: x),
        TypeError,
        "must return one tensor",
    ),
    "a derivative of another shape": (
        lambda: tf.custom_derivatives(tf.sin, lambda x: tf.stack([x, x])),
        ValueError,
        r"derivative 1 has shape \(2, 2\), the function's result \(2,\)",
    ),
    "a complex derivative of a real function": (
        lambda: tf.custom_derivatives(tf.sin, lambda x: 1j * tf.cast(x, tf.complex64)),
        TypeError,
        "derivative 1 is complex64, the function's result float32",
    ),
    "too many partials": (
        lambda: tf.custom_derivatives(tf.sin, (tf.cos, tf.cos)),
        ValueError,
        "order 1 must return 1 value, one for each argument, but it returned 2",
    ),
    "not a function": (
        lambda: tf.custom_derivatives(tf.sin, 3.0),
        TypeError,
        "derivative 1 of sin must be a function or a tuple of functions, got float",
    ),
    "no function at all": (lambda: tf.custom_derivatives(3.0), TypeError, "must be a function"),
    "an unknown word": (
        lambda: tf.custom_derivatives(tf.sin, beyond="zero"),
        ValueError,
        "beyond must be one of",
    ),
    "both kinds": (
        lambda: tf.custom_derivatives(tf.sin, tf.cos, vjp=lambda dy, x: dy),
        TypeError,
        "not both",
    ),
    "a gap between orders": (
        lambda: tf.custom_derivatives(tf.sin, vjp=[None, lambda dy, w, x: dy]),
        TypeError,
        "neither a vjp nor a jvp of order 1",
    ),
    "a product that is no function": (
        lambda: tf.custom_derivatives(tf.sin, vjp=3),
        TypeError,
        "vjp must be a function",
    ),
    "a vjp of another shape": (
        lambda: tf.custom_derivatives(tf.sin, vjp=lambda dy, x: tf.stack([dy, dy])),
        ValueError,
        r"the rule of `sin` returned a gradient of shape \(2, 2\)",
    ),
    "a jvp of another shape": (
        lambda: tf.custom_derivatives(tf.sin, jvp=lambda way, x: tf.stack([way, way])),
        ValueError,
        r"its jvp returned a tangent of shape \(2, 2\)",
    ),
    "a jvp of two outputs": (
        lambda: tf.custom_derivatives(tf.sin, jvp=lambda way, x: (way, way)),
        ValueError,
        "its jvp returned 2 tangents, it has 1 outputs",
    ),
    "a jvp that is not linear": (
        lambda: tf.custom_derivatives(tf.sin, jvp=lambda way, x: way * way),
        TypeError,
        "not linear",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_declarations(name):
    make, error, words = WRONG[name]
    with pytest.raises(error, match=words):
        gradient(make(), POINT)
    assert_clean_state()


def test_too_few_partials_and_a_real_function_of_complex_numbers():
    f = tf.custom_derivatives(lambda x, y: x * y, lambda x, y: y)
    with pytest.raises(
        ValueError, match="must return 2 values, one for each argument, but it returned a Tensor"
    ):
        gradient(f, POINT, WAY)
    f = tf.custom_derivatives(lambda x, y: tf.reduce_sum(x) * y, lambda x, y: (y, x))
    with pytest.raises(ValueError, match="its arguments broadcast to no shape"):
        f(tf.ones(2), tf.ones(3))
    with pytest.raises(TypeError, match="not holomorphic"):
        tf.custom_derivatives(tf.abs, tf.sign)(tf.constant(1j))


# All ways together ----------------------------------------------------------------------------


def power(n):
    """x**n, with one derivative more than there are before 0."""

    def falling(k):
        return float(math.prod(range(n - k + 1, n + 1)))

    orders = [lambda x, k=k: falling(k) * x ** max(n - k, 0) for k in range(1, n + 2)]
    return tf.custom_derivatives(lambda x: x**n, *orders)


WAYS = {
    "tape": gradient_function,
    "tangent": lambda f: lambda x: tf.jvp(f, (x,), (tf.ones_like(x),))[1],
    "linearized": lambda f: lambda x: tf.linearize(f, x)[1](tf.ones_like(x)),
    "jacobian": lambda f: lambda x: tf.reduce_sum(tf.jacobian(f)(x), 0),
    "batch": lambda f: lambda x: tf.vmap(tf.elementwise_grad(f))(tf.stack([x]))[0],
    "traced": lambda f: tf.function(tf.elementwise_grad(f)),
    "of a traced": lambda f: tf.elementwise_grad(tf.function(f)),
    "recomputed": lambda f: tf.elementwise_grad(tf.recompute_grad(f)),
}


@pytest.mark.parametrize("ways", list(itertools.product(WAYS, repeat=2)), ids=" of ".join)
def test_two_ways_one_after_the_other(ways):
    function, expected = power(3), lambda x: x**3
    for way in ways:
        function, expected = WAYS[way](function), WAYS[way](expected)
    x = tf.cast(POINT, tf.float64)
    assert_allclose(function(x), expected(x), rtol=1e-9)


@settings(max_examples=60)
@given(
    n=st.integers(1, 4),
    ways=st.lists(st.sampled_from(["tape", "tangent", "jacobian"]), max_size=4),
    x=st.floats(-2.0, 2.0),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_powers_have_their_derivatives_by_any_ways(n, ways, x, dtype):
    f = power(n)
    for way in ways[: n + 1]:
        f = WAYS[way](f)
    k = len(ways[: n + 1])
    expected = float(math.prod(range(n - k + 1, n + 1))) * x ** max(n - k, 0) if k <= n else 0.0
    result = f(tf.constant([x], dtype=dtype))
    assert result.dtype == dtype
    assert_allclose(result.numpy(), [expected], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("compiled", [False, True])
def test_inside_a_function_with_either_program(compiled):
    f = steep()

    @tf.function(jit_compile=compiled)
    def orders(x):
        first = gradient_function(f)
        return first(x), gradient_function(first)(x)

    assert [order.numpy().tolist() for order in orders(tf.constant([1.0, 2.0]))] == [
        [10.0, 40.0],
        [100.0, 400.0],
    ]
    with pytest.raises(OrderError):
        tf.function(lambda x: WAYS["tape"](WAYS["tape"](WAYS["tape"](WAYS["tape"](f))))(x))(POINT)
    assert_clean_state()


def test_inside_the_rule_of_a_custom_gradient_and_around_one():
    f = steep()

    @tf.custom_gradient
    def outer(x):
        return x + 0.0, lambda dy: dy * f(x)

    assert [derivative(outer, 2.0, order) for order in (1, 2, 3)] == [4.0, 40.0, 400.0]

    @tf.custom_gradient
    def slope(x):
        return 2.0 * x, lambda dy: 50.0 * dy

    declared = tf.custom_derivatives(lambda x: x**2, slope)
    assert [derivative(declared, 3.0, order) for order in (1, 2)] == [6.0, 50.0]


def test_in_a_graph():
    with tf.Graph().as_default():
        x = tf.constant(2.0)
        y = steep()(x)
        (first,) = tf.gradients(y, x)
        (second,) = tf.gradients(first, x)
    assert (first.numpy(), second.numpy()) == (40.0, 400.0)


def test_nothing_is_kept_alive():
    assert_nothing_is_kept_alive(steep(), 2.0)


pickled = tf.custom_derivatives(tf.sin, lambda x: 10.0 * x)
pickled.__module__, pickled.__qualname__ = __name__, "pickled"


def test_what_stands_in_a_module_is_pickled_by_its_name():
    assert pickle.loads(pickle.dumps(pickled)) is pickled


@pytest.mark.parametrize("kind", ["derivatives", "vjp", "gradient"])
@pytest.mark.parametrize("transform", [lambda f: f, tf.function, tf.vmap], ids=["", "f", "vmap"])
def test_a_number_that_a_solver_returns_keeps_the_digits_of_the_arguments(kind, transform):
    """SciPy's solvers return Python's floats: float32 would lose half of their digits."""

    def root(a):
        return math.sqrt(float(a)), lambda dy: 0.5 * float(dy) / math.sqrt(float(a))

    solve = {
        "derivatives": lambda: tf.custom_derivatives(
            lambda a: root(a)[0], lambda a: root(a)[1](1.0)
        ),
        "vjp": lambda: tf.custom_derivatives(
            lambda a: root(a)[0], vjp=lambda dy, a: root(a)[1](dy)
        ),
        "gradient": lambda: tf.custom_gradient(root),
    }[kind]()
    for dtype in (tf.float64, tf.float32):
        a = tf.constant([2.0, 2.0], dtype)
        a = a if transform is tf.vmap else a[0]
        for result, expected in ((solve, 2**0.5), (tf.grad(solve), 0.5 / 2**0.5)):
            value = transform(result)(a)
            assert value.dtype == dtype
            if transform is not tf.vmap:
                assert solve(a.numpy()[()]).dtype == dtype  # a scalar of NumPy
            assert_allclose(value.numpy(), expected, rtol=1e-15 if dtype == tf.float64 else 1e-7)
