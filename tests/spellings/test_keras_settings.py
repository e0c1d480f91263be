"""``keras.config`` and ``keras.backend``: what they set holds in `keras.ops` and the losses."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._ops.settings import Settings, settings
from tinygrad_cg.keras import backend, config, ops


@pytest.fixture(autouse=True)
def defaults():
    """Every test begins with what Keras begins with, and leaves that."""
    yield
    vars(settings).clear()
    assert settings.floatx == Settings.floatx == "float32"


IMAGE = np.arange(32.0, dtype="f").reshape(1, 4, 4, 2)
MADE = {  # as Keras 3.15 on TensorFlow with set_floatx("float64")
    "float64": (
        lambda: ops.zeros((2,)),
        lambda: ops.ones(2),
        lambda: ops.empty(2),
        lambda: ops.full((2,), 1),
        lambda: ops.eye(2),
        lambda: ops.identity(2),
        lambda: ops.tri(2),
        lambda: ops.arange(3.0),
        lambda: ops.linspace(0, 1, 3),
        lambda: ops.logspace(0.0, 1.0, 3),
        lambda: ops.one_hot([1], 3),
        lambda: ops.multi_hot([1], 3),
        lambda: ops.sqrt(np.array([1, 2])),
        lambda: ops.divide(np.array([1]), np.array([2])),
        lambda: ops.var(np.array([1, 2])),
        lambda: tf.keras.random.normal((2,)),
        lambda: tf.keras.random.uniform((2,)),
        lambda: tf.keras.random.gamma((2,), 1.0),
        lambda: tf.keras.losses.mean_squared_error([[1, 2]], [[3, 4]]),
    ),
    "float32": (
        lambda: ops.convert_to_tensor(1.0),
        lambda: ops.convert_to_tensor([1.0, 2.0]),
        lambda: ops.sin(1.0),
        lambda: ops.add(IMAGE, 1.0),
        lambda: ops.zeros_like(IMAGE),
        lambda: ops.softmax(IMAGE),
        lambda: ops.hanning(4),
        lambda: tf.zeros([2]),
    ),
    "int32": (lambda: ops.convert_to_tensor(1), lambda: ops.arange(3)),
}


@pytest.mark.parametrize("dtype", MADE)
def test_floatx_is_the_dtype_of_what_is_made(dtype):
    for make in MADE[dtype]:
        assert make().dtype in ("float32", "int32")
    backend.set_floatx("float64")
    assert config.floatx() == backend.standardize_dtype(None) == "float64"
    assert [make().dtype.name for make in MADE[dtype]] == [dtype] * len(MADE[dtype])


def test_floatx_half_and_gradients():
    config.set_floatx("float16")
    x = ops.ones(3)
    assert tf.grad(lambda x: ops.sum(x * ops.eye(3)))(x).dtype == tf.float16
    config.set_floatx("float32")
    assert ops.ones(3).dtype == tf.float32


@pytest.mark.parametrize("value", ["int32", "double", None, "bfloat16"])
def test_other_dtypes_are_refused(value):
    with pytest.raises(ValueError, match="set_floatx: Unknown `floatx` value"):
        config.set_floatx(value)
    assert config.floatx() == "float32"


def test_epsilon_limits_probabilities():
    assert config.epsilon() == 1e-7
    config.set_epsilon(1e-3)
    loss = tf.keras.losses.categorical_crossentropy([[0.0, 1.0]], [[1.0, 0.0]])
    np.testing.assert_allclose(loss, [6.9077554], rtol=1e-6)  # Keras's number
    np.testing.assert_allclose(ops.normalize(np.full(1, 1e-4)), [0.1])
    for wrong in (0.0, -1e-3, "1e-3"):
        with pytest.raises(ValueError, match="set_epsilon: value must be a number between"):
            config.set_epsilon(wrong)
    assert backend.epsilon() == 1e-3


def test_order_of_the_axes_of_images():
    first = np.moveaxis(IMAGE, -1, 1)
    expected = ops.max_pool(IMAGE, 2)
    config.set_image_data_format("channels_first")
    assert backend.image_data_format() == "channels_first"
    np.testing.assert_array_equal(np.moveaxis(ops.max_pool(first, 2), 1, -1), expected)
    np.testing.assert_array_equal(ops.max_pool(IMAGE, 2, data_format="channels_last"), expected)
    kernel = np.ones((2, 2, 2, 3), "f")
    assert ops.conv(first, kernel).shape == (1, 3, 3, 3)
    with pytest.raises(ValueError, match="must be one of 'channels_first'"):
        config.set_image_data_format("NCHW")


def test_questions_about_dtypes():
    assert backend.is_float_dtype("float16")
    assert backend.is_int_dtype(np.uint8)
    assert not backend.is_int_dtype(bool)
    assert not backend.is_keras_tensor(tf.constant(1.0))
    with pytest.raises(ValueError, match="is_keras_tensor: x must be a tensor, got float"):
        backend.is_keras_tensor(1.0)
    backend.clear_session()
    assert backend.backend() == "tinygrad_cg"
