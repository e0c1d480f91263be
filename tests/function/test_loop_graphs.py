"""Loops of finished programs: what is done outside of them, with the same derivatives."""

from collections import Counter

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import same, two_orders, unfused
from tinygrad_cg.keras import ops

RNG = np.random.default_rng(3)


def normal(*shape):
    return tf.constant(RNG.normal(size=shape))


def recurrent(w, u, v, xs):
    """Return the squares of what a recurrent network gives, a product in each round."""

    def step(h, x):
        h = tf.tanh(x @ w + h @ u)
        return h, h @ v

    h, ys = ops.scan(step, tf.zeros((xs.shape[1], u.shape[0]), w.dtype), xs)
    return tf.reduce_sum(h * h) + tf.reduce_sum(ys**2)


def of_columns(w, u, v, xs):
    """Return the same of a network that multiplies columns from the left."""

    def step(h, x):
        h = tf.tanh(tf.transpose(w) @ tf.transpose(x) + tf.transpose(u) @ h)
        return h, tf.matmul(v, h, transpose_a=True)

    h, ys = ops.scan(step, tf.zeros((u.shape[0], xs.shape[1]), w.dtype), xs, reverse=True)
    return tf.reduce_sum(h * h) + tf.reduce_sum(ys**2)


def of_batches(w, u, v, xs):
    """Return the same with one more axis in front, and an offset that is the same every round."""

    def step(h, x):
        h = tf.tanh(tf.stack([x, 2.0 * x]) @ w + h @ u + tf.reduce_mean(tf.exp(w)))
        return h, h @ tf.sin(v)

    h, ys = ops.scan(step, tf.zeros((2, xs.shape[1], u.shape[0]), w.dtype), xs)
    return tf.reduce_sum(h * h) + tf.reduce_sum(ys**2)


def until(w, u, v, xs):
    """Return the same of a loop that ends itself."""

    def step(i, h):
        return i + 1, tf.tanh(xs[0] @ w + h @ u + tf.cast(i, w.dtype))

    start = tf.constant(0), tf.zeros((xs.shape[1], u.shape[0]), w.dtype)
    _, h = tf.while_loop(lambda i, h: i < xs.shape[0], step, start)
    return tf.reduce_sum((h @ v) ** 2)


def nested(w, u, v, xs):
    """Return the same of a loop in a loop."""

    def step(h, x):
        h = ops.fori_loop(0, 3, lambda i, h: tf.tanh(h @ u + x @ w), h)
        return h, h @ v

    h, ys = ops.scan(step, tf.zeros((xs.shape[1], u.shape[0]), w.dtype), xs)
    return tf.reduce_sum(h * h) + tf.reduce_sum(ys**2)


def noted(w, u, v, xs):
    """Return the same of a loop that calls code outside of the program."""

    def step(h, x):
        h = tf.tanh(x @ w + h @ u)
        return h + tf.stop_gradient(tf.numpy_function(np.round, [h], tf.float64)), h @ v

    h, ys = ops.scan(step, tf.zeros((xs.shape[1], u.shape[0]), w.dtype), xs)
    return tf.reduce_sum(h * h) + tf.reduce_sum(ys**2)


NETWORKS = recurrent, of_columns, of_batches, until, nested, noted


def arguments(rounds=5):
    return normal(3, 4), 0.5 * normal(4, 4), normal(4, 2), normal(rounds, 2, 3)


@pytest.mark.parametrize("program", NETWORKS, ids=lambda value: value.__name__)
@pytest.mark.parametrize("rounds", [5, 1])
def test_derivatives_are_those_of_an_eager_run(program, rounds):
    args = arguments(rounds)
    run = two_orders(program)
    same(unfused(run)(*args), run(*args), 1e-9, scaled=1e-10)


@pytest.mark.parametrize("program", [recurrent, of_batches], ids=lambda value: value.__name__)
def test_a_batch_of_them(program):
    args = arguments()
    run = tf.grad(program, (0, 1, 3))
    batch = [tf.stack([arg, 0.5 * arg]) for arg in args]
    rows = [run(*[arg[k] for arg in batch]) for k in range(2)]
    expected = [tf.stack(column) for column in zip(*rows, strict=True)]
    same(list(unfused(tf.vmap(run))(*batch)), expected, 1e-9)


def loops(function, *args):
    """Return the names of the operations of each loop of a program, and of those outside."""
    function = unfused(function)
    function(*args)
    (compiled,) = function._programs.values()
    graph = compiled.program.graph
    bodies = [
        value.params["loop"].body
        for value in graph.values()
        if value.primitive is not None and value.primitive.name == "loop"
    ]
    return bodies, [_names(body.graph) for body in bodies], _names(graph)


def _names(graph):
    return Counter(value.primitive.name for value in graph.values() if value.primitive)


def test_each_round_has_one_product_and_the_others_are_outside():
    bodies, inside, outside = loops(tf.value_and_grad(recurrent, (0, 1, 2, 3)), *arguments())
    assert [names["matmul"] for names in inside] == [1, 1]  # h @ u, and its gradient
    assert outside["matmul"] == 7  # x @ w and h @ v, and two gradients of each; u's
    assert [body.carries for body in bodies] == [1, 1]  # sums are not carried


def test_what_is_the_same_in_all_rounds_is_computed_once():
    _, inside, outside = loops(of_batches, *arguments())
    assert not inside[0]["exp"]
    assert not inside[0]["sin"]
    assert outside["exp"] == outside["sin"] == 1


def growing(w, h):
    """Return a sum of what 50 rounds of a recurrence give."""
    grown = ops.fori_loop(0, 50, lambda _, h: tf.tanh(h * w) + 0.1 * tf.exp(-h), h)
    return tf.reduce_sum(grown)


@pytest.mark.parametrize(("size", "stored"), [(4, True), (10_000, False)])
def test_small_slopes_are_stored_by_the_primal_loop(size, stored):
    _, inside, _ = loops(tf.value_and_grad(growing, (0, 1)), normal(size), normal(size))
    assert [names["tanh_slope"] for names in inside] == [int(stored), int(not stored)]
    assert [names["exp"] for names in inside] == [1, int(not stored)]


def test_stored_slopes_keep_derivatives():
    run, args = two_orders(growing), (normal(4), normal(4))
    same(unfused(run)(*args), run(*args), 1e-9)


def test_what_nothing_reads_is_left_out():
    def first(xs):
        end, rows = ops.scan(
            lambda carry, x: ((carry[0] + x, carry[1] * tf.exp(x)), (tf.sin(x), carry[0])),
            (0.0 * xs[0], xs[0]),
            xs,
        )
        return end[0] + tf.reduce_sum(rows[1])

    bodies, inside, _ = loops(first, normal(4))
    assert bodies[0].carries == 1
    assert len(bodies[0].rows) == 1
    assert inside == [Counter(add=1)]


def test_a_loop_that_calls_outside_code_keeps_its_calls():
    called = []

    def program(x):
        def step(carry, _):
            tf.py_function(lambda: called.append(1), [], [])
            return carry + 1.0, tf.sin(carry)

        return ops.scan(step, x, None, 4)[0] * 0.0 + x

    function = unfused(program)
    function(tf.constant(1.0))
    called.clear()
    function(tf.constant(1.0))
    assert len(called) == 4


def test_a_number_that_is_no_number_in_rounds_that_are_not_run():
    """A gradient's program has room for more rounds than there are: those add nothing."""

    def program(w, x):
        def step(i, h):
            return i + 1, h @ w / tf.cast(3 - i, w.dtype)

        _, h = tf.while_loop(lambda i, h: i < 3, step, (tf.constant(0), x))
        return tf.reduce_sum(h)

    w, x = normal(2, 2), normal(2, 2)
    same(unfused(tf.grad(program, (0, 1)))(w, x), tf.grad(program, (0, 1))(w, x))
