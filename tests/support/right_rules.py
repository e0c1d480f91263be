"""Custom gradients that are right, at points where rounding, zeros and kinks deceive."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import tinygrad_cg as tf
from tests.support.rule_table import add

V = np.array([0.5, -1.5, 2.0])
SINGLE = np.array([0.5, -1.5, 2.0], np.float32)
W = np.array([[0.5, -1.0, 0.3], [0.2, 0.8, -0.6]])
S = np.array([[2.0, 0.3, -0.4], [0.1, 1.5, 0.2], [-0.3, 0.4, 3.0]])
LABELS = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


# Functions of one number ---------------------------------------------------------------------


@tf.custom_gradient
def swish(x):
    s = tf.sigmoid(x)
    y = x * s

    def grad(dy):
        return dy * (s + y * (1.0 - s))

    return y, grad


@tf.custom_gradient
def gelu(x):
    phi = 0.5 * (1.0 + tf.math.erf(x / np.sqrt(2.0)))

    def grad(dy):
        return dy * (phi + x * tf.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi))

    return x * phi, grad


@tf.custom_gradient
def mish(x):
    t = tf.tanh(tf.nn.softplus(x))
    return x * t, lambda dy: dy * (t + x * tf.sigmoid(x) * (1.0 - t * t))


@tf.custom_gradient
def hard_swish(x):
    inner = tf.clip_by_value(x + 3.0, 0.0, 6.0)

    def grad(dy):
        slope = tf.where((x > -3.0) & (x < 3.0), x / 6.0, tf.zeros_like(x))
        return dy * (inner / 6.0 + slope)

    return x * inner / 6.0, grad


@tf.custom_gradient
def log_cosh(x):
    y = tf.abs(x) + tf.nn.softplus(-2.0 * tf.abs(x)) - np.log(2.0)
    return y, lambda dy: dy * tf.tanh(x)


@tf.custom_gradient
def huber(x):
    size = tf.abs(x)

    def grad(dy):
        return dy * tf.clip_by_value(x, -1.0, 1.0)

    return tf.where(size <= 1.0, 0.5 * x * x, size - 0.5), grad


@tf.custom_gradient
def log1mexp(x):
    """log(1 - exp(x)), for x < 0."""
    return tf.math.log(-tf.math.expm1(x)), lambda dy: -dy / tf.math.expm1(-x)


@tf.custom_gradient
def relative_exponential(x):
    """(exp(x) - 1) / x, by its series near 0."""
    small = tf.abs(x) < 1e-2
    safe = tf.where(small, tf.ones_like(x), x)
    series = 1.0 + x / 2.0 + x**2 / 6.0 + x**3 / 24.0 + x**4 / 120.0 + x**5 / 720.0

    def grad(dy):
        near = 0.5 + x / 3.0 + x**2 / 8.0 + x**3 / 30.0 + x**4 / 144.0 + x**5 / 840.0
        far = (tf.exp(safe) * (safe - 1.0) + 1.0) / (safe * safe)
        return dy * tf.where(small, near, far)

    return tf.where(small, series, tf.math.expm1(safe) / safe), grad


@tf.custom_gradient
def smooth_sign(x):
    y = tf.tanh(1e3 * x)
    return y, lambda dy: 1e3 * dy * (1.0 - y * y)


@tf.custom_gradient
def saturating(x):
    y = tf.tanh(x)
    return y, lambda dy: dy * (1.0 - y * y)


@tf.custom_gradient
def root(x):
    y = tf.sqrt(x)
    return y, lambda dy: 0.5 * dy / y


@tf.custom_gradient
def log_gamma_ratio(x, y):
    """log(x**y), of two arguments that broadcast."""

    def grad(dy):
        return tf.reduce_sum(dy * y / x, axis=0), tf.reduce_sum(dy * tf.math.log(x), axis=1)[
            :, None
        ]

    return y * tf.math.log(x), grad


@tf.custom_gradient
def power(x, y):
    z = x**y
    return z, lambda dy: (dy * y * x ** (y - 1.0), dy * z * tf.math.log(x))


@tf.custom_gradient
def hypotenuse(x, y):
    r = tf.sqrt(x * x + y * y)
    return r, lambda dy: (dy * x / r, dy * y / r)


@tf.custom_gradient
def angle(y, x):
    r = x * x + y * y
    return tf.atan2(y, x), lambda dy: (dy * x / r, -dy * y / r)


@tf.custom_gradient
def horner(x, c):
    """The polynomial with the coefficients c, of one number."""
    y = tf.zeros_like(x)
    for k in range(3, -1, -1):
        y = y * x + c[k]

    def grad(dy):
        powers = tf.stack([x**k for k in range(4)])
        slope = c[1] + 2.0 * c[2] * x + 3.0 * c[3] * x * x
        return dy * slope, dy * powers

    return y, grad


add(swish, V)
add(swish, np.array([0.0, 50.0, -50.0]), at="saturated")
add(gelu, V)
add(gelu, SINGLE, at="float32")
add(mish, V)
add(hard_swish, np.array([-4.0, -1.0, 0.5, 5.0]))
add(hard_swish, np.array([3.0, 1.0]), at="a kink", doubtful=("kink", "inconclusive"))
add(log_cosh, np.array([0.3, -2.0, 50.0, -300.0]))
add(huber, np.array([0.3, -0.7, 2.5, -40.0]))
add(log1mexp, np.array([-1e-3, -1.0, -30.0]))
add(relative_exponential, np.array([0.0, 1e-3, 0.5, -2.0]))
add(smooth_sign, np.array([1e-4, -2e-4, 5e-4]))
add(saturating, np.array([20.0, -0.3, 0.0], np.float32), at="float32")
add(root, np.array([1e-8, 1.0, 4.0, 1e8]), doubtful="inconclusive")
add(log_gamma_ratio, np.array([0.5, 1.0, 3.0]), np.array([[2.0], [-1.0]]))
add(power, np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 0.5]))
add(hypotenuse, np.array([3.0, 0.0, 1e6]), np.array([4.0, 2.0, 1e-3]))
add(angle, np.array([1.0, 0.0, -2.0]), np.array([1.0, 3.0, -2.0]))
add(horner, np.array(2.0), np.array([1e4, 1.0, -1e-6, 3.0]))


# Losses and the softmax family ---------------------------------------------------------------


@tf.custom_gradient
def log_sum_exp(x):
    top = tf.stop_gradient(tf.reduce_max(x, axis=-1, keepdims=True))
    y = tf.math.log(tf.reduce_sum(tf.exp(x - top), axis=-1)) + tf.squeeze(top, -1)
    return y, lambda dy: tf.expand_dims(dy, -1) * tf.nn.softmax(x)


@tf.custom_gradient
def softmax(x):
    y = tf.nn.softmax(x)
    return y, lambda dy: y * (dy - tf.reduce_sum(dy * y, axis=-1, keepdims=True))


@tf.custom_gradient
def log_softmax(x):
    y = tf.nn.log_softmax(x)
    return y, lambda dy: dy - tf.exp(y) * tf.reduce_sum(dy, axis=-1, keepdims=True)


@tf.custom_gradient
def binary_cross_entropy(logits, targets):
    loss = tf.nn.softplus(logits) - logits * targets
    return loss, lambda dy: (dy * (tf.sigmoid(logits) - targets), -dy * logits)


@tf.custom_gradient
def mean_cross_entropy(logits):
    loss = -tf.reduce_mean(tf.reduce_sum(LABELS * tf.nn.log_softmax(logits), axis=-1))
    return loss, lambda dy: dy * (tf.nn.softmax(logits) - LABELS) / 2.0


@tf.custom_gradient
def divergence(p, q):
    """KL(softmax(p), softmax(q)) of each row."""
    a, b = tf.nn.softmax(p), tf.nn.softmax(q)
    gap = tf.nn.log_softmax(p) - tf.nn.log_softmax(q)
    value = tf.reduce_sum(a * gap, axis=-1)

    def grad(dy):
        up = tf.expand_dims(dy, -1)
        return up * a * (gap - tf.expand_dims(value, -1)), up * (b - a)

    return value, grad


@tf.custom_gradient
def gaussian_nll(mean, log_scale):
    z = (V - mean) * tf.exp(-log_scale)

    def grad(dy):
        return -dy * z * tf.exp(-log_scale), dy * (1.0 - z * z)

    return 0.5 * z * z + log_scale, grad


@tf.custom_gradient
def cosine_similarity(a, b):
    p, q = tf.norm(a), tf.norm(b)
    c = tf.reduce_sum(a * b) / (p * q)

    def grad(dy):
        return dy * (b / q - c * a / p) / p, dy * (a / p - c * b / q) / q

    return c, grad


@tf.custom_gradient
def hinge(scores, signs):
    active = tf.cast(1.0 - signs * scores > 0.0, scores.dtype)
    loss = tf.reduce_sum(tf.maximum(1.0 - signs * scores, 0.0))
    return loss, lambda dy: (-dy * active * signs, -dy * active * scores)


@tf.custom_gradient
def masked_error(x):
    mask = tf.constant(np.array([1.0, 0.0, 1.0]))
    return tf.reduce_sum(mask * x * x), lambda dy: dy * 2.0 * mask * x


add(log_sum_exp, 30.0 * W)
add(softmax, W)
add(softmax, np.array([0.0, -40.0, -52.0], np.float32), at="saturated")
add(log_softmax, W.astype(np.float32), at="float32")
add(log_softmax, np.array([[0.0, 300.0, -300.0]]), at="saturated")
add(binary_cross_entropy, np.array([-300.0, 0.0, 2.0, 80.0]), np.array([0.0, 1.0, 0.3, 1.0]))
add(mean_cross_entropy, W)
add(divergence, 20.0 * W, -15.0 * W)
add(gaussian_nll, np.array([0.5, 0.0, 1.0]), np.array([0.0, -2.0, 3.0]))
add(cosine_similarity, V, np.array([1.0, 0.0, -2.0]))
add(hinge, np.array([0.3, -2.0, 3.0]), np.array([1.0, -1.0, 1.0]))
add(masked_error, np.array([1.0, 5.0, 0.0]))


# Norms, means, reductions --------------------------------------------------------------------


@tf.custom_gradient
def layer_norm(x, gain, bias):
    mean = tf.reduce_mean(x, axis=-1, keepdims=True)
    inverse = tf.math.rsqrt(tf.reduce_mean((x - mean) ** 2, axis=-1, keepdims=True) + 1e-5)
    z = (x - mean) * inverse

    def grad(dy):
        d = dy * gain
        centred = d - tf.reduce_mean(d, axis=-1, keepdims=True)
        x_grad = inverse * (centred - z * tf.reduce_mean(d * z, axis=-1, keepdims=True))
        return x_grad, tf.reduce_sum(dy * z, axis=0), tf.reduce_sum(dy, axis=0)

    return gain * z + bias, grad


@tf.custom_gradient
def rms_norm(x):
    r = tf.math.rsqrt(tf.reduce_mean(x * x, axis=-1, keepdims=True))

    def grad(dy):
        return r * dy - x * r**3 * tf.reduce_mean(dy * x, axis=-1, keepdims=True)

    return x * r, grad


@tf.custom_gradient
def unit_vector(x):
    size = tf.norm(x, axis=-1, keepdims=True)
    y = x / size
    return y, lambda dy: (dy - y * tf.reduce_sum(dy * y, axis=-1, keepdims=True)) / size


@tf.custom_gradient
def length(x):
    y = tf.sqrt(tf.reduce_sum(x * x))
    return y, lambda dy: dy * x / y


@tf.custom_gradient
def mean_of_rows(x):
    return tf.reduce_mean(x, axis=0), lambda dy: tf.broadcast_to(dy / 2.0, [2, 3])


@tf.custom_gradient
def variance(x):
    d = x - tf.reduce_mean(x)
    return tf.reduce_mean(d * d), lambda dy: dy * 2.0 * d / 3.0


@tf.custom_gradient
def largest(x):
    y = tf.reduce_max(x, axis=-1, keepdims=True)
    mask = tf.cast(tf.equal(x, y), x.dtype)
    return tf.squeeze(y, -1), lambda dy: tf.expand_dims(dy, -1) * mask


@tf.custom_gradient
def product_of_elements(x):
    def grad(dy):
        others = [x[1] * x[2], x[0] * x[2], x[0] * x[1]]
        return dy * tf.stack(others)

    return tf.reduce_prod(x), grad


@tf.custom_gradient
def ordered(x):
    order = tf.argsort(x)
    return tf.gather(x, order) ** 2, lambda dy: 2.0 * x * tf.gather(dy, tf.argsort(order))


@tf.custom_gradient
def running_sum(x):
    return tf.cumsum(x * x), lambda dy: 2.0 * x * tf.cumsum(dy[::-1])[::-1]


@tf.custom_gradient
def embedding(table):
    rows = tf.one_hot(np.array([2, 0, 2]), 3, dtype=table.dtype)
    return rows @ table, lambda dy: tf.transpose(rows) @ dy


add(layer_norm, W, np.array([1.0, 2.0, 0.5]), np.zeros(3))
add(rms_norm, np.array([[1e-6, 2e-6, -3e-6], [1.0, -2.0, 3.0]]), doubtful="inconclusive")
add(unit_vector, np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 2.0]]))
add(length, np.array([3.0, 4.0, 1e-6]))
add(mean_of_rows, W)
add(variance, np.array([1.0, 2.0, 6.0]))
add(variance, np.ones(3), at="its minimum", doubtful="inconclusive")
add(largest, W)
add(product_of_elements, np.array([2.0, 0.0, 3.0]))
add(ordered, np.array([3.0, 1.0, 2.0, -5.0]))
add(ordered, np.ones(4), at="ties", doubtful=("kink", "inconclusive"))
add(running_sum, np.array([1.0, 0.0, -2.0]))
add(embedding, S)


# Matrices and solvers ------------------------------------------------------------------------


@tf.custom_gradient
def inverse(a):
    y = tf.linalg.inv(a)
    t = tf.transpose(y)
    return y, lambda dy: -(t @ dy @ t)


@tf.custom_gradient
def log_determinant(a):
    return tf.linalg.slogdet(a)[1], lambda dy: dy * tf.transpose(tf.linalg.inv(a))


@tf.custom_gradient
def solve(a, b):
    x = tf.linalg.solve(a, b)

    def grad(dy):
        w = tf.linalg.solve(tf.transpose(a), dy)
        return -(w @ tf.transpose(x)), w

    return x, grad


@tf.custom_gradient
def quadratic(x, a):
    y = tf.linalg.matvec(a, x)

    def grad(dy):
        return dy * (y + tf.linalg.matvec(tf.transpose(a), x)), dy * x[:, None] * x[None, :]

    return tf.reduce_sum(x * y), grad


@tf.custom_gradient
def least_squares(x):
    residual = tf.linalg.matvec(S, x) - S.sum(axis=1)

    def grad(dy):
        return dy * 2.0 * tf.linalg.matvec(S.T, residual)

    return tf.reduce_sum(residual**2), grad


@tf.custom_gradient
def rosenbrock(x):
    a, b = x[0], x[1]

    def grad(dy):
        return dy * tf.stack([-2.0 * (1.0 - a) - 400.0 * a * (b - a * a), 200.0 * (b - a * a)])

    return (1.0 - a) ** 2 + 100.0 * (b - a * a) ** 2, grad


@tf.custom_gradient
def attention(q, k, v):
    scale = 1.0 / np.sqrt(3.0)
    p = tf.nn.softmax(q @ tf.transpose(k) * scale)

    def grad(dy):
        dp = dy @ tf.transpose(v)
        ds = p * (dp - tf.reduce_sum(dp * p, axis=-1, keepdims=True)) * scale
        return ds @ k, tf.transpose(ds) @ q, tf.transpose(p) @ dy

    return p @ v, grad


@tf.custom_gradient
def bilinear(x, w, y):
    z = tf.einsum("i,ij,j->", x, w, y)

    def grad(dy):
        return (
            dy * tf.linalg.matvec(w, y),
            dy * x[:, None] * y[None, :],
            dy * tf.linalg.matvec(tf.transpose(w), x),
        )

    return z, grad


@tf.custom_gradient
def newton_root(a):
    """The root of x**3 = a by Newton's method; the rule by the implicit function theorem."""
    x = tf.ones_like(a)
    for _ in range(60):
        x = x - (x**3 - a) / (3.0 * x * x)
    return x, lambda dy: dy / (3.0 * newton_root(a) ** 2)


@tf.custom_gradient
def kepler(mean):
    """The root of e - 0.3 sin(e) = mean, found in NumPy."""
    e = np.array(mean)
    for _ in range(60):
        e = mean.numpy() + 0.3 * np.sin(e)
    return tf.constant(e), lambda dy: dy / (1.0 - 0.3 * tf.cos(kepler(mean)))


@tf.custom_gradient
def recurrence(x, w):
    """h <- tanh(w h + x_k), with the rule of backpropagation through time."""
    states = [tf.zeros_like(w)]
    for k in range(3):
        states.append(tf.tanh(w * states[-1] + x[k]))

    def grad(dy):
        by_x, by_w = [], tf.zeros_like(w)
        for k in (2, 1, 0):
            d = dy * (1.0 - states[k + 1] ** 2)
            by_x.insert(0, d)
            by_w += d * states[k]
            dy = d * w
        return tf.stack(by_x), by_w

    return states[-1], grad


add(inverse, S)
add(log_determinant, S)
add(solve, S, W.T.copy())
add(quadratic, np.array([1.0, 0.0, -2.0]), S)
add(least_squares, np.ones(3), at="its minimum", doubtful="inconclusive")
add(rosenbrock, np.ones(2), at="its minimum", doubtful="inconclusive")
add(rosenbrock, np.array([-1.0, 2.0]))
add(attention, W, S, S + 1.0)
add(bilinear, np.array([1.0, -1.0]), W, V)
add(newton_root, np.array([1.0, 8.0, 0.3]))
add(kepler, np.array([0.0, 1.0, 3.0]))
add(recurrence, np.array([0.5, 0.0, 1.0]), np.array(0.8))


# Forms of rules ------------------------------------------------------------------------------

turned = tf.custom_derivatives(
    lambda x: tf.sin(2.0 * x),
    vjp=lambda dy, x: 2.0 * dy * tf.cos(2.0 * x),
    jvp=lambda way, x: 2.0 * way * tf.cos(2.0 * x),
    beyond="differentiate",
)

bessel_like = tf.custom_derivatives(
    lambda x: tf.exp(-x * x),
    lambda x: -2.0 * x * tf.exp(-x * x),
    lambda x: (4.0 * x * x - 2.0) * tf.exp(-x * x),
    beyond="differentiate",
)


@tf.custom_gradient
def nested_exponential(x):
    y = tf.exp(x)

    def first(dy):
        @tf.custom_gradient
        def slope(x, dy):
            def second(ddy):
                return ddy * dy * nested_exponential(x), ddy * nested_exponential(x)

            return dy * tf.exp(x), second

        return slope(x, dy)

    return y, first


@tf.custom_gradient
def of_a_dictionary(inputs):
    y = {"product": inputs["a"] * inputs["b"], "square": inputs["a"] ** 2}

    def grad(dy, ds):
        by_a = dy * inputs["b"] + 2.0 * ds * inputs["a"]
        return {"a": by_a, "b": dy * inputs["a"]}

    return y, grad


class Pair(NamedTuple):
    real: object
    imaginary: object


@tf.custom_gradient
def complex_square(z):
    x, y = z.real, z.imaginary

    def grad(du, dv):
        return Pair(2.0 * (du * x + dv * y), 2.0 * (dv * x - du * y))

    return Pair(x * x - y * y, 2.0 * x * y), grad


weight = tf.Variable(np.array([[1.0, 0.0], [-2.0, 0.5], [0.3, 1.0]]), name="weight")
offset = tf.Variable(np.zeros(2), name="offset")


@tf.custom_gradient
def dense(x):
    y = tf.tanh(x @ weight + offset)

    def grad(dy, variables=None):
        d = dy * (1.0 - y * y)
        gradients = {"weight": tf.transpose(x) @ d, "offset": tf.reduce_sum(d, axis=0)}
        return d @ tf.transpose(weight), [gradients[variable.name[:-2]] for variable in variables]

    return y, grad


@tf.custom_gradient
def split_in_two(x):
    def grad(da, db):
        return tf.concat([2.0 * x[:1] * da, tf.cos(x[1:]) * db], axis=0)

    return (x[:1] ** 2, tf.sin(x[1:])), grad


@tf.custom_gradient
def squared_modulus(z):
    return tf.math.real(z * tf.math.conj(z)), lambda dy: 2.0 * tf.cast(dy, z.dtype) * z


@tf.custom_gradient
def analytic_cube(z):
    return z**3, lambda dy: dy * tf.math.conj(3.0 * z * z)


add(turned, V, at="both products")
add(bessel_like, np.array([0.0, 1.0, -0.5]), at="declared orders", order=3)
add(nested_exponential, V, order=3)
add(of_a_dictionary, {"a": V, "b": V + 1.0})
add(complex_square, Pair(np.array([1.0, 0.0]), np.array([2.0, -1.0])))
add(dense, W)
add(split_in_two, V)
add(squared_modulus, np.array([1.0 + 2.0j, -0.5j, 0.0]))
add(analytic_cube, np.array([1.0 + 2.0j, -0.5 + 0.1j]))


# Estimators ----------------------------------------------------------------------------------

NOISE = np.array([0.3, -1.1, 0.8])


@tf.custom_gradient
def reparametrised(mean, log_scale):
    deviation = tf.exp(log_scale) * NOISE
    return mean + deviation, lambda dy: (dy, dy * deviation)


@tf.custom_gradient
def gumbel_softmax(logits):
    y = tf.nn.softmax((logits + NOISE) / 0.5)
    return y, lambda dy: y * (dy - tf.reduce_sum(dy * y)) / 0.5


@tf.custom_gradient
def score_function(logits):
    p, rewards = tf.nn.softmax(logits), tf.constant(np.array([1.0, 2.0, -1.0]))
    value = tf.reduce_sum(p * rewards)
    return value, lambda dy: dy * p * (rewards - value)


add(reparametrised, V, np.array([0.0, -3.0, 2.0]), at="a fixed noise")
add(gumbel_softmax, V, at="a fixed noise")
add(score_function, V, at="a baseline")


# Deliberate rules, declared ------------------------------------------------------------------


@tf.custom_gradient
def sign_activation(x):
    return tf.sign(x), lambda dy: dy * tf.where(tf.abs(x) < 1.0, 1.0 - tf.abs(x), tf.zeros_like(x))


def triangle(x):
    near = tf.where(x > 0.0, x - 0.5 * x * x, x + 0.5 * x * x)
    return tf.where(tf.abs(x) < 1.0, near, 0.5 * tf.sign(x))


@tf.custom_gradient
def reverse_gradient(x):
    return x * 1.0, lambda dy: -0.1 * dy


add(sign_activation, np.array([0.3, -0.6, 2.0]), against=triangle, at="its surrogate")
add(reverse_gradient, np.zeros(3), against=lambda x: -0.1 * x, at="its surrogate")
