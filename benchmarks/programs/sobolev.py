"""Sobolev training: a network learns values, slopes and curvatures of a function.

W. Czarnecki et al., "Sobolev training for neural networks" (2017).
"""

import tinygrad_cg as tf
from benchmarks.programs.data import layers, uniform

BATCH, WIDTH = 128, 32
variables = [tf.Variable(array) for array in layers(2, WIDTH, WIDTH, 1)]
x = tf.constant(uniform(-1, 1, BATCH, 2))
optimizer = tf.keras.optimizers.Adam(5e-3)


def network(x):
    w1, b1, w2, b2, w3, b3 = variables
    return (tf.tanh(tf.tanh(x @ w1 + b1) @ w2 + b2) @ w3 + b3)[:, 0]


def target(x):
    return tf.sin(2.0 * x[:, 0]) * tf.cos(x[:, 1]) + x[:, 0] * x[:, 1]


def derivatives(function, x):
    """Return values, slopes, and the second derivatives along each axis."""
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        slope = tape.gradient(y, x)
        columns = [slope[:, k] for k in range(2)]
    return y, slope, [outer.gradient(column, x)[:, k] for k, column in enumerate(columns)]


wanted, wanted_slope, wanted_curvatures = derivatives(target, x)


@tf.function
def train():
    with tf.GradientTape() as tape:
        y, slope, curvatures = derivatives(network, x)
        loss = tf.reduce_mean((y - wanted) ** 2) + tf.reduce_mean((slope - wanted_slope) ** 2)
        for curvature, other in zip(curvatures, wanted_curvatures, strict=True):
            loss += 0.1 * tf.reduce_mean((curvature - other) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss


for _ in range(50):
    loss = train()
print(f"loss {loss.numpy():.6f}")

# What TensorFlow 2.21 prints:
# loss 0.406443
