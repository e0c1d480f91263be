"""Functions of matrices on a device: errors, matrices without elements, and singular ones."""

import numpy as np
import pytest

import tinygrad_cg as tf

SINGULAR = np.ones((2, 2))


@pytest.mark.parametrize(
    "find",
    [
        lambda x, b: tf.linalg.inv(x),
        lambda x, b: tf.linalg.inv(tf.stack([x + tf.constant(np.eye(2)), x])),
        lambda x, b: tf.linalg.cholesky(-x),
        lambda x, b: tf.linalg.cholesky(tf.stack([x, -x])),
        lambda x, b: tf.linalg.sqrtm(x - 1.0),
        lambda x, b: tf.linalg.logm(-x),
        lambda x, b: tf.linalg.solve(x, b),
        lambda x, b: tf.linalg.triangular_solve(x - 1.0, b),
    ],
)
def test_a_matrix_without_the_result_is_an_error(find):
    for move in (lambda x: x, lambda x: x.gpu()):
        x, b = move(tf.constant(SINGULAR)), move(tf.constant(np.ones((2, 1))))
        with pytest.raises(tf.errors.MatrixError), tf.device(x.device):
            find(x, b)


@pytest.mark.parametrize(
    "matrix",
    [
        np.array([[2.0, 1.0], [0.5, 3.0]]),
        *(SINGULAR, np.zeros((2, 2)), np.diag([1.0, 2, 0]), np.stack([np.eye(2), SINGULAR])),
    ],
)
def test_the_determinant_of_any_matrix_has_a_gradient(matrix):
    gradients = []
    for move in (lambda x: x, lambda x: x.gpu()):
        x = move(tf.constant(matrix))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.linalg.det(x)
        gradients.append(tape.gradient(y, x).numpy())
    np.testing.assert_allclose(gradients[1], gradients[0], 1e-9, 1e-12)


@pytest.mark.parametrize("shape", [(0, 0), (0, 3, 3)])
def test_matrices_without_elements(shape):
    for find in (
        lambda x: tf.linalg.expm(x),
        lambda x: tf.linalg.logm(x),
        lambda x: tf.linalg.eigh(x)[1],
        lambda x: tf.linalg.svd(x)[0],
    ):
        results = []
        for move in (lambda x: x, lambda x: x.gpu()):
            x = move(tf.zeros(shape))
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = find(x)
            results.append((y.shape, y.dtype, tape.gradient(y, x).shape))
        assert results[0] == results[1]


@pytest.mark.parametrize("solve", [tf.linalg.solve, tf.linalg.triangular_solve])
@pytest.mark.parametrize(
    "shapes", [((3, 3), (2, 3, 2)), ((2, 3, 3), (3, 2)), ((1, 3, 3), (2, 3, 1))]
)
def test_systems_broadcast(solve, shapes):
    """The library of arrays there does not by itself."""
    rng, results = np.random.default_rng(0), []
    x, y = (rng.normal(size=shape) for shape in shapes)
    for move in (lambda x: x, lambda x: x.gpu()):
        sources = move(tf.constant(x + 3 * np.eye(3))), move(tf.constant(y))
        with tf.GradientTape() as tape:
            tape.watch(sources)
            z = solve(*sources)
        results.append([z, *tape.gradient(z, sources)])
    for here, there in zip(*results, strict=True):
        assert there.device == "gpu:0"
        np.testing.assert_allclose(there, here, 1e-12, 1e-12)
