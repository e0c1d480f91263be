"""docs/behaviour.md, decision 16: floating point never warns, and what is too large is infinite."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import gradient, run_in_threads
from tinygrad_cg_kernels.linear import matmul
from tinygrad_cg_kernels.reduce import reduction as kreduce
from tinygrad_cg_kernels.reduce import softmax as ksoftmax
from tinygrad_cg_kernels.runtime import errstate

pytestmark = pytest.mark.quick

HUGE = 1e300


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda: tf.constant([1.0]) * HUGE, id="weak operand"),
        pytest.param(lambda: tf.constant([HUGE]), id="list"),
        pytest.param(lambda: tf.constant(np.array([HUGE]), dtype=tf.float32), id="array"),
        pytest.param(lambda: tf.constant([1.0]) * np.float64(HUGE), id="NumPy scalar"),
        pytest.param(lambda: tf.cast(tf.constant([HUGE], tf.float64), tf.float32), id="cast"),
        pytest.param(lambda: tf.Variable([1.0]).assign([HUGE]), id="assign"),
        pytest.param(lambda: tf.Variable([1.0]).assign(np.array([HUGE])), id="assign an array"),
    ],
)
def test_overflow_in_a_cast_is_silent(program):
    """Decision 16: floating point never warns; as IEEE, and as the original, infinite."""
    with np.errstate(all="warn"):
        result = program()
    assert result.dtype == tf.float32
    assert result.numpy().tolist() == [np.inf]


def test_overflow_in_gradients_is_silent():
    """Decision 16: upstreams and what rules return are cast in silence where they are weak."""

    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: HUGE

    with np.errstate(all="warn"):
        assert gradient(f, tf.constant(1.0)) == [np.inf]
        assert gradient(lambda x: x * 2.0, tf.constant(1.0), output_gradients=HUGE) == [np.inf]


def test_products_of_infinities_do_not_warn():
    assert np.isnan(tf.matmul([[np.inf]], [[0.0]]).numpy())
    assert np.isnan(tf.linalg.matvec([[np.inf]], [0.0]).numpy())
    assert np.isinf(tf.matmul([[1e30]], [[1e30]]).numpy())
    large = tf.constant([[6e4]], tf.float16)
    assert np.isinf(tf.matmul(large, large).numpy())
    assert np.isinf(matmul.matmul(large.numpy(), large.numpy()))


def test_numbers_that_are_too_large_are_infinite():
    half = tf.constant([1.0], tf.float16)
    for value in (half * 1e10, tf.math.add(half, [1e10]), half * np.float64(1e10)):
        assert value.dtype == tf.float16
        assert np.isinf(value.numpy()).all()
    assert np.isinf((tf.constant([2.0], tf.float16) ** 1e10).numpy()).all()
    for value in (1e300, [1e300], [[1e300, -1e300]]):
        assert np.isinf(tf.constant(value).numpy()).all()
    for value in (np.array([1e300]), np.float64(1e300), 1e300, [1e300]):
        assert np.isinf(tf.constant(value, tf.float32).numpy()).all()
    assert np.isinf(tf.random.uniform([2], 1e6, 2e6, tf.float16).numpy()).all()


def test_reductions_of_float16_are_rounded_once():
    x = tf.constant([60000.0, 60000.0], tf.float16)
    assert np.isinf(tf.reduce_sum(x).numpy())
    assert tf.reduce_mean(x) == 60000.0
    assert tf.reduce_mean(x).dtype == tf.float16
    assert tf.reduce_mean(tf.constant([[60000.0] * 3] * 2, tf.float16), 0).numpy().tolist() == [
        *(60000.0, 60000.0, 60000.0)
    ]
    huge = np.full(4, 65504, np.float16)
    assert np.isinf(kreduce.sum(huge, (0,)))
    assert ksoftmax.logsumexp(huge, (0,)) == 65504
    assert np.isneginf(ksoftmax.log_softmax(np.array([65504, -65504], np.float16), 0)[1])


def test_the_callers_handling_of_floating_point_stays():
    with np.errstate(all="raise"):
        assert np.isnan(tf.matmul([[np.inf]], [[0.0]]).numpy())
        with pytest.raises(FloatingPointError):
            np.divide(1.0, 0.0)


def test_products_in_other_threads_do_not_warn():
    def work():
        for _ in range(50):
            errstate.quiet.run(np.matmul, np.array([[np.inf]]), np.array([[0.0]]))

    run_in_threads(*[work] * 3)
