"""An inverse eigenvalue problem: springs of a chain with prescribed frequencies and modes.

M. Chu and G. Golub, "Inverse eigenvalue problems" (2005).
"""

import numpy as np

import tinygrad_cg as tf
from benchmarks.programs.data import uniform

SIZE, MODES = 24, 6
springs = tf.constant(uniform(0.5, 2, SIZE + 1, dtype="float64"))
raw = tf.Variable(tf.zeros(SIZE + 1, tf.float64))
optimizer = tf.keras.optimizers.Adam(2e-2)


def modes(springs):
    off = -springs[1:-1]
    stiffness = tf.linalg.diag(springs[:-1] + springs[1:])
    stiffness += tf.linalg.diag(off, k=1) + tf.linalg.diag(off, k=-1)
    values, vectors = tf.linalg.eigh(stiffness)
    return values[:MODES], vectors[:, :MODES] ** 2


wanted, shapes = modes(springs)


@tf.function
def train():
    with tf.GradientTape() as tape:
        values, squares = modes(tf.math.softplus(raw) + 0.1)
        loss = tf.reduce_sum((values / wanted - 1.0) ** 2)
        loss += 10.0 * tf.reduce_mean((squares - shapes) ** 2)
    optimizer.apply_gradients([(tape.gradient(loss, raw), raw)])
    return loss


for _ in range(50):
    loss = train()
print(f"loss {np.log(loss.numpy()):.6f}", raw.numpy()[:4].round(5).tolist())

# What TensorFlow 2.21 prints:
# loss -3.544815 [0.50422, 0.4623, 0.26815, 0.21649]
