"""NumPy and Tensors: views, copies, recorded functions (docs/behaviour.md 0.15, 0.16)."""

import math
import warnings

import numpy as np
import pytest

import tinygrad_cg as tf


def test_numpy_gives_a_read_only_view():
    """5.2: the library's own buffers are handed out read-only."""
    t = tf.constant([1.0, 2.0])
    view = t.numpy()
    assert isinstance(view, np.ndarray)
    assert view.dtype == np.float32
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 5.0
    assert not np.asarray(t).flags.writeable
    assert t.numpy().tolist() == [1.0, 2.0]


def test_asarray():
    """2.4: `__array__`."""
    t = tf.constant([1.0, 2.0])
    assert np.asarray(t).tolist() == [1.0, 2.0]
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    copied = np.array(t)
    copied[0] = 5.0
    assert t.numpy().tolist() == [1.0, 2.0]


def test_foreign_arrays_are_copied():
    """4.4: numpy input mutated after recording: the gradient must be [2, 4]."""
    array = np.array([1.0, 2.0])
    x = tf.constant(array)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        array[:] = 100.0
    assert x.numpy().tolist() == [1.0, 2.0]
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "product",
    [
        lambda x, array: x * array,
        lambda x, array: array * x,
        lambda x, array: tf.multiply(x, array),
    ],
    ids=["x*a", "a*x", "multiply"],
)
def test_operands_mutated_before_the_gradient(product):
    """4.4: copy on recording, also of an operand that is no tensor yet."""
    array = np.array([3.0, 4.0])
    x = tf.constant([1.0, 2.0], dtype=tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = product(x, array)
    array[:] = 100.0
    assert tape.gradient(y, x).numpy().tolist() == [3.0, 4.0]


def test_variable_and_upstream_are_copied():
    """5.2: whatever retains a foreign array copies it."""
    array = np.array([1.0, 2.0], np.float32)
    v = tf.Variable(array)
    w = tf.Variable([0.0, 0.0])
    w.assign(array)
    array[:] = 100.0
    assert v.numpy().tolist() == [1.0, 2.0]
    assert w.numpy().tolist() == [1.0, 2.0]
    read = v.numpy()
    v.assign([7.0, 8.0])
    assert read.tolist() == [1.0, 2.0]
    assert not read.flags.writeable


def test_views_outlive_their_tensor():
    """5.2: a buffer is reused only when no view refers to it."""
    view = (tf.constant([1.0, 2.0]) * 3.0).numpy()
    for _ in range(20):
        _ = tf.constant([5.0, 6.0]) * 7.0
    assert view.tolist() == [3.0, 6.0]


class TestRecordedFunctions:
    """Decision 15: NumPy functions on Tensors are recorded and return Tensors."""

    @pytest.mark.parametrize(
        ("function", "derivative"),
        [
            (np.sin, math.cos(2.0)),
            (np.exp, math.exp(2.0)),
            (np.square, 4.0),
            (np.negative, -1.0),
            (np.tanh, 1.0 - math.tanh(2.0) ** 2),
            (lambda x: np.add(x, x), 2.0),
            (lambda x: np.multiply(3.0, x), 3.0),
            (lambda x: np.power(x, 3), 12.0),
            (lambda x: np.maximum(x, 1.0), 1.0),
            (lambda x: np.float64(3.0) * x, 3.0),
            (lambda x: np.array(3.0) * x, 3.0),
            (lambda x: np.array(3.0) - x, -1.0),
            (lambda x: x / np.array(4.0), 0.25),
        ],
        ids=[
            *("sin", "exp", "square", "negative", "tanh", "add", "multiply", "power", "maximum"),
            *("float64*x", "array*x", "array-x", "x/array"),
        ],
    )
    def test_universal_functions(self, function, derivative):
        x = tf.constant(2.0, dtype=tf.float64)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        assert isinstance(y, tf.Tensor)
        assert tape.gradient(y, x).numpy() == pytest.approx(derivative, rel=1e-12)

    @pytest.mark.parametrize(
        ("function", "expected"),
        [
            (np.mean, [0.5, 0.5]),
            (np.sum, [1.0, 1.0]),
            (np.linalg.norm, [0.6, 0.8]),
            (lambda x: np.sum(np.reshape(x, (2, 1)) * x), [14.0, 14.0]),
        ],
        ids=["mean", "sum", "norm", "reshape"],
    )
    def test_other_functions(self, function, expected):
        """4.4: np.mean and np.linalg.norm of traced values."""
        x = tf.constant([3.0, 4.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        assert isinstance(y, tf.Tensor)
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected, rtol=1e-6)

    def test_functions_that_are_not_recorded_are_refused(self):
        """5.1: no gradient is lost in silence."""
        x = tf.constant([[3.0, 4.0]])
        with tf.GradientTape() as tape:
            tape.watch(x)
            with pytest.raises(TypeError, match=r"sort_complex is not supported.*\.numpy\(\)"):
                np.sort_complex(x)
            ordered = np.sort_complex(x.numpy()[0])
            y = x * x
        assert ordered.tolist() == [3, 4]
        assert tape.gradient(y, x).numpy().tolist() == [[6.0, 8.0]]

    def test_array_on_the_left(self):
        """4.4: np ndarray * traced is recorded."""
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = np.array([3.0, 4.0], np.float32) * x
            z = np.array([3.0, 4.0], np.float32) < x
        assert isinstance(y, tf.Tensor)
        assert isinstance(z, tf.Tensor)
        assert y.dtype == tf.float32
        assert tape.gradient(y, x).numpy().tolist() == [3.0, 4.0]

    def test_matrix_product_with_an_array(self):
        x = tf.constant([[1.0, 2.0]])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = np.array([[3.0, 4.0]], np.float32) @ tf.transpose(x)
        assert isinstance(y, tf.Tensor)
        assert tape.gradient(y, x).numpy().tolist() == [[3.0, 4.0]]

    def test_augmented_array(self):
        """An ndarray cannot take a recorded value in place: refused, and it stays as it was."""
        array = kept = np.array([3.0, 4.0], np.float32)
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            with pytest.raises(TypeError, match=r"np\.multiply: out= cannot be a tensor.*`w = w"):
                array *= x
        assert array.tolist() == [3.0, 4.0]
        assert tape.gradient(x, x).numpy().tolist() == [1.0, 1.0]
        assert array is kept

    def test_arrays_take_values_that_nothing_records(self):
        """As ``w -= rate * gradient`` and ``np.add.at`` do: NumPy's rules for the dtype hold."""
        array = kept = np.array([3.0, 4.0], np.float32)
        x = tf.constant([1.0, 2.0])
        array -= x
        np.add.at(array, [0, 0], x)
        np.multiply(x, 2.0, out=array, where=np.array([False, True]))
        assert array is kept
        assert array.tolist() == [5.0, 4.0]
        with pytest.raises(TypeError, match="Cannot cast ufunc 'add' output"):
            np.arange(2).__iadd__(x)
        with pytest.raises(TypeError, match="has no value while"):
            tf.function(lambda x: np.add(array, x, out=array))(x)
        assert array.tolist() == [5.0, 4.0]


class TestDetaching:
    """Decision 15: values taken out of a recorded tensor."""

    @pytest.mark.parametrize(
        "take",
        [float, int, math.sin, np.asarray, lambda x: x.numpy(), lambda x: f"{x:.2f}", repr],
        ids=["float", "int", "math.sin", "asarray", "numpy", "format", "repr"],
    )
    def test_silent_in_plain_code(self, take):
        """4.4: float(x)/np.asarray(x)/math.sin of a traced value: allowed, silent."""
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            take(y)
        assert tape.gradient(y, x).numpy() == 6.0

    @pytest.mark.parametrize(
        "take", [float, np.asarray, lambda x: x.numpy()], ids=["float", "asarray", "numpy"]
    )
    def test_warns_once_a_line_inside_a_rule(self, take):
        """Decision 15: in a custom rule a warning, once per line, where a derivative is lost."""

        @tf.custom_gradient
        def cube(x):
            def rule(dy):
                slope = take(x * x)
                return 3.0 * dy * slope

            return x * x * x, rule

        def slope_at_2():
            x = tf.constant(2.0)
            with tf.GradientTape() as outer, tf.GradientTape() as tape:
                outer.watch(x)
                tape.watch(x)
                y = cube(x)
                return tape.gradient(y, x).numpy()

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert slope_at_2() == 12.0
            assert slope_at_2() == 12.0
        (warning,) = caught
        assert issubclass(warning.category, UserWarning)
        assert warning.filename == __file__


class TestFloatingPoint:
    """Decision 16: floating point never warns; integer // and % by zero warn as NumPy."""

    @pytest.mark.parametrize("size", [None, 3, 100])
    def test_silent(self, size):
        def full(value):
            return tf.constant(value) if size is None else tf.constant([value] * size)

        with np.errstate(all="raise"):
            results = [
                tf.math.log(full(-1.0)),
                tf.math.log(full(0.0)),
                1.0 / full(0.0),
                full(0.0) / full(0.0),
                tf.exp(full(1e30)),
                tf.sqrt(full(-1.0)),
                full(-8.0) ** 0.5,
                full(1e30) * full(1e30),
                full(1.0) // full(0.0),
                full(1.0) % full(0.0),
            ]
        firsts = [result.numpy().ravel()[0] for result in results]
        nan, inf = math.nan, math.inf
        expected = [nan, -inf, inf, nan, inf, nan, nan, inf, inf, nan]
        np.testing.assert_array_equal(firsts, np.array(expected, np.float32))

    @pytest.mark.parametrize("operation", ["//", "%"])
    def test_integer_division_by_zero(self, operation):
        """4.6: int division by zero 1//0 gives 0 with NumPy's RuntimeWarning."""
        ones, zero = tf.constant([1, 2]), tf.constant([0, 2])
        with pytest.warns(RuntimeWarning, match="divide by zero"):
            result = ones // zero if operation == "//" else ones % zero
        assert result.numpy().tolist() == ([0, 1] if operation == "//" else [0, 0])

    def test_integers_wrap(self):
        """4.6: uint8 250+10 gives 4."""
        a = tf.constant(np.array([250], np.uint8))
        assert (a + tf.constant(np.array([10], np.uint8))).numpy().tolist() == [4]
        assert (a + 10).numpy().tolist() == [4]


@pytest.mark.parametrize("digits", [None, 0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_round_keeps_so_many_digits(digits, dtype):
    values = np.array([1.235, -0.25, 27.5, 0.35, np.inf, 115.0], dtype)
    result = round(tf.constant(values), digits)
    np.testing.assert_allclose(result.numpy(), np.round(values, digits or 0), rtol=1e-6)
    assert result.dtype == dtype


def test_round_of_integers_and_of_variables():
    assert round(tf.constant([14, 25, -36]), -1).numpy().tolist() == [10, 20, -40]
    assert round(tf.constant([14, 25]), 3).numpy().tolist() == [14, 25]
    assert round(tf.Variable(2.125, dtype=tf.float64), 2).numpy() == 2.12


def test_round_refuses_digits_that_are_no_number():
    with pytest.raises(TypeError, match="round: ndigits must be an integer, got float"):
        round(tf.constant(1.5), 1.0)
