"""Our own product of large matrices: every edge of its tiles, and when it is taken."""

import numpy as np
import pytest

from tinygrad_cg_kernels.linear import matmul, product
from tinygrad_cg_kernels.runtime import threads

RNG = np.random.default_rng(3)


def matrix(rows, columns, dtype):
    return RNG.normal(size=(rows, columns)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape",
    [(8, 1, 48), (1, 1, 1), (7, 5, 3), (9, 400, 47), (64, 385, 49), (130, 768, 100), (200, 20, 16)],
)
def test_all_edges(shape, dtype):
    rows, inner, columns = shape
    x, y = matrix(rows, inner, dtype), matrix(inner, columns, dtype)
    wanted = x.astype(np.float64) @ y.astype(np.float64)
    scale = np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64))
    found = product.multiply(x, y)
    assert found.dtype == x.dtype
    assert found.flags.c_contiguous
    assert np.all(np.abs(found - wanted) <= scale * 40 * np.finfo(dtype).eps)


def test_strides_of_the_left_matrix():
    x, y = matrix(300, 120, "float64"), matrix(120, 60, "float64")
    for left in (x, np.asfortranarray(x), x[::-1], matrix(300, 240, "float64")[:, ::2]):
        np.testing.assert_allclose(product.multiply(left, y), left @ y, rtol=1e-12, atol=1e-12)
    wide = matrix(120, 90, "float64")[:, 15:75]
    np.testing.assert_allclose(product.multiply(x, wide), x @ wide, rtol=1e-12, atol=1e-12)


def test_special_values_stay_in_their_rows_and_columns():
    x, y = np.ones((17, 9), np.float32), np.ones((9, 50), np.float32)
    x[16, 2], x[3, 4], y[1, 49] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(product.multiply(x, y), x @ y)


def test_the_same_bits_on_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(threads, "WORTH", 0)
    x, y = matrix(500, 300, "float32"), matrix(300, 200, "float32")
    before = threads.get_num_threads()
    found = []
    try:
        for count in {1, before}:
            threads.set_num_threads(count)
            found.append(product.multiply(x, y))
    finally:
        threads.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[-1])


def test_what_it_serves(monkeypatch):
    monkeypatch.setattr(product, "_is_useful", lambda: True)
    x, y = matrix(200, 100, "float32"), matrix(100, 200, "float32")
    assert product.serves(x, y)
    assert product.serves(np.asfortranarray(x), y)
    assert not product.serves(x, np.asfortranarray(y))
    assert not product.serves(x, y.astype(np.float64))
    assert not product.serves(x.astype(np.int64), y.astype(np.int64))
    assert not product.serves(x, y[:50])
    assert not product.serves(x[:20, :10], y[:10])
    assert not product.serves(x[0], y)
    monkeypatch.setattr(product, "_is_useful", lambda: False)
    assert not product.serves(x, y)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_matmul_takes_it(monkeypatch, dtype):
    taken = []
    monkeypatch.setattr(product, "_is_useful", lambda: True)
    run = product.multiply
    monkeypatch.setattr(product, "multiply", lambda x, y: taken.append(1) or run(x, y))
    x, y = matrix(2 * 70, 100, dtype).reshape(2, 70, 100), matrix(100, 200, dtype)
    found = matmul.matmul(x, y)
    assert taken
    assert found.dtype == dtype
    wanted = x.astype(np.float64) @ y.astype(np.float64)
    np.testing.assert_allclose(found, wanted, rtol=1e-2 if dtype == "float16" else 1e-4, atol=1e-2)
    with pytest.raises(ValueError, match="do not fit together"):
        matmul.matmul(matrix(200, 100, dtype), matrix(120, 200, dtype))


def test_whether_it_is_useful_is_known():
    assert product._is_useful() in (True, False)
