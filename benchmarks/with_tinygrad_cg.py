"""The work in this library: a tape for each call, and the same compiled."""

import tinygrad_cg as tf
from benchmarks.library import LOOPS
from benchmarks.tapes import Tapes


class Eager(Tapes):
    def __init__(self):
        super().__init__(tf)

    def mean_cross_entropy(self, logits, labels):
        chosen = tf.gather(tf.nn.log_softmax(logits), labels, axis=1, batch_dims=1)
        return -tf.reduce_mean(chosen)

    def hessian(self, function, x):
        return tf.hessian(function)(x)

    def hvp(self, function, x, v):
        return tf.hvp(function)(x, v)

    def jacobian(self, function, x):
        return tf.jacobian(function)(x)


class Compiled(Eager):
    lacks = LOOPS

    def compiled(self, program):
        return tf.function(program, jit_compile=True)


MODES = {"eager": Eager, "compiled": Compiled}
