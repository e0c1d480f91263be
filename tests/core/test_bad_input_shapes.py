"""Shapes and indices that do not fit, and those that are empty (docs/behaviour.md 4.5).

After each error the next gradient is right.
"""

import itertools

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, numbers
from tinygrad_cg_kernels.runtime.promotion import broadcast_shapes


def gradient(function, x):
    """Value and gradient of the function, as arrays."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return y.numpy(), tape.gradient(y, x).numpy()


def refused(error, words, function, x):
    """`function` fails on `x` with this error under a tape, which goes on rightly."""
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(error, match=words) as caught:
            function(x)
        y = x * x
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), 2 * x.numpy())
    return str(caught.value)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (5, "out of"),
        (2, "out of"),
        (-3, "out of"),
        ((0, 0), "(too many|only)"),
        ((slice(None), None, 0), "(too many|only)"),
        ([0, 5], "out of"),
        (np.array([-3]), "out of"),
        (1.0, "."),
        ("a", "."),
        ([0.0, 1.0], "."),
        (np.array([True, False, True]), "bool"),
        ([True], "bool"),
        ((..., ...), "ellipsis"),
        ({0}, "."),
    ],
    ids=repr,
)
def test_bad_index(index, words):
    """4.5: out of bounds, float index, mask of wrong length: IndexError, at once."""
    refused(IndexError, words, lambda x: x[index], [1.0, 2.0])


def test_index_of_a_scalar():
    refused(IndexError, "(too many|scalar)", lambda x: x[0], 1.0)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (0, [2.0, 0.0, 0.0]),
        (-1, [0.0, 0.0, 6.0]),
        (np.int64(1), [0.0, 4.0, 0.0]),
        (tf.constant(1), [0.0, 4.0, 0.0]),
        (slice(None, None, -1), [2.0, 4.0, 6.0]),
        (slice(1, 100), [0.0, 4.0, 6.0]),
        (slice(5, 7), [0.0, 0.0, 0.0]),
        ([0, 0, 2], [4.0, 0.0, 6.0]),
        (np.array([0, -1, -1]), [2.0, 0.0, 12.0]),
        (tf.constant([2, 2]), [0.0, 0.0, 12.0]),
        ([True, False, True], [2.0, 0.0, 6.0]),
        (np.array([False, True, False]), [0.0, 4.0, 0.0]),
        (tf.constant([False, True, True]), [0.0, 4.0, 6.0]),
        (..., [2.0, 4.0, 6.0]),
        (None, [2.0, 4.0, 6.0]),
        ((None, slice(0, 1), None), [2.0, 0.0, 0.0]),
        ([], [0.0, 0.0, 0.0]),
    ],
    ids=repr,
)
def test_good_index(index, expected):
    """What is allowed has the gradient that scatters back, repeated elements summed."""
    value, slope = gradient(lambda x: x[index] ** 2, [1.0, 2.0, 3.0])
    key = index.numpy() if isinstance(index, tf.Tensor) else index
    key = np.zeros(0, int) if isinstance(key, list) and not key else key
    np.testing.assert_array_equal(value, np.array([1.0, 2.0, 3.0], np.float32)[key] ** 2)
    assert slope.tolist() == expected


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("add", lambda x: x + tf.constant([1.0, 2.0, 3.0])),
        ("subtract", lambda x: np.ones(3, np.float32) - x),
        ("multiply", lambda x: x * tf.ones(3)),
        ("divide", lambda x: x / tf.ones((3, 1, 4))),
        ("power", lambda x: x ** tf.ones(3)),
        ("maximum", lambda x: tf.maximum(x, tf.ones(3))),
        ("where", lambda x: tf.where(tf.constant([True, False, True]), x, 0.0)),
        ("greater", lambda x: x > tf.ones(3)),
    ],
)
def test_broadcast_error(name, function):
    """4.5: (2,)+(3,): ValueError with op name and both shapes."""
    message = refused(ValueError, name, function, [1.0, 2.0])
    assert "(2,)" in message
    assert "(3" in message


def test_classes_of_errors_and_warnings():
    """Decision 12: each is the class that a Python programmer expects, too."""
    assert issubclass(tf.errors.InvalidArgumentError, ValueError)
    assert issubclass(tf.errors.TapeWarning, UserWarning)
    assert issubclass(tf.CustomGradientWarning, UserWarning)
    assert tf.errors.CustomGradientWarning is tf.CustomGradientWarning


def test_broadcast_error_is_the_originals_too():
    """Decision 12: InvalidArgumentError and ValueError in one."""
    refused(tf.errors.InvalidArgumentError, "add", lambda x: x + tf.ones(3), [1.0, 2.0])


def test_float_bounds_of_a_slice():
    """As Python and NumPy: a TypeError."""
    refused(TypeError, "slice", lambda x: x[0.0:1.0], [1.0, 2.0])


@pytest.mark.parametrize("shape", [(3,), (2, 2), (-1, 3), (), (0,)], ids=str)
def test_bad_reshape(shape):
    """4.5: reshape (2,) to (3,): ValueError both sizes."""
    message = refused(ValueError, "reshape", lambda x: tf.reshape(x, shape), [1.0, 2.0])
    assert str(shape) in message
    assert "(2,)" in message


@pytest.mark.parametrize("shape", [(-1, -1), (-2,), (-1, -2)], ids=str)
def test_bad_sizes(shape):
    """4.5: reshape with two -1: ValueError."""
    refused(ValueError, "-", lambda x: tf.reshape(x, shape), [1.0, 2.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.reduce_sum(x, axis=1),
        lambda x: tf.reduce_max(x, axis=-2),
        lambda x: tf.argmax(x, axis=3),
        lambda x: tf.expand_dims(x, axis=4),
        lambda x: tf.transpose(x, perm=[1, 0]),
        lambda x: tf.concat([x, x], axis=1),
        lambda x: tf.squeeze(x, axis=0),
        lambda x: tf.concat([x, tf.ones((2, 2))], axis=0),
        lambda x: tf.stack([x, tf.ones(3)]),
        lambda x: tf.broadcast_to(x, (3,)),
        lambda x: tf.matmul(tf.ones((2, 3)), tf.reshape(x, (2, 1))),
        lambda x: tf.gather(x, [[0], [1, 2]]),
        lambda x: tf.concat([], axis=0),
    ],
    ids=[
        *("sum axis", "max axis", "argmax axis", "expand axis", "perm", "concat axis"),
        *("squeeze", "concat ranks", "stack shapes", "broadcast_to", "matmul", "gather ragged"),
        "concat nothing",
    ],
)
def test_arguments_that_do_not_fit(function):
    """Other inputs of the same kind: a ValueError (np's AxisError is one), never a number."""
    refused(ValueError, ".", function, [1.0, 2.0])


@pytest.mark.parametrize("index", [2, -3, [0, 7]], ids=repr)
def test_gather_out_of_bounds(index):
    refused((IndexError, ValueError), ".", lambda x: tf.gather(x, index), [1.0, 2.0])


class TestEmpty:
    """4.5: zero-size inputs."""

    def test_sum(self):
        value, slope = gradient(tf.reduce_sum, np.zeros((0,), np.float32))
        assert value == 0.0
        assert slope.shape == (0,)
        assert slope.dtype == np.float32

    def test_sum_over_an_axis(self):
        value, slope = gradient(lambda x: tf.reduce_sum(x, axis=0), np.zeros((0, 3)))
        assert value.tolist() == [0.0, 0.0, 0.0]
        assert slope.shape == (0, 3)

    @pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
    def test_extremes(self, name):
        """ValueError: max of an empty axis has no identity."""
        words = f"{name[-3:]} of an empty axis has no identity"
        refused(ValueError, words, getattr(tf, name), np.zeros((0,), np.float32))

    def test_extremes_over_an_axis(self):
        empty = np.zeros((2, 0), np.float32)
        refused(ValueError, "empty axis", lambda x: tf.reduce_max(x, axis=1), empty)
        value, slope = gradient(lambda x: tf.reduce_max(x, axis=0), empty)
        assert value.shape == (0,)
        assert slope.shape == (2, 0)

    @pytest.mark.parametrize(
        "function",
        [tf.exp, lambda x: x * x, lambda x: tf.concat([x, x], 0), lambda x: x[:0], tf.abs],
        ids=["exp", "multiply", "concat", "slice", "abs"],
    )
    def test_elementwise(self, function):
        value, slope = gradient(function, np.zeros((0,), np.float32))
        assert value.shape == (0,)
        assert slope.shape == (0,)

    def test_matmul(self):
        a, b = tf.zeros((2, 0)), tf.zeros((0, 3))
        with tf.GradientTape() as tape:
            tape.watch([a, b])
            y = a @ b
        assert y.numpy().tolist() == [[0.0] * 3] * 2
        da, db = tape.gradient(y, [a, b])
        assert (da.shape, db.shape) == ((2, 0), (0, 3))


class TestZeroDimensional:
    """4.5: 0-d array: ok, result 0-d."""

    @pytest.mark.parametrize("value", [2.0, np.float64(2.0), np.array(2.0)], ids=repr)
    def test_operations(self, value):
        result, slope = gradient(lambda x: tf.exp(x) * x + 1.0, value)
        assert result.shape == ()
        assert slope.shape == ()
        assert slope == pytest.approx(3 * np.exp(2.0), rel=1e-6)

    def test_reductions(self):
        for reduce in (tf.reduce_sum, tf.reduce_mean, tf.reduce_max):
            result, slope = gradient(reduce, 2.0)
            assert (result.shape, slope.shape, result, slope) == ((), (), 2.0, 1.0)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda x: tf.constant(1.5, dtype=tf.int32), id="float as int"),
        pytest.param(lambda x: list(x[0]), id="iterate a scalar"),
        pytest.param(lambda x: len(x[0]), id="length of a scalar"),
        pytest.param(lambda x: float(x), id="float of a vector"),
        pytest.param(lambda x: bool(x), id="truth of a vector"),
        pytest.param(lambda x: x.__setitem__(0, 5.0), id="item assignment"),
        pytest.param(lambda x: hash(x), id="hash"),
        pytest.param(lambda x: {x: 1}, id="key of a dict"),
        pytest.param(lambda x: x.__iadd__(None), id="augmented by None"),
        pytest.param(lambda x: x @ tf.ones((3, 3)), id="matmul"),
        pytest.param(lambda x: tf.reshape(x, (1.5,)), id="reshape by a float"),
        pytest.param(lambda x: tf.reshape(x, None), id="reshape by None"),
        pytest.param(lambda x: tf.reduce_sum(x, axis="0"), id="axis of text"),
        pytest.param(lambda x: tf.reduce_sum(x, axis=(0, 0)), id="axis twice"),
        pytest.param(lambda x: tf.cast(x, "nope"), id="cast"),
        pytest.param(lambda x: tf.gather(x, 0.5), id="gather by a float"),
        pytest.param(lambda x: tf.concat([x, tf.constant(1.0)], 0), id="concat a scalar"),
        pytest.param(lambda x: tf.stack([x, x[0]]), id="stack two ranks"),
        pytest.param(lambda x: tf.convert_to_tensor([x, None]), id="list with None"),
        pytest.param(lambda x: tf.convert_to_tensor([x, x[0]]), id="list of two ranks"),
        pytest.param(lambda x: np.add(x, "text"), id="NumPy function of text"),
        pytest.param(lambda x: np.add(x, np.ones(3)), id="NumPy broadcast"),
        pytest.param(lambda x: np.sort_complex(x), id="NumPy function not recorded"),
    ],
)
def test_faulty_uses_of_tensors_under_a_tape(program):
    """4.4 and 4.5, rows on conversion, indexing and shapes: the tape goes on rightly."""
    x = tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        before = x * x
        with pytest.raises((TypeError, ValueError, IndexError, AttributeError)):
            program(x)
        y = before + x
    assert numbers(tape.gradient(y, x)) == [7.0, 9.0]
    assert_next_gradient_is_right()


@pytest.mark.parametrize("index", [2**70, -(2**70), np.array([0.0])], ids=repr)
def test_more_indices_that_are_none(index):
    """4.5, float index and out of bounds: IndexError."""
    with pytest.raises(IndexError):
        _ = tf.constant([1.0, 2.0])[index]
    assert_next_gradient_is_right()


def test_arrays_may_have_as_many_axes_as_numpy_allows():
    """NumPy's own broadcasting of shapes ends at 32 axes, its arrays at 64."""
    for rank in (33, 64):
        x = np.full((1,) * rank, 0.5)
        y, slope = gradient(lambda x: tf.where(x > 0.0, tf.tanh(x) * 2.0 + x, 0.0), x)
        assert y.shape == slope.shape == x.shape
        compiled = tf.function(tf.grad(lambda x: tf.reduce_sum(tf.tanh(x) * 2.0 + x)))
        np.testing.assert_allclose(compiled(x).numpy(), slope, rtol=1e-15)
    with pytest.raises(tf.errors.InvalidArgumentError, match="64"):
        tf.expand_dims(x, 0)


def test_shapes_broadcast_as_numpys_do():
    for shapes in itertools.product([(), (1,), (0,), (3,), (2, 1), (2, 3)], repeat=3):
        try:
            expected = np.broadcast_shapes(*shapes)
        except ValueError:
            with pytest.raises(ValueError, match="do not broadcast"):
                broadcast_shapes(*shapes)
        else:
            assert broadcast_shapes(*shapes) == expected
