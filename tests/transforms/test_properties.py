"""Properties that hold for any input: drawn by hypothesis."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import tinygrad_cg as tf

FLOATS = st.floats(-3.0, 3.0)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
TEXTS = st.text("az é", max_size=3)  # hypothesis takes seconds for its table of all letters
LEAVES = st.integers() | TEXTS | st.none()
STRUCTURES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXTS, inner, max_size=3)
    ),
    max_leaves=10,
)


def arrays(shape):
    return hnp.arrays(np.float64, shape, elements=FLOATS)


@given(STRUCTURES)
def test_a_structure_is_its_leaves_and_its_shape(structure):
    leaves = tf.nest.flatten(structure)
    assert tf.nest.pack_sequence_as(structure, leaves) == structure
    assert tf.nest.flatten(tf.nest.map_structure(lambda leaf: (leaf,), structure)) == leaves


@settings(deadline=None)
@given(st.data())
def test_gradients_have_the_shapes_of_their_sources(data):
    """Un-broadcasting: each gradient of a broadcast product sums the other operand."""
    shapes = data.draw(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4))
    a, b = [data.draw(arrays(shape)) for shape in shapes.input_shapes]
    x, y = tf.constant(a), tf.constant(b)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = x * y
    gradients = tape.gradient(z, [x, y])
    for gradient, own, other in zip(gradients, (a, b), (b, a), strict=True):
        assert gradient.shape == own.shape
        expected = np.broadcast_to(other, shapes.result_shape)
        extra = expected.ndim - own.ndim
        axes = (*range(extra), *(i + extra for i, n in enumerate(own.shape) if n == 1))
        np.testing.assert_allclose(
            gradient.numpy(), expected.sum(axes).reshape(own.shape), atol=1e-12
        )


@settings(deadline=None)
@given(st.data())
def test_indexing_is_numpys_and_its_gradient_counts_the_uses(data):
    array = data.draw(SHAPES.filter(lambda shape: 0 not in shape).flatmap(arrays))
    key = data.draw(
        hnp.basic_indices(array.shape, allow_newaxis=True) | hnp.integer_array_indices(array.shape)
        if array.ndim
        else st.just(())
    )
    x = tf.constant(array)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x[key]
    np.testing.assert_array_equal(y.numpy(), array[key])
    uses = np.zeros(array.shape)
    np.add.at(uses, key, 1.0)
    gradient = tape.gradient(y, x)
    np.testing.assert_array_equal(gradient.numpy(), uses)


@settings(deadline=None)
@given(st.data())
def test_reductions_agree_with_numpy_over_any_axes(data):
    array = data.draw(SHAPES.flatmap(arrays))
    axes = tuple(data.draw(st.sets(st.integers(0, array.ndim - 1)))) if array.ndim else ()
    keepdims = data.draw(st.booleans())
    x = tf.constant(array)
    result = tf.reduce_sum(x, axes, keepdims)
    np.testing.assert_allclose(
        result.numpy(), np.sum(array, axes, keepdims=keepdims), atol=1e-12, strict=True
    )


@settings(deadline=None)
@given(SHAPES.flatmap(arrays), st.permutations(range(4)))
def test_what_is_transposed_twice_is_as_it_was(array, order):
    perm = [axis for axis in order if axis < array.ndim]
    back = [perm.index(axis) for axis in range(array.ndim)]
    np.testing.assert_array_equal(
        tf.transpose(tf.transpose(array, perm), back).numpy(), array, strict=True
    )


@settings(deadline=None)
@given(arrays((3,)), arrays((3,)), FLOATS)
def test_gradients_are_linear_in_the_upstream(values, upstream, factor):
    x = tf.constant(values)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.tanh(x) * tf.exp(x)
    once = tape.gradient(y, x, output_gradients=tf.constant(upstream)).numpy()
    scaled = tape.gradient(y, x, output_gradients=tf.constant(upstream * factor)).numpy()
    np.testing.assert_allclose(scaled, once * factor, rtol=1e-12, atol=1e-12)
