"""Functions of integers and of complex numbers whose results would wrap around, as in NumPy."""

import numpy as np
import pytest

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp

LARGE = np.array([2000000000, 2000000000], np.int32)
BYTES = np.array([200, 100, 3], np.uint8)


@pytest.mark.parametrize(
    ("a", "weights"), [(np.array([1.0, 2.0]), LARGE), (BYTES, BYTES), (np.array([10, 20]), LARGE)]
)
def test_average_with_integer_weights(a, weights):
    expected, total = np.average(a, weights=weights, returned=True)
    mean, sums = tnp.average(tf.constant(a), weights=weights, returned=True)
    assert float(mean) == pytest.approx(expected)
    assert float(sums) == pytest.approx(total)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "int64", "uint64"])
@pytest.mark.parametrize("function", ["vander", "polyder"])
def test_powers_of_integers(function, dtype):
    x = np.array([200 if dtype == "uint8" else 2000000000, 3, 1]).astype(dtype)
    expected = getattr(np, function)(x, *[3] * (function == "vander"))
    result = getattr(tnp, function)(tf.constant(x), *[3] * (function == "vander"))
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_polynomials_at_a_number_of_python():
    p = np.array([2000000000, 0, 0, 3], np.int32)
    assert int(tnp.polyval(tf.constant(p), 7)) == np.polyval(p, 7) == 686000000003
    assert tnp.polyder(tf.constant(p), 0).dtype == np.polyder(p, 0).dtype
    assert tf.keras.ops.vander(tf.constant(p)).dtype == np.int32


@pytest.mark.parametrize("function", ["nanmax", "nanmin"])
def test_extrema_of_complex_numbers_skip_nan(function):
    x = np.array([1 + 1j, np.nan, 3, 3 + 2j])
    assert getattr(tnp, function)(tf.constant(x)).numpy() == getattr(np, function)(x)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 5), (2, 3, 4, 4)])
def test_pivots_of_lu_factor_exchange_rows_in_turn(shape):
    a = np.random.default_rng(0).normal(size=shape)
    packed, pivots = tf.keras.ops.lu_factor(tf.constant(a))
    size = min(shape[-2:])
    lower = np.tril(packed.numpy()[..., :size], -1) + np.eye(shape[-2], size)
    product = lower @ np.triu(packed.numpy()[..., :size, :])
    for index in np.ndindex(shape[:-2]):
        rows = a[index].copy()
        for i, other in enumerate(pivots.numpy()[index]):
            rows[[i, other]] = rows[[other, i]]
        np.testing.assert_allclose(product[index], rows, atol=1e-12)


def test_the_pivots_of_a_batch_are_those_of_each_matrix():
    a = tf.constant(np.random.default_rng(1).normal(size=(3, 4, 4)))
    pivots = tf.keras.ops.lu_factor(a)[1]
    np.testing.assert_array_equal(tf.vmap(lambda m: tf.keras.ops.lu_factor(m)[1])(a), pivots)
    np.testing.assert_array_equal(tf.function(lambda m: tf.keras.ops.lu_factor(m)[1])(a), pivots)
