"""SparsityPattern: what it is made of, and its errors."""

import sys

import numpy as np
import pytest

from tinygrad_cg._sparse.sparsity import SparsityPattern

pytestmark = pytest.mark.quick
DENSE = np.array([[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 4]])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float32, np.complex64])
def test_a_dense_array_gives_its_elements_that_are_not_zero(dtype):
    pattern = SparsityPattern.of(DENSE.astype(dtype))
    assert pattern.shape == (3, 4)
    assert pattern.nnz == 4
    assert pattern.density == 4 / 12
    assert (pattern.indptr.dtype, pattern.indices.dtype) == (np.int64, np.int32)
    assert pattern.indptr.tolist() == [0, 2, 2, 4]
    assert pattern.indices.tolist() == [1, 3, 0, 3]
    assert pattern.rows().tolist() == [0, 0, 2, 2]
    np.testing.assert_array_equal(pattern.toarray(), DENSE != 0)
    assert SparsityPattern.of(pattern) is pattern
    assert repr(pattern) == "<SparsityPattern 3 x 4, 4 entries>"


def test_compressed_rows_are_sorted_and_lose_duplicates():
    pattern = SparsityPattern.of(([0, 3, 3, 5], [3, 1, 3, 3, 0], (3, 4)))
    assert pattern == SparsityPattern.of(DENSE)
    assert pattern != SparsityPattern.of(DENSE[:, :3])
    assert pattern != SparsityPattern.of(DENSE * [1, 1, 1, 0])
    assert (pattern == DENSE.tolist()) is False


def test_transposed():
    pattern = SparsityPattern.of(DENSE).transposed()
    assert pattern.shape == (4, 3)
    np.testing.assert_array_equal(pattern.toarray(), DENSE.T != 0)
    assert pattern.transposed() == SparsityPattern.of(DENSE)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_empty(shape):
    pattern = SparsityPattern.of(np.zeros(shape))
    assert (pattern.nnz, pattern.density, pattern.shape) == (0, 0.0, shape)
    assert pattern.transposed().shape == shape[::-1]


@pytest.mark.parametrize("kind", ["csr_array", "csc_array", "coo_array", "dia_array", "csr_matrix"])
def test_scipy(kind):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = getattr(sparse, kind)(DENSE)
    pattern = SparsityPattern.of(matrix)
    assert pattern == SparsityPattern.of(DENSE)
    back = pattern.csr()
    assert isinstance(back, sparse.csr_array)
    assert back.dtype == bool
    np.testing.assert_array_equal(back.toarray(), DENSE != 0)


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match="needs SciPy: install it with `pip install scipy`"):
        SparsityPattern.of(DENSE).csr()


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (np.zeros(3), ValueError, r"expected two axes, got shape \(3,\)"),
        ("ab", TypeError, "expected a pattern, .* got str"),
        (([0, 1], [0], (1, 2, 3)), ValueError, r"shape must be \(rows, columns\)"),
        (([0, 1], [0.0], (1, 2)), TypeError, "indices must be integers"),
        (([0, 1], [0], (2, 2)), ValueError, "indptr must have 3 numbers from 0 to 1.* got 2"),
        (([0, 2, 1], [0], (2, 2)), ValueError, "indptr must not decrease"),
        (([0, 1], [2], (1, 2)), ValueError, r"indices must be 0 \.\. 1, got 2 \.\. 2"),
        (([0, 0], [], (1, 2**31)), ValueError, r"at most 2\*\*31 - 1 columns"),
    ],
)
def test_errors(x, error, words):
    with pytest.raises(error, match=words):
        SparsityPattern.of(x)


def test_arrays_are_read_only():
    pattern = SparsityPattern.of(DENSE)
    with pytest.raises(ValueError, match="read-only"):
        pattern.indices[0] = 2
