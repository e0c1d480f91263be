"""NumPy's functions that look at values, in batches and in programs, where there are none yet."""

import numpy as np
import pytest

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp

X = np.random.default_rng(0).uniform(-4, 4, (3, 6))
BINS = {"bins": 4, "range": (-4.0, 4.0)}
CASES = {
    "interp": lambda x: tnp.interp(x, [-2.0, 0.0, 1.0, 3.0], [1.0, 4.0, 9.0, 2.0]),
    "interp beyond": lambda x: tnp.interp(x, [-2.0, 0.0, 1.0], [1.0, 4.0, 9.0], x[0], 5.0),
    "interp at knots": lambda x: tnp.interp(tnp.sort(x), tnp.sort(x), x * x),
    "interp of one": lambda x: tnp.interp(x, x[:1], x[1:2]),
    "interp by points": lambda x: tnp.interp([[-1.0, 0.5], [2.0, np.nan]], tnp.sort(x), x),
    "unwrap": lambda x: tnp.unwrap(3 * x),
    "unwrap by period": lambda x: tnp.unwrap(3 * x, discont=4.0, period=5.0),
    "unwrap columns": lambda x: tnp.unwrap(tnp.reshape(3 * x, (3, 2)), axis=0),
    "unwrap halves": lambda x: tnp.unwrap(x - x[0] + [0.0, 1, 2, 2, 3, 5], period=2.0),
    "polymul": lambda x: tnp.polymul(x, x[:3]),
    "polymul by numbers": lambda x: tnp.polymul([0.0, 1.0, 2.0], x),
    "histogram": lambda x: tnp.histogram(x, 4)[0],
    "edges": lambda x: tnp.histogram(x, 4)[1],
    "edges of equal elements": lambda x: tnp.histogram(x[0] + tnp.zeros(3), 4)[1],
    "histogram of a range": lambda x: tnp.histogram(tnp.round(x), **BINS)[0],
    "histogram by bins": lambda x: tnp.histogram(x, tnp.sort(x[:3]))[0],
    "sums of weights": lambda x: tnp.histogram(x, weights=x**2, **BINS)[0],
    "density": lambda x: tnp.histogram(x, 4, density=True)[0],
    "density of weights": lambda x: tnp.histogram(x, weights=x**2, density=True, **BINS)[0],
    "searchsorted": lambda x: tnp.searchsorted([-2.0, 0.0, 1.0], tnp.reshape(x, (2, 3))),
    "searchsorted in x": lambda x: tnp.searchsorted(tnp.sort(x), x, "right"),
    "searchsorted by sorter": lambda x: tnp.searchsorted(x, 0.5, sorter=tnp.argsort(x)),
    "method": lambda x: tnp.sort(x).searchsorted(x[:2]),
    "tf.searchsorted": lambda x: tf.searchsorted(tnp.sort(x), [0.0, 1.0], "right"),
    "tf.searchsorted in rows": lambda x: tf.searchsorted([[0.0, 1.0]] * 2, tf.reshape(x, (2, 3))),
    "keras searchsorted": lambda x: tf.keras.ops.searchsorted(tnp.sort(x), x),
    "keras digitize": lambda x: tf.keras.ops.digitize(x, [-1.0, 0.0, 2.0]),
    "piecewise": lambda x: tnp.piecewise(x, [x < 0, x >= 1], [lambda v: v**2, 3.0, tnp.sin]),
    "piecewise of one": lambda x: tnp.piecewise(x, x < 0, [lambda v: v**2, lambda v: -v]),
    "piecewise of arguments": lambda x: tnp.piecewise(
        tnp.reshape(x, (2, 3)), [tnp.reshape(x, (2, 3)) > 0], [lambda v, a: a * tnp.log(v)], x[0]
    ),
    "isin": lambda x: tnp.isin(tnp.round(x), [1.0, 2.0, -3.0, np.nan]),
    "isin x": lambda x: tnp.isin([[1, 2], [-3, 0]], tnp.round(x)),
    "not in": lambda x: tnp.isin(tnp.round(x), tnp.round(x[:2]), invert=True),
    "keras isin": lambda x: tf.keras.ops.isin(tf.round(x), [1.0, 2.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_are_those_of_eager_execution(name):
    """In batches, in programs and in both; so are gradients, of first and second order."""
    f, x = CASES[name], tf.constant(X)

    def compare(call, expected):
        np.testing.assert_allclose(call, expected, rtol=1e-13, atol=1e-13)
        assert call.dtype == expected.dtype

    def compare_modes(function):
        expected = np.stack([function(tf.constant(row)).numpy() for row in X])
        batch = lambda x: tf.vectorized_map(function, x)
        compare(batch(x), expected)
        compare(tf.function(function)(x[0]), expected[0])
        compare(tf.function(batch)(x), expected)
        compare(tf.vectorized_map(tf.function(function), x), expected)
        return expected

    results = compare_modes(f)
    if results.dtype.kind != "f" or name == "density":
        return
    weights = np.cos(np.arange(results[0].size)).reshape(results[0].shape)
    slope = tf.grad(lambda x: tf.reduce_sum(tf.where(tf.math.is_nan(f(x)), 0.0, weights * f(x))))
    slopes = compare_modes(slope)
    compare_modes(tf.grad(lambda x: tf.reduce_sum(slope(x) * np.arange(6.0))))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.where(tf.math.is_nan(f(x[0])), 0.0, f(x[0]))
    compare(tf.tensordot(weights, tape.jacobian(y, x), weights.ndim)[0], slopes[0])


def test_the_numbers_are_those_of_numpy():
    x = X[0]
    expected = np.interp(x, [-2, 0, 1], [1.0, 4, 9], -1, 5)
    np.testing.assert_allclose(tnp.interp(x, [-2, 0, 1], [1.0, 4, 9], -1, 5), expected)
    for period, discont in ((2 * np.pi, None), (5.0, 4.0), (2.0, None)):
        for values in (3 * x, np.round(3 * x)):
            expected = np.unwrap(values, discont, period=period)
            np.testing.assert_allclose(tnp.unwrap(values, discont, period=period), expected)
    for bins in (4, [-3.0, 0.0, 1.0, 2.0]):
        for options in ({}, {"weights": x}, {"weights": x * x, "density": True}):
            for value, other in zip(
                tnp.histogram(x, bins, **options), np.histogram(x, bins, **options), strict=True
            ):
                np.testing.assert_allclose(value, other)
    for element, among in (
        ([1, 2, 3], [2.0]),
        ([1 + 1j, np.nan], [np.nan, 1 + 1j]),
        ([True], [0, 2]),
        (np.zeros((2, 0)), [1]),
        ([1.0], []),
        (np.arange(4, dtype=np.uint8), np.array([-1, 3])),
    ):
        for invert in (False, True):
            result = tnp.isin(element, among, invert=invert)
            np.testing.assert_array_equal(result, np.isin(element, among, invert=invert))


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="side must be 'left' or 'right', got 'middle'"):
        tnp.searchsorted([1.0], 2.0, "middle")
    with pytest.raises(ValueError, match="a must be 1-D"):
        tnp.searchsorted([[1.0]], 2.0)
    with pytest.raises(ValueError, match="must increase"):
        tnp.histogram([1.0], [2.0, 1.0])
    with pytest.raises(ValueError, match="must increase"):
        tf.function(lambda x: tnp.histogram(x, [2.0, 1.0])[0])([1.0])
    with pytest.raises(ValueError, match="side must be"):
        tf.function(lambda x: tnp.searchsorted(x, x, "middle"))([1.0])
