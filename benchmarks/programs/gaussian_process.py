"""Gaussian process regression: hyperparameters by gradient ascent on the marginal likelihood.

C. Rasmussen and C. Williams, "Gaussian processes for machine learning" (2006), 2.2 and 5.4.
"""

import numpy as np

import tinygrad_cg as tf
from benchmarks.programs.data import normal, uniform

ROWS, COLUMNS = 150, 3
points = uniform(-2, 2, ROWS, COLUMNS, dtype="float64")
values = np.sin(points.sum(axis=1)) + 0.1 * normal(ROWS, dtype="float64")
x, y = tf.constant(points), tf.constant(values)[:, None]
log_scales = tf.Variable(tf.zeros(COLUMNS, tf.float64))
log_amplitude, log_noise = tf.Variable(0.0, dtype="float64"), tf.Variable(-1.0, dtype="float64")
variables = [log_scales, log_amplitude, log_noise]
optimizer = tf.keras.optimizers.Adam(5e-2)


def covariance():
    scaled = x / tf.exp(log_scales)
    squares = tf.reduce_sum((scaled[:, None] - scaled[None]) ** 2, axis=-1)
    noise = tf.exp(2.0 * log_noise) + 1e-6
    return tf.exp(2.0 * log_amplitude - 0.5 * squares) + noise * tf.eye(ROWS, dtype=tf.float64)


@tf.function
def train():
    with tf.GradientTape() as tape:
        factor = tf.linalg.cholesky(covariance())
        fit = tf.reduce_sum(y * tf.linalg.cholesky_solve(factor, y))
        log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))
        loss = 0.5 * (fit + log_det + ROWS * np.log(2 * np.pi))
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss


for _ in range(30):
    loss = train()
print(f"loss {loss.numpy():.6f}", log_scales.numpy().round(5).tolist())

# What TensorFlow 2.21 prints:
# loss -28.324426 [0.33192, 0.34611, 0.36143]
