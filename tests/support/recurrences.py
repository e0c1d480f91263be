"""Recurrent networks, of Keras's ``scan``."""

import tinygrad_cg as tf
from tinygrad_cg.keras import ops


def lstm(w, u, b, xs):
    """Return the mean square of the last output of an LSTM, and the mean of all its outputs."""
    hidden = u.shape[0]

    def step(carry, x):
        h, c = carry
        gates = x @ w + h @ u + b
        i, f, o = (tf.sigmoid(gates[:, k * hidden : (k + 1) * hidden]) for k in range(3))
        c = f * c + i * tf.tanh(gates[:, 3 * hidden :])
        h = o * tf.tanh(c)
        return (h, c), h

    start = tf.zeros((xs.shape[1], hidden), w.dtype)
    (h, _), hs = ops.scan(step, (start, start), xs)
    return tf.reduce_mean(h * h) + tf.reduce_mean(hs)
