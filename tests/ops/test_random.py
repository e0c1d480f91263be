"""Random draws: their bounds, dtypes and errors."""

import re

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_raises


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (1.0, 1.001), (-3.0, 0.1), (1e3, 1001.0)])
def test_uniform_draws_are_below_the_upper_end(dtype, low, high):
    draws = tf.random.uniform([20000], low, high, dtype, seed=5)
    assert draws.dtype == dtype
    least, greatest = np.asarray([low, high], dtype)
    assert draws.numpy().min() >= least
    if least < greatest:
        assert draws.numpy().max() < greatest
    watched = tf.random.uniform([20000], tf.constant(low, dtype), high, dtype, seed=5).numpy()
    assert watched.min() >= least
    assert least == greatest or watched.max() < greatest


def test_uniform_in_float32_never_gives_the_upper_end(monkeypatch):
    """A draw of the largest float64 below 1 is 1 in float32."""
    from tinygrad_cg._ops import sampling as random

    monkeypatch.setattr(random, "_draw", lambda *_: np.array([0.25, 1 - 2.0**-53]))
    for high in (1.0, tf.constant(1.0)):
        assert tf.random.uniform([2], 0.0, high).numpy().tolist() == [0.25, 0.0]


def test_bad_arguments_of_random_draws():
    invalid = tf.errors.InvalidArgumentError
    assert_raises(TypeError, "uniform: .*bool", tf.random.uniform, [2], dtype=tf.bool)
    assert_raises(TypeError, "normal: .*int32.*cast", tf.random.normal, [2], dtype=tf.int32)
    assert_raises(TypeError, "normal: .*complex64", tf.random.normal, [2], dtype=tf.complex64)
    assert_raises(TypeError, "set_seed: seed must be an integer", tf.random.set_seed, "a")
    assert_raises(invalid, "set_seed: .*-1", tf.random.set_seed, -1)
    assert_raises(TypeError, "normal: seed must be an integer", tf.random.normal, [2], seed="a")
    assert_raises(invalid, r"normal: .*mean \(3,\)", tf.random.normal, [2], mean=[1.0, 2.0, 3.0])
    assert_raises(invalid, r"uniform: .*maxval \(3,\)", tf.random.uniform, [2], 0.0, tf.ones([3]))
    assert_raises(invalid, "uniform: .*negative", tf.random.uniform, [-1])
    assert_raises(invalid, "uniform: minval", tf.random.uniform, [2], 5, 5, tf.int32)
    assert_raises(invalid, "within int8", tf.random.uniform, [2], 0, 300, tf.int8)
    assert_raises(TypeError, "maxval must be an integer", tf.random.uniform, [2], 0, 2.5, tf.int32)
    assert_raises(TypeError, "unsupported type", tf.random.normal, [2], mean="a")


def test_a_shape_that_is_a_number_is_refused_and_may_be_the_first_size():
    """In ``normal(3, 4)``, 4 would be the mean."""
    for function in (tf.random.normal, tf.random.uniform, tf.random.truncated_normal):
        name = function.__name__
        for sizes in ((3, 4), (3,)):
            words = f"got the number 3: write {sizes}, as in tf.random.{name}({sizes})"
            with pytest.raises(TypeError, match=re.escape(words)):
                function(*sizes)
    assert tf.numpy.random.normal(0.0, 1.0, 3).shape == (3,)


def test_bounds_of_integers_reach_their_dtypes_end():
    draws = tf.random.uniform([2000], 0, 256, tf.uint8, seed=1).numpy()
    assert (draws.min(), draws.max()) == (0, 255)
