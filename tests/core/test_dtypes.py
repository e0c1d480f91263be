"""Dtypes: their names, what numbers and lists become, and integers that do not fit."""

import operator

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, assert_raises

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("array", [np.array([1, 2**40]), np.array(2**40), np.array([300, 1])])
def test_arrays_of_integers_that_do_not_fit(array):
    """docs/behaviour.md 5.1: a dtype that cannot hold the values is an error, not 0."""
    dtype = "uint8" if array.max() == 300 else "int32"
    for make in (tf.constant, tf.convert_to_tensor, tf.Variable):
        with pytest.raises((ValueError, OverflowError)):
            make(array, dtype=dtype)
    assert_next_gradient_is_right()


@pytest.mark.parametrize("value", [2**70, [2**70], -(2**63) - 1], ids=repr)
def test_integers_that_no_dtype_holds(value):
    """2.4, conversion: an error, never another number."""
    with pytest.raises((OverflowError, ValueError, TypeError)):
        tf.constant(value)
    with pytest.raises((OverflowError, ValueError, TypeError)):
        _ = tf.constant([1, 2]) * value
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    ("tensor", "numbers", "expected"),
    [
        (tf.constant([1.0, 2.0], tf.float16), [1.0, 2.0], tf.float16),
        (tf.constant([1.0, 2.0], tf.float64), [1.0, 2.0], tf.float64),
        (tf.constant([1, 2], tf.int8), [1, 2], tf.int8),
        (tf.constant([1, 2], tf.int8), [1.0, 2.0], tf.float32),
        (tf.constant([1.0, 2.0], tf.float16), [1, 2], tf.float16),
        (tf.constant([1.0, 2.0], tf.float16), [1j, 2], tf.complex64),
        (np.array([1.0, 2.0]), [1.0, 2.0], tf.float64),
        (tf.constant([1, 2], tf.int8), range(2), tf.int8),
    ],
)
def test_lists_are_weak_on_both_sides(tensor, numbers, expected):
    assert tf.math.add(tensor, numbers).dtype == expected
    assert tf.math.add(numbers, tensor).dtype == expected
    assert tf.stack([numbers, tensor]).dtype == tf.stack([tensor, numbers]).dtype == expected


def test_a_list_beside_a_wide_tensor_keeps_its_digits():
    product = tf.constant([1.0], tf.float64) * [0.1]
    assert product.numpy()[0] == 0.1


def test_lists_and_numbers_without_a_tensor():
    assert tf.math.add([1, 2], 3).dtype == tf.int32
    assert tf.math.add(0.5, [1, 2]).dtype == tf.math.add([1, 2], 0.5).dtype == tf.float32
    assert tf.math.add([1, 2], [0.5, 1.0]).dtype == tf.float32
    assert tf.math.add([0.5, 1.0], [1, 2]).dtype == tf.float32
    with pytest.raises(OverflowError, match="int8"):
        tf.math.add([300], tf.constant([1], tf.int8))


def test_none_is_no_dtype():
    with pytest.raises(TypeError, match="None is not a supported dtype"):
        tf.cast([1.0], None)


@pytest.mark.parametrize(("name", "type_"), [("float", float), ("int", int), ("bool", bool)])
def test_names_of_pythons_types_mean_the_types(name, type_):
    assert tf.cast([1.0], name).dtype == tf.cast([1.0], type_).dtype
    assert tf.as_dtype("float") == tf.float32
    assert tf.as_dtype("int") == tf.int32


def test_bools_are_not_numbers():
    yes = tf.constant(True)
    for values in (yes, tf.constant([True, False])):
        assert_raises(TypeError, "negative: .*logical_not", operator.neg, values)
        assert_raises(TypeError, "subtract: .*logical_xor", operator.sub, values, values)
        assert_raises(TypeError, "subtract: .*logical_xor", np.subtract, values, values)
    assert (yes - 1).numpy() == 0
    assert (yes - tf.constant(0.5)).numpy() == 0.5
