"""Activations, normalizations, losses and dropout: derivatives, modes, edges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.modes import assert_right_in_all_modes
from tinygrad_cg.keras import losses, ops

X = np.array([[-2.3, -0.7, 0.4, 1.9], [0.15, -1.2, 2.6, -0.35]])
Y = np.array([[0.3, 0.9, 0.2, 0.7], [0.8, 0.1, 0.6, 0.45]])
BINARY = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
SMOOTH = {
    "gelu": tf.nn.gelu,
    "gelu by tanh": lambda x: tf.nn.gelu(x, True),
    "silu by beta": lambda x, b: tf.nn.silu(x, b[0, 0]),
    "elu": lambda x: ops.elu(x, 0.7),
    "celu": lambda x: ops.celu(x, 0.7),
    "selu": tf.nn.selu,
    "leaky_relu": tf.nn.leaky_relu,
    "relu6": lambda x: tf.nn.relu6(x * 3),
    "hard_silu": ops.hard_silu,
    "squareplus": ops.squareplus,
    "sparse_plus": ops.sparse_plus,
    "soft_shrink": ops.soft_shrink,
    "tanh_shrink": ops.tanh_shrink,
    "sparsemax": ops.sparsemax,
    "glu": ops.glu,
    "crelu": tf.nn.crelu,
    "l2_normalize": lambda x: tf.nn.l2_normalize(x, 1),
    "normalize": lambda x: ops.normalize(x, order=1),
    "moments": lambda x: tf.stack(tf.nn.moments(x, [0])),
    "weighted_moments": lambda x, w: tf.stack(tf.nn.weighted_moments(x, [0], w)),
    "layer_normalization": lambda x, g: ops.layer_normalization(x, g[0], g[1], epsilon=1e-3),
    "rms_normalization": ops.rms_normalization,
    "batch_normalization": lambda x, v: tf.nn.batch_normalization(x, v[0], v[1], x[0], v[0], 1e-3),
    "clip_by_norm": lambda x: tf.clip_by_norm(x, 1.0, 1),
    "clip_by_global_norm": lambda x: tf.clip_by_global_norm([x], 1.0)[0][0],
    "sigmoid_cross_entropy": lambda x, y: tf.nn.sigmoid_cross_entropy_with_logits(y, x),
    "weighted_cross_entropy": lambda x, y: tf.nn.weighted_cross_entropy_with_logits(y, x, 2.5),
    "log_poisson_loss": lambda x, y: tf.nn.log_poisson_loss(y * 3, x, True),
    "hinge": lambda x: losses.hinge(BINARY, x),
    "categorical_hinge": lambda x: losses.categorical_hinge(BINARY, x),
    "huber": lambda x, y: losses.huber(y, x, 0.75),
    "log_cosh": lambda x, y: losses.log_cosh(y, x),
    "kl_divergence": lambda x, y: losses.kl_divergence(tf.nn.softmax(x), y),
    "binary_crossentropy": lambda x: losses.binary_crossentropy(Y, tf.sigmoid(x)),
    "categorical_crossentropy": lambda x: ops.categorical_crossentropy(Y, tf.sigmoid(x)),
    "sparse_categorical_crossentropy": lambda x: ops.sparse_categorical_crossentropy(
        ops.argmax(x * 0 + Y, -1), tf.sigmoid(x)
    ),
    "cosine_similarity": lambda x, y: losses.cosine_similarity(y, x),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_right_in_all_modes(name):
    function = SMOOTH[name]
    two = function.__name__ == "<lambda>" and function.__code__.co_argcount == 2
    operands = (X, Y) if two else (X,)
    assert_right_in_all_modes(function, *operands)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_activations_keep_the_dtype(dtype):
    x = tf.constant(X, dtype)
    for name in ("gelu", "silu", "elu", "selu", "leaky_relu", "relu6", "softsign", "hard_silu"):
        result = getattr(ops, name)(x)
        assert result.dtype == dtype
        wide = getattr(ops, name)(tf.constant(X))
        assert_allclose(result.numpy(), wide.numpy(), rtol=3e-3 if dtype == "float16" else 1e-6)


IN_FLOAT32 = {
    "layer_normalization": ops.layer_normalization,
    "rms_normalization": ops.rms_normalization,
    "l2_normalize": tf.math.l2_normalize,
    "normalize": lambda x: ops.normalize(x, order=3),
    "reduce_std": tf.math.reduce_std,
    "numpy.std": tf.numpy.std,
    "norm": tf.norm,
    "norm, 3": lambda x: tf.norm(x, 3),
    "frobenius": lambda x: tf.norm(tf.reshape(x, (2, 2)), "fro", [0, 1]),
    "nuclear": lambda x: tf.numpy.linalg.norm(tf.reshape(x, (2, 2)), "nuc"),
    "clip_by_norm": lambda x: tf.clip_by_norm(x, 1.0),
    "clip_by_global_norm": lambda x: tf.clip_by_global_norm([x, None], 1.0)[0][0],
    "global_norm": lambda x: tf.linalg.global_norm([x]),
}


@pytest.mark.parametrize("name", IN_FLOAT32)
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_float16_is_squared_in_float32(name, scale):
    """Numbers above 255, and below 1e-4, have no square in float16."""
    function, x = IN_FLOAT32[name], np.array([300, -3000, 2500, 1000]) * scale

    def derivatives(dtype):
        array = tf.constant(x.astype("float16"), dtype)
        weights = tf.cast(tf.constant([0.5, 1.0, -2.0, 3.0]), dtype)

        def total(x):
            y = function(x)
            return tf.reduce_sum(y * weights if y.ndim else y)

        return function(array), tf.grad(total)(array)

    for narrow, wide in zip(derivatives("float16"), derivatives("float32"), strict=True):
        assert narrow.dtype == "float16"
        wide = wide.numpy()
        assert_allclose(narrow.numpy(), wide, rtol=2e-3, atol=2e-3 * np.abs(wide).max() + 1e-7)


MOMENTS = {
    "moments": lambda x: tf.stack(tf.nn.moments(x, [0])),
    "keras moments": lambda x: tf.stack(ops.moments(x, [0])),
    "weighted_moments": lambda x: tf.stack(tf.nn.weighted_moments(x, [0], [1.0, 2.0, 3.0, 700.0])),
    "reduce_variance": tf.math.reduce_variance,
    "numpy.var": tf.numpy.var,
    "keras var": ops.var,
    "normalize_moments": lambda x: tf.stack(
        tf.nn.normalize_moments(tf.ones_like(x), x * 0.75, 57000 + tf.zeros_like(x), None)
    ),
    "sufficient_statistics": lambda x: tf.nn.normalize_moments(
        *tf.nn.sufficient_statistics(x, [0], x[3])
    )[1],
    "batch_normalization": lambda x: tf.nn.batch_normalization(
        x - 290, 0, tf.zeros_like(x), x, None, 1e-3
    ),
    "small epsilon": lambda x: tf.nn.batch_normalization(
        x * 1e-4, 0, tf.zeros_like(x), None, None, 1e-8
    ),
    "by numbers": lambda x: tf.nn.batch_normalization(x * 150, -x * 150, x * 100, 1, 2, 1e-3),
    "keras": lambda x: ops.batch_normalization(
        x * 1e-4, tf.zeros_like(x), tf.zeros_like(x), 0, epsilon=1e-8
    ),
    "global": lambda x: tf.nn.batch_norm_with_global_normalization(
        x * 150, -x * 150, x * 100, x, x * 0.01, 1e-3, True
    ),
    "lrn": lambda x: tf.nn.lrn(tf.reshape(x, (1, 1, 1, 4))),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_of_float16_are_computed_in_float32(name):
    """And rounded once, in values, gradients, tangents and second derivatives."""
    function, x = MOMENTS[name], np.array([300, 332, 252, 310], np.float16)
    along = np.array([0.5, 1, -2, 3])

    def derivatives(x):
        def total(x):
            y = function(x)
            shares = np.linspace(1, 2, y.size).reshape(y.shape).astype(np.float16)
            return tf.reduce_sum(tf.cast(y, tf.float32) * tf.cast(shares, tf.float32))

        v = tf.cast(along, x.dtype)
        slope = tf.grad(total)
        return function(x), slope(x), tf.jvp(function, (x,), (v,))[1], tf.jvp(slope, (x,), (v,))[1]

    narrow, wide = (derivatives(tf.constant(x, dtype)) for dtype in ("float16", "float32"))
    compiled = tf.function(derivatives)(tf.constant(x))
    for result, again, reference in zip(narrow, compiled, wide, strict=True):
        assert result.dtype == again.dtype == "float16"
        reference = reference.numpy()
        limits = {"rtol": 2e-3, "atol": 2e-3 * np.abs(reference).max() + 1e-7}
        assert_allclose(result.numpy(), reference, **limits)
        assert_allclose(again.numpy(), reference, **limits)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(5, 7), (3, 4, 6), (2, 70_000)])
def test_layer_normalization_is_its_operations(shape, dtype):
    """In values and gradients; the row kernels and the operations agree to rounding."""
    rng = np.random.default_rng(0)
    x, weights = (tf.constant(rng.normal(size=shape), dtype) for _ in range(2))
    scale, offset = (tf.constant(rng.normal(size=shape[-1]), dtype) for _ in range(2))

    def by_moments(x, scale, offset):
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-3) * scale + offset

    def derivatives(function):
        def total(*operands):
            return tf.reduce_sum(function(*operands) * weights)

        return function(x, scale, offset), *tf.grad(total, (0, 1, 2))(x, scale, offset)

    results = derivatives(lambda *operands: ops.layer_normalization(*operands, epsilon=1e-3))
    tolerance = 300 * np.finfo(dtype).eps
    for result, expected in zip(results, derivatives(by_moments), strict=True):
        assert_allclose(result.numpy(), expected.numpy(), tolerance, tolerance)


def test_results_of_float16_beside_wider_operands():
    x, ones = tf.constant([300, 400], tf.float16), tf.ones(2)
    assert tf.nn.batch_normalization(x, ones, ones, None, None, 1e-3).dtype == "float32"
    assert tf.nn.weighted_moments(x, [0], ones)[1].dtype == "float16"
    assert tf.norm(x, axis=tf.constant(0)).dtype == "float16"
    count, total, squares, shift = tf.nn.sufficient_statistics(x, [0])
    assert (count.dtype, total.dtype, squares.dtype, shift) == (*["float16"] * 3, None)


def test_limits_at_infinity():
    x = tf.constant([-np.inf, np.inf, np.nan], tf.float64)
    for function in (tf.nn.gelu, tf.nn.silu, ops.hard_silu):
        assert_allclose(function(x).numpy(), [0.0, np.inf, np.nan])
        assert float(tf.grad(function)(x[0])) == 0.0
    assert_allclose(tf.nn.softsign(x).numpy(), [-1.0, 1.0, np.nan])
    assert_allclose(tf.nn.elu(x).numpy(), [-1.0, np.inf, np.nan])


def test_tails_keep_their_digits():
    """By mpmath: x * ncdf(x), and the derivative of x / (1 + |x|), where others cancel."""
    assert float(tf.nn.gelu(tf.constant(-20.0, tf.float64))) == pytest.approx(
        -5.507248237212467e-88, rel=1e-13
    )
    slope = tf.grad(tf.nn.softsign)(tf.constant(-1e8, tf.float64))
    assert float(slope) == pytest.approx(1e-16, rel=1e-7)
    loss = tf.nn.sigmoid_cross_entropy_with_logits
    x = tf.constant([40.0, -40.0, np.inf, -np.inf], tf.float64)
    labels = tf.constant([1.0, 0.0, 1.0, 0.0], tf.float64)
    assert_allclose(loss(labels, x).numpy(), [4.248354255291589e-18] * 2 + [0.0, 0.0], rtol=1e-13)
    assert_allclose(
        tf.grad(lambda x: tf.reduce_sum(loss(labels, x)))(x).numpy(),
        [-4.248354255291589e-18, 4.248354255291589e-18, 0.0, 0.0],
        rtol=1e-13,
    )
    small = tf.constant([[1e-9]], tf.float64)
    assert float(losses.log_cosh(tf.constant([[0.0]]), small)[0]) == pytest.approx(5e-19)


def test_sparsemax_is_the_projection():
    """Example of Martins and Astudillo (2016). Keras 3.15 gives [0, 0.25, 0]."""
    assert_allclose(ops.sparsemax([0.5, 1.0, -1.0]).numpy(), [0.25, 0.75, 0.0])
    rows = np.random.default_rng(0).normal(0, 1, (3, 5, 2))
    result = ops.sparsemax(rows, axis=1).numpy()
    assert_allclose(result.sum(1), 1.0)
    assert (result >= 0).all()


def test_clipping_leaves_short_gradients_as_they_are():
    short = tf.constant([0.3, 0.4])
    (clipped, none), length = tf.clip_by_global_norm([short, None], 1.0)
    assert none is None
    assert clipped.numpy().tolist() == short.numpy().tolist()
    assert float(length) == pytest.approx(0.5)
    zeros, _ = tf.clip_by_global_norm([tf.zeros(2)], 1.0)
    assert zeros[0].numpy().tolist() == [0.0, 0.0]
    assert tf.clip_by_norm(tf.zeros(2), 1.0).numpy().tolist() == [0.0, 0.0]
    spoiled, _ = tf.clip_by_global_norm([tf.constant([np.inf, 1.0])], 1.0)
    assert np.isnan(spoiled[0].numpy()).all()
    with pytest.raises(TypeError, match="t_list must be a list"):
        tf.clip_by_global_norm(short, 1.0)


def test_dropout():
    x = tf.ones([40, 50])
    y = tf.nn.dropout(x, 0.25, seed=3)
    assert set(np.unique(y.numpy())) == {0.0, np.float32(1 / 0.75)}
    assert abs(float(tf.reduce_mean(y)) - 1) < 0.05
    assert tf.nn.dropout(x, 0.25, seed=3).numpy().tolist() == y.numpy().tolist()
    rows = tf.nn.dropout(x, 0.5, noise_shape=[None, 1], seed=1).numpy()
    assert (rows == rows[:, :1]).all()
    gradient = tf.grad(lambda x: tf.reduce_sum(tf.nn.dropout(x, 0.25, seed=3)))(x)
    assert gradient.numpy().tolist() == y.numpy().tolist()
    tf.random.set_seed(5)
    dropped = tf.function(lambda x: tf.nn.dropout(x, 0.5))
    assert dropped(x).numpy().tolist() != dropped(x).numpy().tolist()
    assert tf.keras.random.dropout(x, 0.0) is x
    for call, words in (
        (lambda: tf.nn.dropout(x, 1.5), r"rate must be in \[0, 1\)"),
        (lambda: tf.nn.dropout([1, 2], 0.5), "must be real floating-point numbers"),
        (lambda: tf.nn.dropout(x, 0.5, noise_shape=[3]), "do not broadcast"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_errors_say_what_is_wrong():
    for call, words in (
        (
            lambda: tf.nn.sigmoid_cross_entropy_with_logits([1.0], [[1.0]]),
            "must have the shape of logits",
        ),
        (lambda: ops.glu([1.0, 2.0, 3.0]), "must have an even size"),
        (lambda: tf.nn.bias_add([[1.0]], [1.0, 2.0]), "it must be a vector"),
        (lambda: ops.normalize([1.0], order=0.5), "order must be at least 1"),
        (lambda: tf.nn.embedding_lookup([[1.0], [2.0]], [0]), "must be one tensor"),
        (
            lambda: ops.sparse_categorical_crossentropy([0], [[0.5, 0.5]], axis=0),
            "axis must be the last",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()
