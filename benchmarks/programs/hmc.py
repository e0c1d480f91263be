"""Hamiltonian Monte Carlo: the posterior of a logistic regression, 16 chains at a time.

R. Neal, "MCMC using Hamiltonian dynamics" (2011).
"""

import tinygrad_cg as tf
from benchmarks.programs.data import labels, normal, uniform

CHAINS, ROWS, COLUMNS, LEAPS, SIZE, DRAWS = 16, 200, 8, 20, 0.03, 50
x = normal(ROWS, COLUMNS, dtype="float64")
x, y = tf.constant(x), tf.constant(labels(x))[:, None]
momenta = normal(DRAWS, CHAINS, COLUMNS, dtype="float64")
levels = uniform(0, 1, DRAWS, CHAINS, dtype="float64")
position = tf.Variable(tf.zeros((CHAINS, COLUMNS), tf.float64))


def log_density(w):
    margins = tf.matmul(x, w, transpose_b=True)
    fit = tf.reduce_sum(y * margins - tf.nn.softplus(margins), axis=0)
    return fit - 0.5 * tf.reduce_sum(w**2, axis=1)


def slope(w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = log_density(w)
    return tape.gradient(value, w)


@tf.function
def draw(momentum, level):
    start = position.read_value()

    def leap(i, w, p):
        w = w + SIZE * p
        return i + 1, w, p + SIZE * slope(w)

    p = momentum + 0.5 * SIZE * slope(start)
    loop_vars = (tf.constant(0), start, p)
    _, w, p = tf.while_loop(lambda i, *_: i < LEAPS, leap, loop_vars)
    p = p - 0.5 * SIZE * slope(w)
    before = log_density(start) - 0.5 * tf.reduce_sum(momentum**2, axis=1)
    after = log_density(w) - 0.5 * tf.reduce_sum(p**2, axis=1)
    accepted = tf.math.log(level) < after - before
    position.assign(tf.where(accepted[:, None], w, start))
    return tf.reduce_mean(tf.cast(accepted, tf.float64)), position.read_value()


def step(k=0):
    return draw(tf.constant(momenta[k]), tf.constant(levels[k]))


total = tf.zeros(COLUMNS, tf.float64)
rate = tf.constant(0.0, tf.float64)
for k in range(DRAWS):
    accepted, w = step(k)
    total, rate = total + tf.reduce_mean(w, axis=0), rate + accepted
print(f"accepted {rate.numpy() / DRAWS:.4f}", (total.numpy() / DRAWS).round(5).tolist())

# What TensorFlow 2.21 prints:
# accepted 0.9988 [1.56033, -0.05678, -2.3358, -1.78685, -1.72083, -0.79708, 1.87464, 0.50851]
