"""Newton's method for a logistic regression: conjugate gradients need products with the Hessian.

J. Nocedal and S. Wright, "Numerical optimization" (2006), 7.1.
"""

import tinygrad_cg as tf
from benchmarks.programs.data import labels, normal

ROWS, COLUMNS, ROUNDS = 1000, 50, 10
data = normal(ROWS, COLUMNS, dtype="float64")
x, y = tf.constant(data), tf.constant(labels(data))
w = tf.Variable(tf.zeros(COLUMNS, tf.float64))


def loss(w):
    margins = tf.linalg.matvec(x, w)
    return tf.reduce_mean(tf.nn.softplus(margins) - y * margins) + 0.005 * tf.reduce_sum(w**2)


def gradient(w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = loss(w)
    return value, tape.gradient(value, w)


def hessian_product(w, v):
    with tf.GradientTape() as tape:
        tape.watch(w)
        slope = tf.tensordot(gradient(w)[1], v, 1)
    return tape.gradient(slope, w)


@tf.function
def newton():
    point = w.read_value()
    value, slope = gradient(point)

    def body(i, step, residual, direction, square):
        product = hessian_product(point, direction)
        rate = square / tf.tensordot(direction, product, 1)
        step, residual = step + rate * direction, residual - rate * product
        new = tf.tensordot(residual, residual, 1)
        return i + 1, step, residual, residual + new / square * direction, new

    start = (tf.constant(0), tf.zeros_like(slope), -slope, -slope, tf.tensordot(slope, slope, 1))
    _, step, *_ = tf.while_loop(lambda i, *_: i < ROUNDS, body, start)
    w.assign_add(step)
    return value, tf.norm(slope)


for _ in range(5):
    value, norm = newton()
print(f"loss {value.numpy():.8f}", w.numpy()[:4].round(6).tolist())

# What TensorFlow 2.21 prints:
# loss 0.23843157 [-0.173785, 0.329469, -0.223094, -0.86537]
