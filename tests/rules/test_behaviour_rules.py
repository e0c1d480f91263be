"""BEHAVIOUR 1.2 to 1.14: kinds of rules, their dtypes, and errors at every depth."""

import functools
import gc
import math
import weakref

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, derivative, gradient, numbers


class Kinds:
    """Rules of each kind that a class can hold: 10 dy, 20 dy, 30 dy, 40 dy."""

    def method(self, dy):
        return dy * 10.0

    @classmethod
    def of_class(cls, dy):
        return dy * 20.0

    @staticmethod
    def static(dy):
        return dy * 30.0

    def __call__(self, dy):
        return dy * 40.0

    def several(self, *dys):
        return dys[0] * 50.0

    def with_default(self, dy, scale=60.0):
        return dy * scale

    def with_variables(self, dy, variables=None):
        return dy * 70.0, [dy * 77.0] * len(variables or ())

    def upstream(self, *inputs, upstream):
        return upstream * 80.0

    def two(self, dy, more):
        return dy * 90.0 + more


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(Kinds().method, 10.0, id="bound method"),
        pytest.param(Kinds.of_class, 20.0, id="class method"),
        pytest.param(Kinds.static, 30.0, id="static method"),
        pytest.param(Kinds(), 40.0, id="instance"),
        pytest.param(Kinds().__call__, 40.0, id="bound __call__"),
        pytest.param(Kinds().several, 50.0, id="bound, any number"),
        pytest.param(Kinds().with_default, 60.0, id="bound, default"),
        pytest.param(functools.partial(lambda k, dy: dy * k, 5.0), 5.0, id="partial"),
        pytest.param(functools.partial(Kinds().two, more=1.0), 91.0, id="partial of a method"),
        pytest.param(np.negative, -1.0, id="NumPy function"),
        pytest.param(abs, 1.0, id="builtin"),
        pytest.param(tf.identity, 1.0, id="function of the library"),
    ],
)
@pytest.mark.parametrize("order", ["plain", "by keyword", "in a chain"])
def test_a_rule_may_be_any_callable(rule, expected, order):
    """1.3: grad_fn is whatever is callable with one upstream for each output (decision 11)."""

    @tf.custom_gradient
    def f(x):
        return x * 2.0, rule

    call = {
        "plain": f,
        "by keyword": lambda x: f(x=x),
        "in a chain": lambda x: f(x * 1.0) * 1.0,
    }[order]
    assert gradient(call, tf.constant(1.0)) == [expected]


def test_bound_rule_with_a_captured_variable():
    """1.7: `variables` of a method."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        return x * v, Kinds().with_variables

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert numbers(tape.gradient(y, [x, v])) == [70.0, 77.0]


def test_bound_rule_without_variables():
    """1.7: refused when called forward."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        return x * v, Kinds().method

    with pytest.raises(TypeError, match=r"grad_fn must accept.*keyword argument 'variables'"):
        f(tf.constant(2.0))
    assert_next_gradient_is_right()


def test_bound_rule_with_a_required_upstream():
    """Section 3, rule 1."""

    @tf.keras.ops.custom_gradient
    def f(x):
        return x * 2.0, Kinds().upstream

    assert gradient(f, tf.constant(1.0)) == [80.0]


@pytest.mark.parametrize("rule", [Kinds().method, Kinds.of_class, Kinds(), Kinds().__call__])
def test_bound_rule_that_cannot_take_the_upstreams(rule):
    """Decision 11: two outputs, one upstream: refused when called forward."""

    @tf.custom_gradient
    def my_fn(x):
        return (x * 2.0, x * 3.0), rule

    with pytest.raises(TypeError, match="my_fn: grad_fn must accept 2 output gradients"):
        my_fn(tf.constant(1.0))
    assert_next_gradient_is_right()


def decorated(rule):
    @functools.wraps(rule)
    def wrapper(*args, **kwargs):
        return rule(*args, **kwargs)

    return wrapper


class Residual:
    """Something a rule holds, that can be watched as it goes."""

    factor = 10.0

    def __call__(self, dy):
        return dy * self.factor


def times_factor(residual, dy):
    return dy * residual.factor


@pytest.mark.parametrize(
    "hold",
    [
        pytest.param(lambda residual: lambda dy: dy * residual.factor, id="closure"),
        pytest.param(lambda residual: functools.partial(times_factor, residual), id="partial"),
        pytest.param(lambda residual: residual, id="instance"),
        pytest.param(lambda residual: decorated(lambda dy: dy * residual.factor), id="wrapped"),
    ],
)
@pytest.mark.parametrize("recording", [False, True])
def test_memory_of_a_rule_of_any_kind_is_freed(hold, recording):
    """1.1: after gradient(), or at once without a tape; the definition keeps no rule."""
    held = []

    @tf.custom_gradient
    def f(x):
        residual = Residual()
        held.append(weakref.ref(residual))
        return x * 2.0, hold(residual)

    gc.collect()
    gc.disable()
    try:
        x = tf.constant(1.0)
        assert gradient(f, x) == [10.0] if recording else float(f(x)) == 2.0
        assert held[0]() is None
    finally:
        gc.enable()


def test_each_call_may_bring_a_rule_of_its_own():
    """1.0: the rule is that of the call, though one wrapper stands around all of them."""

    def positional(dy):
        return dy * 3.0

    def by_name(*inputs, upstream):
        return upstream * inputs[0] * 5.0

    def wrong(dy, more):
        return dy

    @tf.custom_gradient
    def f(x, rule):
        return x * 2.0, decorated(rule)

    x = tf.constant(7.0)
    assert gradient(lambda x: f(x, positional), x) == [3.0]
    assert gradient(lambda x: f(x, by_name), x) == [35.0]
    with pytest.raises(TypeError, match="grad_fn must accept 1 output gradient"):
        f(x, wrong)
    assert gradient(lambda x: f(x, positional), x) == [3.0]
    assert_next_gradient_is_right()


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


@pytest.mark.parametrize(
    ("value", "dtype", "is_nan"),
    [
        (88.72, "float32", False),
        (88.73, "float32", True),
        (709.78, "float64", False),
        (709.79, "float64", True),
    ],
)
def test_threshold_of_the_documents_rule(value, dtype, is_nan):
    """1.1: stable at first order, nan at orders 2 and 3 above 88.72 (709.78 in float64)."""
    assert derivative(log1pexp, value, 1, dtype) == 1.0
    for order in (2, 3):
        slope = derivative(log1pexp, value, order, dtype)
        assert math.isnan(slope) == is_nan


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_dtypes_pass_through(dtype):
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


@pytest.mark.parametrize(
    "returned",
    [
        pytest.param(lambda dy: "text", id="str"),
        pytest.param(lambda dy: object(), id="object"),
        pytest.param(lambda dy: {1.0}, id="set"),
        pytest.param(lambda dy: (entry for entry in [dy]), id="generator"),
        pytest.param(lambda dy: abs, id="function"),
        pytest.param(lambda dy: np.array([1.0, None], object), id="object array"),
        pytest.param(lambda dy: np.array(["a", "b"]), id="string array"),
        pytest.param(lambda dy: np.ones(2, np.longdouble), id="longdouble"),
    ],
)
def test_what_is_no_gradient(returned):
    """1.2, other returns: a TypeError at gradient(), whatever else leads to the input."""

    @tf.custom_gradient
    def my_fn(x):
        return x * 2.0, returned

    for function in (my_fn, lambda x: my_fn(x) + x, lambda x: my_fn(x * 3.0)):
        with pytest.raises(TypeError):
            gradient(function, tf.constant([1.0, 2.0]))
        assert_next_gradient_is_right()


@pytest.mark.parametrize(
    ("returned", "count"),
    [([1.0, 2.0], 2), ([[1.0, 2.0]], 2), ([[1.0], [2.0], []], 2), ([[]], 0), ((1, (2, 3)), 3)],
)
def test_a_list_of_numbers_is_several_gradients(returned, count):
    """1.2: flattened, also where the input is a vector of as many elements."""

    @tf.custom_gradient
    def my_fn(x):
        return x * 2.0, lambda dy: returned

    words = f"expected to return 1 gradients, but returned {count} instead."
    with pytest.raises(ValueError, match=words):
        gradient(my_fn, tf.constant([1.0, 2.0]))
    assert_next_gradient_is_right()


def test_variable_and_narrower_dtypes_as_gradients():
    """1.2 and decision 3: whatever holds numbers becomes a Tensor of the input's dtype."""
    for value in (tf.Variable([5.0, 6.0]), np.array([5, 6]), tf.constant([5, 6], tf.int64)):

        @tf.custom_gradient
        def f(x, value=value):
            return x * 2.0, lambda dy: value

        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        slope = tape.gradient(y, x)
        assert isinstance(slope, tf.Tensor)
        assert (slope.dtype, numbers(slope)) == (tf.float32, [5.0, 6.0])


# Errors at each place where a user's function runs: the next gradient is right.


class UserError(Exception):
    pass


def failing(*_, **__):
    raise UserError


def in_the_function(x):
    return tf.custom_gradient(failing)(x)


def in_the_rule(x):
    return tf.custom_gradient(lambda x: (x * 2.0, lambda dy: failing()))(x)


def in_an_inner_function(x):
    @tf.custom_gradient
    def outer(x):
        return in_the_function(x), lambda dy: dy

    return outer(x)


def in_a_paused_tape(x):
    @tf.custom_gradient
    def f(x):
        with tf.GradientTape() as tape, tape.stop_recording():
            failing()

    return f(x)


def in_a_tape_of_the_rule(x):
    def rule(dy):
        with tf.GradientTape() as tape:
            tape.watch(dy)
            failing()

    return tf.custom_gradient(lambda x: (x * 2.0, rule))(x)


def in_recompute_grad(x):
    runs = []

    def f(x):
        runs.append(1)
        return x * x if len(runs) == 1 else failing()

    return tf.recompute_grad(f)(x)


def in_grad_pass_through(x):
    return tf.grad_pass_through(failing)(x)


def in_a_graph(x):
    with tf.Graph().as_default():
        return failing(x)


def in_the_rule_of_the_rule(x):
    @tf.custom_gradient
    def f(x):
        @tf.custom_gradient
        def rule(dy):
            return 3.0 * x**2 * dy, failing

        return x**3, rule

    return f(x) ** 2


PLACES = [
    in_the_function,
    in_the_rule,
    in_an_inner_function,
    in_a_paused_tape,
    in_a_tape_of_the_rule,
    in_recompute_grad,
    in_grad_pass_through,
    in_a_graph,
    in_the_rule_of_the_rule,
]


@pytest.mark.parametrize("error", [UserError, KeyboardInterrupt, StopIteration, GeneratorExit])
@pytest.mark.parametrize("place", PLACES)
def test_an_error_leaves_nothing_behind(place, error, monkeypatch):
    """BAD_INPUT, after any error: through two orders, the error is the user's own."""
    monkeypatch.setitem(globals(), "UserError", error)
    with pytest.raises(error):
        derivative(place, 2.0, 2)
    assert_next_gradient_is_right()
    x = tf.constant(2.0)
    with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
        outside = late_gradient(x)
    assert outside is None
    assert derivative(lambda x: x**3, 2.0, 3) == 6.0


def late_gradient(x):
    """A gradient by a tape that was closed before: no tape of a failed call goes on for it."""
    with tf.GradientTape() as tape:
        tape.watch(x)
    return tape.gradient(x * x, x)


def test_an_error_leaves_no_variables_behind():
    """1.7: what a failed function read is not counted for the next one."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def reading(x):
        failing(x * v)

    @tf.custom_gradient
    def plain(x):
        return x * 2.0, lambda dy: dy * 10.0

    with pytest.raises(UserError):
        reading(tf.constant(1.0))
    assert gradient(plain, tf.constant(1.0)) == [10.0]
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    "faulty",
    [
        pytest.param(lambda x: (x**3, lambda dy: (dy, dy)), id="count"),
        pytest.param(lambda x: (x**3, lambda dy: tf.ones([4])), id="shape"),
        pytest.param(lambda x: (x**3, lambda dy: "text"), id="type"),
        pytest.param(lambda x: (x**3, lambda dy: dy[5]), id="index"),
        pytest.param(lambda x: (x**3, lambda dy: dy + tf.ones([3]) + tf.ones([4])), id="shapes"),
        pytest.param(lambda x: (x**3, lambda dy: dy + None), id="None"),
        pytest.param(lambda x: (x**3, 5), id="no rule"),
        pytest.param(lambda x: x**3, id="no pair"),
        pytest.param(lambda x: (x**3, lambda: 1.0), id="no upstream"),
    ],
)
def test_faulty_rules_under_nested_tapes(faulty):
    """1.2 and 1.3 at second order: the outer tapes go on rightly after a caught error."""
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            right = x**3
            with pytest.raises((TypeError, ValueError, IndexError)):
                inner_gradient(tf.custom_gradient(faulty), x)
        slope = inner.gradient(right, x)
    assert float(slope) == 12.0
    assert float(outer.gradient(slope, x)) == 12.0
    assert_next_gradient_is_right()


def inner_gradient(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)
