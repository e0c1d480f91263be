"""Matrix completion: the sum of the singular values is the penalty.

E. Candès and B. Recht, "Exact matrix completion via convex optimization" (2009).
"""

import numpy as np

import tinygrad_cg as tf
from benchmarks.programs.data import normal, uniform

ROWS, COLUMNS, RANK, PENALTY = 40, 30, 3, 0.02
truth = normal(ROWS, RANK, dtype="float64") @ normal(RANK, COLUMNS, dtype="float64")
mask = tf.constant((uniform(0, 1, ROWS, COLUMNS) < 0.5).astype(np.float64))
known = mask * tf.constant(truth)
matrix = tf.Variable(0.1 * normal(ROWS, COLUMNS, dtype="float64"))
optimizer = tf.keras.optimizers.Adam(5e-2)


@tf.function
def train():
    with tf.GradientTape() as tape:
        s, _, _ = tf.linalg.svd(matrix)
        fit = tf.reduce_sum((mask * matrix - known) ** 2)
        loss = fit + PENALTY * tf.reduce_sum(tf.sqrt(s**2 + 1e-6))
    optimizer.apply_gradients([(tape.gradient(loss, matrix), matrix)])
    return loss


for _ in range(50):
    loss = train()
print(f"loss {loss.numpy():.6f}", matrix.numpy()[0, :4].round(5).tolist())

# What TensorFlow 2.21 prints:
# loss 135.286796 [-0.00067, -0.39549, 0.53632, -0.21931]
