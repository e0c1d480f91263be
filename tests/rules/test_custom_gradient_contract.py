"""docs/behaviour.md 1.0 and 1.1: what custom_gradient promises."""

import gc
import math
import weakref

import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, derivative, gradient, numbers
from tests.support.rules import log1pexp

pytestmark = pytest.mark.quick


def naive_log1pexp(x):
    return tf.math.log(1 + tf.exp(x))


@tf.custom_gradient
def bar(x, y):
    def grad(upstream):
        return upstream * y, upstream * x

    return x * y, grad


class Recorder:
    """A custom op y = 2 x whose rule is 10 dy, and a list of what was called."""

    def __init__(self, name="f", calls=None):
        self.calls = [] if calls is None else calls
        self.upstreams = []

        @tf.custom_gradient
        def double(x):
            self.calls.append(name + " forward")

            def grad(dy):
                self.calls.append(name + " backward")
                self.upstreams.append(float(dy))
                return 10.0 * dy

            return x * 2.0, grad

        self.op = double


def test_naive_log1pexp_at_100():
    """1.1: y=inf, grad=nan."""
    assert derivative(naive_log1pexp, 100.0, 0) == math.inf
    assert math.isnan(derivative(naive_log1pexp, 100.0, 1))


def test_custom_log1pexp_at_100_mends_the_gradient_and_not_the_value():
    """1.1: y=inf, grad=1.0."""
    assert derivative(log1pexp, 100.0, 0) == math.inf
    assert derivative(log1pexp, 100.0, 1) == 1.0


@pytest.mark.parametrize(
    ("order", "expected"), [(0, 1.3132616), (1, 0.7310586), (2, 0.1966119), (3, -0.0908578)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_log1pexp_at_one(order, expected, dtype):
    """1.1: orders 0..3 are softplus, s, s', s'' of the sigmoid."""
    assert derivative(log1pexp, 1.0, order, dtype) == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize(
    ("value", "dtype"), [(100.0, "float32"), (89.0, "float32"), (710.0, "float64")]
)
def test_log1pexp_is_stable_at_first_order_only(value, dtype, order):
    """1.1: order 2 and 3 are nan where e overflows (float32 above 88.72, float64 at 710)."""
    assert derivative(log1pexp, value, 1, dtype) == 1.0
    assert math.isnan(derivative(log1pexp, value, order, dtype))


@pytest.mark.parametrize(("value", "dtype"), [(88.0, "float32"), (100.0, "float64")])
def test_log1pexp_second_order_is_fine_below_the_overflow(value, dtype):
    """1.1: below the threshold the second order is finite and tiny."""
    assert derivative(log1pexp, value, 2, dtype) == pytest.approx(0.0, abs=1e-30)


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (lambda x, y: x, 3.0),
        (lambda x, y: y, 2.0),
        (lambda x, y: [x, y], [3.0, 2.0]),
        (lambda x, y: (y, x), [2.0, 3.0]),
        (lambda x, y: {"x": x, "more": [y]}, {"x": 3.0, "more": [2.0]}),
    ],
)
def test_bar_on_a_persistent_tape_mirrors_the_sources(sources, expected):
    """1.1: z=6.0, [3.0, 2.0]; sources may be a tensor, list, tuple or dict."""
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = bar(x, y)
    assert float(z) == 6.0
    asked = sources(x, y)
    gradients = tape.gradient(z, asked)
    assert type(gradients) is type(asked) or isinstance(gradients, tf.Tensor)
    assert numbers(gradients) == expected
    assert numbers(tape.gradient(z, asked)) == expected


def test_the_same_tensor_twice_gets_the_sum():
    """1.1: bar(x, x) at 3 gives 6.0."""
    assert gradient(lambda x: bar(x, x), tf.constant(3.0)) == [6.0]


def test_mixed_second_order_of_bar():
    """1.1: d(gx)/d[x, y] = [None, 1.0]."""
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch([x, y])
        with tf.GradientTape() as inner:
            inner.watch([x, y])
            z = bar(x, y)
        slope = inner.gradient(z, x)
    assert numbers(outer.gradient(slope, [x, y])) == [None, 1.0]


def test_only_x_is_watched():
    """1.1: [3.0, None]."""
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        z = bar(x, y)
    assert numbers(tape.gradient(z, [x, y])) == [3.0, None]


def test_forward_runs_once_and_the_rule_waits_for_gradient():
    """1.1: also with no tape."""
    recorder = Recorder()
    recorder.op(tf.constant(1.0))
    assert recorder.calls == ["f forward"]
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = recorder.op(x)
    assert recorder.calls == ["f forward", "f forward"]
    assert float(tape.gradient(y, x)) == 10.0
    assert recorder.calls == ["f forward", "f forward", "f backward"]


def test_fan_out_calls_the_rule_once_with_the_accumulated_upstream():
    """1.1: 7.0 for y*3 + y*4."""
    recorder = Recorder()

    def fan_out(x):
        y = recorder.op(x)
        return y * 3.0 + y * 4.0

    assert gradient(fan_out, tf.constant(1.0)) == [70.0]
    assert recorder.upstreams == [7.0]


def test_persistent_tape_calls_the_rule_at_every_gradient():
    """1.1."""
    recorder = Recorder()
    x = tf.constant(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = recorder.op(x)
    assert [float(tape.gradient(y, x)) for _ in range(3)] == [10.0, 10.0, 10.0]
    assert recorder.upstreams == [1.0, 1.0, 1.0]


def test_rule_of_an_output_off_the_path_is_not_called():
    """1.1."""
    recorder = Recorder()
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        recorder.op(x)
        target = x * x
    assert float(tape.gradient(target, x)) == 6.0
    assert recorder.upstreams == []


def test_rules_run_in_the_reverse_of_the_forward_order():
    """1.1: b(a(x)) calls b, then a."""
    calls = []
    first, second = Recorder("a", calls), Recorder("b", calls)
    assert gradient(lambda x: second.op(first.op(x)), tf.constant(1.0)) == [100.0]
    assert calls == ["a forward", "b forward", "b backward", "a backward"]


class Residual:
    """Something a rule closes over, that can be watched as it goes."""

    def __init__(self, factor):
        self.factor = factor


def closing_over_a_residual():
    residuals = []

    @tf.custom_gradient
    def f(x):
        residual = Residual(10.0)
        residuals.append(weakref.ref(residual))
        return x * 2.0, lambda dy: dy * residual.factor

    return f, residuals


@pytest.fixture
def without_garbage_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_closure_memory_is_freed_after_gradient(without_garbage_collection):
    """1.1: on a non-persistent tape, while the tape and the output are still held."""
    f, residuals = closing_over_a_residual()
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert residuals[0]() is not None
    assert float(tape.gradient(y, x)) == 10.0
    assert residuals[0]() is None
    assert float(y) == 2.0


def test_closure_memory_is_freed_at_once_without_a_tape(without_garbage_collection):
    """1.1."""
    f, residuals = closing_over_a_residual()
    y = f(tf.constant(1.0))
    assert residuals[0]() is None
    assert float(y) == 2.0


def test_closure_memory_goes_with_the_results(without_garbage_collection):
    """1.1: nothing is kept by the tape once nobody can reach the output."""
    f, residuals = closing_over_a_residual()
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    del y, tape
    assert residuals[0]() is None


class RuleError(Exception):
    pass


def test_exception_in_the_function_propagates_unchanged():
    """1.1."""
    error = RuleError("forward")

    @tf.custom_gradient
    def f(x):
        raise error

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(RuleError) as caught:
            f(x)
        y = x * 3.0
    assert caught.value is error
    assert float(tape.gradient(y, x)) == 3.0
    assert_next_gradient_is_right()


def raising_rule(error):
    @tf.custom_gradient
    def f(x):
        def grad(dy):
            raise error

        return x * 2.0, grad

    return f


def test_exception_in_the_rule_leaves_a_persistent_tape_usable():
    """1.1."""
    error = RuleError("backward")
    f = raising_rule(error)
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, other = f(x), x * x
    with pytest.raises(RuleError) as caught:
        tape.gradient(y, x)
    assert caught.value is error
    assert float(tape.gradient(other, x)) == 6.0
    assert_next_gradient_is_right()


def test_exception_in_the_rule_is_reported_again_by_a_non_persistent_tape():
    """Decision 13: the second gradient() gives the same error."""
    error = RuleError("backward")
    f = raising_rule(error)
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    for _ in range(2):
        with pytest.raises(RuleError) as caught:
            tape.gradient(y, x)
        assert caught.value is error
    assert_next_gradient_is_right()


def test_recursion_without_end_restores_the_recording_state():
    """4.1: RecursionError, and the next gradient is right."""

    @tf.custom_gradient
    def endless(x):
        return endless(x), lambda dy: dy

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(RecursionError):
            endless(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 4.0
    assert_next_gradient_is_right()


def test_output_is_a_new_tensor():
    """1.0: each output goes through identity, so `y is x` is False."""

    @tf.custom_gradient
    def same(x):
        return x, lambda dy: dy * 7.0

    x = tf.constant(2.0)
    assert same(x) is not x
    assert gradient(same, x) == [7.0]


def test_repr_of_a_result():
    """1.1 and decision 18."""
    result = bar(tf.constant(2.0), tf.constant(3.0))
    assert repr(result) == "<tg.Tensor: shape=(), dtype=float32, numpy=6.0>"


def test_stop_recording_inside_the_function():
    """2.1 with 1.0: the tape records again when the function returns, so the rule serves."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)

        @tf.custom_gradient
        def f(x):
            with tape.stop_recording():
                y = x * x
            return y, lambda dy: dy * 9.0

        y = f(x)
        z = y * x
    assert float(tape.gradient(z, x)) == 22.0
    assert_next_gradient_is_right()


def test_tape_entered_and_left_inside_the_function():
    """1.14: a tape of the function's own, whose result is an output."""

    @tf.custom_gradient
    def slope_of_cube(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        return tape.gradient(y, x), lambda dy: dy * 6.0 * x

    assert [derivative(slope_of_cube, 2.0, order) for order in range(3)] == [12.0, 12.0, 6.0]


def test_upstreams_that_a_rule_keeps_do_not_change():
    """5.2: accumulation never writes into what somebody holds."""
    kept = []

    @tf.custom_gradient
    def f(x):
        def grad(dy):
            kept.append(dy)
            return dy

        return x * 1.0, grad

    def fan_out(x):
        u = x * 1.0
        return f(u) + f(u) + f(u) * 2.0 + u

    assert gradient(fan_out, tf.constant([1.0, 2.0])) == [[5.0, 5.0]]
    assert sorted(numbers(kept)) == [[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]]


def test_long_chain_of_custom_gradients():
    """No recursion in the sweep: 20,000 rules in a row."""
    recorder = Recorder()

    @tf.custom_gradient
    def same(x):
        return x * 1.0, lambda dy: dy * 1.0

    def chain(x):
        for _ in range(20_000):
            x = same(x)
        return recorder.op(x)

    assert derivative(chain, 2.0, 1) == 10.0
