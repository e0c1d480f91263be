"""Specifications of arguments: what fits them, and sizes that are not known."""

import numpy as np
import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.quick

X = np.array([1.0, -2.0, 3.0])


def numbers(value):
    return value.numpy().tolist()


def test_input_signature():
    f = tf.function(
        lambda x, y: tf.matmul(x, y),
        input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([3, 2], tf.float32)],
    )
    y = tf.ones([3, 2])
    for rows in (1, 4):
        assert f(tf.ones([rows, 3]), y).shape == (rows, 2)
    assert f([[1.0, 2.0, 3.0]], np.ones([3, 2], np.float32)).shape == (1, 2)
    for wrong in (tf.ones([1, 2]), tf.ones([3]), tf.ones([1, 3], tf.float64)):
        with pytest.raises(
            (TypeError, ValueError), match=r"Can not cast TensorSpec.*to TensorSpec"
        ):
            f(wrong, y)
    with pytest.raises(TypeError, match=r"Binding inputs to tf.function failed"):
        f(y)


def test_tensor_spec():
    spec = tf.TensorSpec([None, 3], tf.float32, "x")
    assert repr(spec) == "TensorSpec(shape=(None, 3), dtype=tf.float32, name='x')"
    assert spec == tf.TensorSpec((None, 3), "float32", "x") != tf.TensorSpec([1, 3])
    assert len({spec, tf.TensorSpec((None, 3), "float32", "x")}) == 1
    assert spec.is_compatible_with(tf.ones([5, 3]))
    assert not spec.is_compatible_with(tf.ones([5, 2]))
    assert tf.TensorSpec(None).is_compatible_with(tf.ones([5, 3]))
    assert tf.TensorSpec.from_tensor(tf.ones([2])) == tf.TensorSpec([2])


def test_concrete_functions():
    f = tf.function(lambda x: x * 2)
    concrete = f.get_concrete_function(tf.TensorSpec([3], tf.float64))
    assert numbers(concrete(tf.constant(X))) == (2 * X).tolist()
    assert f.cache_size == 1
    assert concrete.inputs == [tf.TensorSpec([3], tf.float64)]
    with pytest.raises(TypeError, match="traced for other arguments"):
        concrete(tf.constant(X[:2]))
    signed = tf.function(lambda x: x, input_signature=[tf.TensorSpec([2])])
    assert signed.get_concrete_function()(tf.ones([2])).shape == (2,)


def test_unknown_sizes_do_not_warn():
    by_spec = tf.function(tf.reduce_sum, input_signature=[tf.TensorSpec([None], tf.float64)])
    relaxed = tf.function(tf.reduce_sum, reduce_retracing=True)
    for f in (by_spec, relaxed):
        for size in range(20):
            assert numbers(f(tf.constant(np.ones(size)))) == size


def test_concrete_functions_of_unknown_sizes():
    f = tf.function(lambda x, n, *, scale: x * n + scale)
    any_rows = f.get_concrete_function(
        tf.TensorSpec([None, 2], tf.float64), 3, scale=tf.TensorSpec(None)
    )
    for rows in (1, 4):
        result = any_rows(np.ones((rows, 2)), 3, scale=tf.constant(1.0))
        assert numbers(result) == [[4.0, 4.0]] * rows
    assert any_rows.inputs == [tf.TensorSpec([None, 2], tf.float64), tf.TensorSpec(None)]
    x, ones = tf.constant(np.ones((2, 2))), tf.constant(1.0)
    for args, kwargs in [
        ((x, 4), {"scale": ones}),
        ((x[:, :1], 3), {"scale": ones}),
        ((x, 3), {}),
        ((x, 3, 3), {"scale": ones}),
    ]:
        with pytest.raises(TypeError, match=r"Binding inputs to tf.function failed|was made for"):
            any_rows(*args, **kwargs)
    with pytest.raises(ValueError, match=r"`graph`, .*fixed sizes, but .*\(None, 2\)"):
        any_rows.graph  # noqa: B018
    with pytest.raises(ValueError, match="need fixed sizes"):
        any_rows.kernels  # noqa: B018
    signed = tf.function(lambda x: x * 2, input_signature=[tf.TensorSpec([None])])
    assert numbers(signed.get_concrete_function()(tf.ones([3]))) == [2.0, 2.0, 2.0]
