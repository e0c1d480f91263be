"""Bits and shifts: what NumPy gives at all edges, as functions and as operators."""

import operator

import numpy as np
import pytest

import tinygrad_cg as tf

VALUES = (-128, -7, -1, 0, 1, 5, 8, 64, 127)
DTYPES = ("int8", "uint8", "int16", "uint32", "int64", "uint64")
NAMES = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "gcd", "lcm")


@pytest.mark.parametrize("dtype", DTYPES)
def test_as_in_numpy(dtype):
    values = np.array(VALUES).astype(dtype)
    x, y = np.meshgrid(values, values)
    for name in NAMES:
        expected = getattr(np, name)(x, y)
        result = getattr(np, name)(tf.constant(x), y)
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result.numpy(), expected, name)
    np.testing.assert_array_equal((~tf.constant(x)).numpy(), ~x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [200, 2000])  # small kernels, block kernels
def test_numbers_of_the_whole_range_as_in_numpy(dtype, size):
    limits, rng = np.iinfo(dtype), np.random.default_rng(0)
    x, y = rng.integers(limits.min, limits.max, (2, size), dtype, endpoint=True)
    x[:2], y[1:3], y[y == 0] = (limits.min, limits.max), (limits.max, limits.min), 3
    for name in (*NAMES, "power", "floor_divide", "remainder", "maximum", "multiply", "less"):
        other = np.where(y < 0, ~y, y) if name == "power" else y
        expected = getattr(np, name)(x, other)
        for function in (getattr(tf.numpy, name), tf.function(getattr(tf.numpy, name))):
            np.testing.assert_array_equal(function(x, other).numpy(), expected, name)


def test_operators():
    x = tf.constant([6, 5])
    for op in (operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift):
        assert op(x, 3).numpy().tolist() == op(np.array([6, 5]), 3).tolist()
        assert op(3, x).numpy().tolist() == op(3, np.array([6, 5])).tolist()
    mask = tf.constant([True, False])
    assert (mask & True).numpy().tolist() == [True, False]
    assert (~mask | mask).numpy().tolist() == [True, True]
    assert (mask ^ mask).dtype == bool
    packed = tf.function(lambda x: (x << 2 | 1) & ~x)
    assert packed(x).numpy().tolist() == [(6 << 2 | 1) & ~6, (5 << 2 | 1) & ~5]
    for op, symbol in ((operator.and_, "&"), (operator.lshift, "<<")):
        with pytest.raises(TypeError, match=f"{symbol} needs tensors of integers or bools"):
            op(tf.constant([1.0]), 1)
    with pytest.raises(TypeError, match="~ needs tensors of integers or bools, got float32"):
        operator.invert(tf.constant(1.0))
    with pytest.raises(TypeError):
        tf.bitwise.left_shift(mask, mask)
