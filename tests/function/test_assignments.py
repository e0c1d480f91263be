"""Variables that programs, their loops and branches assign: gradients are those of eager runs."""

import contextlib
import itertools

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import unfused

v, u = (tf.Variable(value, dtype=tf.float64) for value in ([2.0, 3.0], [0.5, 0.7]))
X, K = (tf.constant(value, tf.float64) for value in ([0.3, 0.2], [0.9, 0.4]))
ROWS = tf.ones((3, 2), tf.float64)

ASSIGNED = {
    "an argument": lambda x: x,
    "what is computed": lambda x: x * 2.0,
    "an array": lambda x: np.array([1.0, 2.0]),
    "a tensor from outside": lambda x: K,
    "another Variable": lambda x: u,
}


def if_positive(x, true, false):
    return tf.cond(tf.reduce_sum(x) > 0.0, true, false)


def over_rows(step, start):
    return tf.foldl(step, ROWS, start)


PLACES = {
    "before all reads": lambda x, put: (put(x), v * x * v)[1],
    "in a branch": lambda x, put: if_positive(x, lambda: (put(x), v * x * v)[1], lambda: x),
    "the Variable in a branch": lambda x, put: (
        if_positive(x, lambda: put(x) * x, lambda: v * x) + v * x
    ),
    "in a branch that is not taken": lambda x, put: (
        if_positive(-x, lambda: put(x) * x, lambda: v * x) + v * x
    ),
    "before a loop": lambda x, put: (
        put(x),
        tf.foldl(lambda c, e: tf.sin(c) * v + e, ROWS, x, checkpoint="sqrt"),
    )[1],
    "in a loop": lambda x, put: over_rows(lambda c, e: (put(x), c * v * v + e * v)[1], x) * v,
    "in a loop, by its variable": lambda x, put: over_rows(lambda c, e: (put(c), c * v + e)[1], x),
    "in a loop that its values end": lambda x, put: tf.while_loop(
        lambda c: tf.reduce_sum(c * c) < 9.0, lambda c: ((put(x), c * 1.5 + v * v)[1],), (x,)
    )[0],
    "in a branch in a loop": lambda x, put: over_rows(
        lambda c, e: if_positive(c, lambda: (put(x), c * v * v)[1], lambda: e * v), x
    ),
    "in a loop in a branch": lambda x, put: if_positive(
        x, lambda: over_rows(lambda c, e: (put(x), c * v * v + e)[1], x), lambda: x
    ),
    "in a loop in a loop": lambda x, put: over_rows(
        lambda c, e: over_rows(lambda a, b: (put(x), a * v * v + b * c)[1], c * 0.2), x
    ),
}


def derivatives(run):
    """Return the value, its gradients, and those of the sum of their squares."""
    with tf.GradientTape() as outer:
        outer.watch(X)
        with tf.GradientTape() as tape:
            tape.watch([X, K])
            y = run(X)
        first = tape.gradient(y, [X, v, u, K], unconnected_gradients="zero")
        square = tf.add_n([tf.reduce_sum(result * result) for result in first])
    return [y + X * 0.0, *first, *outer.gradient(square, [X, v, u], unconnected_gradients="zero")]


@pytest.mark.parametrize("place", PLACES)
def test_gradients_are_those_of_eager_runs(place):
    for what, recorded in itertools.product(ASSIGNED, (False, True)):

        def f(x, what=what, recorded=recorded):
            block = tf.experimental.recorded_assignments(restore=True)
            with block if recorded else contextlib.nullcontext():
                return tf.reduce_sum(PLACES[place](x, lambda x: v.assign(ASSIGNED[what](x))))

        results = []
        for run in (f, unfused(f)):
            v.assign([2.0, 3.0])
            results.append(derivatives(run))
        message = f"{what}{', recorded' * recorded}"
        np.testing.assert_allclose(results[1], results[0], rtol=1e-9, err_msg=message)
