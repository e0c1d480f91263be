"""Moves of elements whose positions are constants: they are done before a program runs."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.function.test_simplify import names

X = np.random.default_rng(0).normal(size=(4, 6))
TURN = np.roll(np.arange(6), 2)
COLORS = np.arange(12, dtype=np.int8).reshape(3, 4) % 5
MOVES = {
    "part": lambda x: x[1:, ::2],
    "index": lambda x: x[2],
    "gather": lambda x: tf.gather(x, [2, 0, 1], axis=0),
    "columns": lambda x: tf.gather(x, [[3, 0], [1, 3]], axis=1),
    "turned": lambda x: tf.roll(x, 1, 1),
    "transposed": tf.transpose,
    "reshaped": lambda x: tf.reshape(x, (2, 6)),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", MOVES)
def test_marks_are_moved_beforehand(name):
    """Of one number, and of one for each element of a batch."""
    move = MOVES[name]

    def marks(number):
        return move(tf.cast(tf.equal(COLORS, number), tf.float64))

    number = tf.constant(3, tf.int8)
    expected = marks(number).numpy()
    assert expected.any()
    assert set(names(marks, np.int8(3))) <= {"equal", "cast", "reshape"}
    np.testing.assert_array_equal(tf.function(marks)(number), expected)
    numbers = np.array([1, 3, 7], np.int8)
    batch = tf.vmap(marks)
    assert set(names(batch, numbers)) <= {"equal", "cast", "reshape"}
    several = [marks(tf.constant(each)).numpy() for each in numbers]
    np.testing.assert_array_equal(tf.function(batch)(tf.constant(numbers)), several)


def test_marks_whose_numbers_move_stay():
    """The numbers are no constants, so what moves them is an operation."""
    for move in (lambda x: x[1], lambda x: tf.gather(x, [1, 0], axis=0), tf.transpose):
        marks = lambda numbers, move=move: move(tf.equal(np.arange(3), numbers[:, None]))
        numbers = tf.constant([1, 0, 2])
        np.testing.assert_array_equal(tf.function(marks)(numbers), marks(numbers))


@pytest.mark.parametrize("axis", [0, 1])
def test_the_gradient_of_a_permutation_is_one(axis):
    """At both orders, for each of a batch, too; the scatter of repeated indices stays."""

    def f(x, indices):
        return tf.reduce_sum(tf.gather(x, indices, axis=axis) ** 3 * weights)

    weights, order = X, np.roll(np.arange(X.shape[axis]), 1)
    for transform in (tf.grad, lambda f: tf.vmap(tf.grad(f))):
        turned = transform(lambda x: f(x, order))
        x = X if transform is tf.grad else np.stack([X, 2 * X])
        assert "gather_adjoint" not in names(turned, x)
        np.testing.assert_allclose(tf.function(turned)(x), turned(x), rtol=1e-13)
    twice = lambda x: tf.reduce_sum(tf.grad(lambda x: f(x, order))(x) * X)
    assert "gather_adjoint" not in names(tf.grad(twice), X)
    np.testing.assert_allclose(tf.function(tf.grad(twice))(X), tf.grad(twice)(X), rtol=1e-13)
    repeated = np.zeros_like(order)
    repeated[1] = 1
    assert "gather_adjoint" in names(tf.grad(lambda x: f(x, repeated)), X)
    at_blocks = lambda x: tf.reduce_sum(tf.gather(x, TURN.reshape(2, 3), axis=1) ** 2)
    np.testing.assert_allclose(tf.function(tf.grad(at_blocks))(X), 2 * X)


def test_rolls_are_one_kernel():
    """A sum of them, its gradient and its product with a direction; eager results are the same."""
    f = lambda x: tf.reduce_sum((tf.roll(x, 1, 0) + tf.roll(x, -2, 1) - x) ** 3)
    gradient = tf.function(tf.grad(f))
    assert "scatter_add" not in "".join(gradient.kernels(X))
    np.testing.assert_allclose(gradient(X), tf.grad(f)(X), rtol=1e-13)
    product = lambda x, v: tf.jvp(tf.grad(f), (x,), (v,))[1]
    np.testing.assert_allclose(tf.function(product)(X, X[::-1]), product(X, X[::-1]), rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_elements_of_joined_arrays_are_read_from_their_parts(axis):
    places = np.array([[5, 0, 47], [20, 31, 5]])

    def f(x, y):
        whole = tf.stack([tf.sin(x), tf.exp(y)], axis)
        return tf.gather(tf.reshape(whole, (-1,)), places)

    expected = np.stack([np.sin(X), np.exp(-X)], axis).reshape(-1)[places]
    np.testing.assert_allclose(tf.function(f)(X, -X), expected, rtol=1e-14)
    assert not {"stack"} & set(names(f, X, -X)) or axis == 0
    with pytest.raises(IndexError, match="out of bounds"):
        tf.function(lambda x: tf.gather(tf.reshape(tf.stack([x, x], 1), (-1,)), [48, 0]))(X)


@pytest.mark.parametrize("size", [3, 1000, 80_000])
def test_kernels_write_into_their_place_in_a_concatenation(size):
    """Small programs, memory that is kept, and threads; parts that are read again or returned."""
    x = np.random.default_rng(1).normal(size=size)

    def f(x):
        a, b = tf.sin(x), tf.exp(x)
        return tf.concat([a, b, a + b], 0), tf.reduce_sum(a), tf.stack([b * 2, x])

    for _ in range(2):
        joined, total, stacked = tf.function(f)(x)
        a, b = np.sin(x), np.exp(x)
        np.testing.assert_allclose(joined, np.concatenate([a, b, a + b]), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(total, a.sum(), rtol=1e-12)
        np.testing.assert_allclose(stacked, np.stack([2 * b, x]), rtol=1e-14)
    returned = tf.function(lambda x: (tf.concat([y := tf.sin(x), x * 2], 0), y))(x)
    np.testing.assert_allclose(returned[0][:size], returned[1], rtol=0)
    twice = tf.function(lambda x: tf.concat([y := tf.sin(x), y], 0))(x)
    np.testing.assert_allclose(twice, np.tile(np.sin(x), 2), rtol=1e-14)
    text = tf.function(lambda x: tf.concat([tf.sin(x), tf.exp(x)], 0)).kernels(x)[0]
    assert "run_" not in text
