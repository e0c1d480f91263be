"""The running sweep, orders of nodes, and observers of passes."""

import tinygrad_cg as tf
from tests.support.orders import assert_clean_state
from tinygrad_cg._core.levels import Level, push, remove, state
from tinygrad_cg._core.record import find
from tinygrad_cg._reverse.observer import NOTED, Observer, order_of


def test_nodes_know_the_order_of_the_sweep_that_recorded_them():
    x = tf.constant(2.0)
    orders = []
    with tf.GradientTape() as first:
        first.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as third:
                third.watch(x)
                values = [tf.exp(x * x)]
            values.append(third.gradient(values[-1], x))
        values.append(second.gradient(values[-1], x))
        orders = [order_of(find(tensor._rec, first._token)) for tensor in values]
    assert orders == [0, 1, 2]


def test_a_sweep_inside_a_rule_is_part_of_it():
    square = tf.recompute_grad(lambda x: x * x)
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = square(x)
        slope = inner.gradient(y, x)
        assert order_of(find(slope._rec, outer._token)) == 1
    assert len(outer._token.noted) == 1


def test_a_target_that_needs_no_earlier_sweep_is_of_the_first_order():
    x, z = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as outermost:
        outermost.watch([x, z])
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([x, z])
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.exp(x)
            slope = inner.gradient(y, x)
            other = tf.exp(z)
        curvature, unobserved = outer.gradient(slope, x), outer.gradient(other, z)
        orders = [
            order_of(find(tensor._rec, outermost._token))
            for tensor in (slope, curvature, unobserved)
        ]
    assert orders == [1, 2, 1]


def test_forgotten_sweeps_are_of_unknown_order():
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = tf.exp(x)
        slopes = [inner.gradient(y, x) for _ in range(NOTED + 3)]
        token = outer._token
        orders = [order_of(find(tensor._rec, token)) for tensor in (y, slopes[0], slopes[-1])]
    assert orders == [0, None, 1]
    assert len(token.noted) == NOTED


class Listing(Level, Observer):
    def __init__(self):
        self.seen = []

    def process(self, primitive, inputs, params):
        return primitive(*inputs, **params)

    def run_rule(self, call, node, dy):
        sweep = state.sweep
        self.seen.append((sweep.asked[0], sweep.transposes))
        return call(node, dy)

    def begin_tangents(self, definition):
        self.seen.append("tangents")

    def end_tangents(self, began):
        self.seen.append("end")


def test_observers_are_told_of_rules_and_tangents():
    x = tf.constant(2.0)
    listing = Listing()
    push(listing)
    state.observers = (listing,)
    try:
        tf.grad(tf.square)(x)
        forward = list(listing.seen)
        del listing.seen[:]
        tf.jvp(tf.square, (x,), (x,))
    finally:
        state.observers = ()
        remove(listing)
    assert forward == [(__file__, False)]
    assert listing.seen == ["tangents", "end"]
    assert_clean_state()
