"""Every call of the spelling tables, and composite functions of tensors, compiled."""

import inspect
import re
import warnings

import numpy
import numpy as np
import pytest

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp
from tests.spellings import test_keras as test_spellings_keras
from tests.spellings import test_numpy as test_spellings_numpy
from tests.spellings import test_tensorflow as test_spellings_tensorflow
from tests.support.compiled import unfused
from tinygrad_cg.keras import ops

NAMES = test_spellings_keras.NAMES | {"tf": tf, "np": np, "numpy": numpy}
BY_VALUES = re.compile(
    r"if x > 0|ops\.(histogram|nonzero)|histogram_fixed_width|select_range|mel_weight_matrix"
)
"""Calls whose steps, or whose result's shape, depend on values: a `function` has none."""
CALLS = [
    *[
        (call, NAMES)
        for call, _ in (*test_spellings_tensorflow.ROWS, *test_spellings_keras.ROWS)
        if not BY_VALUES.search(call)
    ],
    *[(call, NAMES | {"np": tnp}) for call in test_spellings_numpy.CASES],
]


@pytest.mark.parametrize(("call", "names"), CALLS, ids=[call for call, _ in CALLS])
def test_call(call, names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = eval(call, dict(names))
        leaves = tf.nest.flatten(expected)
        if not all(isinstance(leaf, tf.Tensor) for leaf in leaves):
            return
        results = unfused(lambda: eval(call, dict(names)))()
    assert tf.nest.is_nested(results) == tf.nest.is_nested(expected)
    for result, other in zip(tf.nest.flatten(results), leaves, strict=True):
        assert result.dtype == other.dtype
        np.testing.assert_array_equal(result, other)


COMPOSITES = [
    lambda x: tf.reduce_logsumexp(x, 1),
    lambda x: tf.nn.softmax(x),
    lambda x: tf.nn.log_softmax(x, axis=0),
    lambda x: tf.norm(x, axis=0),
    lambda x: tf.norm(x, ord=1),
    lambda x: tf.tensordot(x, x, [[0], [0]]),
    lambda x: tf.matmul(x, x, transpose_b=True),
    lambda x: tf.linalg.matvec(x, x[0]),
    lambda x: tf.reduce_mean(x, 0) - tf.reduce_prod(x, 1)[:3],
    lambda x: tf.clip_by_value(x, -0.5, 0.5),
    lambda x: tf.where(x > 0, tf.sqrt(tf.abs(x)), x),
    lambda x: tf.stack(tf.unstack(x), 1),
    lambda x: tf.concat([x, x * 2], 1)[:, 1:4],
    lambda x: tf.gather(x, [2, 0, 2], axis=0),
    lambda x: tf.reduce_max(x, 1) * tf.reduce_min(x, 0)[0],
    lambda x: tf.linspace(x[0], x[1], 5),
    lambda x: tf.fill([2, 2], x[0, 0]),
    lambda x: tf.transpose(tf.reshape(x, [2, -1])),
    lambda x: tf.round(x * 3) + tf.floor(x) + tf.sign(x),
    lambda x: x**2 + 2**x - x**-1 + x**0.5 * 0 + (x**2) ** x,
    lambda x: x % 0.3 + x // 0.3,
    lambda x: ops.mean(ops.relu(x), axis=1),
    lambda x: tnp.mean(tnp.abs(x)) + tnp.sum(x, axis=-1),
    lambda x: np.exp(x) + np.matmul(x, x.T)[0, 0],
    lambda x: tf.cast(tf.argmax(x, 1), x.dtype) * x[:, 0],
    lambda x: tf.cast(x, tf.float32) * 1.5,
    lambda x: tf.zeros_like(x) + tf.ones([4, 3]) * x,
    lambda x: tf.abs(tf.cast(x, tf.complex128) * 1j) ** 2,
]


def derivatives(function, x):
    """The value, the gradient, and the gradient of its sine's sum."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        first = tape.gradient(y, x)
        again = tf.reduce_sum(tf.sin(first))
    return y, first, outer.gradient(again, x, unconnected_gradients="zero")


@pytest.mark.parametrize("function", COMPOSITES, ids=lambda f: inspect.getsource(f).strip())
def test_composite(function):
    x = tf.constant(np.random.default_rng(5).normal(size=(4, 3)))
    expected = derivatives(function, x)
    for way in (
        unfused(lambda x: derivatives(function, x)),
        lambda x: derivatives(unfused(function), x),
    ):
        for result, other in zip(way(x), expected, strict=True):
            assert result.dtype == other.dtype
            np.testing.assert_allclose(result, other, rtol=1e-12, atol=1e-12)
