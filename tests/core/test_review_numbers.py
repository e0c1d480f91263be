"""Wrong numbers and crashes that a hunt found: each failed before it was mended."""

import os
import threading

import numpy as np
import pytest

import tinygrad_cg as tf


def derivatives(function, *values):
    """Value, gradient by each argument, and the matrix of second derivatives."""
    xs = [tf.constant(value, tf.float64) for value in values]
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(xs)
        with tf.GradientTape() as inner:
            inner.watch(xs)
            y = function(*xs)
        first = inner.gradient(y, xs)
    second = [
        [float(one) for one in outer.gradient(g, xs, unconnected_gradients="zero")] for g in first
    ]
    return float(y), [float(g) for g in first], second


@pytest.mark.parametrize("size", [(), 1, 3, 70_000])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_division_by_zero(size, dtype):
    """Decision 16, and no element of a large array may be left unwritten."""
    numerator = np.full(size, 6 + 2j, dtype)
    denominator = np.full(size, 2 + 1j, dtype)
    denominator.reshape(-1)[min(5, denominator.size - 1)] = 0
    with np.errstate(all="ignore"):
        expected = numerator / denominator
    found = (tf.constant(numerator) / tf.constant(denominator)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("function", [tf.sqrt, tf.math.log], ids=["sqrt", "log"])
def test_complex_gradients_at_zero_do_not_raise(function):
    x = tf.constant(0j)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    assert not np.isfinite(tape.gradient(y, x).numpy())


@pytest.mark.parametrize(("x", "y"), [(3.0, 0.0), (2.0, 0.0), (2.0, 1.0), (2.0, 2.0), (1.5, -1.0)])
def test_second_derivatives_of_a_power(x, y):
    log = np.log(x)
    value = x**y
    _, first, second = derivatives(lambda a, b: a**b, x, y)
    mixed = value / x * (1 + y * log)
    np.testing.assert_allclose(first, [y * value / x, value * log], rtol=1e-12)
    np.testing.assert_allclose(
        second, [[y * (y - 1) * value / x**2, mixed], [mixed, value * log**2]], rtol=1e-12
    )


def test_power_of_a_negative_base_is_flat_in_its_exponent():
    """As the original: there is no real logarithm, and the value may be fine all the same."""
    _, first, second = derivatives(lambda a, b: a**b, -2.0, 3.0)
    assert first == [12.0, 0.0]
    assert second == [[-12.0, 4.0], [0.0, 0.0]]


def test_power_at_zero():
    """Decision 14, at both orders."""
    assert derivatives(lambda a, b: a**b, 0.0, 0.0)[1][0] == 0.0
    assert derivatives(lambda a, b: a**b, 0.0, 2.0)[1:] == ([0.0, 0.0], [[2.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize("shape", [(2, 0), (0,)])
def test_gradient_of_an_empty_product(shape):
    x = tf.ones(shape)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_prod(x, -1)
    assert tape.gradient(y, x).shape == shape


@pytest.mark.parametrize(
    ("values", "dtype", "mean"),
    [
        ([100, 100], "int8", 100),
        ([200, 200], "uint8", 200),
        ([2**31 - 1] * 2, "int32", 2**31 - 1),
        ([-1, -2], "int32", -1),
        ([-3, -4, -4], "int16", -3),
        ([-(2**62)], "int64", -(2**62)),
    ],
)
def test_mean_of_integers(values, dtype, mean):
    found = tf.reduce_mean(tf.constant(np.array(values, dtype)))
    assert (int(found), found.dtype) == (mean, dtype)


@pytest.mark.parametrize("size", [(), 3, 70_000])
def test_smallest_integer_by_minus_one(size):
    x = np.full(size, -(2**63))
    with np.errstate(all="ignore"):
        assert ((tf.constant(x) // -1).numpy() == x).all()


def test_logsumexp_of_infinities():
    for values, expected in (([np.inf, 0.0], [np.nan, 0.0]), ([-np.inf, 0.0], [0.0, 1.0])):
        x = tf.constant(values)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_logsumexp(x)
        np.testing.assert_array_equal(tape.gradient(y, x).numpy(), np.float32(expected))


@pytest.mark.parametrize("size", [10, 70_000])
def test_extremes_of_complex_numbers_are_refused(size):
    with pytest.raises(TypeError, match="max: no kernel for dtype complex128"):
        tf.reduce_max(tf.constant(np.full(size, 1j)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("action", ["watch", "draw"])
def test_forked_child_waits_for_no_lock(action):
    """Another thread may hold a lock at the fork; in the child nobody will ever free it."""
    stop = threading.Event()

    def act():
        if action == "draw":
            tf.random.uniform([2])
            return
        with tf.GradientTape() as tape:
            tape.watch(tf.constant(1.0))

    def keep_acting():
        while not stop.is_set():
            act()

    thread = threading.Thread(target=keep_acting)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if not child:
                act()
                os._exit(0)
            for _ in range(500):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    break
                stop.wait(0.01)
            else:
                os.kill(child, 9)
                os.waitpid(child, 0)
                pytest.fail("the child hangs")
            assert status == 0
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8"])
def test_norms_square_in_a_dtype_that_holds_squares(dtype):
    """Integers become float64, so no square, sum or size wraps around."""
    values = np.array([100, 100, 100, 3]).astype(dtype)
    if dtype == "int8":
        values[0] = -128
    x, wide = tf.constant(values), values.astype("d")
    for order in (1, 2, 3, np.inf):
        np.testing.assert_allclose(tf.norm(x, order), np.linalg.norm(wide, order))
    np.testing.assert_allclose(tf.math.reduce_euclidean_norm(x), np.linalg.norm(wide))


def test_euclidean_norm_of_complex_numbers():
    """As the original: of their sizes, and of the dtype of the operand."""
    x = tf.constant([3 + 4j, 1j])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.reduce_euclidean_norm(x)
    np.testing.assert_allclose(y, 26**0.5, rtol=1e-12)
    assert y.dtype == "complex128"
    np.testing.assert_allclose(tape.gradient(y, x), x.numpy() / 26**0.5, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64", "float64"])
def test_fmod_of_integers(dtype):
    if dtype == "float64":
        x, y = np.array([5.5, -5.5, 5.5, 0.0]), np.array([2.0, 2.0, np.inf, 3.0])
    else:
        limits = np.iinfo(dtype)
        x = np.array([limits.min, limits.min, limits.max, 7, limits.min], dtype)
        y = np.array([3, limits.max, 5, limits.min or 4, limits.min or 1], dtype)
    found = tf.numpy.fmod(tf.constant(x), tf.constant(y))
    np.testing.assert_array_equal(found.numpy(), np.fmod(x, y), strict=True)


def test_half_precision_counts_nan_free_elements():
    """More elements than float16 holds, and sums that only their mean brings back."""
    x = np.full(70_000, 3, np.float16)
    x[::7] = np.nan
    x[1::7] = 5
    wide = x.astype("d")
    for name in ("nanmean", "nanvar", "nanstd"):
        found = getattr(tf.numpy, name)(tf.constant(x))
        assert found.dtype == "float16"
        np.testing.assert_allclose(found, getattr(np, name)(wide), rtol=1e-3)


@pytest.mark.parametrize("size", [5_001, 70_001])
def test_median_of_many_small_floats(size):
    x = np.minimum(np.arange(size), 60_000).astype(np.float16)
    for share in (0.5, 0.3):
        found = tf.numpy.quantile(tf.constant(x), share)
        assert (found.numpy(), found.dtype) == (np.quantile(x.astype("d"), share), "float16")


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([-np.inf, 1, np.inf], 0.5, 1),
        ([1, np.inf, np.inf], 0, 1),
        ([-np.inf, -np.inf, 5], 0.5, -np.inf),
        ([-np.inf, 1], 0.5, -np.inf),
        ([1, np.inf], 0.25, np.inf),
        ([-1.5e308, 1.5e308], 0.5, 0),
    ],
)
def test_quantiles_beside_infinities(values, share, expected):
    x = tf.constant(values, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.numpy.quantile(x, share)
    assert float(y) == expected
    slopes = tape.gradient(y, x).numpy()
    assert (np.isfinite(slopes).all(), slopes.sum()) == (True, 1)


@pytest.mark.parametrize("values", [[3.0, 0.0], [3 + 0j, 0j]])
def test_curvature_of_a_norm_where_an_element_is_zero(values):
    x = tf.constant(np.array(values))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.norm(x)
        slope = inner.gradient(y, x)[1]
    np.testing.assert_allclose(outer.gradient(slope, x), [0, 1 / 3], rtol=1e-12)


@pytest.mark.parametrize("name", ["diag", "diagflat", "tril", "triu"])
def test_triangles_of_bools_are_masks(name):
    """As integers they would be indices."""
    x = np.array([True, False, True])
    found = getattr(tf.numpy, name)(tf.constant(x))
    np.testing.assert_array_equal(found.numpy(), getattr(np, name)(x), strict=True)


def test_vecdot_of_bools_is_whether_any_holds():
    x = np.array([[True, True], [False, True]])
    found = tf.numpy.vecdot(tf.constant(x), tf.constant(~x[:1]))
    np.testing.assert_array_equal(found.numpy(), np.vecdot(x, ~x[:1]), strict=True)


def test_gradient_keeps_the_order_of_its_axes():
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    for axes, spacing in (((1, 0), (2.0, 3.0)), ((-1, 0, 1), (2.0, 3.0, np.arange(4.0) ** 2))):
        found = tf.numpy.gradient(tf.constant(x), *spacing, axis=axes)
        for one, wanted in zip(found, np.gradient(x, *spacing, axis=axes), strict=True):
            np.testing.assert_allclose(one, wanted, rtol=1e-12, atol=1e-14)


def test_no_difference_takes_no_edges():
    x = np.arange(3.0)
    found = tf.numpy.diff(tf.constant(x), 0, prepend=1.0, append=[1.0, 2.0])
    np.testing.assert_array_equal(found, np.diff(x, 0, prepend=1.0, append=[1.0, 2.0]))


def test_integral_of_large_integers():
    y = np.array([2**40 + 1, 2**40 + 3, 2**40 + 7])
    found = tf.numpy.trapezoid(tf.constant(y))
    np.testing.assert_array_equal(found.numpy(), np.trapezoid(y), strict=True)


def test_covariance_of_one_observation_of_several_variables():
    x = np.array([[1.0, 2.0, 4.0]])
    found = tf.numpy.cov(tf.constant(x), rowvar=False, bias=True)
    np.testing.assert_array_equal(found, np.zeros((3, 3)))


def test_limits_that_cross_have_one_gradient():
    """Where low > high the value is high: nothing depends on x or low."""
    x, low, high = (tf.constant(np.array(v)) for v in ([0.0, 5, -5], [1.0] * 3, [-1.0] * 3))
    with tf.GradientTape() as tape:
        tape.watch([x, low, high])
        y = tf.clip_by_value(x, low, high)
    np.testing.assert_array_equal(y, high)
    for found, wanted in zip(tape.gradient(y, [x, low, high]), (0, 0, 1), strict=True):
        np.testing.assert_array_equal(found, [wanted] * 3)


@pytest.mark.parametrize("jit", [True, False])
def test_programs_refuse_input_as_operations_do(jit):
    program = tf.function(lambda x: tf.reduce_min(x, 0) * 2.0, jit_compile=jit)
    with pytest.raises(tf.errors.InvalidArgumentError, match="min of an empty axis"):
        program(tf.zeros((0, 2)))


def test_gradient_of_a_convolution_in_groups_of_no_images():
    x, filters = tf.zeros((0, 4, 4, 2)), tf.ones((2, 2, 1, 4))
    with tf.GradientTape() as tape:
        tape.watch([x, filters])
        y = tf.nn.conv2d(x, filters, 1, "SAME")
    found = tape.gradient(y, [x, filters])
    assert [tuple(one.shape) for one in found] == [(0, 4, 4, 2), (2, 2, 1, 4)]
    assert not found[1].numpy().any()


def test_cross_entropy_with_distributions_of_more_axes():
    """The axis is that of the scores."""
    rng = np.random.default_rng(0)
    labels, logits = rng.dirichlet(np.ones(3), (2, 4)).swapaxes(1, 2), rng.normal(size=(3, 4))
    chances = logits - np.log(np.exp(logits).sum(0))
    found = tf.nn.softmax_cross_entropy_with_logits(labels, logits, axis=0)
    np.testing.assert_allclose(found, -(labels * chances).sum(1), rtol=1e-12)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"softmax_cross_entropy: .*\(2,\)"):
        tf.nn.softmax_cross_entropy_with_logits(tf.zeros(2), tf.zeros(3))
