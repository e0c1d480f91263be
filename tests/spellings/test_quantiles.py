"""Quantiles by all of NumPy's methods, with NaN and without, and windows."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp
from tests.support.modes import assert_right_in_all_modes

METHODS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation"),
    *("interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased"),
    *("normal_unbiased", "lower", "higher", "midpoint", "nearest"),
)
X = np.random.default_rng(0).normal(size=(4, 7))
GAPS = X.copy()
GAPS[0, 1] = GAPS[3, 2:6] = np.nan
EMPTY = GAPS.copy()
EMPTY[2] = np.nan
Q = np.array([[0.0, 1.0, 0.5, 0.23], [1 / 7, 3 / 7, 0.77, 0.125]])


@pytest.mark.parametrize("method", METHODS)
def test_methods_are_numpys(method):
    for axis in (0, 1, None):
        for name, x in (("quantile", X), ("quantile", GAPS), ("nanquantile", EMPTY)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = getattr(np, name)(x, Q, axis, method=method, keepdims=axis == 0)
            result = getattr(np, name)(tf.constant(x), Q, axis, method=method, keepdims=axis == 0)
            assert_allclose(result.numpy(), expected, rtol=1e-13, atol=1e-15, err_msg=name)


@pytest.mark.parametrize("method", ["linear", "weibull", "nearest", "midpoint"])
def test_derivatives(method):
    def by_elements(x):
        return tnp.nanquantile(tnp.where(np.isnan(GAPS), np.nan, x * x), Q, 1, method=method)

    assert_right_in_all_modes(by_elements, X)
    if method in ("linear", "weibull"):
        q = Q[:, 2:]
        assert_right_in_all_modes(lambda x: tnp.quantile(x * x, q, 0, method=method), X)
        slope = tf.grad(lambda q: tnp.nanquantile(GAPS[0], q, method=method))(tf.constant(0.37))
        ends = [float(tnp.nanquantile(GAPS[0], q, method=method)) for q in (0.369, 0.371)]
        assert float(slope) == pytest.approx((ends[1] - ends[0]) / 0.002, rel=1e-3)


def test_others_without_nan():
    x = tf.constant(EMPTY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_allclose(np.nanmedian(x, 1).numpy(), np.nanmedian(EMPTY, 1))
        assert_allclose(np.nanpercentile(x, 30, 0).numpy(), np.nanpercentile(EMPTY, 30, 0))
    for name in ("nanargmax", "nanargmin"):
        for axis in (None, 0, 1):
            result = getattr(tnp, name)(GAPS, axis).numpy()
            assert_array_equal(result, getattr(np, name)(GAPS, axis))
        with pytest.raises(ValueError, match="All-NaN slice"):
            getattr(tnp, name)(EMPTY, 1)
    infinite = [np.nan, -np.inf, np.inf, np.nan]
    assert int(tnp.nanargmax([np.nan, -np.inf])) == int(tnp.nanargmin([np.nan, np.inf])) == 1
    assert [int(tnp.nanargmin(infinite)), int(tnp.nanargmax(infinite))] == [1, 2]


def test_what_is_refused():
    with pytest.raises(ValueError, match="method must be one of averaged_inverted_cdf"):
        tnp.quantile(X, 0.5, method="fast")
    with pytest.raises(ValueError, match="q must be between 0 and 1"):
        tnp.nanquantile(X, 1.5)
    with pytest.raises(ValueError, match="must not be negative"):
        tnp.hamming(-1)
    with pytest.raises(TypeError, match="dtype must be a floating one"):
        tf.signal.hann_window(3, dtype=tf.int32)


@pytest.mark.parametrize("size", [0, 1, 2, 7])
def test_windows(size):
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        assert_array_equal(getattr(tnp, name)(size).numpy(), getattr(np, name)(size))
    assert_array_equal(tnp.kaiser(size, 3.0).numpy(), np.kaiser(size, 3.0))


def test_the_deviation_of_one_element_has_the_gradient_0():
    """Decision 21: the subgradient of least norm."""
    for function in (tnp.std, tnp.nanstd, tf.math.reduce_std, tf.keras.ops.std):
        gradient = tf.grad(lambda x, f=function: tf.reduce_sum(f(x)))(tf.constant([3.0]))
        assert gradient.numpy().tolist() == [0.0]


def test_signbit_of_nan():
    x = np.array([np.copysign(np.nan, -1), np.nan, -0.0, 0.0, -np.inf])
    for dtype in ("float16", "float32", "float64"):
        result = np.signbit(tf.constant(x.astype(dtype)))
        assert result.numpy().tolist() == [True, False, True, False, True]


def test_no_nan_functions():
    x, y = np.array([1.5, -0.4, 2.0]), np.array([0.7, 2.0, -1.3])
    for name in ("divide_no_nan", "multiply_no_nan", "xdivy"):
        assert_right_in_all_modes(getattr(tf.math, name), x, y)
    assert_right_in_all_modes(lambda x, y: tf.math.xlog1py(x, y * y), x, y)
    assert_right_in_all_modes(tf.math.lbeta, np.array([[0.7, 2.0, 1.3], [3.0, 0.2, 1.0]]))
    zero, inf = tf.constant([0.0]), tf.constant([np.inf])
    for function, at in (
        (tf.math.divide_no_nan, (inf, zero)),
        (tf.math.multiply_no_nan, (inf, zero)),
        (tf.math.xdivy, (zero, zero)),
        (tf.math.xlog1py, (zero, -1 + zero)),
    ):
        gradients = tf.grad(lambda *two, f=function: tf.reduce_sum(f(*two)), argnums=(0, 1))(*at)
        assert [float(gradient[0]) for gradient in gradients] == [0.0, 0.0]
    assert float(tf.grad(tf.math.reciprocal_no_nan)(tf.constant(0.0))) == 0.0


def test_i0_is_numpys():
    x = np.linspace(-3, 30, 12)
    np.testing.assert_allclose(tnp.i0(x).numpy(), np.i0(x), 1e-14)


def test_weighted_quantiles_in_programs_and_batches():
    """Weights that have no values, and are wrong, give NaN; elsewhere they are an error."""
    x, weights = np.array([3.0, 1.0, 2.0]), np.array([0.5, 0.0, 0.5])

    def run(x, w):
        return tnp.quantile(x * x, [0.0, 0.5, 0.9], weights=w, method="inverted_cdf")

    expected = np.quantile(x * x, [0.0, 0.5, 0.9], weights=weights, method="inverted_cdf")
    assert_allclose(run(x, weights), expected)
    assert_allclose(tf.function(run)(x, weights), expected)
    assert_allclose(tf.vmap(run)(np.stack([x, x]), np.stack([weights, weights])), [expected] * 2)
    assert_right_in_all_modes(lambda x: run(x, weights), tf.constant(x))
    assert np.isnan(tf.function(run)(x, -weights)).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="weights must not be negative"):
        run(x, -weights)


@pytest.mark.parametrize("name", ["unique", "intersect1d", "setdiff1d", "trim_zeros", "nonzero"])
def test_results_whose_size_depends_on_values_say_so(name):
    args = [1.0] if name in ("intersect1d", "setdiff1d") else []

    def run(x):
        return getattr(tnp, name)(x, *args)

    x = tf.constant([[1.0, 2.0, 0.0]])
    for transform, operand in ((tf.function, x[0]), (tf.vmap, x)):
        with pytest.raises(TypeError, match=rf"{name}: the size of its result .* call {name} out"):
            transform(run)(operand)
