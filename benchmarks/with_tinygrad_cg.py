"""The work in this library: a tape for each call, and the same compiled."""

import tinygrad_cg as tf
from benchmarks import STEPS
from benchmarks.library import END, TOLERANCE, UNROLLED
from benchmarks.tapes import Tapes


class Eager(Tapes):
    def __init__(self):
        super().__init__(tf)

    def mean_cross_entropy(self, logits, labels):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_mean(losses)

    def hessian(self, function, x):
        return tf.hessian(function)(x)

    def hvp(self, function, x, v):
        return tf.hvp(function)(x, v)

    def jacobian(self, function, x):
        return tf.jacobian(function)(x)


class Compiled(Eager):
    lacks = UNROLLED

    def _recurrence(self, w, h):
        return tf.reduce_sum(tf.keras.ops.fori_loop(0, STEPS, lambda i, h: tf.tanh(h * w), h))

    def _lstm(self, w, u, b, xs, start):
        def step(carry, x):
            return self._cell(w, u, b, carry, x), None

        return tf.reduce_sum(tf.keras.ops.scan(step, (start, start), xs)[0][0] ** 2)

    def _newton(self, x, y, change):
        state = tf.while_loop(
            lambda y, change: change > TOLERANCE, lambda y, change: self._nearer(x, y), (y, change)
        )
        return tf.reduce_sum(state[0])

    def _adaptive(self, rates, axes, y):
        t, size = self._first_step(rates)
        state = tf.while_loop(
            lambda t, y, size: t < END,
            lambda t, y, size: self._stepped(rates, axes, t, y, size),
            (t, y, size),
        )
        return tf.reduce_sum(state[1] ** 2)

    def _kalman(self, noise, ys, move, turned, noises):
        variances = self.exp(noise)

        def step(carry, y):
            return self._filtered(variances, move, turned, noises, carry, y), None

        start = 0.0 * noises[0, 0], noises[0] + noises[1], 0.0 * variances[2]
        carry, _ = tf.keras.ops.scan(step, start, ys)
        return carry[2]

    def compiled(self, program):
        return tf.function(program, jit_compile=True)


MODES = {"eager": Eager, "compiled": Compiled}
