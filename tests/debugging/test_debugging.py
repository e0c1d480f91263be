"""debugging: traces tell what was computed, the detector what made the first NaN, and where."""

import gc
import inspect
import linecache
import weakref
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tests.support.composites import FAKE, POINT, TRUE, log1pexp
from tests.support.op_cases import examples, first_gradients, names
from tests.support.orders import (
    assert_clean_state,
    gradient,
    gradient_function,
    run_in_a_thread,
    second_gradient,
)
from tinygrad_cg._core.levels import state
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg.debugging._repeats import Repeat, collapse_repeats

trace = tf.debugging.trace


second_order = partial(second_gradient, log1pexp)


def rows(events):
    return [(event.kind, event.name, event.way, event.order, event.rule) for event in events]


# Traces ---------------------------------------------------------------------------------------


def test_a_trace_of_two_orders():
    x = tf.constant([0.5, 1.5])
    with trace() as events:
        second_order(x)
    operation, rule = "operation", ("log1pexp",)
    assert rows(events) == [
        (operation, "exp", "forward", 0, ""),
        (operation, "add", "forward", 0, ""),
        (operation, "log", "forward", 0, ""),
        ("call", "log1pexp", "forward", 0, ""),
        (operation, "add", "backward", 1, *rule),
        (operation, "divide", "backward", 1, *rule),
        (operation, "subtract", "backward", 1, *rule),
        (operation, "multiply", "backward", 1, *rule),
        ("rule", "log1pexp", "backward", 1, *rule),
        (operation, "multiply", "backward", 2, "multiply"),
        (operation, "negative", "backward", 2, "subtract"),
        (operation, "divide", "backward", 2, "divide"),
        (operation, "multiply", "backward", 2, "divide"),
        (operation, "negative", "backward", 2, "divide"),
        (operation, "multiply", "backward", 2, "exp"),
    ]
    assert events.events[1].inputs == ("float32()", "float32(2)")
    assert {event.outputs for event in events} == {("float32(2)",)}
    assert_allclose(events.events[0].norm, np.linalg.norm(np.exp([0.5, 1.5])), rtol=1e-6)
    assert all(
        event.seconds is None if event.kind == "call" else event.seconds >= 0 for event in events
    )
    assert events.seconds == sum(event.seconds for event in events if event.kind == "operation")
    assert events.first_nonfinite is None
    assert all(event.finite for event in events)


def test_a_trace_knows_the_users_lines():
    x = tf.constant(2.0)
    with trace() as events, tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(x)
        sine = inspect.currentframe().f_lineno - 1
        tape.gradient(y, x)
        asked = inspect.currentframe().f_lineno - 1
    forward, backward = events.events[0], events.events[-1]
    assert forward.line == (__file__, sine)
    assert (forward.recorded, forward.asked) == (None, None)
    assert (backward.line, backward.asked) == ((__file__, asked),) * 2
    assert (backward.rule, backward.recorded) == ("sin", (__file__, sine))


def test_a_rule_of_the_users_has_its_own_lines():
    @tf.custom_gradient
    def f(x):
        def grad(dy):
            return dy * 3.0

        return x * 3.0, grad

    with trace() as events:
        gradient(f, tf.constant(1.0))
    (inside,) = [event for event in events if event.rule == "f" and event.kind == "operation"]
    assert linecache.getline(*inside.line).strip() == "return dy * 3.0"
    assert inside.asked[0].endswith("orders.py")


def test_orders_of_tangents():
    x = tf.constant(0.3)

    def names_of(function):
        with trace() as events:
            function(x)
        return {(event.way, event.order) for event in events}

    def pushed(f):
        return lambda x: tf.jvp(f, (x,), (tf.constant(1.0),))[1]

    assert names_of(pushed(tf.sin)) == {("forward", 0), ("tangent", 1)}
    assert names_of(pushed(pushed(tf.sin))) == {("forward", 0), ("tangent", 1), ("tangent", 2)}
    assert max(order for _, order in names_of(pushed(gradient_function(tf.sin)))) == 2
    assert max(order for _, order in names_of(gradient_function(pushed(tf.sin)))) == 2
    softmax = pushed(lambda x: tf.nn.softmax(tf.stack([x, x * x])))
    assert max(order for _, order in names_of(softmax)) == 1


def test_orders_of_what_is_computed_again():
    f = tf.recompute_grad(lambda x: tf.sin(x) * x)
    with trace() as events:
        gradient_function(f)(tf.constant(0.3))
    assert max(event.order for event in events) == 1
    with trace() as events:
        gradient_function(gradient_function(f))(tf.constant(0.3))
    assert max(event.order for event in events) == 2


def test_a_trace_may_begin_after_the_forward_pass():
    x = tf.constant([1.0, 2.0])
    compiled = tf.function(lambda x: tf.reduce_sum(tf.exp(x) * x))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = compiled(x) + tf.reduce_sum(log1pexp(x))
    with trace() as events:
        dx = tape.gradient(y, x)
    assert_allclose(dx, np.exp(x) * (1 + x) + 1 / (1 + np.exp(-x.numpy())), rtol=1e-5)
    assert {"exp", "log1pexp"} <= {event.rule for event in events}


def test_the_trace_stands_below_whatever_is_there():
    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.ones(3)) as accumulator, trace() as events:
            y = tf.vmap(tf.sin)(x) * 2.0
    assert_allclose(accumulator.jvp(y), 2.0 * np.cos(x), rtol=1e-6)
    assert_allclose(tape.gradient(y, x), 2.0 * np.cos(x), rtol=1e-6)
    sine = next(event for event in events if event.name == "sin")
    assert sine.inputs == ("float32(3)",)  # of all examples together
    assert {event.way for event in events} == {"forward", "tangent"}
    assert_clean_state()


def test_a_function_runs_operation_by_operation():
    @tf.function(jit_compile=True)
    def f(x):
        return tf.exp(x) * 2.0

    x = tf.constant([1.0])
    expected = f(x)
    with trace() as events:
        assert_array_equal(f(x), expected)
    assert [event.name for event in events] == ["exp", "multiply"]


def test_inside_a_function_that_is_traced_it_is_refused():
    for watch in (trace, tf.debug_nans):

        @tf.function
        def f(x, watch=watch):
            with watch():
                return x * 2.0

        with pytest.raises(ValueError, match="cannot be entered while a function is traced"):
            f(tf.constant(1.0))
    assert_clean_state()


@pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")
@pytest.mark.parametrize("name", TRUE | FAKE)
@pytest.mark.parametrize("watch", [trace, tf.debug_nans])
def test_numbers_are_the_same_while_somebody_watches(name, watch):
    f, x = (TRUE | FAKE)[name], tf.constant(POINT)
    way = tf.constant([0.3, -1.2, 0.8], dtype=tf.float64)

    def numbers():
        first = gradient_function(f)
        return [
            f(x),
            first(x),
            tf.hvp(f)(x, way),
            tf.jacobian(first)(x),
            tf.vmap(first)(tf.stack([x, x + 0.1])),
            tf.jvp(first, (x,), (way,))[1],
        ]

    expected = numbers()
    with watch():
        results = numbers()
    for actual, other in zip(results, expected, strict=True):
        assert_allclose(actual, other, rtol=1e-12, atol=1e-12)
    assert (state.frame, state.observers) == (None, ())


@pytest.mark.parametrize("name", names())
def test_every_operation_is_in_the_trace_and_as_without(name):
    example = examples(name)[0]
    weights = np.ones(example.run(*example.operands).shape)
    expected = first_gradients(example, example.operands, weights)
    with trace() as events:
        gradients = first_gradients(example, example.operands, weights)
    for actual, other in zip(gradients, expected, strict=True):
        # rules are one kernel without a trace, and operation by operation in it
        assert_allclose(actual, other, rtol=1e-14, atol=1e-15)
    forward = next(event for event in events if event.name == OPS[name].label)
    assert (forward.kind, forward.way, forward.order) == ("operation", "forward", 0)
    result = example.run(*example.operands)
    if result.dtype.kind == "f":
        assert_allclose(forward.norm, np.linalg.norm(result.reshape(-1)), rtol=1e-12)
    assert str(events).count("\n") >= 2


def test_a_trace_keeps_no_tensor_alive():
    gc.disable()
    try:
        x = tf.constant([1.0, 2.0])
        events = trace()
        with events:
            y = second_order(x)
        references = [weakref.ref(x), weakref.ref(y)]
        del x, y
        assert [reference() for reference in references] == [None, None]
    finally:
        gc.enable()


def test_integers_and_empty_tensors_have_rows_too():
    with trace() as events:
        tf.argmax(tf.constant([1.0, 2.0]))
        tf.exp(tf.zeros((0, 3)))
    assert (events.events[0].norm, events.events[-1].norm) == (None, 0.0)


def test_two_watches_and_one_that_is_entered_again():
    with trace() as outer:
        tf.exp(1.0)
        with trace() as inner, tf.debug_nans():
            gradient_function(log1pexp)(tf.constant(1.0))
        tf.exp(1.0)
        with pytest.raises(ValueError, match="already active"), outer:
            pass
    assert len(outer) == len(inner) + 2
    assert rows(outer)[1:-1] == rows(inner)
    with outer:
        tf.sin(1.0)
    assert outer.events[-1].name == "sin"
    assert_clean_state()


def test_left_elsewhere():
    events = trace()
    events.__enter__()
    with pytest.raises(ValueError, match="is not active in this thread"):
        run_in_a_thread(events.__exit__)
    events.__exit__()
    assert_clean_state()


# Tables ---------------------------------------------------------------------------------------


def expanded(items):
    for item in items:
        if isinstance(item, Repeat):
            yield from list(expanded(item.part)) * item.count
        else:
            yield item


@given(st.lists(st.integers(0, 3), max_size=60))
def test_folding_loses_nothing(sequence):
    assert list(expanded(collapse_repeats(sequence))) == sequence


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6, unique=True), st.integers(2, 50))
def test_repeats_are_folded(part, count):
    assert collapse_repeats([9, *part * count, 8]) == [9, Repeat(tuple(part), count), 8]


def test_repeats_of_repeats_are_folded():
    inner = [0, *[1, 2] * 3]
    assert collapse_repeats(inner * 4) == [Repeat((0, Repeat((1, 2), 3)), 4)]


def chain(count):
    x = tf.constant([0.5, 0.7])
    with trace() as events, tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(count):
            y = tf.tanh(y * 1.01)
        tape.gradient(y, x)
    return events


def test_a_long_trace_is_a_short_table():
    lines = str(chain(300)).splitlines()
    assert len(lines) == 7
    assert lines[0].split()[:3] == ["way", "order", "operation"]
    assert lines[1].split()[:5] == ["┌", "forward", "0", "multiply", "x300"]
    assert lines[2].split()[:5] == ["└", "forward", "0", "tanh", "x300"]
    assert [line[0] for line in lines[3:6]] == ["┌", "│", "└"]
    assert lines[-1].startswith("1500 operations in ")
    assert lines[-1].endswith("all finite")


def test_a_table_that_is_still_long_shows_its_ends():
    x = tf.constant(1.0)
    with trace() as events:
        for size in range(150):
            tf.exp(tf.zeros(size))
    lines = str(events).splitlines()
    assert len(lines) == events.limit + 3
    assert lines[1 + events.limit // 2] == "... 50 more rows ..."
    assert "... 50 more rows ..." in events._repr_html_()
    assert repr(events).startswith("<trace of 150 operations in ")
    assert x.numpy() == 1.0


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_html_is_well_formed_and_escapes_names():
    def f(x):
        return x + 0.0, lambda dy: dy * np.float32("nan")

    f.__name__ = "<b>&f"
    with trace() as events:
        gradient(tf.custom_gradient(f), tf.constant(1.0))
    html = events._repr_html_()
    tags = Tags()
    tags.feed(html)
    assert not tags.open
    assert "<b>" not in html
    assert "custom <b>&f" in tags.text
    assert "color: #b00020" in html  # the row with the NaN
    assert "1 nan" in tags.text


def test_the_first_that_is_not_finite():
    with trace() as events:
        second_order(tf.constant([1.0, 100.0]))
    first = events.first_nonfinite
    assert (first.name, first.infs, first.nans) == ("exp", 1, 0)
    assert events.events[-1].nans == 1
    assert str(events).splitlines()[-1].endswith("the first that is not finite: exp")
    with trace() as events:
        tf.abs(tf.constant(np.array([1e200, 1e200])))
    assert events.events[-1].finite  # though its norm is too large for a float64


def test_it_costs_nothing_until_it_is_used():
    """Programs that watch nothing run the sweep itself, and nobody is told which."""
    seen = []

    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: seen.append((state.sweep, state.frame)) or dy

    first = tf.grad(square)
    first(1.0)
    tf.grad(tf.custom_gradient(lambda x: (x * x, lambda dy: dy), max_order=1))(1.0)
    first(1.0)
    assert seen == [(None, None)] * 2
    with tf.debugging.trace():
        first(1.0)
    sweep, frame = seen[-1]
    assert frame is not None
    assert Path(sweep.asked[0]) == Path(__file__)
    first(1.0)
    assert seen[-1] == (None, None)
