"""Scatters, segments and ``x.at[key]``: values by loops, derivatives, modes, edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tests.support.modes import assert_right_in_all_modes

X = np.array([[0.4, -1.3, 2.2], [1.7, 0.6, -0.9], [-0.2, 1.1, 0.8], [3.1, -2.4, 0.5]])
Y = np.array([[1.5, 0.7, -0.6], [-1.1, 2.3, 0.9], [0.3, 1.9, -1.6]])
ROWS = np.array([[2], [0], [2]])
POINTS = np.array([[[3, 1], [0, 0]], [[3, 1], [1, 2]]])
IDS = np.array([2, 0, 2, 1])
WITH_ZEROS = np.array([[0.0, -1.3, 2.2], [1.7, 0.6, -0.9], [-0.2, 0.0, 0.8], [3.1, -2.4, 0.0]])
CASES = {
    "gather_nd": lambda x, y: tf.gather_nd(x, POINTS) ** 2,
    "gather_nd in batches": lambda x, y: tf.gather_nd(x, [[1], [0], [2], [2]], batch_dims=1) ** 2,
    "scatter_nd": lambda x, y: tf.scatter_nd(ROWS, y, [4, 3]) * x,
    "scatter_nd of points": lambda x, y: tf.scatter_nd(POINTS, y[:2, :2], [4, 3]) * x,
    "update": lambda x, y: tf.tensor_scatter_nd_update(x, ROWS, y) ** 2,
    "update, points": lambda x, y: tf.tensor_scatter_nd_update(x, POINTS, y[:2, :2]) ** 2,
    "add": lambda x, y: tf.tensor_scatter_nd_add(x, ROWS, y) ** 2,
    "sub": lambda x, y: tf.tensor_scatter_nd_sub(x, ROWS, y) ** 2,
    "max": lambda x, y: tf.tensor_scatter_nd_max(x, ROWS, y) ** 2,
    "min": lambda x, y: tf.tensor_scatter_nd_min(x, ROWS, y) ** 2,
    "boolean_mask": lambda x, y: tf.boolean_mask(x, X > 0) ** 2,
    "stitch": lambda x, y: tf.dynamic_stitch([[4, 0], [1, 4]], [x[:2], y[:2]]) ** 2,
    "at set": lambda x, y: x.at[1:3].set(y[0]) ** 2,
    "at set, one column": lambda x, y: x.at[:3, 1].set(y[:, 2]) ** 2,
    "at set, repeated": lambda x, y: x.at[[2, 0, 2]].set(y) ** 2,
    "at add, repeated": lambda x, y: x.at[[2, 0, 2]].add(y) ** 2,
    "at multiply, repeated": lambda x, y: x.at[[2, 0, 2]].multiply(y),
    "at divide": lambda x, y: x.at[[2, 0, 2]].divide(y),
    "at max": lambda x, y: x.at[[2, 0, 2], 1:].max(y[:, 1:]) ** 2,
    "at mask": lambda x, y: x.at[X > 1].subtract(y[0, 0]) ** 2,
    "at apply": lambda x, y: x.at[1].apply(tf.exp) + tf.reduce_sum(y),
    "segment_sum": lambda x, y: tf.math.unsorted_segment_sum(x, IDS, 4) ** 2,
    "segment_mean": lambda x, y: tf.math.unsorted_segment_mean(x, IDS, 4) ** 2,
    "segment_sqrt_n": lambda x, y: tf.math.unsorted_segment_sqrt_n(x, IDS, 3) ** 2,
    "segment_max": lambda x, y: tf.math.unsorted_segment_max(x, IDS, 3) ** 2,
    "segment_min": lambda x, y: tf.math.unsorted_segment_min(x, [0, -1, 0, 0], 1) ** 2,
    "segment_prod": lambda x, y: tf.math.unsorted_segment_prod(x * y[0], IDS, 4),
    "sorted segments": lambda x, y: tf.math.segment_max(x, [0, 0, 2, 2]) ** 2,
}


@pytest.mark.parametrize("name", CASES)
def test_right_in_all_modes(name):
    function = CASES[name]
    if "gather" in name or "mask" in name or name.startswith("segment") or "sorted" in name:
        assert_right_in_all_modes(lambda x, y: function(x, y) + tf.reduce_sum(y * y), X, Y)
    else:
        assert_right_in_all_modes(function, X, Y)


def test_products_of_segments_with_zeros():
    """Division by the elements would give NaN, and products of the others once only."""

    def by_hand(x):
        return tf.stack([x[1], x[3], x[0] * x[2]])

    def segments(x):
        return tf.math.unsorted_segment_prod(x, IDS, 3)

    x = tf.constant(WITH_ZEROS)
    assert_array_equal(segments(x).numpy(), by_hand(x).numpy())
    assert_allclose(tf.jacobian(segments)(x).numpy(), tf.jacobian(by_hand)(x).numpy())
    second, expected = (
        tf.hessian(lambda x, f=f: tf.reduce_sum(f(x) * X[:3]))(x).numpy()
        for f in (segments, by_hand)
    )
    assert_allclose(second, expected)


def test_ids_and_indices_that_differ_between_examples():
    ids = tf.constant([[0, 1, 1, 0], [2, 0, -1, 2]])
    x = tf.constant(np.stack([X, X + 1]))
    for how in ("sum", "mean", "max", "min", "prod"):
        reduce = getattr(tf.math, f"unsorted_segment_{how}")
        alone = [reduce(x[i], ids[i], 3).numpy() for i in range(2)]
        assert_allclose(tf.vmap(lambda x, i, r=reduce: r(x, i, 3))(x, ids).numpy(), alone)
    rows = tf.constant([1, 3])
    result = tf.vmap(lambda x, i: x.at[i].set(9.0))(x, rows).numpy()
    assert_array_equal(result[1], tf.constant(X + 1).at[3].set(9.0).numpy())
    result = tf.vmap(lambda x, i: tf.tensor_scatter_nd_max(x, i[None, None], X[:1]))(x, rows)
    assert_array_equal(result[0].numpy(), np.r_[X[:1], np.maximum(X[1:2], X[:1]), X[2:]])
    chosen = tf.function(lambda x, i: x.at[i, 0].add(1.0))
    assert float(chosen(tf.constant(X), tf.constant(2))[2, 0]) == 0.8


def test_ties_share_the_gradient():
    x = tf.constant([2.0, 2.0, 1.0, 2.0])
    gradient = tf.grad(lambda x: tf.math.unsorted_segment_max(x, [0, 0, 0, 1], 2)[0])(x)
    assert gradient.numpy().tolist() == [0.5, 0.5, 0.0, 0.0]
    below = tf.constant([-np.inf, -np.inf])
    gradient = tf.grad(lambda x: tf.reduce_sum(tf.math.unsorted_segment_max(x, [0, 0], 1)))(below)
    assert gradient.numpy().tolist() == [0.5, 0.5]
    x, y = tf.grad(
        lambda x, y: tf.reduce_sum(tf.tensor_scatter_nd_max(x, [[0], [0]], y)), argnums=(0, 1)
    )(tf.constant([1.0, 5.0]), tf.constant([1.0, 1.0]))
    assert_allclose(x.numpy(), [1 / 3, 1.0], rtol=1e-6)
    assert_allclose(y.numpy(), [1 / 3, 1 / 3], rtol=1e-6)


def test_the_last_of_repeated_updates_has_the_gradient():
    y = tf.constant([1.0, 2.0, 3.0])
    for update in (
        lambda y: tf.tensor_scatter_nd_update(tf.zeros(2), [[1], [0], [1]], y),
        lambda y: tf.zeros(2).at[[1, 0, 1]].set(y),
    ):
        assert update(y).numpy().tolist() == [2.0, 3.0]
        gradient = tf.grad(lambda y, update=update: tf.reduce_sum(update(y)))(y)
        assert gradient.numpy().tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16", "complex64"])
def test_dtypes(dtype):
    x = tf.constant(np.arange(4).astype(dtype))
    y = x.at[1:3].set(x[0])
    assert y.dtype == dtype
    assert_array_equal(y.numpy(), np.array([0, 0, 0, 3]).astype(dtype))
    assert tf.tensor_scatter_nd_update(x, [[3]], x[:1]).dtype == dtype
    assert tf.gather_nd(x, [[1]]).dtype == dtype
    if dtype not in ("bool", "complex64"):
        assert tf.math.unsorted_segment_max(x, [0, 0, 1, 1], 2).numpy().tolist() == [1, 3]
        assert tf.math.unsorted_segment_mean(x, [0, 0, 1, 1], 2).dtype == dtype
    assert tf.constant([1, 2]).at[0].add(3).dtype == "int32"


def test_nothing_at_all():
    assert tf.math.segment_sum(tf.zeros([0, 2]), tf.zeros([0], tf.int32)).shape == (0, 2)
    assert tf.math.unsorted_segment_prod(tf.zeros([0]), tf.zeros([0], tf.int32), 2).numpy().tolist()
    x = tf.constant([1.0, 2.0])
    for empty in ([], slice(1, 1), np.zeros(2, bool)):
        assert x.at[empty].set(5.0).numpy().tolist() == [1.0, 2.0]
        assert x.at[empty].add(5.0).numpy().tolist() == [1.0, 2.0]
    assert tf.constant(3.0).at[()].multiply(2.0).numpy() == 6.0
    assert [part.shape[0] for part in tf.dynamic_partition(x, [1, 1], 3)] == [0, 2, 0]


def test_errors_say_what_is_wrong():
    x = tf.constant([1, 2, 3])
    for call, error, words in (
        (lambda: tf.gather_nd(x, [[5]]), ValueError, r"indices\[0\] = \[5\] does not index into"),
        (lambda: tf.gather_nd(x, [[0.5]]), ValueError, "indices must be integers"),
        (lambda: tf.gather_nd(x, [[0, 0]]), ValueError, "at most 1"),
        (lambda: tf.scatter_nd([[0]], [[1]], [3]), ValueError, r"updates must have shape \(1,\)"),
        (lambda: tf.tensor_scatter_nd_add(x, [[-1]], [1]), ValueError, "does not index"),
        (lambda: tf.boolean_mask(x, [True]), ValueError, "the shape of mask, .1,., must match"),
        (lambda: tf.dynamic_partition(x, [0, 1, 2], 2), ValueError, r"in \[0, 2\), got 0 to 2"),
        (lambda: tf.dynamic_stitch([[0]], [[1, 2]]), ValueError, "does not fit indices"),
        (lambda: tf.math.segment_sum(x, [1, 0, 0]), ValueError, "use unsorted_segment_sum"),
        (lambda: tf.math.unsorted_segment_sum(x, [0, 1, 2], 2), ValueError, "not below the 2"),
        (lambda: tf.math.unsorted_segment_sum(x, [0, 1], 2), ValueError, "the first axes of data"),
        (lambda: tf.slice(x, [2], [2]), ValueError, "exceed shape"),
        (lambda: x.at[0].set(1.5), TypeError, "cast one of them first"),
        (lambda: x.at[:2].set([1, 2, 3]), ValueError, "do not broadcast"),
        (lambda: x.at[7].set(1), IndexError, "out of bounds"),
        (lambda: x.__setitem__(0, 1), TypeError, r"x = x.at\[index\].set\(value\)"),
    ):
        with pytest.raises(error, match=words):
            call()
