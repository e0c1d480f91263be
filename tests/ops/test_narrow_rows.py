"""softmax and its kin over rows of few elements, of which there are many."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tinygrad_cg_kernels.reduce import narrow

ROWS = 20_000
OPERATIONS = {
    "softmax": lambda x: tf.nn.softmax(x),
    "log_softmax": lambda x: tf.nn.log_softmax(x),
    "logsumexp": lambda x: tf.reduce_logsumexp(x, axis=-1),
    "cross-entropy": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(
        tf.zeros(x.shape[:-1], "int32"), x
    ),
    "logsumexp, kept": lambda x: tf.reduce_logsumexp(x, axis=-1, keepdims=True),
}


def reference(name, x):
    with np.errstate(all="ignore"):
        x = x.astype("float64")
        top = x.max(-1, keepdims=True)
        top = np.where(np.isfinite(top), top, np.clip(top, -1e308, 1e308))
        total = np.exp(x - top).sum(-1, keepdims=True)
        if name == "softmax":
            return np.exp(x - top) / total
        if name == "log_softmax":
            return x - top - np.log(total)
        if name == "cross-entropy":
            return (top + np.log(total) - x[..., :1])[..., 0]
        result = top + np.log(total)
        return result if "kept" in name else result[..., 0]


def values(columns, dtype, shape=()):
    return np.random.default_rng(columns).normal(0, 3, (*shape, ROWS, columns)).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 2, 3, 8, 16, 17])
@pytest.mark.parametrize("name", OPERATIONS)
class TestValues:
    def test_eager_and_compiled(self, name, columns, dtype):
        x = values(columns, dtype)
        wanted = reference(name, x)
        for function in (OPERATIONS[name], tf.function(OPERATIONS[name], jit_compile=True)):
            result = function(tf.constant(x))
            assert result.dtype == dtype
            eps = np.finfo(dtype).eps
            assert_allclose(result.numpy(), wanted, rtol=8 * eps, atol=8 * eps)

    def test_gradients(self, name, columns, dtype):
        x = tf.constant(values(columns, dtype))

        def total(x):
            return tf.reduce_sum(OPERATIONS[name](x) ** 2)

        eps = np.finfo(dtype).eps
        few = np.concatenate([tf.grad(total)(part).numpy() for part in tf.split(x, 100)])
        for gradient in (tf.grad(total), tf.function(tf.grad(total), jit_compile=True)):
            assert_allclose(gradient(x).numpy(), few, rtol=64 * eps, atol=64 * eps)


@pytest.mark.parametrize("name", OPERATIONS)
def test_special_values(name, monkeypatch):
    """Rows with infinities and NaN are what the kernel for wide rows gives."""
    x = values(4, "float64")
    x[:6] = [
        [np.inf, 0, 1, 2],
        [-np.inf, 0, 1, 2],
        [-np.inf] * 4,
        [np.nan, 0, 1, 2],
        [1e308, -1e308, 1e308, 0],
        [np.inf, -np.inf, np.inf, 0],
    ]
    result = OPERATIONS[name](tf.constant(x)).numpy()
    monkeypatch.setattr(narrow, "MIN_SIZE", np.inf)
    wanted = OPERATIONS[name](tf.constant(x)).numpy()
    assert_allclose(result, wanted, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("name", OPERATIONS)
def test_other_layouts(name):
    x = values(4, "float64", (2,))
    wanted = reference(name, x)
    assert_allclose(OPERATIONS[name](tf.constant(x)).numpy(), wanted, rtol=1e-13, atol=1e-14)
    flipped = tf.transpose(tf.constant(np.ascontiguousarray(x.T)))
    assert_allclose(OPERATIONS[name](flipped).numpy(), wanted, rtol=1e-13, atol=1e-14)


def test_the_operand_is_not_written_to():
    x = values(4, "float32")
    tensor = tf.constant(x)
    for operation in OPERATIONS.values():
        operation(tensor)
    assert_array_equal(tensor.numpy(), x)


@pytest.mark.parametrize("name", OPERATIONS)
def test_integers_and_arrays_that_are_not_writeable(name):
    x = np.random.default_rng(0).integers(-3, 4, (ROWS, 3))
    assert_allclose(OPERATIONS[name](tf.constant(x)).numpy(), reference(name, x), rtol=1e-14)
    fixed = x.astype("float64")
    expected = OPERATIONS[name](tf.constant(fixed)).numpy()
    fixed.flags.writeable = False
    assert_array_equal(OPERATIONS[name](fixed).numpy(), expected)
