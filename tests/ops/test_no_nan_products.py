"""What 0 * inf and 0 * nan give in gradients, to order 3 and in every mode (decision 21)."""

import itertools

import numpy as np
import pytest

import tinygrad_cg as tf


def backward(f):
    """The gradient of the sum of a function of a vector."""
    return tf.grad(lambda x: tf.reduce_sum(f(x)))


def forward(f):
    """The derivative of a function of a vector along ones."""
    return lambda x: tf.jvp(f, (x,), (tf.ones_like(x),))[1]


MODES = {"backward": backward, "forward": forward}
ORDERS = [modes for order in (1, 2, 3) for modes in itertools.product(sorted(MODES), repeat=order)]
RUNS = {
    "eager": lambda f: f,
    "compiled": tf.function,
    "in a batch": lambda f: lambda x: tf.vmap(f)(tf.stack([x, x]))[1],
}


def derivative(f, modes):
    """The derivative of a function of a vector: one mode for each order, the outermost first."""
    for mode in reversed(modes):
        f = MODES[mode](f)
    return f


# A function, a point where it is smooth, and the points where slopes of it are infinite or NaN, or
# are zero while the next is not finite.
FUNCTIONS = {
    "sqrt": (tf.sqrt, 4.0, [0.0, -1.0, np.inf, np.nan]),
    "power 1.5": (lambda x: x**1.5, 4.0, [0.0, -1.0, np.inf, np.nan]),
    "power 2.5": (lambda x: x**2.5, 4.0, [0.0, -1.0, np.inf, np.nan]),
    "reciprocal": (lambda x: 1.0 / x, 4.0, [0.0, -0.0, np.nan]),
    "exp of reciprocal": (lambda x: tf.exp(1.0 / x), 4.0, [0.0, -1e-3, np.nan]),
    "logarithm": (lambda x: tf.math.log(x) * tf.sqrt(x), 4.0, [0.0, -1.0, np.nan]),
    "quotient": (lambda x: tf.sin(x) / (x * x), 1.0, [0.0, np.nan]),
    "arcsine": (tf.asin, 0.5, [1.0, -1.0, 2.0, np.nan]),
    "overflow": (lambda x: tf.math.log(1.0 + tf.exp(x)), 1.0, [1000.0, np.nan]),
}


@pytest.mark.parametrize("modes", ORDERS, ids="-".join)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_mask_keeps_out_has_zero_derivatives(name, modes):
    f, good, bad = FUNCTIONS[name]
    x = tf.constant([good, *bad], tf.float64)
    mask = np.arange(len(bad) + 1) < 1

    def masked(x):
        return tf.where(mask, f(x), 0.0)

    expected = derivative(f, modes)(x[:1])
    mixed = len(set(modes)) > 1 or len(modes) < 3
    for run in RUNS if mixed else ["eager"]:
        result = RUNS[run](derivative(masked, modes))(x).numpy()
        np.testing.assert_allclose(result[:1], expected, rtol=1e-9, err_msg=run)
        assert not result[1:].any(), run  # nan is not 0 either


@pytest.mark.parametrize(
    "modes", [modes for modes in ORDERS if modes[-1] == "backward"], ids="-".join
)
def test_a_mask_that_is_multiplied_in(modes):
    """Before an operation with an infinite slope at 0, whose value there is finite."""
    x = tf.constant([4.0, 0.0], tf.float64)
    mask = tf.constant([1.0, 0.0], tf.float64)
    expected = derivative(lambda x: x + x**1.5, modes)(x[:1])
    for run in RUNS.values():
        result = run(derivative(lambda x: (mask * tf.sqrt(x)) ** 2 + mask * x**1.5, modes))(x)
        np.testing.assert_allclose(result[:1], expected, rtol=1e-9)
        assert not result[1:].numpy().any()


@pytest.mark.parametrize("slope", [np.inf, np.nan])
@pytest.mark.parametrize("run", RUNS)
def test_a_zero_upstream_gradient_and_a_zero_tangent(run, slope):
    """Of an operation with that slope: alone, with its derivative, and along the zero itself."""
    point = 0.0 if slope == np.inf else np.nan

    def pulled(upstream):
        x = tf.zeros_like(upstream) + point
        return tf.vjp(tf.sqrt, x)[1](upstream)[0]

    def pushed(tangent):
        x = tf.zeros_like(tangent) + point
        return tf.jvp(tf.sqrt, (x,), (tangent,))[1]

    zeros = tf.zeros([2], tf.float64)
    for product in (pulled, pushed):
        for modes in [(), *ORDERS[:6]]:
            assert not RUNS[run](derivative(product, modes))(zeros).numpy().any(), modes


@pytest.mark.parametrize("run", RUNS)
def test_a_tangent_of_zero_meets_an_infinite_upstream_gradient(run):
    """The product of a slope that rests and an upstream gradient that is infinite is at rest."""

    def f(x):
        return tf.reduce_sum(tf.sqrt(x[:2] * 3.0)) + x[2] ** 3

    x = tf.constant([0.0, 4.0, 2.0], tf.float64)

    def along_last(x):
        return tf.jvp(tf.grad(f), (x,), (tf.constant([0.0, 0.0, 1.0], tf.float64),))[1]

    assert RUNS[run](along_last)(x).numpy().tolist() == [0, 0, 12]

    def g(x):
        return tf.reduce_sum(tf.sqrt(x[0] * x[1])) + x[2] ** 3

    x = tf.constant([0.0, 3.0, 2.0], tf.float64)

    def product_along_last(x):
        return tf.jvp(tf.grad(g), (x,), (tf.constant([0.0, 0.0, 1.0], tf.float64),))[1]

    assert RUNS[run](product_along_last)(x).numpy()[[0, 2]].tolist() == [0, 12]


@pytest.mark.parametrize("run", RUNS)
def test_what_an_upstream_gradient_makes_is_shown(run):
    """An infinite upstream gradient times a slope of 0, and a NaN times anything."""

    def constant(x):
        return tf.sqrt(tf.square(x) * 0.0)

    x = tf.constant([1.0, 4.0], tf.float64)
    assert np.isnan(RUNS[run](backward(constant))(x)).all()

    def pulled(upstream):
        return tf.vjp(tf.square, tf.zeros_like(upstream))[1](upstream)[0]

    upstream = tf.constant([np.nan, np.inf], tf.float64)
    assert np.isnan(RUNS[run](pulled)(upstream)).all()


@pytest.mark.parametrize("modes", ORDERS, ids="-".join)
@pytest.mark.parametrize("run", RUNS)
def test_slopes_that_fall_to_zero_at_infinity(run, modes):
    """A quotient by infinity is at rest; log(1 + exp(x)) is not, though its slope overflows."""
    x = tf.constant([1000.0, 800.0], tf.float64)

    assert not RUNS[run](derivative(lambda x: x / np.inf, modes))(x).numpy().any()
    if len(modes) == 1:
        overflow = RUNS[run](derivative(lambda x: tf.math.log(1.0 + tf.exp(x)), modes))(x)
        assert np.isnan(overflow).all()
        at_infinity = tf.constant([np.inf, -np.inf], tf.float64)
        assert not RUNS[run](derivative(tf.atan, modes))(at_infinity).numpy().any()


@pytest.mark.parametrize("modes", ORDERS, ids="-".join)
@pytest.mark.parametrize("run", RUNS)
def test_zeros_that_move_are_no_masks(run, modes):
    """The upstream gradients of (x - 1)**2 are zero at 1, and go on from there."""
    x = tf.constant([1.0, 2.0], tf.float64)

    def f(x):
        return tf.sin(x - 1.0) ** 2 * tf.exp(2.0 * x) / x

    np.testing.assert_allclose(
        RUNS[run](derivative(f, modes))(x),
        derivative(f, ("backward",) * len(modes))(x),
        rtol=1e-9,
        atol=1e-12,
    )
