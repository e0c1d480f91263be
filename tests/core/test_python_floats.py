"""Python's floats beside float64: none is rounded to float32, which they are alone."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg import keras
from tinygrad_cg import numpy as tgn

X = np.array([0.3, 0.7])
SHARES = np.array([0.1, 0.2])
EULER = np.log1p(np.exp(X))

ROWS = [
    ("tf.cast(0.1, 'float64')", 0.1),
    ("tf.cast([0.1, 0.2], 'float64')", SHARES),
    ("tf.cast([0.1, 1e300], 'complex128')", [0.1, 1e300]),
    ("tf.cast([1.9, -1.9], 'int32')", [1, -1]),
    ("keras.ops.cast(0.1, 'float64')", 0.1),
    ("keras.ops.convert_to_tensor([0.1, 0.2], 'float64')", SHARES),
    ("keras.ops.array([0.1, 0.2], 'float64')", SHARES),
    ("np.add(x, 0.1, dtype=np.float64)", X + 0.1),
    ("np.multiply(x, [0.1, 0.2], dtype=np.float64)", X * SHARES),
    ("tf.Variable(X).assign([0.1, 0.2])", SHARES),
    ("tf.Variable(0.5, dtype='float64').assign(0.1)", 0.1),
    ("tf.Variable(X).assign_add([0.1, 0.2])", X + SHARES),
    ("tf.Variable(X)[0].assign(0.1)", [0.1, 0.7]),
    ("tf.searchsorted(SHARES, [0.1, 0.2])", [0, 1]),
    ("tf.searchsorted([0.1, 0.2], SHARES)", [0, 1]),
    ("keras.ops.searchsorted([0.1, 0.2], SHARES)", [0, 1]),
    ("keras.ops.digitize(SHARES, [0.1, 0.2])", [1, 2]),
    ("tf.one_hot([0], 2, 0.1, 0.2, dtype='float64')", [SHARES]),
    (
        "tf.math.confusion_matrix([0, 1], [0, 1], weights=[0.1, 0.2], dtype='float64')",
        np.diag(SHARES),
    ),
    ("tf.linalg.lstsq(np.eye(2), np.ones((2, 1)), 0.1)", np.full((2, 1), 1 / 1.1)),
    ("tf.nn.batch_normalization(x, 0.1, 0.2, 0.3, 0.4, 0.05)", (X - 0.1) * 0.8 + 0.3),
    (
        "tf.nn.batch_normalization(x, *[[k, k] for k in (0.1, 0.2, 0.3, 0.4)], 0.05)",
        (X - 0.1) * 0.8 + 0.3,
    ),
    (
        "keras.ops.layer_normalization(x, [0.1, 0.2], [0.3, 0.4], epsilon=0.05)",
        [0.3 - 0.1 * 0.2 / 0.3, 0.4 + 0.2 * 0.2 / 0.3],
    ),
    ("tf.nn.weighted_moments(x, 0, [0.1, 0.3])[0]", 0.6),
    ("tf.nn.sigmoid_cross_entropy_with_logits([0.1, 0.2], x)", EULER - X * SHARES),
    (
        "tf.nn.weighted_cross_entropy_with_logits([0.1, 0.2], x, 0.1)",
        0.1 * SHARES * (EULER - X) + (1 - SHARES) * EULER,
    ),
    (
        "tf.nn.softmax_cross_entropy_with_logits([0.1, 0.9], x)",
        np.log(np.exp(X).sum()) - X @ [0.1, 0.9],
    ),
    ("tf.nn.log_poisson_loss([0.1, 0.2], x)", np.exp(X) - X * SHARES),
    (
        "keras.ops.stft(np.ones(2), 2, 2, 2, window=[0.1, 0.2], center=False)[0]",
        [[0.1 + 0.2, 0.1 - 0.2]],
    ),
    ("keras.losses.mean_squared_error([0.1, 0.2], x)", 0.145),
    ("keras.losses.huber([0.1, 0.2], x, 0.1)", np.mean([0.1 * 0.15, 0.1 * 0.45])),
    (
        "keras.losses.binary_crossentropy([0.1, 0.9], x)",
        -np.mean([0.1, 0.9] * np.log(X) + [0.9, 0.1] * np.log(1 - X)),
    ),
    ("keras.losses.MeanSquaredError(dtype='float64')([0.1, 0.2], x)", 0.145),
    ("keras.losses.MeanSquaredError(dtype='float64')(SHARES, [0.3, 0.7], 0.1)", 0.0145),
    ("keras.metrics.Mean(dtype='float64')([0.1, 0.2], [0.1, 0.3])", 0.175),
    ("tgn.piecewise(x, [x > 0.5], [0.1, 0.2])", [0.2, 0.1]),
    ("tf.math.divide_no_nan(x, 0.1)", X / 0.1),
    ("tf.math.xlog1py(x, [0.1, 0.2])", X * np.log1p(SHARES)),
    ("tf.nn.bias_add([[0.1, 0.2]], x)", [X + SHARES]),
    ("tf.nn.compute_average_loss([0.1, 0.2], x)", np.mean(X * SHARES)),
    ("tf.nn.convolution(X[None, :, None], [[[0.1, 0.2]]])", [X[:, None] * SHARES]),
    ("tf.reduce_max(tf.nn.dropout(tf.ones(9, 'float64'), 0.1, seed=1))", 1 / 0.9),
    ("tf.saturate_cast([0.1, 0.2], 'float64')", SHARES),
    ("tf.linalg.cholesky_solve([[0.1]], x[:1, None])", [[0.3 / 0.1**2]]),
    ("tf.linalg.lu_solve(np.eye(2), [0, 1], [[0.1], [0.2]])", SHARES[:, None]),
    ("tf.linalg.banded_triangular_solve([[0.1, 0.2]], x[:, None])", (X / SHARES)[:, None]),
    ("tf.linspace(x, [0.1, 0.2], 2)[1]", SHARES),
    ("keras.ops.average(x, weights=[0.1, 0.2])", X @ SHARES / 0.3),
    ("keras.ops.append(x, [0.1])", [0.3, 0.7, 0.1]),
    ("keras.ops.cdist(x[:, None], [[0.1]])", X[:, None] - 0.1),
    ("keras.ops.dot(x, [0.1, 0.2])", X @ SHARES),
    ("keras.ops.fmin(x, [0.1, 0.2])", SHARES),
    ("keras.ops.full_like(x, [0.1, 0.2])", SHARES),
    ("keras.ops.geomspace(0.1, x, 2)[0]", [0.1, 0.1]),
    ("keras.ops.hstack([x, [0.1]])", [0.3, 0.7, 0.1]),
    ("keras.ops.isin(SHARES, [0.1, 0.2])", [True, True]),
    ("keras.ops.outer(x, [0.1, 0.2])", np.outer(X, SHARES)),
    ("keras.ops.polar(x, 0.1)", X * np.exp(0.1j)),
    ("keras.ops.psnr(x, x + 1.0, 0.1)", -20.0),
    ("keras.ops.select([x > 0.5], [[0.1, 0.2]], x)", [0.3, 0.2]),
    ("keras.ops.trapezoid(x, [0.1, 0.2])", 0.05),
]


@pytest.mark.parametrize(("call", "expected"), ROWS, ids=[call for call, _ in ROWS])
def test_no_float_is_rounded(call, expected):
    x = tf.constant(X)
    result = eval(call, {**globals(), "tgn": tgn, "x": x})
    np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-14)


def test_the_default_stays_float32():
    """Nothing of float64 is there: the dtypes are those that they were."""
    assert tf.cast([0.1], tf.float32).dtype == tf.constant([0.1]).dtype == tf.float32
    assert keras.losses.mean_squared_error([0.1], [0.2]).dtype == tf.float32
    assert keras.losses.MeanSquaredError()([0.1], [0.2]).dtype == tf.float32
    assert keras.losses.MeanSquaredError()([0.1], tf.constant([0.2])).dtype == tf.float32
    assert tf.Variable([1.0]).assign([0.1]).dtype == tf.float32
    assert tf.nn.sigmoid_cross_entropy_with_logits([0.1], tf.constant([0.2])).dtype == tf.float32


def test_arguments_of_a_program_are_not_rounded():
    program = tf.function(lambda number: tf.cast(number, tf.float64) * 1.0)
    assert float(program(0.1)) == 0.1


def test_gradients_for_an_optimizer_are_not_rounded():
    w = tf.Variable(1.0, dtype="float64")
    tf.optimizers.SGD(tf.Variable(0.5, dtype="float64")).apply_gradients([(0.1, w)])
    assert float(w) == 0.95
