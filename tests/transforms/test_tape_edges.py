"""Gradients at ties, at edges and of what has none (docs/behaviour.md 2.1, decisions 14 and 16)."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import gradient


def gradient_at(function, *points, dtype=None) -> Any:
    """The function's gradients at the points, as numbers and lists; None kept."""
    tensors = [tf.constant(point, dtype=dtype) for point in points]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    gradients = tape.gradient(y, tensors)
    results = [None if gradient is None else gradient.numpy() for gradient in gradients]
    return results[0] if len(points) == 1 else results


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("function", "point", "expected"),
    [
        (lambda x: tf.nn.relu(x), 0.0, 0.0),
        (lambda x: tf.abs(x), 0.0, 0.0),
        (lambda x: tf.maximum(x, 0.0), 0.0, 1.0),
        (lambda x: tf.maximum(0.0, x), 0.0, 0.0),
        (lambda x: tf.minimum(x, 0.0), 0.0, 1.0),
        (lambda x: tf.sqrt(x), 0.0, math.inf),
        (lambda x: x**2, -2.0, -4.0),
        (lambda x: x**0.5, -2.0, math.nan),
        (lambda x: x**0.0, 0.0, 0.0),
        (lambda x: x**0, 0.0, 0.0),
        (lambda x: x ** tf.constant(0.0, dtype=x.dtype), 0.0, 0.0),
        (lambda x: tf.constant(0.0, dtype=x.dtype) ** x, 2.0, 0.0),
        (lambda x: tf.math.log(x), 0.0, math.inf),
        (lambda x: tf.math.log(x), -1.0, -1.0),
        (lambda x: tf.sign(x), 2.0, 0.0),
        (lambda x: x * tf.stop_gradient(x), 3.0, 3.0),
        (lambda x: tf.maximum(x, x), 2.0, 1.0),
        (lambda x: 1.0 / x, 0.0, -math.inf),
        (lambda x: tf.reduce_max(x), [2.0, 2.0], [0.5, 0.5]),
        (lambda x: tf.reduce_min(x), [1.0, 1.0, 3.0], [0.5, 0.5, 0.0]),
        (lambda x: tf.reduce_prod(x), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
        (lambda x: tf.reduce_prod(x), [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]),
        (lambda x: tf.clip_by_value(x, 0.0, 1.0), [0.0, 1.0, 0.5, 2.0], [1.0, 1.0, 1.0, 0.0]),
        (lambda x: tf.where(x > 0, tf.math.log(x), 0.0), [-1.0, 0.0], [0.0, 0.0]),
    ],
    ids=[
        "relu'(0)",
        "abs'(0)",
        "maximum(x,0)",
        "maximum(0,x)",
        "minimum(x,0)",
        "sqrt'(0)",
        "x**2 at -2",
        "x**.5 at -2",
        "x**0. at 0",
        "x**0 at 0",
        "x**tensor 0 at 0",
        "0**y at 2",
        "log'(0)",
        "log'(-1)",
        "sign",
        "stop_gradient",
        "maximum(x,x)",
        "1/x at 0",
        "reduce_max tie",
        "reduce_min tie",
        "prod, one zero",
        "prod, two zeros",
        "clip",
        "where with log",
    ],
)
def test_value_of_the_gradient(function, point, expected, dtype):
    """2.1, ties / edges; decisions 14 and 16: nothing warns."""
    gradient = gradient_at(function, point, dtype=dtype)
    assert gradient.dtype == dtype
    np.testing.assert_array_equal(gradient, np.array(expected, dtype))


@pytest.mark.parametrize("function", ["maximum", "minimum"])
def test_binary_tie_goes_to_the_first(function):
    """Decision 14; 4.6, d maximum tie (binary)."""
    assert gradient_at(getattr(tf, function), 2.0, 2.0) == [1.0, 0.0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.round(x),
        lambda x: tf.floor(x),
        lambda x: tf.argmax(x),
        lambda x: x > 1.0,
        lambda x: tf.equal(x, 1.0),
        lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32),
    ],
    ids=["round", "floor", "argmax", "greater", "equal", "cast to int and back"],
)
@pytest.mark.filterwarnings("ignore::tinygrad_cg.errors.TapeWarning")
def test_no_gradient(function):
    """2.1, non-diff ops: None."""
    assert gradient_at(function, [1.0, 2.0]) is None


def test_integer_cast_cuts_its_path_only():
    """2.1: int casts cut (the x path gives 2.0)."""
    assert gradient_at(lambda x: 2.0 * x + tf.cast(tf.cast(x, "int32"), "float32"), 3.0) == 2.0


def test_cast_between_floats():
    """2.1: the gradient has the dtype of the source."""
    gradient = gradient_at(lambda x: tf.cast(x, tf.float64) ** 2, [1.0, 2.0])
    assert gradient.dtype == np.float32
    assert gradient.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((2, 3), ()),
        ((2, 3), (3,)),
        ((2, 3), (1, 3)),
        ((2, 1), (1, 3)),
        ((2, 1), (3,)),
        ((), (2, 3)),
        ((4, 1, 3), (2, 1)),
        ((0, 3), (3,)),
    ],
    ids=str,
)
def test_broadcast_gradients_have_the_inputs_shapes(left, right):
    """2.1: broadcasting: gradients are reduced to the input's shape."""
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=left), generator.normal(size=right)
    da, db = gradient_at(lambda x, y: x * y, a, b)
    full = np.broadcast_shapes(left, right)
    np.testing.assert_allclose(da, reduced(np.broadcast_to(b, full), left), rtol=1e-12)
    np.testing.assert_allclose(db, reduced(np.broadcast_to(a, full), right), rtol=1e-12)


def reduced(array, shape):
    """`array` summed over what broadcasting `shape` to it has added."""
    array = array.sum(axis=tuple(range(array.ndim - len(shape))))
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    result = array.sum(axis=axes, keepdims=True)
    assert result.shape == shape
    return result


@pytest.mark.parametrize("kind", ["tensor", "variable"])
def test_gather(kind):
    """2.1, gather/embedding: rows [0,0,2] of ones; what comes back converts to a tensor."""
    table = tf.constant(np.ones((3, 2), np.float32))
    source = tf.Variable(table) if kind == "variable" else table
    with tf.GradientTape() as tape:
        tape.watch(source)
        y = tf.gather(source, [0, 0, 2])
    gradient = tf.convert_to_tensor(tape.gradient(y, source))
    assert gradient.numpy().tolist() == [[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]


class TestStopGradient:
    """2.2: stop_gradient."""

    def test_value_and_gradient(self):
        x = tf.constant(3.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.stop_gradient(x * x)
            z = tf.stop_gradient(x) * x
        assert y.numpy() == 9.0
        assert tape.gradient(z, x).numpy() == 3.0
        assert tape.gradient(y, x) is None
        assert tape.gradient(y, x, unconnected_gradients="zero").numpy() == 0.0

    @pytest.mark.parametrize(("watched", "expected"), [(False, None), (True, 3.0)])
    def test_gradient_of_what_was_stopped(self, watched, expected):
        """2.2: None unless it is watched afterwards, then [3, 3]."""
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            stopped = tf.stop_gradient(x)
            if watched:
                tape.watch(stopped)
            y = stopped * x
        first, second = tape.gradient(y, [stopped, x])
        assert second.numpy() == 3.0
        assert first is expected or first.numpy() == expected

    @pytest.mark.parametrize("value", [[1.0, 2.0], np.ones(2), 3], ids=["list", "array", "int"])
    def test_accepts(self, value):
        np.testing.assert_array_equal(tf.stop_gradient(value).numpy(), np.asarray(value))

    def test_straight_through(self):
        x = tf.constant([0.4, 1.6])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x + tf.stop_gradient(tf.round(x) - x)
            loss = tf.reduce_sum(y * y)
        assert y.numpy().tolist() == [0.0, 2.0]
        assert tape.gradient(loss, x).numpy().tolist() == [0.0, 4.0]


def test_sign_gives_zeros():
    """2.1, non-diff ops: zeros and not None, of the input's shape, at 0 too."""
    assert gradient(tf.sign, tf.constant([-2.0, 0.0, 3.0])) == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    "compare",
    [tf.equal, tf.not_equal, tf.less, tf.less_equal, tf.greater, tf.greater_equal],
    ids=lambda compare: compare.__name__,
)
@pytest.mark.filterwarnings("ignore::tinygrad_cg.errors.TapeWarning")
def test_comparisons_have_no_gradient(compare):
    """2.1, non-diff ops: each comparison, alone and cast to floats."""
    x, y = tf.constant([1.0, 2.0]), tf.constant([2.0, 2.0])
    assert gradient(compare, x, y) == [None, None]
    assert gradient(lambda x, y: tf.cast(compare(x, y), tf.float32), x, y) == [None, None]
    both = gradient(lambda x, y: x * tf.cast(compare(x, y), tf.float32), x, y)
    assert both[0] == compare(x, y).numpy().astype(float).tolist()
    assert both[1] is None


@pytest.mark.parametrize("make", [tf.Variable, tf.constant])
def test_gradient_of_gather_sums_repeated_rows(make):
    """2.1, gather: slices [[1, 1]]*3 at [0, 0, 2], here dense, also with another path."""
    table = make([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    dense = [[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
    rows = [0, 0, 2]
    for function, more in (
        (lambda table: tf.gather(table, rows), 0.0),
        (lambda table: tf.reduce_sum(tf.gather(table, rows)) + tf.reduce_sum(table), 1.0),
    ):
        slope = gradient(function, table)[0]
        assert slope == (np.array(dense) + more).tolist()


@pytest.mark.quick
@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_tape_cannot_be_copied(make):
    """A copy would have no records, and gradients None."""
    with tf.GradientTape() as tape, pytest.raises(TypeError, match="cannot be copied"):
        make(tape)
