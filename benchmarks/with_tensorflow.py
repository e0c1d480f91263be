"""The work in TensorFlow: eager, as a graph, and compiled by XLA."""

import importlib
from typing import Any

from benchmarks import STEPS, THREADS
from benchmarks.library import END, TOLERANCE, UNROLLED
from benchmarks.tapes import Tapes

tf: Any = importlib.import_module("tensorflow")
tf.config.threading.set_intra_op_parallelism_threads(THREADS)
tf.config.threading.set_inter_op_parallelism_threads(THREADS)


class Eager(Tapes):
    lacks = frozenset({"kalman_hessian"})  # 44 seconds a call

    def __init__(self):
        super().__init__(tf)

    def mean_cross_entropy(self, logits, labels):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_mean(losses)

    def hessian(self, function, x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            _, gradient = self.value_and_grads(function)(x)
        return outer.jacobian(gradient, x)

    def hvp(self, function, x, v):
        with tf.autodiff.ForwardAccumulator(x, v) as forward:
            _, gradient = self.value_and_grads(function)(x)
        return forward.jvp(gradient)

    def jacobian(self, function, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.jacobian(y, x)


class Graph(Eager):
    lacks = UNROLLED

    def _recurrence(self, w, h):
        (h,) = tf.while_loop(
            lambda _: True, lambda h: (tf.tanh(h * w),), (h,), maximum_iterations=STEPS
        )
        return tf.reduce_sum(h)

    def _lstm(self, w, u, b, xs, start):
        states = tf.scan(lambda carry, x: self._cell(w, u, b, carry, x), xs, (start, start))
        return tf.reduce_sum(states[0][-1] ** 2)

    def _newton(self, x, y, change):
        state = tf.while_loop(
            lambda y, change: change > TOLERANCE,
            lambda y, change: self._nearer(x, y),
            (y, change),
            maximum_iterations=100,
        )
        return tf.reduce_sum(state[0])

    def _adaptive(self, rates, axes, y):
        t, size = self._first_step(rates)
        state = tf.while_loop(
            lambda t, y, size: t < END,
            lambda t, y, size: self._stepped(rates, axes, t, y, size),
            (t, y, size),
            maximum_iterations=1000,
        )
        return tf.reduce_sum(state[1] ** 2)

    def _kalman(self, noise, ys, move, turned, noises):
        variances = self.exp(noise)

        def step(carry, y):
            return self._filtered(variances, move, turned, noises, carry, y)

        start = 0.0 * noises[0, 0], noises[0] + noises[1], 0.0 * variances[2]
        return tf.foldl(step, ys, start)[2]

    def compiled(self, program):
        return tf.function(program)


class XLA(Graph):
    lacks = UNROLLED | {"kalman_hessian"}  # it refuses the second derivative of the loop

    def compiled(self, program):
        return tf.function(program, jit_compile=True)


MODES = {"eager": Eager, "function": Graph, "XLA": XLA}
