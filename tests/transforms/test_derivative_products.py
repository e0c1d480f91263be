"""custom_derivatives with vjp= and jvp=: any function, by products of its derivatives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.orders import assert_nothing_is_kept_alive, derivative, gradient_function

WAY = tf.constant([0.3, -1.2])
POINT = tf.constant([0.7, 1.9])
OrderError = tf.errors.DerivativeOrderError


def cubic(x):
    return tf.reduce_sum(x**3) * x


def vjp1(dy, x):
    return tf.reduce_sum(x**3) * dy + 3 * x**2 * tf.reduce_sum(dy * x)


def jvp1(way, x):
    return tf.reduce_sum(x**3) * way + x * tf.reduce_sum(3 * x**2 * way)


def vjp2(dy, way, x):
    return (
        tf.reduce_sum(dy * way) * 3 * x**2
        + dy * tf.reduce_sum(3 * x * x * way)
        + tf.reduce_sum(dy * x) * 6 * x * way
    )


def jvp2(w, u, x):
    first = tf.reduce_sum(3 * x * x * u) * w + u * tf.reduce_sum(3 * x * x * w)
    return first + x * tf.reduce_sum(6 * x * w * u)


PRODUCTS = {
    "vjps": {"vjp": [vjp1, vjp2]},
    "jvps": {"jvp": [jvp1, jvp2]},
    "mixed": {"vjp": [vjp1], "jvp": [None, jvp2]},
    "all": {"vjp": [vjp1, vjp2], "jvp": [jvp1, jvp2]},
    "vjp and on": {"vjp": vjp1, "beyond": "differentiate"},
    "jvp and on": {"jvp": jvp1, "beyond": "differentiate"},
    "both and on": {"vjp": vjp1, "jvp": jvp1, "beyond": "differentiate"},
}
SECOND = {
    "hessian": tf.hessian,
    "forward over reverse": lambda f: tf.jacobian(tf.grad(f), mode="forward"),
    "a tangent of a gradient": lambda f: lambda x: tf.jvp(tf.grad(f), (x,), (WAY,))[1],
    "a gradient of a tangent": lambda f: tf.grad(lambda x: tf.jvp(f, (x,), (WAY,))[1]),
    "two tangents": lambda f: lambda x: tf.jvp(lambda x: tf.jvp(f, (x,), (x,))[1], (x,), (WAY,))[1],
    "linearized": lambda f: lambda x: tf.linearize(tf.grad(f), x)[1](WAY),
    "hvp": lambda f: lambda x: tf.hvp(f)(x, WAY),
    "batched": lambda f: lambda x: tf.vmap(tf.hessian(f))(tf.stack([x, 2 * x])),
    "traced": lambda f: tf.function(tf.hessian(f)),
    "a traced function": lambda f: tf.hessian(tf.function(f)),
}


@pytest.mark.parametrize("way", SECOND)
@pytest.mark.parametrize("kind", PRODUCTS)
def test_products_serve_on_every_way_to_the_second_order(kind, way):
    f = tf.custom_derivatives(cubic, **PRODUCTS[kind])
    result = SECOND[way](lambda x: tf.reduce_sum(tf.sin(f(x))))(POINT)
    expected = SECOND[way](lambda x: tf.reduce_sum(tf.sin(cubic(x))))(POINT)
    assert_allclose(result, expected, rtol=1e-3)


@pytest.mark.quick
def test_the_third_order_of_products_is_an_error_or_natural():
    def third(f):
        return derivative(lambda x: tf.reduce_sum(f(tf.stack([x, x * x]))), 0.7, 3, "float64")

    with pytest.raises(OrderError, match="of order 3 was requested"):
        third(tf.custom_derivatives(cubic, **PRODUCTS["vjps"]))
    for kind in ("vjps", "jvps", "all"):
        f = tf.custom_derivatives(cubic, **PRODUCTS[kind], beyond="differentiate")
        assert_allclose(third(f), third(cubic), rtol=1e-10)


@pytest.mark.quick
def test_the_declared_products_are_used_and_not_the_operations():
    f = tf.custom_derivatives(
        lambda x: x**2,
        vjp=[lambda dy, x: 10.0 * dy, lambda dy, way, x: 100.0 * dy * way],
        jvp=lambda way, x: 10.0 * way,
    )
    assert derivative(f, 2.0) == 10.0
    assert derivative(f, 2.0, 2) == 100.0
    assert tf.jvp(f, (2.0,), (1.0,))[1].numpy() == 10.0


def solve(a, b):
    return tf.linalg.solve(a, b[:, None])[:, 0]


@pytest.mark.quick
@pytest.mark.parametrize("is_numpy", [True, False])
@pytest.mark.parametrize("way", [lambda g: g, tf.function, tf.jacobian], ids=["", "graph", "rows"])
def test_a_jvp_that_calls_its_own_function_is_transposed(is_numpy, way):
    """The derivative of a linear function is the function itself."""
    matrix = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 4.0]])
    square = matrix.T @ matrix + 5.0 * np.triu(np.ones((3, 3)))

    def body(x):
        return tf.constant(square @ np.asarray(x)) if is_numpy else tf.linalg.matvec(square, x)

    f = tf.custom_derivatives(body, jvp=lambda way, x: f(way), beyond="differentiate")
    x = tf.constant([0.5, -1.0, 2.0], tf.float64)
    gradient = way(tf.grad(lambda x: tf.reduce_sum(f(x) ** 2)))(x)
    expected = 2.0 * square.T @ square
    assert_allclose(gradient, expected if way is tf.jacobian else expected @ np.asarray(x))
    assert tf.check_gradients(f, x).ok


@pytest.mark.quick
def test_products_of_several_arguments_and_of_an_implicit_function():
    """x of a x = b, by the implicit function theorem, to the second order."""
    rng = np.random.default_rng(1)
    a = tf.constant(rng.normal(size=(3, 3)) + 4 * np.eye(3))
    b = tf.constant(rng.normal(size=3))
    forward = tf.custom_derivatives(
        solve,
        jvp=lambda way, a, b: solve(a, way[1] - tf.linalg.matvec(way[0], solve(a, b))),
        beyond="differentiate",
    )

    def vjp(dy, a, b):
        solution = solve(tf.transpose(a), dy)
        return -solution[:, None] * solve(a, b), solution

    reverse = tf.custom_derivatives(solve, vjp=vjp, beyond="differentiate")

    def hessian(f):
        loss = lambda a, b: tf.reduce_sum(f(a, b) ** 2)
        return tf.nest.flatten(tf.hessian(loss, argnums=(0, 1))(a, b))

    for f in (forward, reverse):
        for result, other in zip(hessian(f), hessian(solve), strict=True):
            assert_allclose(result, other, rtol=1e-8, atol=1e-10)


@pytest.mark.quick
def test_products_of_a_function_with_several_outputs():
    def polar(r, t):
        return {"x": r * tf.cos(t), "y": r * tf.sin(t)}

    def vjp(dy, r, t):
        c, s = tf.cos(t), tf.sin(t)
        return dy["x"] * c + dy["y"] * s, r * (dy["y"] * c - dy["x"] * s)

    f = tf.custom_derivatives(polar, vjp=vjp, beyond="differentiate")
    for out in ("x", "y"):
        results, expected = [
            tf.hessian(lambda r, t, g=g, out=out: g(r, t)[out] ** 2, argnums=(0, 1))(2.0, 0.3)
            for g in (f, polar)
        ]
        assert_allclose(tf.nest.flatten(results), tf.nest.flatten(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.quick
def test_products_of_a_complex_function():
    """Holomorphic, in the library's convention of conjugates, to the second order."""

    def f(z):
        return z * tf.reduce_sum(z)

    def vjp(dy, z):
        return tf.math.conj(tf.reduce_sum(z)) * dy + tf.reduce_sum(tf.math.conj(z) * dy)

    def jvp(way, z):
        return way * tf.reduce_sum(z) + z * tf.reduce_sum(way)

    def jvp2(way, other, z):
        return way * tf.reduce_sum(other) + other * tf.reduce_sum(way)

    z = tf.constant([0.5 - 0.8j, 1.2 + 0.3j])

    def loss(f):
        return lambda z: tf.reduce_sum(tf.abs(f(z)) ** 2)

    def second(f):
        slope = gradient_function(loss(f))
        return gradient_function(lambda z: tf.reduce_sum(tf.math.real(slope(z) * (1 + 2j))))

    forms = (
        {"jvp": [jvp, jvp2]},
        {"vjp": vjp, "jvp": [jvp, jvp2]},
        {"vjp": vjp, "jvp": [None, jvp2]},
    )
    for form in forms:
        declared = tf.custom_derivatives(f, **form)
        assert_allclose(gradient_function(loss(declared))(z), gradient_function(loss(f))(z), 1e-10)
        assert_allclose(second(declared)(z), second(f)(z), rtol=1e-10)


@pytest.mark.quick
def test_nothing_is_kept_alive():
    assert_nothing_is_kept_alive(tf.custom_derivatives(cubic, **PRODUCTS["all"]), [2.0, 1.0])
