"""Gradients of loops that keep their state at some rounds: the same numbers, in less memory."""

import math
import pickle

import numpy as np
import pytest

import tinygrad_cg as tf

from ..support import array_costs
from ..support.array_programs import interpreted
from .functions import CASES
from .test_functions import floats_of, replaced, total


def logistic(x, rounds):
    history = np.empty(rounds)
    for k in range(rounds):
        x = 3.7 * x * (1.0 - x)
        history[k] = x
    return x + np.sum(history) * 1e-3


def relaxed(u, rounds):
    v, k, moved = u.copy(), 0, 1.0
    while moved > 1e-9:
        w = np.empty_like(v)
        for i in range(len(v)):
            w[i] = v[i] - 0.01 * math.sin(v[i]) * v[i - 1]
        moved = abs(w[0] - v[0]) + 1.0
        v = w
        k += 1
        if k == rounds:
            break
    return np.sum(v)


def grid(x, rounds):
    side = int(math.sqrt(rounds))
    for i in range(side - 1, -1, -1):
        for j in range(side):
            x = math.sin(x) + 0.1 * math.cos(i + j + x)
    return x


@pytest.mark.parametrize(("function", "args"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_checkpoints_change_no_number(function, args):
    """Of gradients, and of the second derivatives of a third of the functions."""
    is_third = [f for f, _ in CASES].index(function) % 3 == 0
    point = [tf.constant(x, tf.float64) for x in floats_of(args)]
    ways = [tf.constant(np.sin(np.arange(x.numpy().size) + 1.0).reshape(x.shape)) for x in point]

    def derivatives(checkpoint):
        differentiated = tf.differentiable(function, checkpoint=checkpoint)

        def loss(*xs):
            return total(differentiated(*replaced(args, iter(xs))), tf.sin, tf.reduce_sum)

        gradient = tf.grad(loss, tuple(range(len(point))))
        return tf.jvp(gradient, tuple(point), tuple(ways)) if is_third else (gradient(*point),)

    with interpreted():
        expected, *others = [derivatives(depth) for depth in (False, True, 3)]
    for other in others:
        for ours, theirs in zip(sum(other, ()), sum(expected, ()), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("function", "x", "checkpoint", "numbers"),
    [(logistic, 0.3, True, 1), (relaxed, np.ones(3), True, 10), (grid, 0.3, 2, 8)],
)
def test_memory_is_that_of_the_root_of_the_rounds(function, x, checkpoint, numbers):
    plain, sparse = (tf.differentiable(function, checkpoint=c) for c in (False, checkpoint))
    for rounds in (100, 10_000):
        kept = sparse.stack_bytes(x, rounds)
        assert plain.stack_bytes(x, rounds) >= 8 * rounds
        assert 0 < kept <= 8 * (numbers + 3) * (math.sqrt(2 * rounds) + 1)
        expected = tf.grad(lambda x, n=rounds: plain(x, n))(tf.constant(x))
        gradient = tf.grad(lambda x, n=rounds: sparse(x, n))(tf.constant(x))
        np.testing.assert_allclose(gradient, expected, rtol=1e-13)


@pytest.mark.quick
def test_checkpoints_in_transformations():
    f = pickle.loads(pickle.dumps(tf.differentiable(logistic, checkpoint=True)))
    plain = tf.differentiable(logistic)
    xs = tf.constant([0.2, 0.3], tf.float64)
    for own in (
        lambda g: tf.vmap(tf.grad(lambda x: g(x, 20)))(xs),
        lambda g: tf.function(tf.grad(lambda x: g(x, 20)))(xs[0]),
        lambda g: tf.grad(tf.grad(tf.grad(lambda x: g(x, 7))))(xs[0]),
        lambda g: tf.grad(lambda x: tf.jvp(lambda y: g(y, 7), (x,), (x,))[1])(xs[1]),
    ):
        np.testing.assert_allclose(own(f), own(plain), rtol=1e-12)


@pytest.mark.quick
def test_checkpoint_decorates_and_counts_loops():
    @tf.differentiable(checkpoint=True)
    def power(x, n):
        y = 1.0
        for _ in range(n):
            y *= x
        return y

    assert float(tf.grad(lambda x: power(x, 5))(tf.constant(2.0, tf.float64))) == 80.0
    assert power.stack_bytes(2.0, 0) == 0
    with pytest.raises(ValueError, match="checkpoint must be True, False or a number"):
        tf.differentiable(logistic, checkpoint=-1)
    with pytest.raises(ValueError, match="got 'all'"):
        tf.differentiable(logistic, checkpoint="all")


def test_costs_are_of_the_function_and_of_both_gradients():
    args = ((np.arange(20.0), 9, 0.1),)
    times, memory = array_costs.costs(array_costs.f.heat, *args)
    assert len(times) == 3
    assert memory[0] > memory[1] > 0
