"""Gathers that go through axes together, and the gradients of indexing."""

import re

import numpy as np
import pytest

import tinygrad_cg as tf


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_gather_that_goes_through_axes_together(axis):
    x = np.arange(24.0).reshape(2, 3, 4)
    indices = np.array([[2, 0], [1, -1]])
    tensor = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        result = tf.gather(tensor, indices, axis=axis, batch_dims=1)
    expected = np.stack([np.take(x[i], indices[i], axis % 3 - 1) for i in range(2)])
    np.testing.assert_array_equal(result.numpy(), expected)
    counts = np.zeros_like(x)
    for i in range(2):
        for index in indices[i]:
            counts[(i, *[slice(None)] * (axis % 3 - 1), index)] += 1
    np.testing.assert_array_equal(tape.gradient(result, tensor).numpy(), counts)


def test_gather_through_no_elements():
    result = tf.gather(tf.ones((0, 3, 2)), np.zeros((0, 4), np.int64), batch_dims=1)
    assert result.shape == (0, 4, 2)


@pytest.mark.parametrize("count", [2, 3, -1])
def test_gather_refuses_axes_that_are_not_shared(count):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"axes of shapes .* must agree"):
        tf.gather(tf.ones((2, 3, 4)), [[0], [1]], axis=2, batch_dims=count)


@pytest.mark.parametrize(
    "key",
    [
        (np.array([5, -1, 5]),),
        (np.array([[1], [0]]), np.array([2, 2])),
        ((0, 1, 0), (2, 2, -1)),
        (slice(None), (0, 2), 1),
        (np.array([1, 0]), slice(None), np.array([3, 3])),
        (slice(None), np.array([2, 2]), np.array([0, 1])),
        (0, slice(1, 3), np.array([3, 3])),
        (..., np.array([1, 1, 0])),
        (np.array([0, 0]), None, 1),
        (np.arange(6) % 2 == 0, np.array([1, 1, 0])),
        (np.ones((6, 3), bool),),
        (np.array(True),),
        (np.array(False), ...),
        (np.zeros(0, np.int64), np.zeros(0, np.int64)),
        (slice(None, None, -2), ..., 1),
    ],
    ids=str,
)
def test_the_gradient_of_an_index_adds_up_what_repeats(key):
    x = np.random.default_rng(3).normal(size=(6, 3, 4))
    tensor = tf.constant(x)
    weights = np.random.default_rng(4).normal(size=x[key].shape)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        result = tensor[key]
    expected = np.zeros_like(x)
    np.add.at(expected, key, weights)
    np.testing.assert_array_equal(result.numpy(), x[key])
    gradient = tape.gradient(result, tensor, output_gradients=tf.constant(weights))
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-14)


def test_parts_of_an_index_that_are_refused():
    x = tf.ones((2, 3))
    for key in [("a",), ((0.5, 1.0), 0), (1.0,)]:
        with pytest.raises(IndexError, match="are valid indices"):
            x[key]


def test_errors_of_indexing_name_the_index_as_it_is_written():
    v, x = tf.constant([1.0, 2.0]), tf.constant(2.0)
    refused = {
        "x[5]: too many indices: 1 for shape (): it is a single number, so leave": lambda: x[5],
        "v[0, 1]: too many indices: 2 for shape (2,)": lambda: v[0, 1],
        "v[5]: index 5 is out of bounds for axis 0 with size 2; the shape": lambda: v[5],
        "v[1.5]: only integers, slices": lambda: v[1.5],
        'v["a"]: only integers, slices (`:`), ellipsis (`...`), None, and integer or boolean '
        "arrays are valid indices, got str: a tensor has no keys. If the output": lambda: v["a"],
    }
    for words, call in refused.items():
        with pytest.raises(IndexError, match=f"^{re.escape(words)}"):
            call()


def test_lists_of_tensors_without_values_are_index_arrays():
    x, t, u = np.arange(12.0).reshape(3, 4), 2, 0
    keys = (
        lambda t, u: [t, u],
        lambda t, u: ([t, 1], [u, 3]),
        lambda t, u: (slice(1, None), [[t, 3], [u, t]]),
        lambda t, u: ([np.int64(1), t], u),
    )
    f = tf.function(lambda x, t, u: [x[key(t, u)] for key in keys])
    tensor = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        parts = f(tensor, tf.constant(t), tf.constant(u))
        total = tf.add_n([tf.reduce_sum(y * y) for y in parts])
    counts = np.zeros_like(x)
    for key, y in zip(keys, parts, strict=True):
        np.testing.assert_array_equal(y.numpy(), x[key(t, u)])
        np.add.at(counts, key(t, u), 2.0 * x[key(t, u)])
    np.testing.assert_array_equal(tape.gradient(total, tensor).numpy(), counts)
    rows = tf.vectorized_map(lambda i: tensor[[i, 0], [1, i]], tf.constant([1, 2]))
    np.testing.assert_array_equal(rows.numpy(), [x[[1, 0], [1, 1]], x[[2, 0], [1, 2]]])


@pytest.mark.quick
def test_few_elements_with_gaps_are_copied_and_more_are_a_view():
    x = tf.constant(np.arange(20_000.0).reshape(5000, 4))
    few, rows, many = x[:64, 1:3], x[2:9], x[:, 1]
    assert few._data.flags.c_contiguous
    shared = [np.shares_memory(part._data, x._data) for part in (few, rows, many)]
    assert shared == [False, True, True]
    for part, key in (few, np.s_[:64, 1:3]), (rows, np.s_[2:9]), (many, np.s_[:, 1]):
        np.testing.assert_array_equal(part, x.numpy()[key])
