"""Deep equilibrium model: a layer that is a fixed point, with an implicit gradient.

S. Bai, J. Z. Kolter and V. Koltun, "Deep equilibrium models" (2019).
"""

import numpy as np

import tinygrad_cg as tf

rng = np.random.default_rng(6)
WIDTH, STEPS = 8, 4


def cell(z, x, w, u, b):
    return tf.tanh(tf.matmul(z, w) + tf.matmul(x, u) + b)


def fixed_point(f, z, tolerance=1e-12):
    def unfinished(z, previous, i):
        return tf.norm(z - previous) > tolerance

    def iterate(z, previous, i):
        return f(z), z, i + 1

    z, _, iterations = tf.while_loop(
        unfinished, iterate, loop_vars=(f(z), z, tf.constant(1)), maximum_iterations=500
    )
    return z, iterations


@tf.custom_gradient
def equilibrium(x, w, u, b):
    star, _ = fixed_point(lambda z: cell(z, x, w, u, b), tf.zeros_like(x))
    star = tf.stop_gradient(star)

    def grad(upstream):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([star, x, w, u, b])
            value = cell(star, x, w, u, b)

        def pull(y):
            return upstream + tape.gradient(value, star, output_gradients=y)

        y, _ = fixed_point(pull, tf.zeros_like(upstream))
        return tape.gradient(value, [x, w, u, b], output_gradients=y)

    return star, grad


w = tf.Variable(0.2 * rng.normal(size=(WIDTH, WIDTH)), name="w")
u = tf.Variable(0.5 * rng.normal(size=(WIDTH, WIDTH)), name="u")
b = tf.Variable(tf.zeros([WIDTH], tf.float64), name="b")
readout = tf.Variable(rng.normal(size=[WIDTH, 1]) / 3, name="readout")
variables = [w, u, b, readout]
x = tf.constant(rng.normal(size=(10, WIDTH)))
y = tf.math.sin(tf.reduce_sum(x, axis=1, keepdims=True))
optimizer = tf.keras.optimizers.RMSprop(learning_rate=0.01)

for step in range(STEPS):
    with tf.GradientTape() as tape:
        z = equilibrium(x, w, u, b)
        loss = tf.reduce_mean(tf.keras.losses.MSE(y, tf.matmul(z, readout)))
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables))
    print(f"step {step}: loss {loss.numpy():.9f}, |dw| {tf.norm(gradients[0]).numpy():.9f}")

z, iterations = fixed_point(lambda z: cell(z, x, w, u, b), tf.zeros_like(x))
with tf.GradientTape() as tape:
    tape.watch(z)
    value = cell(z, x, w, u, b)
J = tf.reshape(tape.jacobian(value, z), (z.shape[0] * WIDTH, -1))
with tf.GradientTape() as tape:
    direct = tf.reduce_sum(equilibrium(x, w, u, b))
du = tape.gradient(direct, u)
eye = tf.eye(J.shape[0], dtype=tf.float64)
adjoint = tf.linalg.solve(eye - J, tf.ones([J.shape[0], 1], tf.float64), adjoint=True)
slope = (1 - z**2) * tf.reshape(adjoint, tf.shape(z))
tf.debugging.assert_near(du, tf.matmul(x, slope, transpose_a=True), atol=1e-8)
print(f"residual below {1e-10 * float(tf.math.ceil(1e10 * tf.norm(z - value))):.0e},", end=" ")
print(f"sum of the gradient {tf.reduce_sum(du).numpy():.9f}")
