"""Images of another size: TensorFlow's numbers, derivatives, and what is refused."""

import numpy as np
import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.quick
IMAGES = np.random.default_rng(0).normal(size=(2, 4, 5, 3))


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(2, 3), (7, 5), (1, 9)])
def test_derivatives(size, method):
    tf.assert_gradients(lambda x: tf.image.resize(x, size, method) ** 2, IMAGES, order=2)
    resized = tf.function(lambda x: tf.image.resize(x, size, method))(tf.constant(IMAGES[0]))
    np.testing.assert_allclose(resized, tf.image.resize(IMAGES, size, method)[0], rtol=1e-14)


def test_sizes_and_dtypes():
    """Rows 0, 1, 2 to two: centres at .25 and 1.75 of three. From TensorFlow 2.21."""
    x = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)
    result = tf.image.resize(x, (2, 3))
    assert result.dtype == tf.float32
    expected = [1.1666667, 2.5, 3.8333333, 7.1666667, 8.5, 9.8333333]
    np.testing.assert_allclose(result.numpy().ravel(), expected, rtol=1e-6)
    nearest = tf.image.resize(x, [2, 3], tf.image.ResizeMethod.NEAREST_NEIGHBOR)
    assert nearest.dtype == tf.uint8
    assert nearest.numpy().ravel().tolist() == [0, 2, 3, 8, 10, 11]
    assert tf.image.resize(x, (30, 8), preserve_aspect_ratio=True).shape == (6, 8, 1)
    batched = tf.vectorized_map(lambda x: tf.image.resize(x, (2, 2)), IMAGES)
    np.testing.assert_allclose(batched, tf.image.resize(IMAGES, (2, 2)), rtol=1e-14)


def test_a_pixel_stays_where_no_other_is_asked():
    """An equal size copies, NaN too; ties of "nearest" are those of float32, as TensorFlow's."""
    x = np.ones((1, 3, 3, 1))
    x[0, 1, 1] = np.nan
    np.testing.assert_array_equal(tf.image.resize(x, (3, 3)), x)
    assert np.isnan(tf.image.resize(x, (5, 9))).sum() == 15
    row = np.arange(14).reshape(14, 1, 1)
    assert tf.image.resize(row, (23, 1), "nearest").numpy().ravel()[11] == 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((IMAGES, (2, 2), "bicubic"), 'method must be "bilinear" or "nearest"'),
        ((IMAGES, 2), "size must be two positive integers"),
        ((IMAGES, (2, 0)), "size must be two positive integers"),
        ((IMAGES[0, 0], (2, 2)), "must have 3 or 4 axes"),
        ((IMAGES, (2, 2), "bilinear", False, True), "antialias=True is not supported"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        tf.image.resize(*arguments)
