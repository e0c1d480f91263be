"""A mean of time series by soft dynamic time warping, along anti-diagonals of the table.

M. Cuturi and M. Blondel, "Soft-DTW: a differentiable loss function for time-series" (2017).
"""

import numpy as np

import tinygrad_cg as tf
from benchmarks.programs.data import uniform

SERIES, LENGTH, GAMMA, FAR = 8, 24, 0.1, 1e6
times = np.linspace(0, 2 * np.pi, LENGTH, dtype=np.float32)
shifts = uniform(0, 2, SERIES, 1)
series = tf.constant(np.sin(times + shifts) + uniform(-0.1, 0.1, SERIES, LENGTH))
mean = tf.Variable(tf.reduce_mean(series, axis=0))
optimizer = tf.keras.optimizers.Adam(5e-2)


def skewed(costs):
    """Return a table whose row k has the anti-diagonal k; FAR stands outside of the table."""
    wide = tf.pad(costs, [[0, 0], [0, 0], [0, LENGTH]], constant_values=FAR)
    flat = tf.reshape(wide, (SERIES, 2 * LENGTH * LENGTH))[:, : LENGTH * (2 * LENGTH - 1)]
    return tf.transpose(tf.reshape(flat, (SERIES, LENGTH, 2 * LENGTH - 1)), (2, 0, 1))


def distance(mean):
    rows = skewed((series[:, :, None] - mean[None, None, :]) ** 2)
    edge = tf.fill((SERIES, 1), FAR)

    def body(k, older, last):
        above = tf.concat([edge, last[:, :-1]], axis=1)
        diagonal = tf.concat([edge, older[:, :-1]], axis=1)
        choices = tf.stack([last, above, diagonal])
        new = rows[k] - GAMMA * tf.reduce_logsumexp(-choices / GAMMA, axis=0)
        return k + 1, last, new

    outside = tf.fill((SERIES, LENGTH), FAR)
    first = tf.concat([rows[0][:, :1], outside[:, 1:]], axis=1)
    state = (tf.constant(1), outside, first)
    _, _, last = tf.while_loop(lambda k, *_: k < 2 * LENGTH - 1, body, state)
    return tf.reduce_mean(last[:, -1])


@tf.function
def train():
    with tf.GradientTape() as tape:
        loss = distance(mean)
    optimizer.apply_gradients([(tape.gradient(loss, mean), mean)])
    return loss


for _ in range(30):
    loss = train()
print(f"loss {loss.numpy():.5f}", mean.numpy()[:4].astype(float).round(4).tolist())

# What TensorFlow 2.21 prints:
# loss -1.96870 [0.6299, 0.8876, 0.9416, 0.9265]
