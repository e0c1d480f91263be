"""docs/behaviour.md 1.5 and decision 4: positional arguments that are not float Tensors."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, gradient, numbers

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("value", [2.0, 2, True, [1.0, 2.0], np.array([1.0, 2.0], np.float32)])
def test_plain_values_reach_the_function_as_they_are(value):
    """1.5: float, int, ndarray and list, raw."""
    seen = []

    @tf.custom_gradient
    def f(x, value_seen):
        seen.append(value_seen)
        count = len(tf.nest.flatten(value_seen))
        return x * 2.0, lambda dy: [dy * 5.0] + [None] * count

    assert gradient(lambda x: f(x, value), tf.constant(1.0)) == [5.0]
    assert type(seen[0]) is type(value)


@pytest.mark.parametrize("value", [0.5, 2, True, np.float32(0.5), np.ones(2, np.float32)])
def test_positional_numbers_have_a_gradient_slot(value):
    """1.5, decision 4: one entry each, and it may be None or a number."""

    @tf.custom_gradient
    def f(x, scale):
        return x * 1.0, lambda dy: (dy * 5.0, None)

    assert gradient(lambda x: f(x, value), tf.constant(1.0)) == [5.0]


def test_every_number_of_a_list_has_a_slot():
    """1.5: a list of floats."""

    @tf.custom_gradient
    def f(x, scales):
        return x * scales[0], lambda dy: (dy * 5.0, [dy, None])

    assert gradient(lambda x: f(x, [2.0, 3.0]), tf.constant(1.0)) == [5.0]


def test_the_classic_gradient_reversal_bug():
    """1.5: grl(x, 0.5) whose rule returns one value."""

    @tf.custom_gradient
    def grl(x, strength):
        return x * 1.0, lambda dy: -strength * dy

    words = "expected to return 2 gradients, but returned 1"
    with pytest.raises(ValueError, match=words) as caught:
        gradient(lambda x: grl(x, 0.5), tf.constant(1.0))
    assert "grl" in str(caught.value)
    assert_next_gradient_is_right()


def test_gradient_reversal_with_both_slots():
    """1.5."""

    @tf.custom_gradient
    def grl(x, strength):
        return x * 1.0, lambda dy: (-strength * dy, None)

    assert gradient(lambda x: grl(x, 0.5), tf.constant(1.0)) == [-0.5]


class Settings:
    """An object that is neither number nor tensor."""

    factor = 5.0


@pytest.mark.parametrize(
    "static",
    [
        pytest.param(None, id="None"),
        pytest.param("valid", id="str"),
        pytest.param(abs, id="callable"),
        pytest.param(Settings(), id="object"),
        pytest.param(Settings, id="class"),
        pytest.param(b"valid", id="bytes"),
    ],
)
def test_other_arguments_are_static(static):
    """Decision 4: None, strings, callables and other non-tensors have no slot."""

    @tf.custom_gradient
    def f(x, option, y):
        assert option is static
        return x * y, lambda dy: (dy * 5.0, dy * 7.0)

    x, y = tf.constant(1.0), tf.constant(2.0)
    assert gradient(lambda x, y: f(x, static, y), x, y) == [5.0, 7.0]


def test_static_leaves_inside_a_structure_have_no_slot():
    """Decision 4, with None among the leaves of a dict."""

    @tf.custom_gradient
    def f(parts):
        return parts["w"] * 2.0, lambda dy: [dy * 5.0]

    w = tf.constant(1.0)
    assert gradient(lambda w: f({"w": w, "bias": None, "mode": "same"}), w) == [5.0]


def test_integer_input_gets_none():
    """1.5, decision 3: whatever the rule returns for it."""

    @tf.custom_gradient
    def f(x, count):
        return x * 2.0, lambda dy: (dy * 3.0, dy * 5.0)

    x, count = tf.constant(1.0), tf.constant(4)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, count)
    with pytest.warns(tf.errors.TapeWarning, match="dtype of the source tensor"):
        gradients = tape.gradient(y, [x, count])
    assert numbers(gradients) == [3.0, None]


def test_watching_an_integer_warns_and_its_gradient_is_none():
    """1.5: the original's words."""

    @tf.custom_gradient
    def f(count):
        return count * 2, lambda dy: dy * 5

    count = tf.constant(4)
    with tf.GradientTape() as tape:
        with pytest.warns(tf.errors.TapeWarning, match="dtype of the watched tensor must be"):
            tape.watch(count)
        y = f(count)
    with pytest.warns(tf.errors.TapeWarning, match="dtype of the source tensor must be"):
        assert tape.gradient(y, count) is None
    assert_next_gradient_is_right()


def test_float_to_integer_output_is_none_downstream():
    """1.5: even though a rule exists."""

    @tf.custom_gradient
    def f(x):
        return tf.cast(x, tf.int32), lambda dy: tf.constant(5.0)

    x = tf.constant(1.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(f(x), tf.float32) * 2.0
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes_pass_through(dtype):
    """1.5."""

    @tf.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * 5

    x = tf.constant([1.0, 2.0], dtype=dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    result = tape.gradient(y, x)
    assert (y.dtype, result.dtype) == (x.dtype, x.dtype)
    assert numbers(result) == [5.0, 5.0]


def test_numpy_input_may_change_between_forward_and_gradient():
    """4.1: a NumPy input that is mutated after recording; the true gradient is [2, 4]."""

    @tf.custom_gradient
    def times(x, array):
        kept = tf.convert_to_tensor(array)
        return x * kept, lambda dy: (dy * kept, None)

    array = np.array([2.0, 4.0], np.float32)
    x = tf.constant([1.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = times(x, array)
    array[:] = 200.0
    assert numbers(tape.gradient(y, x)) == [2.0, 4.0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_dtypes_pass_through_a_product(dtype):
    """1.5: a rule dy*5 for x*x at [1, 2] gives [5, 5] of the input's dtype."""

    @tf.custom_gradient
    def f(x):
        return x * x, lambda dy: dy * 5

    x = tf.constant([1, 2], dtype=dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    slope = tape.gradient(y, x)
    assert (y.dtype, slope.dtype) == (dtype, dtype)
    assert numbers(slope) == [5, 5]


@pytest.mark.filterwarnings("ignore::tinygrad_cg.errors.TapeWarning")
def test_integer_input_of_a_float_function():
    """1.5 and decision 3: the original hands 5.0 through; ours is None, zeros if asked for."""

    @tf.custom_gradient
    def f(count):
        return tf.cast(count, tf.float32) * 2.0, lambda dy: dy * 5.0

    count = tf.constant(3)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(count)
        y = f(count)
    assert tape.gradient(y, count) is None
    zero = tape.gradient(y, count, unconnected_gradients="zero")
    assert (zero.dtype, int(zero)) == (tf.int32, 0)
