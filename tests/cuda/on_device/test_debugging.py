"""debug_nans, check_numerics and traces see what is on a device."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_clean_state

NonFinite = tf.errors.NonFiniteError


CASES = {
    "a NaN": (lambda x: tf.math.log(x - 2.0), {}),
    "an infinity": (lambda x: tf.math.log(x - 1.0), {}),
    "of two operands": (lambda x: (x - x) / (x - x), {}),
    "of a number": (lambda x: 1.0 / tf.reduce_sum(x - x), {}),
    "NaNs alone": (lambda x: tf.exp(1000.0 * x) - tf.exp(1000.0 * x), {"infs": False}),
    "backward": (lambda x: tf.elementwise_grad(tf.sqrt)(x - 1.0), {}),
    "in a function": (tf.function(lambda x: tf.math.log(x - 2.0) * 2.0), {}),
    "half": (lambda x: tf.math.log(tf.cast(x, "float16") - 2.0), {}),
    "complex": (lambda x: tf.cast(x - 1.0, "complex64") / tf.cast(x - 1.0, "complex64"), {}),
}


def words(call, x, options):
    """The words of the error that the detector raises, or what there was instead of one."""
    try:
        with tf.debug_nans(**options):
            result = call(x)
    except NonFinite as error:
        return str(error)
    finally:
        assert_clean_state()
    return result


@pytest.mark.parametrize("name", CASES)
def test_the_first_nan_or_infinity_on_a_device_is_an_error_in_the_words_of_the_cpu(name):
    call, options = CASES[name]
    x = tf.constant([1.0, 2.0])
    want, result = [words(call, value, options) for value in (x, x.gpu())]
    assert isinstance(want, str)
    assert result == want


def test_finite_results_and_masks_on_a_device_pass():
    mask = tf.constant([0.0, -np.inf]).gpu()
    with tf.debug_nans():
        y = tf.nn.softmax(tf.constant([1.0, 2.0]).gpu() + mask)
    assert y.device == "gpu:0"
    np.testing.assert_allclose(y.numpy(), [1.0, 0.0])


def test_check_numerics_of_a_thread_sees_results_on_a_device():
    x = tf.constant([1.0, 2.0]).gpu()
    tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(
            NonFinite, match=r"log returned a NaN: 1 of 2 elements, the first at \[0\]"
        ):
            tf.math.log(x - 1.5)
    finally:
        tf.debugging.disable_check_numerics()
    assert np.isnan(tf.math.log(x - 1.5).numpy()[0])


def test_a_trace_measures_results_on_a_device():
    def traced(x):
        with tf.debugging.trace() as events:
            tf.math.log(tf.square(x) - 1.0)
        return [(event.name, event.norm, event.nans, event.infs) for event in events.events]

    x = tf.constant([1.0, 2.0])
    assert traced(x.gpu()) == traced(x)
