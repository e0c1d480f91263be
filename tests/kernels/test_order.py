"""Sorting, one-hot, and looking up along an axis, against NumPy."""

import numpy as np
import pytest

from tinygrad_cg_kernels.move.order import add_along_axis, argsort, one_hot, sort, take_along_axis


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize("code", "?bhilefdFD")
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take_along_axis_and_its_transpose(axis, code):
    x = (3 * numbers(4, 3, 5)).astype(code)
    shape = [4, 3, 5]
    shape[axis] = 7
    indices = np.random.default_rng(1).integers(-3, 3, shape)
    result = take_along_axis(x[::-1], indices, axis)
    np.testing.assert_array_equal(result, np.take_along_axis(x[::-1], indices, axis))
    assert result.dtype == x.dtype
    if code == "d":
        values = numbers(*shape)
        back = add_along_axis(x.shape, x.dtype, indices, values, axis)
        np.testing.assert_allclose((back * x[::-1]).sum(), (values * result).sum())


def test_indices_are_checked():
    with pytest.raises(IndexError, match="index 3 is out of bounds for size 3"):
        take_along_axis(numbers(3, 2), np.full((1, 2), 3), 0)
    with pytest.raises(ValueError, match="must agree except for axis 0"):
        take_along_axis(numbers(3, 2), np.zeros((1, 3), int), 0)
    with pytest.raises(ValueError, match="values have shape"):
        add_along_axis((3, 2), np.dtype("d"), np.zeros((1, 2), int), numbers(2, 2), 0)


@pytest.mark.parametrize("code", "?bHlefdFD")
def test_sorting(code):
    x = (3 * numbers(6, 5)).astype(code)
    for axis in (0, 1):
        expected = np.sort(x, axis)
        np.testing.assert_array_equal(sort(x, axis), expected)
        backwards = sort(x, axis, descending=True)
        np.testing.assert_array_equal(backwards, np.flip(expected, axis))
        assert backwards.flags.c_contiguous
        for stable in (True, False):
            for descending in (True, False):
                order = argsort(x, axis, descending, stable)
                ordered = np.take_along_axis(x, order, axis)
                np.testing.assert_array_equal(ordered, sort(x, axis, descending))


def test_equal_elements_stay_in_order_both_ways():
    x = np.array([1, 0, 1, 0, 1])
    assert argsort(x, 0).tolist() == [1, 3, 0, 2, 4]
    assert argsort(x, 0, descending=True).tolist() == [0, 2, 4, 1, 3]


@pytest.mark.parametrize("code", "?bBhHiIlLefd")
def test_the_stable_order_is_numpys(code):
    rng = np.random.default_rng(2)
    wide = rng.integers(0, 2**63, (3, 400)).astype(np.uint64)
    if code == "e":
        wide = wide % 2**15
    for x in (wide.astype(code), (wide % 7).astype(code), np.unique(wide)[:9].astype(code)):
        if code in "efd":
            x.flat[:8] = [np.nan, 0.0, -0.0, np.inf, -np.inf, -np.nan, -1.0, 1e-8]
        expected = np.argsort(x, -1, kind="stable")
        np.testing.assert_array_equal(argsort(x, x.ndim - 1), expected)
        np.testing.assert_array_equal(argsort(x.T, 0), expected.T)
        if x.dtype.kind == "i":
            backwards = np.argsort(~x, -1, kind="stable")
            np.testing.assert_array_equal(argsort(x, x.ndim - 1, descending=True), backwards)


def test_nan_is_the_largest():
    x = np.array([np.nan, 1.0, np.inf])
    assert argsort(x, 0).tolist() == [1, 2, 0]
    assert argsort(x, 0, descending=True).tolist() == [0, 2, 1]
    assert np.isnan(sort(x, 0, descending=True)[0])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("code", "bBlQ")
def test_one_hot(axis, code):
    indices = np.array([[0, 2, 5], [3, 1, 100]]).astype(code)
    result = one_hot(indices, 4, axis, np.dtype("f"))
    expected = np.moveaxis((indices[..., None] == np.arange(4)).astype("f"), -1, axis)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == np.float32
    assert not one_hot(np.array(-1), 3, 0, np.dtype("f")).any()
    assert one_hot(np.zeros((2, 0), int), 3, 1, np.dtype("f")).shape == (2, 3, 0)
    with pytest.raises(TypeError, match="indices must be integers, got float64"):
        one_hot(numbers(2), 3, 1, np.dtype("f"))
