"""debug_nans: the first NaN or infinity, what made it, and where; check_numerics."""

import inspect
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tests.support.composites import log1pexp
from tests.support.orders import (
    assert_clean_state,
    gradient,
    gradient_function,
    run_in_a_thread,
    second_gradient,
)
from tinygrad_cg._core.levels import state

pytestmark = pytest.mark.quick

NonFinite = tf.errors.NonFiniteError


second_order = partial(second_gradient, log1pexp)


def caught(function, *args, **options):
    """The text of the error that the detector raises."""
    with pytest.raises(NonFinite) as error, tf.debug_nans(**options):
        function(*args)
    assert isinstance(error.value, (FloatingPointError, tf.errors.InvalidArgumentError))
    assert_clean_state()
    assert state.observers == ()
    return str(error.value)


def test_forward():
    text = caught(lambda: tf.math.log(tf.constant([1.0, -1.0, -2.0])))
    line = inspect.currentframe().f_lineno - 1
    assert text.startswith("log returned a NaN: 2 of 3 elements, the first at [1], log(-1) = nan\n")
    assert "forward, order 0" in text
    assert f'File "{__file__}", line {line}: `text = caught(' in text
    assert "operand 0: float32(3), -2 to 1" in text
    assert 'Detected Infinity or NaN in output 0 of eagerly-executed op "log"' in text


def test_backward_at_the_second_order_with_the_line_of_the_operation():
    text = caught(second_order, tf.constant([1.0, 100.0]), infs=False)
    assert text.startswith(
        "divide returned a NaN: 1 of 2 elements, the first at [1]; the derivative of a division by "
        "inf is NaN"
    )
    assert "backward, order 2, in the rule of divide" in text
    assert "`return outer.gradient(first, x)`" in text
    assert "the rule belongs to the operation at" in text
    assert "1 / (1 + e)" in text


def test_infinities_come_first_unless_they_are_allowed():
    x = tf.constant([1.0, 100.0])
    assert caught(second_order, x).startswith("exp returned an infinity: 1 of 2")
    with tf.debug_nans(nans=False, infs=False):
        second_order(x)
    assert caught(lambda: tf.sqrt(-1.0) + tf.exp(1000.0), nans=False).startswith(
        "exp returned an inf"
    )


@pytest.mark.parametrize("order", [1, 2])
def test_a_gradient_that_is_infinite(order):
    f = tf.sqrt if order == 1 else gradient_function(lambda x: x**1.5)
    text = caught(gradient_function(f), tf.constant(0.0))
    assert f"backward, order {order}" in text
    assert "returned a" in text


def test_numpy_in_a_function_and_in_a_rule():
    @tf.custom_gradient
    def f(x):
        return tf.constant(np.float32("nan")) + 0.0 * 0.0, lambda dy: dy

    @tf.custom_gradient
    def g(x):
        return x * 1.0, lambda dy: np.array(np.inf, np.float32)

    def h(x):
        return tf.constant(np.float32("nan")), lambda dy: dy

    x = tf.constant(1.0)
    text = caught(gradient, f, x)
    assert text.startswith("add received a NaN")
    assert "No watched operation computed the NaN" in text
    text = caught(gradient, g, x)
    assert text.startswith("the rule of `g` returned an infinity: the result")
    assert "it came from NumPy, a constant or a captured tensor" in text
    assert caught(gradient, tf.custom_gradient(h), x).startswith("`h` returned a NaN")


def test_a_nan_that_comes_in_is_reported_and_an_infinite_mask_passes():
    data = tf.constant([1.0, np.nan, 3.0])
    text = caught(lambda: data * 2.0)
    assert text.startswith("multiply received a NaN: 1 of 3 elements, the first at [1]")
    with tf.debug_nans():
        tf.where(tf.math.is_nan(data), 0.0, data)
        mask = tf.constant([0.0, -np.inf])
        assert_array_equal(tf.nn.softmax(tf.constant([1.0, 2.0]) + mask), [1.0, 0.0])


def test_a_mask_inside_a_custom_gradient_passes_too():
    mask = tf.constant([0.0, -np.inf])

    @tf.custom_gradient
    def masked(x):
        return x + mask, lambda dy: dy

    with tf.debug_nans():
        result = gradient(lambda x: tf.nn.softmax(masked(x))[0], tf.constant([1.0, 2.0]))
    assert result == [[0.0, 0.0]]


def test_the_detector_sees_tangents_batches_and_functions():
    x = tf.constant([0.0, 4.0])
    ways = {
        "tangent": lambda: tf.jvp(tf.sqrt, (x,), (tf.ones(2),)),
        "batch": lambda: tf.vmap(tf.grad(tf.sqrt))(x),
        "function": lambda: tf.function(tf.elementwise_grad(tf.sqrt))(x),
        "jit": lambda: tf.elementwise_grad(tf.function(tf.sqrt, jit_compile=True))(x),
        "jacobian": lambda: tf.jacobian(tf.sqrt)(x),
    }
    for name, way in ways.items():
        assert "1 of" in caught(way), name
    assert "tangent, order 1" in caught(ways["tangent"])


def test_only_the_backward_pass_is_watched():
    x = tf.constant(0.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sqrt(x)
    text = caught(tape.gradient, y, x)
    assert "backward, order 1, in the rule of sqrt" in text
    assert tape.gradient(y, x).numpy() == np.inf  # the tape can still be asked


def test_a_long_watch_forgets_what_was_long_ago(monkeypatch):
    detector = tf.debug_nans()
    monkeypatch.setattr(type(detector), "remembered", 10)
    with detector:
        for _ in range(50):
            second_order(tf.constant(1.0))
    assert 10 <= len(detector._calls) <= 20
    assert len(detector._reached) < 10


def test_a_rule_in_a_batch():
    @tf.custom_gradient
    def f(x):
        return x * 1.0, lambda dy: tf.stack([dy[0], np.float32(np.inf)])

    x = tf.constant([1.0, 2.0])
    text = caught(tf.jacobian(f), x)
    assert text.startswith("the rule of `f` returned an infinity: 2 of 4 elements")


def test_complex_and_half_precision():
    assert caught(lambda: tf.math.log(tf.constant(0j))).startswith("log returned a")
    big = tf.constant(np.full(100, 60000.0, np.float16))  # their sum is infinite, they are not
    with tf.debug_nans():
        tf.abs(big)
    assert caught(lambda: big / 0.0).startswith("divide returned an infinity: 100 of 100")


def test_check_numerics_is_switched_on_and_off_for_a_thread():
    for _ in range(2):
        tf.debugging.enable_check_numerics()
    try:
        with pytest.raises(
            tf.errors.InvalidArgumentError, match="Detected Infinity or NaN in outp"
        ):
            tf.math.log(0.0)
        assert run_in_a_thread(lambda: tf.math.log(0.0).numpy()) == -np.inf
    finally:
        for _ in range(2):
            tf.debugging.disable_check_numerics()
    assert tf.math.log(0.0).numpy() == -np.inf
    assert_clean_state()


# check_numerics -------------------------------------------------------------------------------


def test_check_numerics_in_a_program_judges_the_values_alone(monkeypatch):
    """To plan a program, operations that return their operands are run once on new memory."""
    empty = np.empty

    def dirty(*args, **options):
        array = empty(*args, **options)
        array[...] = np.nan
        return array

    checked = tf.function(lambda x: tf.debugging.check_numerics(tf.math.log(x), "log"))
    with monkeypatch.context() as patch:
        patch.setattr(np, "empty", dirty)
        assert float(checked(tf.constant(1.0))) == 0.0


def test_check_numerics_hands_on_what_is_finite():
    x = tf.constant([1.0, 2.0])
    assert_array_equal(tf.debugging.check_numerics(x, "x"), x)
    assert gradient(lambda x: tf.debugging.check_numerics(x * x, "x"), x) == [[2.0, 4.0]]
    assert_array_equal(tf.debugging.assert_all_finite([1.0], "x"), [1.0])
    assert_array_equal(tf.hessian(lambda x: tf.debugging.check_numerics(x**2, "x"))(3.0), 2.0)
    batch = tf.vmap(lambda x: tf.debugging.check_numerics(x, "x") * 2.0)(x)
    assert_array_equal(batch, [2.0, 4.0])
    assert_array_equal(tf.jvp(lambda x: tf.debugging.check_numerics(x, "x"), (x,), (x,))[1], x)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([np.nan], "NaN"),
        ([np.inf], "Inf"),
        ([-np.inf, 1.0], "Inf"),
        ([np.nan, np.inf], "Inf and NaN"),
    ],
)
def test_check_numerics_refuses_the_rest(value, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"here : Tensor had {words} values$"):
        tf.debugging.check_numerics(value, "here")


@pytest.mark.parametrize("compiled", [None, False, True])
def test_check_numerics_of_a_gradient_and_in_a_function(compiled):
    def f(x):
        return tf.debugging.check_numerics(tf.identity(x), "here") ** 0.5

    slope = gradient_function(f)
    if compiled is not None:
        f, slope = [tf.function(function, jit_compile=compiled) for function in (f, slope)]
    x = tf.constant([4.0, 9.0])
    assert_allclose(f(x), [2.0, 3.0])
    assert_allclose(slope(x), [0.25, 1 / 6], rtol=1e-6)
    with pytest.raises(NonFinite, match="here : Tensor had NaN"):
        f(tf.constant([4.0, np.nan]))
    with pytest.raises(NonFinite, match=r"detected in gradient\. here : Tensor had Inf"):
        slope(tf.constant([0.0, 9.0]))


def test_check_numerics_is_for_floats():
    with pytest.raises(TypeError, match="must be floats, got int32"):
        tf.debugging.check_numerics(3, "here")


def test_an_internal_function_with_the_name_of_a_public_one_is_not_named():
    from tinygrad_cg.numpy import coverage

    assert coverage.rows.__name__ == "rows"  # as a function of Jacobians is named
    test_a_rule_in_a_batch()
