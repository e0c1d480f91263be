"""Convolution and pooling along three axes and with gaps, and what else moves over images."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tests.support.modes import assert_right_in_all_modes
from tests.support.orders import assert_raises
from tinygrad_cg.errors import InvalidArgumentError

nn = tf.nn
RNG = np.random.default_rng(11)
VOLUME = RNG.normal(size=(1, 3, 4, 3, 2))
FILTERS = RNG.normal(size=(2, 2, 2, 2, 2))
IMAGE = RNG.normal(size=(1, 4, 5, 2))
PLANE = RNG.normal(size=(2, 2, 2, 1))
ONES = [1, 1, 1, 1]
BIAS = RNG.uniform(1, 2, 2)


def naive(x, filters, steps, rooms, gaps, groups=1):
    """A convolution of volumes, window by window."""
    x = np.pad(x, [(0, 0), *rooms, (0, 0)])
    window, own, outputs = filters.shape[:3], filters.shape[3], filters.shape[4]
    reach = [(n - 1) * gap + 1 for n, gap in zip(window, gaps, strict=True)]
    sizes = [(n - r) // s + 1 for n, r, s in zip(x.shape[1:4], reach, steps, strict=True)]
    out = np.zeros((x.shape[0], *sizes, outputs), np.result_type(x, filters))
    for place in np.ndindex(*sizes):
        cut = tuple(
            slice(i * s, i * s + r, gap)
            for i, s, r, gap in zip(place, steps, reach, gaps, strict=True)
        )
        part = x[(slice(None), *cut)]
        for g in range(groups):
            share = slice(g * outputs // groups, (g + 1) * outputs // groups)
            out[(slice(None), *place, share)] = np.einsum(
                "nabci,abcio->no", part[..., g * own : (g + 1) * own], filters[..., share]
            )
    return out


@pytest.mark.quick
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int32"])
def test_convolution_of_volumes(dtype):
    kind = np.dtype(dtype)
    x, filters = ((4 * array).astype(kind) for array in (VOLUME, FILTERS))
    if kind.kind == "c":
        x, filters = x * (1 + 1j), filters * (2 - 1j)
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    for steps, rooms, gaps in (
        ((1, 1, 1), ((0, 0),) * 3, (1, 1, 1)),
        ((2, 1, 2), ((1, 0), (0, 2), (1, 1)), (1, 2, 1)),
        ((1, 3, 1), ((1, 1),) * 3, (2, 1, 2)),
    ):
        result = nn.conv3d(x, filters, steps, rooms, dilations=gaps)
        assert result.dtype == kind
        expected = naive(x, filters, steps, rooms, gaps)
        assert_allclose(result, expected, rtol=tolerance, atol=20 * tolerance)
        first = nn.conv3d(x.transpose(0, 4, 1, 2, 3), filters, steps, rooms, "NCDHW", gaps)
        assert_array_equal(first.numpy().transpose(0, 2, 3, 4, 1), result.numpy())
    grouped = filters[..., :1, :]
    result = nn.conv3d(x, grouped, 1, "VALID")
    expected = naive(x, grouped, (1, 1, 1), ((0, 0),) * 3, (1, 1, 1), 2)
    assert_allclose(result, expected, rtol=tolerance, atol=20 * tolerance)


@pytest.mark.quick
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_the_transpose_of_a_convolution_of_volumes(padding):
    """<conv(x), y> = <x, transpose(y)> for all x and y."""
    for steps, gaps, form in ((1, 1, "NDHWC"), ((1, 2, 2), (2, 1, 1), "NDHWC"), (2, 1, "NCDHW")):
        x = VOLUME if form == "NDHWC" else VOLUME.transpose(0, 4, 1, 2, 3)
        y = nn.conv3d(x, FILTERS, steps, padding, form, gaps).numpy()
        back = nn.conv3d_transpose(y, FILTERS, x.shape, steps, padding, form, gaps).numpy()
        assert_allclose(np.sum(y * y), np.sum(x * back), rtol=1e-12)
        other = RNG.normal(size=x.shape)
        forth = nn.conv3d(other, FILTERS, steps, padding, form, gaps).numpy()
        assert_allclose(np.sum(forth * y), np.sum(other * back), rtol=1e-11)


@pytest.mark.quick
def test_pooling_of_volumes():
    x = VOLUME[..., :1].copy()
    x[0, 1, 1, 1, 0] = np.nan
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 2, 2), (1, 2, 3))
    assert_array_equal(nn.max_pool3d(x, 2, 1, "VALID"), windows.max((-1, -2, -3)))
    x = VOLUME
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3, 2), (1, 2, 3))
    result = nn.avg_pool3d(x, [2, 3, 2], 1, "VALID")
    assert_allclose(result, windows.mean((-1, -2, -3)), rtol=1e-12)
    counted = np.pad(np.ones_like(x), [(0, 0), (0, 1), (0, 1), (0, 1), (0, 0)])
    summed = np.pad(x, [(0, 0), (0, 1), (0, 1), (0, 1), (0, 0)])
    sums, counts = (
        np.lib.stride_tricks.sliding_window_view(array, (2, 2, 2), (1, 2, 3)).sum((-1, -2, -3))
        for array in (summed, counted)
    )
    assert_allclose(nn.avg_pool3d(x, 2, 1, "SAME"), sums / counts, rtol=1e-11)  # without padding
    first = nn.pool(x.transpose(0, 4, 1, 2, 3), 2, "AVG", 1, "SAME", "NCDHW")
    assert_allclose(first.numpy().transpose(0, 2, 3, 4, 1), sums / counts, rtol=1e-11)
    assert nn.max_pool(x, 2, 2, "VALID").shape == (1, 1, 2, 1, 2)


@pytest.mark.quick
def test_the_first_of_equal_elements_of_volumes_has_the_gradient():
    slopes = tf.grad(lambda x: tf.reduce_sum(nn.max_pool3d(x, 2, 2, "VALID")))(
        np.ones((1, 2, 2, 2, 1))
    )
    assert slopes.ravel().tolist() == [1.0] + 7 * [0.0]


FUNCTIONS = {
    "conv3d": (lambda x, f: nn.conv3d(x, f, [1, 2, 1, 2, 1], "SAME"), VOLUME, FILTERS),
    "conv3d_transpose": (
        lambda x, f: nn.conv3d_transpose(x, f, [1, 4, 4, 3, 2], [1, 2, 1], "SAME"),
        RNG.normal(size=(1, 4, 2, 3, 2)),
        FILTERS,
    ),
    "max_pool3d": (lambda x: nn.max_pool3d(x, 2, [1, 2, 1], "SAME") ** 2, VOLUME),
    "avg_pool3d": (lambda x: nn.avg_pool3d(x, 2, [1, 2, 1], "SAME") ** 3, VOLUME),
    "pool": (lambda x: nn.pool(x, [2, 2], "MAX", dilations=[2, 3]) ** 2, IMAGE),
    "with_space_to_batch": (
        lambda x: nn.with_space_to_batch(x, [2, 2], "SAME", lambda y, n, how: y**2, [1, 1]),
        IMAGE,
    ),
    "patches": (
        lambda x: tf.extract_volume_patches(x, [1, 2, 2, 2, 1], [1, 1, 2, 1, 1], "SAME") ** 2,
        VOLUME[..., :1],
    ),
    "separable": (
        lambda x, f, p: nn.separable_conv2d(x, f, p, ONES, "SAME", dilations=[1, 2]),
        IMAGE,
        PLANE,
        RNG.normal(size=(1, 1, 2, 2)),
    ),
    "backprop_input": (
        lambda f, y: nn.depthwise_conv2d_backprop_input((1, 4, 5, 2), f, y, ONES, "SAME"),
        PLANE,
        IMAGE,
    ),
    "backprop_filter": (
        lambda x, y: nn.depthwise_conv2d_backprop_filter(x, (2, 2, 2, 1), y, ONES, "SAME"),
        IMAGE,
        RNG.normal(size=(1, 4, 5, 2)),
    ),
    "responses": (lambda x, b: nn.lrn(x, 1, b[0], 0.5, b[1]), IMAGE[:, :2, :2], BIAS),
    "dilation2d": (
        lambda x, f: nn.dilation2d(x, f, [1, 2, 1, 1], "SAME", "NHWC", [1, 1, 2, 1]) ** 2,
        IMAGE,
        PLANE[..., 0],
    ),
    "erosion2d": (
        lambda x, f: nn.erosion2d(x, f, ONES, "VALID", "NHWC", ONES) ** 2,
        IMAGE,
        PLANE[..., 0],
    ),
    "argmax": (lambda x: nn.max_pool_with_argmax(x, 2, 1, "SAME")[0] ** 2, IMAGE),
    "isotonic": (lambda x: nn.isotonic_regression(x, axis=1)[0] ** 3, IMAGE[0]),
    "approx_min_k": (lambda x: nn.approx_min_k(x, 2, 1)[0] ** 2, IMAGE[0]),
    "moments": (
        lambda x: tf.stack(nn.normalize_moments(*nn.sufficient_statistics(x, [0, 1], x[0, 0]))),
        IMAGE[0],
    ),
    "average": (lambda x: nn.compute_average_loss(x, x**2), IMAGE),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_all_modes(name):
    function, *arrays = FUNCTIONS[name]
    assert_right_in_all_modes(function, *arrays)


def test_adjoints_of_depthwise_convolutions_are_gradients():
    for case in (
        ([1, 1, 1, 1], "SAME", "NHWC", 1),
        ([1, 2, 2, 1], "VALID", "NHWC", 1),
        ([1, 1, 1, 1], [[0, 0], [0, 0], [1, 0], [0, 2]], "NCHW", [1, 1, 2, 1]),
    ):
        strides, padding, form, gaps = case
        x = IMAGE if form == "NHWC" else IMAGE.transpose(0, 3, 1, 2)
        gaps = gaps if gaps == 1 else gaps[2:]
        run = lambda x, f, p=padding, s=strides, d=form, g=gaps: nn.depthwise_conv2d(
            x, f, s, p, d, g
        )
        out, pull = tf.vjp(run, tf.constant(x), tf.constant(PLANE))
        dy = RNG.normal(size=out.shape)
        by_x, by_filter = pull(tf.constant(dy))
        result = nn.depthwise_conv2d_backprop_input(
            x.shape, PLANE, dy, strides, padding, form, gaps
        )
        assert_allclose(result, by_x, rtol=1e-12)
        result = nn.depthwise_conv2d_backprop_filter(
            x, PLANE.shape, dy, strides, padding, form, gaps
        )
        assert_allclose(result, by_filter, rtol=1e-12)


@pytest.mark.quick
def test_dilation_of_integers_and_its_first_of_equal_sums():
    x = np.array([[3, 1], [2, -120]], np.int8)[None, :, :, None]
    result = nn.dilation2d(x, np.full((2, 2, 1), -100, np.int8), ONES, "SAME", "NHWC", ONES)
    assert result.dtype == tf.int8  # padding is no number that could wrap round
    assert result.numpy()[0, 0, 0, 0] == -97
    slopes = tf.grad(
        lambda x: tf.reduce_sum(nn.dilation2d(x, np.zeros((2, 2, 1)), ONES, "VALID", "NHWC", ONES))
    )(np.ones((1, 2, 2, 1)))
    assert slopes.ravel().tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.quick
def test_isotonic_regression_is_the_nearest():
    x = RNG.normal(size=(6, 12))
    result, ids = nn.isotonic_regression(x)
    assert (np.diff(result.numpy()) <= 1e-15).all()
    assert ids.dtype == tf.int32
    for row, near in zip(x, result.numpy(), strict=True):
        for _ in range(50):  # no other falling sequence is nearer
            other = np.sort(near + 0.1 * RNG.normal(size=12))[::-1]
            assert ((row - near) ** 2).sum() <= ((row - other) ** 2).sum()
    rising, _ = nn.isotonic_regression(-x, decreasing=False)
    assert_allclose(rising, -result.numpy(), rtol=1e-14)


@pytest.mark.quick
def test_positions_of_largest_elements_point_at_them():
    x = RNG.normal(size=(2, 5, 4, 3))
    for form in ("NHWC", "NCHW"):
        turned = x if form == "NHWC" else x.transpose(0, 3, 1, 2)
        values, places = nn.max_pool_with_argmax(
            turned, 2, 2, "SAME", form, tf.int32, include_batch_in_index=True
        )
        assert_array_equal(x.ravel()[places.numpy()], values.numpy())
        assert places.dtype == tf.int32


@pytest.mark.quick
@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("data_format must be one of", lambda: nn.conv3d(VOLUME, FILTERS, 1, "SAME", "NHWC")),
        ("images must have 5 dimensions", lambda: nn.conv3d(IMAGE, FILTERS, 1, "SAME")),
        ("filters must have shape (depth,", lambda: nn.conv3d(VOLUME, PLANE, 1, "SAME")),
        ("strides must be", lambda: nn.conv3d(VOLUME, FILTERS, [2, 1, 1, 1, 1], "SAME")),
        ("padding must be 'SAME'", lambda: nn.conv3d(VOLUME, FILTERS, 1, "EXTRA")),
        ("3 pairs of numbers", lambda: nn.conv3d(VOLUME, FILTERS, 1, [[0, -1]] * 3)),
        ("multiple of them", lambda: nn.conv3d(VOLUME[..., :1], FILTERS, 1, "SAME")),
        ("does not fit into 1 elements", lambda: nn.conv3d(VOLUME[:, :1], FILTERS, 1, "VALID")),
        ("gives the depth 4", lambda: nn.conv3d_transpose(VOLUME, FILTERS, [7, 4, 3], [2, 1, 1])),
        ("make (1, 3, 4, 3, 2)", lambda: nn.conv3d_transpose(VOLUME, FILTERS, [2, 3, 4, 3, 2], 1)),
        ("pooling_type must be", lambda: nn.pool(IMAGE, 2, "SUM")),
        ("padding must be 'VALID'", lambda: nn.pool(IMAGE, 2, "MAX", 1, "SAME", None, 2)),
        (
            "ascending axes",
            lambda: nn.with_space_to_batch(IMAGE, [2, 2], "VALID", None, None, [2, 1]),
        ),
        ("'SAME' with a filter_shape", lambda: nn.with_space_to_batch(IMAGE, [2], "SAME", None)),
        (
            "pointwise_filter must have shape (1, 1,",
            lambda: nn.separable_conv2d(IMAGE, PLANE, PLANE, ONES, "SAME"),
        ),
        (
            "give outputs (4, 5, 2)",
            lambda: nn.depthwise_conv2d_backprop_input(
                (1, 4, 5, 2), PLANE, IMAGE[:, 1:], ONES, "SAME"
            ),
        ),
        (
            "input_sizes are (2, 4, 5, 2), but batch and channels make (1, 4, 5, 2)",
            lambda: nn.depthwise_conv2d_backprop_input((2, 4, 5, 2), PLANE, IMAGE, ONES, "SAME"),
        ),
        (
            "do not fit images",
            lambda: nn.depthwise_conv2d_backprop_filter(
                IMAGE[..., :1], (2, 2, 2, 1), IMAGE, ONES, "SAME"
            ),
        ),
        ("depth_radius must not be negative", lambda: nn.lrn(IMAGE, -1)),
        (
            "must have shape (height, width, channels = 2)",
            lambda: nn.dilation2d(IMAGE, PLANE, ONES, "SAME", "NHWC", ONES),
        ),
        ("got k = 6", lambda: nn.approx_max_k(IMAGE[0], 6, 1)),
        ("got a scalar", lambda: nn.compute_average_loss(1.0)),
        ("number from 0 to 2 for each row", lambda: nn.collapse_repeated([[1, 2]], [3])),
        ("labels must have shape (batch, time)", lambda: nn.ctc_unique_labels([1, 2])),
    ],
)
def test_what_does_not_fit_is_refused(words, call):
    assert_raises(InvalidArgumentError, re.escape(words), call)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_keras_takes_volumes(data_format):
    rng = np.random.default_rng(0)
    x, filters = rng.normal(size=(1, 4, 5, 3, 2)), rng.normal(size=(2, 3, 2, 2, 3))
    first = data_format == "channels_first"
    turned = np.moveaxis(x, -1, 1) if first else x

    def last(y):
        return np.moveaxis(y.numpy(), 1, -1) if first else y.numpy()

    keras = tf.keras.ops
    result = keras.conv(turned, filters, 2, "same", data_format)
    expected = tf.nn.conv3d(x, filters, [1, 2, 2, 2, 1], "SAME")
    np.testing.assert_allclose(last(result), expected)
    back = keras.conv_transpose(result, filters, 2, "valid", data_format=data_format)
    expected = tf.nn.conv_transpose(expected, filters, (1, 4, 7, 4, 2), 2, "VALID")
    np.testing.assert_allclose(last(back), expected)
    for name, other in (("max_pool", tf.nn.max_pool3d), ("average_pool", tf.nn.avg_pool3d)):
        result = getattr(keras, name)(turned, (2, 3, 1), 1, "same", data_format)
        np.testing.assert_allclose(last(result), other(x, (2, 3, 1), 1, "SAME"))
