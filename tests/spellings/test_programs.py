"""TensorFlow's names at the top level that are about the program, and not about numbers."""

import logging
import time

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_raises
from tinygrad_cg.errors import InvalidArgumentError

pytestmark = pytest.mark.quick


def test_names_of_devices():
    for name in (None, "", "/CPU:0", "cpu", "/GPU:1", "/job:a/replica:0/task:0/device:CPU:*"):
        with tf.device(name):
            assert float(tf.constant(1.0) + 1.0) == 2.0
    for wrong in ("foo", "/CPU:x", 3):
        assert_raises(InvalidArgumentError, "is not the name of a device", tf.device, wrong)


def test_what_is_known_of_tensors():
    answers = []

    @tf.function
    def traced(x):
        answers.append((tf.inside_function(), tf.is_symbolic_tensor(x), tf.get_static_value(x)))
        return x

    x = tf.constant([1.0, 2.0])
    traced(x)
    assert answers == [(True, True, None)]
    assert not tf.inside_function()
    assert not tf.is_symbolic_tensor(x)
    assert not tf.is_symbolic_tensor(3)
    assert tf.get_static_value(3) == 3
    values = tf.get_static_value(x)
    assert type(values) is np.ndarray
    values[0] = 5.0  # an array of the caller's own
    assert x.numpy().tolist() == [1.0, 2.0]
    assert tf.type_spec_from_value(x) == tf.TensorSpec([2], tf.float32)


def test_scopes_logger_and_time():
    assert tf.get_current_name_scope() == ""
    with tf.name_scope("a"), tf.name_scope("b"):
        assert tf.get_current_name_scope() == "a/b"
    assert isinstance(tf.get_logger(), logging.Logger)
    assert abs(float(tf.timestamp()) - time.time()) < 60
    assert tf.timestamp().dtype == tf.float64
    assert tf.no_gradient is tf.NotDifferentiable


def test_assertions_have_their_names_at_the_top_level():
    tf.assert_equal([1, 2], [1, 2])
    tf.assert_rank([[1, 2]], 2)
    assert_raises(ValueError, "my words assert_rank", tf.assert_rank, [1], 2, "my words")
    assert_raises(InvalidArgumentError, "x < y", tf.assert_less, 2, 1)
    assert_raises(InvalidArgumentError, "x > y", tf.assert_greater, 1, 1)
    assert_raises(InvalidArgumentError, "assertion failed: 3", tf.Assert, False, [3])


def test_names_of_math_that_are_loaded_later():
    assert "bincount" in dir(tf.math)
    assert tf.math.zero_fraction is tf.nn.zero_fraction
    with pytest.raises(AttributeError, match=r"math' has no attribute 'bincounts'"):
        tf.math.bincounts  # noqa: B018
