"""Convolution and pooling as users call them: layouts, padding, gradients, errors."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._ops.convolution import conv, conv_transpose, depthwise_conv
from tinygrad_cg._ops.pooling import average_pool, max_pool
from tinygrad_cg._transforms.batching import vmap


def numbers(*shape):
    return tf.constant(np.random.default_rng(len(shape)).normal(size=shape))


@pytest.mark.parametrize("strides", [1, 2, 3])
@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize("dilations", [1, 2])
def test_same_padding_makes_as_many_outputs_as_strides_fit(strides, width, dilations):
    for size in range(1, 8):
        x, filters = numbers(1, size, 1), numbers(width, 1, 1)
        out = conv(x, filters, strides, "SAME", None, dilations)
        assert out.shape == (1, -(-size // strides), 1)
        reach = dilations * (width - 1) + 1
        total = max((out.shape[1] - 1) * strides + reach - size, 0)
        pads = [(total // 2, total - total // 2)]
        explicit = conv(x, filters, strides, pads, None, dilations)
        assert out.numpy().tolist() == explicit.numpy().tolist()


def test_channels_first():
    x, filters = numbers(2, 3, 5, 6), numbers(2, 3, 3, 4)
    last = tf.transpose(x, (0, 2, 3, 1))
    for call in (
        lambda x, layout: conv(x, filters, (2, 1), "SAME", layout),
        lambda x, layout: max_pool(x, 2, 1, "SAME", layout),
        lambda x, layout: average_pool(x, (2, 3), None, "VALID", layout),
        lambda x, layout: depthwise_conv(x, filters, 1, "VALID", layout),
    ):
        back = tf.transpose(call(last, "NHWC"), (0, 3, 1, 2)).numpy()
        np.testing.assert_array_equal(call(x, "NCHW").numpy(), back)
        np.testing.assert_array_equal(call(x, "channels_first").numpy(), back)


def test_one_dimension_is_two_with_a_height_of_one():
    x, filters = numbers(2, 7, 4), numbers(3, 2, 6)
    flat = conv(x, filters, 2, "SAME", None, 1)
    tall = conv(x[:, None], filters[None], (1, 2), "SAME", None, 1)
    np.testing.assert_array_equal(flat.numpy(), tall.numpy()[:, 0])
    np.testing.assert_array_equal(
        max_pool(x, 3, 2).numpy(), max_pool(x[:, None], (1, 3), (1, 2)).numpy()[:, 0]
    )


def test_groups_are_convolutions_side_by_side():
    x, filters = numbers(2, 5, 5, 6), numbers(2, 2, 3, 4)
    parts = [
        conv(part, two)
        for part, two in zip(tf.split(x, 2, -1), tf.split(filters, 2, -1), strict=True)
    ]
    np.testing.assert_allclose(conv(x, filters).numpy(), tf.concat(parts, -1).numpy())


def test_a_transposed_convolution_is_the_gradient():
    x, filters = numbers(2, 7, 6, 3), numbers(3, 2, 3, 4)
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = conv(x, filters, 2, "SAME")
    y = numbers(*out.shape)
    expected = tape.gradient(out, x, output_gradients=y)
    result = conv_transpose(y, filters, (2, 7, 6, 3), 2, "SAME")
    np.testing.assert_array_equal(result.numpy(), expected.numpy())
    np.testing.assert_array_equal(conv_transpose(y, filters, (7, 6), 2).numpy(), expected.numpy())


def test_third_derivatives():
    """Of sum((x * w)**3), which is a cubic along any line: differences of order 3 are exact."""
    x, filters = numbers(1, 4, 3, 2), numbers(2, 2, 1, 2)
    way = numbers(2, 2, 1, 2)

    def loss(scale):
        return tf.reduce_sum(conv(x, filters + scale * way, 1, "SAME") ** 3)

    t = tf.constant(0.0, tf.float64)
    with tf.GradientTape() as first:
        first.watch(t)
        with tf.GradientTape() as second:
            second.watch(t)
            with tf.GradientTape() as third:
                third.watch(t)
                y = loss(t)
            slope = third.gradient(y, t)
        curve = second.gradient(slope, t)
    gradient = first.gradient(curve, t).numpy()
    ends = [loss(tf.constant(float(i), tf.float64)).numpy() for i in range(4)]
    assert gradient == pytest.approx(ends[3] - 3 * ends[2] + 3 * ends[1] - ends[0])


def test_complex_gradients_are_conjugates():
    x = tf.constant(numbers(1, 3, 1).numpy() + 1j)
    filters = tf.constant(numbers(2, 1, 1).numpy() - 2j)
    with tf.GradientTape() as tape:
        tape.watch(filters)
        out = conv(x, filters)
    result = tape.gradient(out, filters).numpy().ravel()
    sums = [x.numpy()[0, :2].sum(), x.numpy()[0, 1:].sum()]
    np.testing.assert_allclose(result, np.conj(sums))


def test_per_example_gradients():
    """A tape within a batch sees one image; one convolution does the forward work of all."""
    images, filters = numbers(4, 1, 5, 5, 2), numbers(2, 2, 2, 3)

    def slope(image):
        with tf.GradientTape() as tape:
            tape.watch(filters)
            out = tf.reduce_sum(conv(image, filters) ** 2)
        return tape.gradient(out, filters)

    results = vmap(slope)(images).numpy()
    for row, image in zip(results, images.numpy(), strict=True):
        np.testing.assert_allclose(row, slope(tf.constant(image)).numpy())


def test_the_gradient_of_the_largest_goes_to_the_first_of_equals():
    x = tf.ones((1, 4, 1))
    with tf.GradientTape() as tape:
        tape.watch(x)
        out = max_pool(x, 2, 1)
    assert tape.gradient(out, x).numpy().ravel().tolist() == [1.0, 1.0, 1.0, 0.0]


def test_dtypes_promote():
    x, filters = tf.ones((1, 3, 1)), tf.ones((2, 1, 1), tf.float64)
    assert conv(x, filters).dtype == tf.float64
    assert conv([[[1], [2]]], filters).dtype == tf.float64
    assert conv(tf.ones((1, 3, 1), tf.int32), tf.ones((2, 1, 1), tf.int32)).dtype == tf.int32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conv(tf.ones((1, 2, 2, 3)), tf.ones((1, 1, 2, 4))), "but the filters take 2"),
        (lambda: conv(tf.ones((1, 2, 2, 4)), tf.ones((1, 1, 2, 3))), "must be a multiple of 2"),
        (lambda: conv(tf.ones((1, 2, 2, 4)), tf.ones((3, 1, 4, 3))), "does not fit into images"),
        (lambda: conv(tf.ones((2, 2, 4)), tf.ones((1, 1, 4, 3))), "must have 4 dimensions"),
        (lambda: conv(tf.ones((2, 2, 4)), tf.ones((4, 3))), "one or two axes of space"),
        (lambda: conv(tf.ones((1, 2, 1)), tf.ones((0, 1, 1))), "must not be empty"),
        (lambda: conv(tf.ones((1, 2, 1)), tf.ones((1, 1, 1)), 0), "strides must be one positive"),
        (lambda: conv(tf.ones((1, 2, 1)), tf.ones((1, 1, 1)), [2, 1, 1]), "1 for batch"),
        (lambda: conv(tf.ones((1, 2, 1)), tf.ones((1, 1, 1)), 1, "FULL"), "padding must be"),
        (lambda: conv(tf.ones((1, 2, 1)), tf.ones((1, 1, 1)), 1, [-1]), "padding must be"),
        (
            lambda: conv(tf.ones((1, 2, 1)), tf.ones((1, 1, 1)), 1, [(1, 1), (0, 0), (0, 0)]),
            "batch and channels cannot be padded",
        ),
        (lambda: conv_transpose(tf.ones((1, 2, 1)), tf.ones((2, 1, 1)), [5], 2), "but x has shape"),
        (
            lambda: conv_transpose(tf.ones((1, 2, 1)), tf.ones((2, 1, 1)), [2, 4, 1], 2),
            r"output_shape is \(2, 4, 1\), but",
        ),
        (
            lambda: conv_transpose(tf.ones((1, 2, 1)), tf.ones((2, 1, 1)), [4, 4], 2),
            "output_shape must have 1 or 3 sizes",
        ),
        (lambda: depthwise_conv(tf.ones((1, 2, 2)), tf.ones((1, 3, 1))), "are for 3 channels"),
        (lambda: max_pool(tf.ones((1, 2, 1)), 3), "does not fit into images"),
        (lambda: max_pool(tf.ones((1, 2, 1)), 2, 1, [(2, 0)]), "could be empty"),
        (lambda: average_pool(tf.ones((1, 2)), 2), "one or two axes of space"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()


def test_gradient_of_a_convolution_in_groups_of_no_images():
    x, filters = tf.zeros((0, 4, 4, 2)), tf.ones((2, 2, 1, 4))
    with tf.GradientTape() as tape:
        tape.watch([x, filters])
        y = tf.nn.conv2d(x, filters, 1, "SAME")
    gradients = tape.gradient(y, [x, filters])
    assert [tuple(gradient.shape) for gradient in gradients] == [(0, 4, 4, 2), (2, 2, 1, 4)]
    assert not gradients[1].numpy().any()
