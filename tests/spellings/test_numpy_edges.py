"""Functions of `tinygrad_cg.numpy` where their formulas need care."""

import itertools

import numpy as np
import pytest

import tinygrad_cg as tf


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64", "float64"])
def test_fmod_of_integers(dtype):
    if dtype == "float64":
        x, y = np.array([5.5, -5.5, 5.5, 0.0]), np.array([2.0, 2.0, np.inf, 3.0])
    else:
        limits = np.iinfo(dtype)
        x = np.array([limits.min, limits.min, limits.max, 7, limits.min], dtype)
        y = np.array([3, limits.max, 5, limits.min or 4, limits.min or 1], dtype)
    result = tf.numpy.fmod(tf.constant(x), tf.constant(y))
    np.testing.assert_array_equal(result.numpy(), np.fmod(x, y), strict=True)


def test_half_precision_counts_nan_free_elements():
    """More elements than float16 holds, and sums that only their mean brings back."""
    x = np.full(70_000, 3, np.float16)
    x[::7] = np.nan
    x[1::7] = 5
    wide = x.astype("d")
    for name in ("nanmean", "nanvar", "nanstd"):
        result = getattr(tf.numpy, name)(tf.constant(x))
        assert result.dtype == "float16"
        np.testing.assert_allclose(result, getattr(np, name)(wide), rtol=1e-3)


@pytest.mark.parametrize("size", [5_001, 70_001])
def test_median_of_many_small_floats(size):
    x = np.minimum(np.arange(size), 60_000).astype(np.float16)
    for share in (0.5, 0.3):
        result = tf.numpy.quantile(tf.constant(x), share)
        assert (result.numpy(), result.dtype) == (np.quantile(x.astype("d"), share), "float16")


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([-np.inf, 1, np.inf], 0.5, 1),
        ([1, np.inf, np.inf], 0, 1),
        ([-np.inf, -np.inf, 5], 0.5, -np.inf),
        ([-np.inf, 1], 0.5, -np.inf),
        ([1, np.inf], 0.25, np.inf),
        ([-1.5e308, 1.5e308], 0.5, 0),
    ],
)
def test_quantiles_beside_infinities(values, share, expected):
    x = tf.constant(values, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.numpy.quantile(x, share)
    assert float(y) == expected
    slopes = tape.gradient(y, x).numpy()
    assert (np.isfinite(slopes).all(), slopes.sum()) == (True, 1)


@pytest.mark.parametrize("name", ["diag", "diagflat", "tril", "triu"])
def test_triangles_of_bools_are_masks(name):
    """As integers they would be indices."""
    x = np.array([True, False, True])
    result = getattr(tf.numpy, name)(tf.constant(x))
    np.testing.assert_array_equal(result.numpy(), getattr(np, name)(x), strict=True)


def test_vecdot_of_bools_is_whether_any_holds():
    x = np.array([[True, True], [False, True]])
    result = tf.numpy.vecdot(tf.constant(x), tf.constant(~x[:1]))
    np.testing.assert_array_equal(result.numpy(), np.vecdot(x, ~x[:1]), strict=True)


def test_gradient_keeps_the_order_of_its_axes():
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    for axes, spacing in (((1, 0), (2.0, 3.0)), ((-1, 0, 1), (2.0, 3.0, np.arange(4.0) ** 2))):
        slopes = tf.numpy.gradient(tf.constant(x), *spacing, axis=axes)
        for slope, wanted in zip(slopes, np.gradient(x, *spacing, axis=axes), strict=True):
            np.testing.assert_allclose(slope, wanted, rtol=1e-12, atol=1e-14)


def test_no_difference_takes_no_edges():
    x = np.arange(3.0)
    result = tf.numpy.diff(tf.constant(x), 0, prepend=1.0, append=[1.0, 2.0])
    np.testing.assert_array_equal(result, np.diff(x, 0, prepend=1.0, append=[1.0, 2.0]))


def test_integral_of_large_integers():
    y = np.array([2**40 + 1, 2**40 + 3, 2**40 + 7])
    result = tf.numpy.trapezoid(tf.constant(y))
    np.testing.assert_array_equal(result.numpy(), np.trapezoid(y), strict=True)


def test_covariance_of_one_observation_of_several_variables():
    x = np.array([[1.0, 2.0, 4.0]])
    result = tf.numpy.cov(tf.constant(x), rowvar=False, bias=True)
    np.testing.assert_array_equal(result, np.zeros((3, 3)))


def test_each_nan_is_an_element_or_all_are_one():
    """Of `unique` all are one by default; of the array API's functions each is one, as in NumPy."""
    x = np.array([3.0, np.nan, 1.0, np.nan, 3.0])
    for equal in (True, False):
        results = tf.numpy.unique(tf.constant(x), True, True, True, equal_nan=equal)
        expected = np.unique(x, True, True, True, equal_nan=equal)
        for result, wanted in zip(results, expected, strict=True):
            np.testing.assert_array_equal(result, wanted)
    np.testing.assert_array_equal(tf.numpy.unique_values(x), np.unique_values(x))
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        pairs = zip(getattr(tf.numpy, name)(x), getattr(np, name)(x), strict=True)
        for result, wanted in pairs:
            np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tf.numpy.cov(np.eye(3), fweights=[0.5] * 3), TypeError, "fweights must be int"),
        (lambda: tf.numpy.cov(np.eye(3), aweights=[1.0]), ValueError, "a vector of 3 numbers"),
        (lambda: tf.numpy.cov(np.eye(3), aweights=[-1.0] * 3), ValueError, "aweights .* negative"),
        (lambda: tf.numpy.quantile([1.0, 2], 0.5, weights=[1, 1]), ValueError, "inverted_cdf"),
        (
            lambda: tf.numpy.quantile([1.0, 2], 0.5, method="inverted_cdf", weights=[1]),
            ValueError,
            "fit neither the shape",
        ),
    ],
)
def test_weights_that_do_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_extrema_of_complex_numbers_are_by_real_and_then_imaginary_parts():
    rng = np.random.default_rng(0)
    specials = [1.0, np.nan, complex(1, np.nan), np.inf, -np.inf, complex(2, np.inf)]
    for special, dtype in itertools.product(specials, (np.complex128, np.complex64)):
        x = (rng.integers(-2, 3, (3, 4)) + 1j * rng.integers(-2, 3, (3, 4))).astype(dtype)
        x[1, 2] = special
        for function, axis in itertools.product((np.max, np.min), (None, 0, 1)):
            result, expected = function(tf.constant(x), axis), function(x, axis)
            assert result.dtype == dtype
            is_number = ~np.isnan(expected)
            np.testing.assert_array_equal(~np.isnan(result.numpy()), is_number)
            np.testing.assert_array_equal(result.numpy()[is_number], expected[is_number])
    x = tf.constant([1 + 9j, 3 + 1j, 3 + 4j])
    gradient = tf.grad(lambda x: tf.math.real(np.max(x)) + 2 * tf.math.imag(np.max(x)))
    assert gradient(x).numpy().tolist() == [0, 0, 1 + 2j]


@pytest.mark.parametrize("name", ["add", "fmod", "copysign", "hypot", "fmax"])
def test_scalars_of_numpy_are_weak_and_numbers_of_python_are_as_numpy_takes_them(name):
    """docs/behaviour.md, decision 1: also a `numpy.float64`, which is a Python float as well."""
    x, function = tf.constant(np.array([5, -2], np.int32)), getattr(tf.numpy, name)
    assert function(x, np.float64(2.0)).dtype == "float32"
    assert function(x, 2.0).dtype == getattr(np, name)(x.numpy(), 2.0).dtype == "float64"
