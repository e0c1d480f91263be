"""The kernel of triangular systems: either triangle, orders in memory, stacks, strips, dtypes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinygrad_cg as tf
from tinygrad_cg.errors import MatrixError
from tinygrad_cg_kernels.linear.triangular import MIN_SIZE, STRIP, triangular_solve

DTYPES = ["float32", "float64", "complex64", "complex128"]


def systems(rng, dtype, size, columns, matrices, rights):
    """Random matrices with large diagonals, nothing but NaN in one triangle, and right sides."""
    shapes = (*matrices, size, size), (*rights, size, columns)
    x, y = (rng.normal(size=shape) for shape in shapes)
    if np.dtype(dtype).kind == "c":
        x, y = (part + 1j * rng.normal(size=part.shape) for part in (x, y))
    return (x + 2 * size * np.eye(size)).astype(dtype), y.astype(dtype)


def in_order(x, order):
    """The same matrices, in another order in memory."""
    if order == "columns":
        return np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2)
    return np.repeat(x, 2, -1)[..., ::2] if order == "apart" else x


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(DTYPES),
    st.one_of(st.integers(0, 40), st.integers(MIN_SIZE, MIN_SIZE + 20)),
    st.sampled_from([0, 1, 2, 5, STRIP, STRIP + 3]),
    st.booleans(),
    st.sampled_from(["rows", "columns", "apart"]),
    st.sampled_from([((), ()), ((3,), (3,)), ((2, 1), (3,)), ((), (2,)), ((2,), ()), ((0,), ())]),
    st.integers(0, 2**32 - 1),
)
def test_solutions_are_those_of_the_general_solver(
    dtype, size, columns, lower, order, leading, seed
):
    x, y = systems(np.random.default_rng(seed), dtype, size, columns, *leading)
    whole = np.tril(x) if lower else np.triu(x)
    hidden = np.triu(np.ones((size, size), bool), 1)
    x[..., hidden if lower else hidden.T] = np.nan  # it must not be read
    before = y.copy()
    result = triangular_solve(in_order(x, order), y, lower)
    shape = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    whole = np.broadcast_to(whole, (*shape, size, size))
    right = np.broadcast_to(y, (*shape, size, columns))
    np.testing.assert_allclose(
        result, np.linalg.solve(whole, right), rtol=0, atol=20 * (size + 1) * np.finfo(dtype).eps
    )
    assert result.dtype == dtype
    np.testing.assert_array_equal(y, before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_diagonals_whose_reciprocal_overflows(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x, y = np.eye(MIN_SIZE, dtype=dtype), np.ones((MIN_SIZE, 3), dtype)
    x[1, 1], y[1] = 4 * tiny, 20 * tiny
    np.testing.assert_array_equal(triangular_solve(x, y, True)[1], 5)


@pytest.mark.parametrize("columns", [1, 7])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
def test_large_systems_go_by_blocks(dtype, columns, lower):
    x, y = systems(np.random.default_rng(4), dtype, 300, columns, (), ())
    result = tf.linalg.triangular_solve(x, y, lower).numpy()
    whole = np.tril(x) if lower else np.triu(x)
    np.testing.assert_allclose(whole @ result, y, rtol=0, atol=1e3 * np.finfo(dtype).eps)


@pytest.mark.parametrize("size", [1, 3, 200])
@pytest.mark.parametrize("columns", [1, 2])
def test_a_zero_on_the_diagonal_is_an_error(size, columns):
    x = np.eye(size)
    x[size // 2, size // 2] = 0
    with pytest.raises(MatrixError, match="triangular_solve: Singular matrix: its diagonal has a"):
        tf.linalg.triangular_solve(np.stack([np.eye(size), x]), np.ones((size, columns)))


def test_a_nan_on_the_diagonal_gives_nan():
    x = np.array([[1.0, 0.0], [5.0, np.nan]])
    result = tf.linalg.triangular_solve(x, np.ones((2, 1))).numpy()
    np.testing.assert_array_equal(result, [[1.0], [np.nan]])
