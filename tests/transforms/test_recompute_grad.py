"""docs/behaviour.md 1.10 and decision 9: forgetting intermediates and computing them again."""

import math
import warnings

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import (
    assert_next_gradient_is_right,
    derivative,
    gradient,
    numbers,
    run_in_a_thread,
)

pytestmark = pytest.mark.quick


def test_forward_runs_again_on_the_way_back():
    """1.10: y=v*x chain x4, v=2: y=16, [16, 32], 4+4=8 runs."""
    v = tf.Variable(2.0)
    runs = []

    @tf.recompute_grad
    def step(x):
        runs.append(1)
        return v * x

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(4):
            y = step(y)
    assert len(runs) == 4
    assert float(y) == 16.0
    assert numbers(tape.gradient(y, [x, v])) == [16.0, 32.0]
    assert len(runs) == 8


def test_wrapped_function_is_named():
    """1.10: `__wrapped__ is f`."""

    def f(x):
        return x * x

    assert tf.recompute_grad(f).__wrapped__ is f
    assert tf.recompute_grad(f).__name__ == "f"


def test_keyword_arguments():
    """1.10: 5.0."""

    @tf.recompute_grad
    def f(x, scale=1.0):
        return x * scale

    assert gradient(lambda x: f(x, scale=5.0), tf.constant(2.0)) == [5.0]


def test_tuple_and_dict_outputs():
    """1.10: 10 y + 100 x + 22.5 x**2 at 2 and 3 is 320.0."""

    @tf.recompute_grad
    def f(x, y):
        return x * y, {"square": x * x, "pair": (y, x * x * x)}

    def total(x, y):
        product, parts = f(x, y)
        return product * 10.0 + parts["square"] * 50.0 + parts["pair"][1] * 7.5

    x, y = tf.constant(2.0), tf.constant(3.0)
    assert gradient(total, x, y) == [320.0, 20.0]


def test_nested_list_arguments():
    """1.10."""

    @tf.recompute_grad
    def f(parts):
        return parts[0] * parts[1][0] * parts[1][1]

    a, b, c = tf.constant(2.0), tf.constant(3.0), tf.constant(5.0)
    assert gradient(lambda a, b, c: f([a, [b, c]]), a, b, c) == [15.0, 10.0, 6.0]


def test_unused_argument_gets_zeros():
    """1.10: not None."""
    f = tf.recompute_grad(lambda x, unused: x * x)
    assert gradient(f, tf.constant(2.0), tf.constant([3.0, 4.0])) == [4.0, [0.0, 0.0]]


def test_zero_size_argument():
    """1.10."""
    f = tf.recompute_grad(lambda x: x * x)
    assert gradient(f, tf.zeros([0, 3])) == [[]]
    assert gradient(f, tf.zeros([2, 0])) == [[[], []]]


def test_integer_argument():
    """1.10: None, and int32 0 with 'zero'."""
    f = tf.recompute_grad(lambda x, n: x * tf.cast(n, tf.float32))
    x, n = tf.constant(2.0), tf.constant(3)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x, n)
    with pytest.warns(tf.errors.TapeWarning, match="dtype of the source tensor"):
        gradients = tape.gradient(y, [x, n])
    with pytest.warns(tf.errors.TapeWarning, match="dtype of the source tensor"):
        zero = tape.gradient(y, n, unconnected_gradients="zero")
    assert numbers(gradients) == [3.0, None]
    assert zero.dtype == tf.int32
    assert int(zero) == 0


RECOMPUTED_CUBE = tf.recompute_grad(lambda x: x**3)


@pytest.mark.parametrize(
    ("function", "truth"),
    [
        pytest.param(RECOMPUTED_CUBE, [8.0, 12.0, 12.0, 6.0], id="cube"),
        pytest.param(
            lambda x: tf.sin(RECOMPUTED_CUBE(x)),
            [0.98935825, -1.7460004, -144.21359, -1722 * math.cos(8.0) - 432 * math.sin(8.0)],
            id="sin(cube)",
        ),
        pytest.param(lambda x: RECOMPUTED_CUBE(x) ** 2, [64.0, 192.0, 480.0, 960.0], id="sixth"),
        pytest.param(
            lambda x: RECOMPUTED_CUBE(RECOMPUTED_CUBE(x)), [512.0, 2304.0, 9216.0], id="ninth"
        ),
        pytest.param(
            tf.recompute_grad(lambda x: RECOMPUTED_CUBE(x) * x), [16.0, 32.0, 48.0], id="nested"
        ),
    ],
)
def test_every_order_is_right(function, truth):
    """1.10 and decision 9: [12, 12] for x^3, -144.2136 for sin(x^3) at second order."""
    for order, value in enumerate(truth):
        assert derivative(function, 2.0, order, "float64") == pytest.approx(value, rel=1e-6)


def test_second_order_for_a_captured_variable():
    """Decision 9 with 1.7: y = v*v*x at x=2, v=3."""
    v, x = tf.Variable(3.0), tf.constant(2.0)
    f = tf.recompute_grad(lambda x: v * v * x)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        gx, gv = inner.gradient(y, [x, v])
    assert numbers([y, gx, gv]) == [18.0, 9.0, 12.0]
    assert numbers(outer.gradient(gx, v)) == 6.0
    assert numbers(outer.gradient(gv, [x, v])) == [6.0, 4.0]


def test_custom_gradient_inside_is_used():
    """1.10: the recomputed function is differentiated with its own rules."""

    @tf.custom_gradient
    def fake(x):
        return x * x, lambda dy: dy * 100.0

    f = tf.recompute_grad(lambda x: fake(x) * 2.0)
    assert gradient(f, tf.constant(3.0)) == [200.0]


def test_error_on_the_way_back_leaves_the_state_sound():
    """4.1: after any error the next gradient is right."""
    runs = []

    @tf.recompute_grad
    def f(x):
        runs.append(1)
        if len(runs) == 2:
            raise OSError("second run")
        return x * x

    with pytest.raises(OSError, match="second run"):
        gradient(f, tf.constant(3.0))
    assert_next_gradient_is_right()
    assert gradient(f, tf.constant(3.0)) == [6.0]


def test_variable_assigned_before_the_way_back():
    """4.1: the gradient is at the recorded value, and the assigned value stays."""
    v = tf.Variable(3.0)
    f = tf.recompute_grad(lambda x: v * v * x)
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    v.assign(50.0)
    assert numbers(tape.gradient(y, [x, v])) == [9.0, 6.0]
    assert float(v) == 50.0


# segments=: a chain, divided.


def counted_chain(length, runs):
    def link(factor):
        def apply(x):
            runs.append(factor)
            return tf.sin(x) * factor

        return apply

    return [link(1.0 + 0.1 * index) for index in range(length)]


@pytest.mark.parametrize("segments", [None, 1, 2, 3, 7])
def test_chain_in_segments(segments):
    """As the ordinary chain, at each order; every link runs twice for a gradient."""
    runs = []
    links = counted_chain(7, runs)

    def stored(x):
        for link in links:
            x = link(x)
        return x

    chain = tf.recompute_grad(links, segments=segments)
    for order in range(4):
        expected = derivative(stored, 0.5, order, "float64")
        assert derivative(chain, 0.5, order, "float64") == pytest.approx(expected, rel=1e-12)
    runs.clear()
    derivative(chain, 0.5, 1)
    assert len(runs) == 14


@pytest.mark.parametrize("segments", [0, 8, -1])
def test_impossible_number_of_segments(segments):
    """A clear error at once."""
    with pytest.raises(ValueError, match="segments must be 1 to 7"):
        tf.recompute_grad(counted_chain(7, []), segments=segments)


def test_segments_are_for_chains():
    """A clear error at once."""
    with pytest.raises(TypeError, match="segments"):
        tf.recompute_grad(tf.sin, segments=2)
    for wrong in (3, [tf.sin, 3], []):
        with pytest.raises(TypeError, match="needs a function or a list of functions"):
            tf.recompute_grad(wrong)


def test_recomputing_uses_the_values_of_then_in_this_thread_only():
    v, seen = tf.Variable(2.0), []

    def f(x):
        if seen:
            seen.append(run_in_a_thread(lambda: float(v)))
        seen.append(float(v))
        return x * float(v)

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.recompute_grad(f)(x)
    v.assign(5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tf.CustomGradientWarning)
        assert tape.gradient(y, x).numpy() == 2.0
    assert seen == [2.0, 5.0, 2.0]
    assert float(v) == 5.0


def test_recompute_grad_with_a_variable_and_two_outputs():
    """1.10: z = (v x y) (x + y) at x=3, y=4, v=2."""
    v = tf.Variable(2.0)
    f = tf.recompute_grad(lambda x, y: (v * x * y, x + y))
    x, y = tf.constant(3.0), tf.constant(4.0)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        product, total = f(x, y)
        z = product * total
    assert numbers(tape.gradient(z, [x, y, v])) == [80.0, 66.0, 84.0]


def _noisy(x):
    return tf.nn.dropout(x, 0.4) * x


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        pytest.param(tf.recompute_grad(_noisy), id="eager"),
        pytest.param(tf.recompute_grad(tf.function(_noisy)), id="program_inside"),
        pytest.param(tf.recompute_grad(lambda x: tf.recompute_grad(_noisy)(x)), id="nested"),
        pytest.param(
            tf.recompute_grad([lambda x: x * x, lambda y: tf.nn.dropout(y, 0.4)]), id="chain"
        ),
        pytest.param(lambda x: tf.map_fn(tf.recompute_grad(_noisy), x), id="in_a_loop"),
        pytest.param(tf.recompute_grad(lambda x: tf.map_fn(_noisy, x)), id="a_loop_inside"),
    ],
)
def test_same_random_numbers_again(function, compiled):
    """Decision 9: y = m x**2 with a random m has the gradients 2 m x and 2 m, with the same m."""
    if compiled:
        function = tf.function(function)
    x = tf.ones((4, 8), tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = function(x)
        first = tape.gradient(y, x)
    tf.random.uniform([3])
    assert 0 < np.count_nonzero(y) < 32
    np.testing.assert_allclose(first, 2 * y)
    np.testing.assert_allclose(tape.gradient(y, x), 2 * y)
    np.testing.assert_allclose(outer.gradient(first, x), 2 * y)
    y, tangent = tf.jvp(function, (x,), (x,))
    np.testing.assert_allclose(tangent, 2 * y)


def test_recomputing_does_not_draw():
    """The way back leaves the random numbers after it as they are."""

    def numbers_after(f):
        tf.random.set_seed(3)
        x = tf.constant(1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        tape.gradient(y, x)
        return tf.random.uniform([3]).numpy()

    def f(x):
        return x * tf.reduce_sum(tf.random.normal([5]))

    np.testing.assert_array_equal(numbers_after(f), numbers_after(tf.recompute_grad(f)))
