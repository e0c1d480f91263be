"""Random nests of tapes around calls of compiled functions find what they find eagerly."""

import random

import numpy as np
import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
X = np.array([0.5, -1.0, 2.0])
v, w = tf.Variable(X), tf.Variable(np.float64(0.7))
frozen = tf.Variable(3 * X, trainable=False)
c = tf.constant(X + 1.0)


@tf.custom_gradient
def fake(x):
    return tf.sin(x), lambda dy: 2.0 * dy * tf.cos(x)


@tf.custom_gradient
def scaled(x):
    return x * v, lambda dy, variables=None: (dy * v, [dy * x * 3.0])


EAGER = [
    lambda x, y: tf.sin(x) * y,
    lambda x, y: (x * y, tf.reduce_sum(x)),
    lambda x, y: fake(x * y) * c,
    lambda x, y: scaled(x) * y * w,
    lambda x, y: {"a": x * v, "b": (y * c * frozen, None)},
    lambda x, y: tf.stop_gradient(x) * y,
    lambda x, y: (tf.identity(y) * 1.0, tf.cast(x > 0, tf.int32), x * x * w),
    lambda x, y: tf.reduce_sum(x * y * v * c) ** 2,
]
COMPILED = [tf.function(program, jit_compile=False) for program in EAGER]


class Nest:
    """Calls under tapes, all chosen by one seed; what they give is in `results`."""

    def __init__(self, functions, seed):
        self.functions, self.choose = functions, random.Random(seed)
        self.x, self.y = tf.constant(X), tf.constant(2 * X)
        v.assign(1.5 * X)
        w.assign(0.7)
        self.results = []
        for _ in range(2):
            self.tensors = [self.x, self.y, c]
            self.differentiate(self.choose.randrange(1, 4))

    def happens(self, probability):
        return self.choose.random() < probability

    def keep(self, tensors):
        self.results += [None if tensor is None else tensor.numpy() for tensor in tensors]

    def call(self):
        function = self.functions[self.choose.randrange(len(self.functions))]
        result = function(self.choose.choice(self.tensors), self.choose.choice(self.tensors))
        floats = [
            leaf for leaf in tf.nest.flatten(result) if leaf is not None and leaf.dtype == "f8"
        ]
        self.keep(floats)
        self.tensors += [tensor for tensor in floats if tensor.shape == (3,)]
        return floats

    def differentiate(self, depth):
        if not depth:
            return self.call() + (self.call() if self.happens(0.5) else [])
        sources = [self.x, self.y, c, v, w]
        persistent, accessed = self.happens(0.4), self.happens(0.8)
        gradients = None
        with tf.GradientTape(persistent, accessed) as tape:
            tape.watch([source for source in sources if self.happens(0.6)])
            targets = self.differentiate(depth - 1)
            if self.happens(0.3):
                targets += self.call()
            if persistent and self.happens(0.3):
                gradients = tape.gradient(targets, sources)
        if self.happens(0.3):
            w.assign_add(0.1)
        if gradients is None:
            gradients = tape.gradient(targets, sources)
        if persistent and self.happens(0.5):
            self.keep(tape.gradient(targets[:1], sources))
        self.keep(gradients)
        return [gradient for gradient in gradients if gradient is not None] or targets


@pytest.mark.parametrize("seed", range(60))
def test_nests_of_tapes(seed):
    """None eagerly may be zeros: all outputs of a compiled function are those of one operation."""
    expected = Nest(EAGER, seed).results
    for _ in range(2):  # the second time by the short ways
        for result, other in zip(Nest(COMPILED, seed).results, expected, strict=True):
            if result is None or other is None:
                assert other is None
                assert result is None or not np.any(result)
            else:
                np.testing.assert_allclose(result, other, 1e-9, 1e-9)
