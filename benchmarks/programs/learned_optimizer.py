"""A learned optimizer: a small network proposes updates, trained through ten of its steps.

M. Andrychowicz et al., "Learning to learn by gradient descent by gradient descent" (2016). The
gradients that the network reads are differentiated, too.
"""

import tinygrad_cg as tf
from benchmarks.programs.data import layers, normal

UNROLLED, TASKS, SIZE, WIDTH = 10, 8, 10, 16
w1, b1, w2, b2 = variables = [tf.Variable(array) for array in layers(2, WIDTH, 2)]
matrices = tf.constant(normal(TASKS, SIZE, SIZE))
targets = tf.constant(normal(TASKS, SIZE, 1))
start = tf.constant(normal(TASKS, SIZE, 1))
optimizer = tf.keras.optimizers.Adam(3e-3)


def cost(theta):
    """Return the loss of each task: a valley that bends."""
    residual = tf.matmul(matrices, theta + 0.1 * theta**3) - targets
    return tf.reduce_mean(residual**2, axis=(1, 2))


def update(gradient, momentum):
    features = tf.concat([gradient, momentum], axis=-1)
    out = tf.tanh(features @ w1 + b1) @ w2 + b2
    return 0.1 * out[..., :1], tf.sigmoid(out[..., 1:])


def total_cost():
    theta, momentum, total = start, tf.zeros_like(start), tf.constant(0.0)
    for _ in range(UNROLLED):
        with tf.GradientTape() as tape:
            tape.watch(theta)
            value = tf.reduce_sum(cost(theta))
        gradient = tape.gradient(value, theta)
        step, decay = update(gradient, momentum)
        momentum = decay * momentum + (1.0 - decay) * gradient
        theta = theta - 0.02 * momentum - step
        total += tf.reduce_mean(tf.math.log1p(cost(theta)))
    return total / UNROLLED


@tf.function
def train():
    with tf.GradientTape() as tape:
        loss = total_cost()
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss


for _ in range(30):
    loss = train()
print(f"loss {loss.numpy():.6f}")

# What TensorFlow 2.21 prints:
# loss 0.754161
