"""A neural ODE whose gradient is another ODE, solved backwards: the adjoint method.

R. Chen et al., "Neural ordinary differential equations" (2018).
"""

import tinygrad_cg as tf
from benchmarks.programs.data import layers, uniform

INTERVALS, WIDTH, BATCH = 20, 32, 64
variables = [tf.Variable(array) for array in layers(2, WIDTH, WIDTH, 2)]
start = tf.constant(uniform(-2, 2, BATCH, 2))
rotated = tf.stack([0.8 * start[:, 1], -0.8 * start[:, 0]], axis=1)
optimizer = tf.keras.optimizers.Adam(1e-2)


def field(y, weights):
    w1, b1, w2, b2, w3, b3 = weights
    return tf.tanh(tf.tanh(y @ w1 + b1) @ w2 + b2) @ w3 + b3


def integrate(slope, state):
    """Return the state after a unit of time, by the classical Runge-Kutta method."""
    h = 1.0 / INTERVALS

    def moved(state, rate, size):
        return [s + size * r for s, r in zip(state, rate, strict=True)]

    def body(i, *state):
        k1 = slope(state)
        k2 = slope(moved(state, k1, h / 2))
        k3 = slope(moved(state, k2, h / 2))
        k4 = slope(moved(state, k3, h))
        rates = [a + 2.0 * (b + c) + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True)]
        return [i + 1, *moved(state, rates, h / 6)]

    loop_vars = [tf.constant(0), *state]
    return tf.while_loop(lambda i, *_: i < INTERVALS, body, loop_vars)[1:]


@tf.custom_gradient
def solve(y, *weights):
    (end,) = integrate(lambda state: [field(state[0], weights)], [y])

    def grad(upstream):
        def backwards(state):
            y, adjoint = state[:2]
            with tf.GradientTape() as tape:
                tape.watch([y, *weights])
                rate = field(y, weights)
            return [-rate, *tape.gradient(rate, [y, *weights], output_gradients=adjoint)]

        zeros = [tf.zeros_like(w) for w in weights]
        return tuple(integrate(backwards, [end, upstream, *zeros])[1:])

    return end, grad


@tf.function
def train():
    with tf.GradientTape() as tape:
        end = solve(start, *[tf.convert_to_tensor(v) for v in variables])
        loss = tf.reduce_mean(tf.reduce_sum((end - rotated) ** 2, axis=1))
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss


for _ in range(30):
    loss = train()
print(f"loss {loss.numpy():.6f}")

# What TensorFlow 2.21 prints:
# loss 0.290332
