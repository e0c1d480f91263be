"""Gather, scatter-add and matrix products against NumPy."""

import numpy as np
import pytest

from tinygrad_cg_kernels.linear.matmul import matmul
from tinygrad_cg_kernels.move.gather import gather, index_add, scatter_add

pytestmark = pytest.mark.quick


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


INDICES = [
    np.array(1),
    np.array([0, 2, -1, 0]),
    np.array([[0, 1], [2, -3]], np.int8),
    np.array([], np.int64),
    np.array([2, 1], np.uint64),
]


@pytest.mark.parametrize("indices", INDICES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_and_its_transpose(indices, axis):
    x = numbers(3, 4, 3)
    got = gather(x, indices, axis)
    want = np.take(x, indices.astype(np.int64), axis=axis)
    assert type(got) is np.ndarray
    np.testing.assert_array_equal(got, want)
    values = numbers(*got.shape)
    scattered = scatter_add(x.shape, x.dtype, indices, values, axis)
    # <gather(x), values> == <x, scatter_add(values)>: each is the other's transpose.
    assert scattered.shape == x.shape
    np.testing.assert_allclose(np.vdot(got, values), np.vdot(x, scattered))


def test_gather_keeps_dtype_and_takes_any_layout():
    x = numbers(4, 6)
    for array in (x.T, x[:, ::-2], x.astype(">f4"), x.astype("e"), x > 0):
        got = gather(array, np.array([1, 0]), 0)
        np.testing.assert_array_equal(got, array[[1, 0]])
        assert got.dtype == array.dtype.newbyteorder("=")
        assert got.flags.c_contiguous


@pytest.mark.parametrize("bad", [3, -4, 2**40])
def test_index_out_of_bounds(bad):
    with pytest.raises(IndexError, match=f"gather: index {bad} is out of bounds for size 3"):
        gather(numbers(3, 2), np.array([0, bad]), 0)
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
        scatter_add((3,), np.dtype("d"), np.array([bad]), numbers(1))
    with pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
        index_add((3, 2), np.dtype("d"), (np.array([bad]), np.array([0])), numbers(1))


def test_bad_arguments():
    with pytest.raises(IndexError, match="gather: indices must be integers, got float64"):
        gather(numbers(3), np.array([0.0]), 0)
    with pytest.raises(IndexError, match="indices must be integers, got bool"):
        gather(numbers(3), np.array([True]), 0)
    with pytest.raises(ValueError, match="gather: axis 1 is out of range for rank 1"):
        gather(numbers(3), np.array([0]), 1)
    with pytest.raises(ValueError, match=r"values have shape \(3,\), not \(2,\)"):
        scatter_add((4,), np.dtype("d"), np.array([0, 1]), numbers(3))
    with pytest.raises(IndexError, match="index_add: 2 indices for shape"):
        index_add((4,), np.dtype("d"), (np.array([0]), np.array([0])), numbers(1))
    with pytest.raises(TypeError, match="dtype object is not supported"):
        gather(np.zeros(2, object), np.array([0]), 0)


@pytest.mark.parametrize("code", "efdlD")
def test_repeated_indices_add_up(code):
    indices = np.zeros(2000, np.int64)
    values = np.ones(2000, code)
    got = scatter_add((3,), np.dtype(code), indices, values)
    assert got.tolist() == [2000, 0, 0]
    assert got.dtype == np.dtype(code)


@pytest.mark.parametrize(
    "index",
    [
        (np.array([0, 1, 0]),),
        (np.array([0, 1, 0]), np.array([2, -1, 2])),
        (np.array([[0], [1]]), np.array([0, 3, 3])),
        (np.array(1), np.array([1, 1])),
        (np.array([1, 0]), np.array([1, 0]), np.array([4, 4])),
        (np.array([], np.int64), np.array([], np.int64)),
    ],
)
def test_index_add(index):
    x = numbers(2, 4, 5)
    values = numbers(*x[index].shape)
    want = np.zeros_like(x)
    np.add.at(want, index, values)
    np.testing.assert_allclose(index_add(x.shape, x.dtype, index, values), want, rtol=1e-14)


@pytest.mark.parametrize(
    ("left", "right"),
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((4, 1, 2, 3), (5, 3, 2)), ((0, 3), (3, 0))],
)
def test_matmul(left, right):
    for codes in ("dd", "ff", "ll", "ef", "DD", "fl"):
        x, y = (
            np.round(4 * numbers(*s)).astype(c) for s, c in zip((left, right), codes, strict=True)
        )
        got = matmul(x, y)
        assert type(got) is np.ndarray
        assert got.flags.c_contiguous
        np.testing.assert_allclose(got, np.matmul(x, y), rtol=1e-6)
    half = matmul(np.ones((2, 4096), "e"), np.ones(4096, "e"))
    assert half.dtype == np.float16
    assert half.tolist() == [4096, 4096]


def test_matmul_takes_transposed_operands():
    x, y = numbers(3, 4), numbers(5, 3)
    np.testing.assert_allclose(matmul(x.T, y.T), x.T @ y.T)


def test_matmul_refuses():
    with pytest.raises(ValueError, match=r"matmul: shapes \(2, 3\) and \(2,\) do not fit"):
        matmul(np.ones((2, 3)), np.ones(2))
    with pytest.raises(ValueError, match=r"matmul: .* operands need a dimension"):
        matmul(np.ones(()), np.ones(2))
    with pytest.raises(TypeError, match="matmul: dtype object is not supported"):
        matmul(np.ones(2, object), np.ones(2))
