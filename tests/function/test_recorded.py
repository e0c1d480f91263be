"""The short ways under tapes: calls of many forms, which must be what the general way gives."""

import warnings

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import orders, same, unfused
from tests.support.rules import doubled_rule
from tinygrad_cg._function.tracing.function import Function

X = np.array([0.5, -1.0, 2.0])


def gradients_of(function, args, watched, dys=None):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([args[i] for i in watched])
        y = function(*args)
    return y, tape.gradient(y, list(args), output_gradients=dys)


def test_calls_of_many_forms_after_each_other():
    """Each form twice, so that the second call takes the short way; then another form."""

    def f(x, y):
        return x * y, tf.reduce_sum(x) * 2.0 - tf.sin(y), tf.cast(x > 0, tf.int32)

    compiled = unfused(f)
    x, y, z = tf.constant(X), tf.constant(2 * X), tf.constant(X[:2])
    forms = [((x, y), [0]), ((x, y), [1]), ((x, y), [0, 1]), ((z, z), [0]), ((x, x), [0])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args, watched in [form for form in forms for _ in range(2)] + forms:
            same(gradients_of(compiled, args, watched), gradients_of(f, args, watched))
            same(compiled(*args), f(*args))
    single = tf.constant(X, dtype=tf.float32)
    same(gradients_of(compiled, (single, single), [0])[1], gradients_of(f, (single,) * 2, [0])[1])


def test_the_short_way_stands_beside_other_operations():
    f = unfused(lambda x, y: tf.sin(x) * y)
    x, y = tf.constant(X), tf.constant(2 * X)

    def gradients(function):
        with tf.GradientTape() as tape:
            tape.watch(x)
            h = tf.exp(x)
            value = function(h, function(function(h, y), h) * x)
        return value, tape.gradient(value, x)

    for _ in range(3):
        same(gradients(f), gradients(f.python_function))


def test_the_short_way_is_recorded_by_tapes_that_come_later():
    f = unfused(lambda x: tf.reduce_sum(x**3))
    x, dy = tf.constant(X), tf.constant(np.float64(2.0))
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        with tf.GradientTape() as outer:
            outer.watch([x, dy])
            first = tape.gradient(y, x, output_gradients=dy)
        same(first, tf.constant(6 * X**2))
        same(outer.gradient(first, [x, dy]), [tf.constant(12 * X), tf.reduce_sum(3 * x**2)])
        rows = tape.jacobian(y, x)
        same(rows, tf.constant(3 * X**2))


def test_what_a_short_way_gave_after_its_tape_warns_of_the_next():
    f = unfused(lambda x: x * x)
    x = tf.constant(X)
    for _ in range(2):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        first = tape.gradient(y, x)
        with pytest.warns(match="after the tape closed"):
            assert tape.gradient(first, x) is None


def test_float_arguments_and_variables_go_the_general_way():
    v = tf.Variable(X)
    f = unfused(lambda x, rate: tf.reduce_sum(x * rate * v))
    x = tf.constant(2 * X)
    for rate in (0.5, 0.25, 0.5):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, rate)
        same(tape.gradient(y, [x, v]), [v * rate, x * rate])


def test_nested_tapes_take_the_short_way(monkeypatch):
    """Of the program, of its pullback, and so on."""
    f = unfused(lambda x, c, n: doubled_rule(x * c) ** n)
    x, c = tf.constant(X), tf.constant(2 * X)
    wanted = [orders(lambda x: f.python_function(x, c, 2), x, count) for count in range(4)]
    calls, general = [], Function._call
    for call in (general, lambda self, *args: calls.append(self) or general(self, *args)):
        monkeypatch.setattr(Function, "_call", call)
        for count in (2, 3, 1, 2, 3, 2):
            same(orders(lambda x: f(x, c, 2), x, count), wanted[count])
    assert calls == []


def test_nested_tapes_of_which_some_watch_other_things():
    def f(x, y):
        return tf.sin(x) * y**2, tf.reduce_sum(x * y)

    x, y = tf.constant(X), tf.constant(2 * X)
    watched = [([x], [x]), ([x, y], [x, y]), ([x], [x, y]), ([x, y], [y]), ([], [x]), ([y], [])]

    def gradients(function, outer_sources, sources):
        with tf.GradientTape() as outer:
            outer.watch(outer_sources)
            with tf.GradientTape() as tape:
                tape.watch(sources)
                z = function(x, y)
            first = tape.gradient(z, [x, y], unconnected_gradients="zero")
        return z, first, outer.gradient(first, [x, y], unconnected_gradients="zero")

    compiled = unfused(f)
    for _ in range(2):
        for case in watched + watched[::-1]:
            same(gradients(compiled, *case), gradients(f, *case))


def test_nested_tapes_with_floats_captured_tensors_and_variables():
    c, v = tf.constant(X), tf.Variable(2 * X)

    def f(x, rate, power):
        return tf.reduce_sum(doubled_rule(x * rate) * c * v**power)

    def gradients(function, rate):
        v.assign(2 * X)
        with tf.GradientTape() as outer:
            outer.watch([x, c])
            with tf.GradientTape() as tape:
                tape.watch([x, c])
                y = function(x, rate, 3)
            v.assign(X)  # the gradient is that at the value that was read
            first = tape.gradient(y, [x, c, v])
        return y, first, outer.gradient(first, [x, c, v])

    x, compiled = tf.constant(X), unfused(f)
    for rate in (0.5, 0.25, -1.5):
        for _ in range(2):
            same(gradients(compiled, rate), gradients(f, rate))
    with tf.GradientTape() as tape:
        tape.watch(c)
        y = compiled(x, 0.5, 3)
    with tf.GradientTape() as eager_tape:
        eager_tape.watch(c)
        z = f(x, 0.5, 3)
    same(tape.gradient(y, [c, v]), eager_tape.gradient(z, [c, v]))


def test_targets_after_nested_tapes_closed_warn_as_they_do_eagerly():
    def texts(function):
        x, messages = tf.constant(X), []
        for _ in range(3):
            with tf.GradientTape(persistent=True) as outer:
                outer.watch(x)
                with tf.GradientTape(persistent=True) as tape:
                    tape.watch(x)
                    y = function(x)
                first = tape.gradient(y, x)
            second = outer.gradient(first, x)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert tape.gradient(second, x) is None
                assert outer.gradient(second, x) is None
                assert tape.gradient(first, x) is None
            messages.append([str(warning.message) for warning in caught])
        return messages

    assert texts(unfused(lambda x: x**3)) == texts(lambda x: x**3)
