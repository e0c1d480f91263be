"""Products of matrices in blocks."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg_kernels.linear import blas, products
from tinygrad_cg_kernels.runtime import service, threads

SIZES = [(70, 64, 192), (33, 256, 70), (300, 40, 31), (1, 600, 600), (600, 600, 1), (7, 50_000, 3)]
rng = np.random.default_rng(0)
TOLERANCES = {"f": 1e-5, "d": 1e-13}


def orders(x):
    """Return an array in row-major and in column-major order, and a part of a wider one."""
    wide = np.zeros((x.shape[0], 2 * x.shape[1]), x.dtype)
    wide[:, ::2] = x
    return np.ascontiguousarray(x), np.asfortranarray(x), wide[:, ::2]


@pytest.mark.parametrize("dtype", "fd")
@pytest.mark.parametrize("sizes", SIZES)
def test_blocks_are_the_product(sizes, dtype):
    m, k, n = sizes
    assert products.is_shared(m, k, n, np.dtype(dtype))
    x, y = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    bound = TOLERANCES[dtype] * (np.abs(x) @ np.abs(y))
    expected = x.astype(dtype).astype(float) @ y.astype(dtype).astype(float)
    for left in orders(x.astype(dtype)):
        for right in orders(y.astype(dtype)):
            out = np.full((m, n), np.nan, dtype)
            assert products.product(left, right, out) is out
            assert (np.abs(out - expected) <= bound).all()
            np.testing.assert_array_equal(out, products.product(left, right))
    assert not [line for line in service.fallbacks if "matmul" in line]


def test_vectors_and_empty_matrices():
    x, y = rng.normal(size=(300, 1000)), rng.normal(size=1000)
    np.testing.assert_allclose(products.product(x, y, np.empty(300)), x @ y)
    for shapes in [(0, 3, 4), (3, 0, 4), (3, 4, 0)]:
        m, k, n = shapes
        product = products.product(np.ones((m, k)), np.ones((k, n)))
        np.testing.assert_array_equal(product, np.zeros((m, n)))


@pytest.mark.parametrize("dtype", "fd")
def test_the_bits_do_not_depend_on_threads(dtype):
    x, y = rng.normal(size=(512, 60)).astype(dtype), rng.normal(size=(60, 90)).astype(dtype)
    shared = products.product(x, y)
    with threads.single_thread:
        np.testing.assert_array_equal(products.product(x, y), shared)
    np.testing.assert_array_equal(tf.matmul(x, y), shared)
    np.testing.assert_array_equal(tf.function(lambda x, y: 1.0 * tf.matmul(x, y))(x, y), shared)


def test_special_values_reach_their_rows_and_columns_alone():
    x, y = rng.normal(size=(100, 70)), rng.normal(size=(70, 100))
    x[3, 5], x[90, 1], y[2, 40] = np.nan, np.inf, -np.inf
    product = products.product(x, y)
    with np.errstate(invalid="ignore"):
        expected = [[x[i] @ y[:, j] for j in (0, 40, 99)] for i in (0, 3, 90)]
    np.testing.assert_allclose(product[np.ix_([0, 3, 90], [0, 40, 99])], expected)
    assert np.isfinite(np.delete(np.delete(product, [3, 90], 0), 40, 1)).all()


def test_a_matrix_times_its_own_transpose_is_symmetric():
    x = rng.normal(size=(120, 110))
    product = products.product(x, x.T)
    np.testing.assert_array_equal(product, product.T)
    np.testing.assert_allclose(product, x @ x.T.copy())


def test_without_openblas_numpy_multiplies(monkeypatch):
    x, y = rng.normal(size=(120, 80)), rng.normal(size=(80, 110))
    products._bound.cache_clear()
    monkeypatch.setattr(blas, "product", lambda char: 0)
    np.testing.assert_array_equal(products.product(x, y), x @ y)
    products._bound.cache_clear()


def test_the_number_of_threads_of_blas_stays():
    before = blas.get_num_threads()
    products.product(rng.normal(size=(120, 80)), rng.normal(size=(80, 110)))
    assert blas.get_num_threads() == before
