"""ravel_tree: to one vector and back, with gradients both ways."""

import numpy as np
import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.quick


def tree():
    return {
        "w": tf.constant(np.arange(6.0).reshape(2, 3)),
        "b": [tf.Variable(1.5), np.float32(2.0)],
        "a": (np.array([], np.float32), 3),
    }


def test_there_and_back():
    vector, unravel = tf.ravel_tree(tree())
    assert vector.dtype == np.float64
    assert vector.numpy().tolist() == [3.0, 1.5, 2.0, *range(6)]
    back = unravel(vector * 2.0)
    assert list(back) == ["w", "b", "a"]
    assert back["w"].numpy().tolist() == [[0.0, 2.0, 4.0], [6.0, 8.0, 10.0]]
    assert [leaf.dtype.name for leaf in tf.nest.flatten(back)] == [
        *("float32", "int32", "float32", "float32", "float64")
    ]
    assert isinstance(back["a"], tuple)
    assert back["a"][0].shape == (0,)


def test_gradients_flow_both_ways():
    """The second derivative of sum(w**3) b, by the vector that both come from."""
    params = {"w": tf.constant([1.0, 2.0]), "b": tf.constant(3.0)}
    vector, unravel = tf.ravel_tree(params)

    def cube(vector):
        parts = unravel(vector)
        return tf.reduce_sum(parts["w"] ** 3) * parts["b"]

    with tf.GradientTape() as outer:
        outer.watch(vector)
        with tf.GradientTape() as tape:
            tape.watch(vector)
            y = cube(vector)
        first = tape.gradient(y, vector)
    assert first.numpy().tolist() == [9.0, 9.0, 36.0]
    assert outer.gradient(first, vector).numpy().tolist() == [3 + 12.0, 3 + 18.0, 12 + 36.0]
    with tf.GradientTape() as tape:
        tape.watch(params)
        z = tf.reduce_sum(tf.ravel_tree(params)[0] * [1.0, 2.0, 4.0])
    assert tf.nest.map_structure(lambda g: g.numpy().tolist(), tape.gradient(z, params)) == {
        "w": [2.0, 4.0],
        "b": 1.0,
    }


def test_a_leaf_and_nothing():
    vector, unravel = tf.ravel_tree(tf.constant(2.0))
    assert (vector.shape, unravel(vector).numpy()) == ((1,), 2.0)
    vector, unravel = tf.ravel_tree([])
    assert (vector.shape, unravel(vector)) == ((0,), [])


def test_what_does_not_fit():
    _, unravel = tf.ravel_tree([1.0, [2.0, 3.0]])
    with pytest.raises(ValueError, match=r"needs a vector of 3 elements, got shape \(2,\)"):
        unravel([1.0, 2.0])
    with pytest.raises(ValueError, match=r"needs a vector of 2 elements, got shape \(2, 1\)"):
        tf.ravel_tree({"x": 1.0, "y": 2.0})[1]([[1.0], [2.0]])
    with pytest.raises(TypeError, match="unsupported type"):
        tf.ravel_tree({"x": "text"})


def test_scipy_minimizes_a_tree():
    optimize = pytest.importorskip("scipy.optimize")
    start = {"x": tf.constant(-1.2, tf.float64), "y": tf.constant([1.0], tf.float64)}
    vector, unravel = tf.ravel_tree(start)

    def loss(point):
        point = tf.constant(point)
        with tf.GradientTape() as tape:
            tape.watch(point)
            params = unravel(point)
            x, y = params["x"], params["y"][0]
            value = (1 - x) ** 2 + 100 * (y - x * x) ** 2
        return float(value), tape.gradient(value, point).numpy()

    optimum = optimize.minimize(loss, vector.numpy(), jac=True)
    assert optimum.success
    np.testing.assert_allclose(optimum.x, [1.0, 1.0], rtol=1e-4)
