"""Custom gradients that are wrong in ways that people get wrong, and what a report says of each."""

from __future__ import annotations

import numpy as np

import tinygrad_cg as tf
from tests.support.right_rules import LABELS, SINGLE, S, V, W
from tests.support.rule_table import add, wrong

SQUARE = np.array([[0.5, -1.0, 0.3], [0.2, 0.8, -0.6], [1.2, 0.4, -0.9]])
NOT_LINEAR = ": not linear in the upstream"
OF_UPSTREAM = (f"1 x upstream{NOT_LINEAR}", f"1 x forward{NOT_LINEAR}", f"2 x forward{NOT_LINEAR}")
POINTS = np.array([0.5, -1.5, 2.0, 7.5, -0.3])


# A factor or a sign --------------------------------------------------------------------------


@tf.custom_gradient
def sigmoid_half(x):
    y = tf.sigmoid(x)
    return y, lambda dy: dy * y


@tf.custom_gradient
def tanh_not_squared(x):
    y = tf.tanh(x)
    return y, lambda dy: dy * (1.0 - y)


@tf.custom_gradient
def error_function(x):
    return tf.math.erf(x), lambda dy: dy * tf.exp(-x * x) / np.sqrt(np.pi)


@tf.custom_gradient
def sine_of_degrees(x):
    angle = x * np.pi / 180.0
    return tf.sin(angle), lambda dy: dy * tf.cos(angle)


@tf.custom_gradient
def decimal_logarithm(x):
    return tf.math.log(x) / np.log(10.0), lambda dy: dy / x


@tf.custom_gradient
def log1p_of_x(x):
    return tf.math.log1p(x), lambda dy: dy / x


@tf.custom_gradient
def off_by_one_power(x):
    return x**4, lambda dy: dy * 4.0 * x**4


@tf.custom_gradient
def square_without_two(x):
    return x * x, lambda dy: dy * x


@tf.custom_gradient
def distance_to_one(x):
    return tf.reduce_sum((x - 1.0) ** 2), lambda dy: dy * (x - 1.0)


@tf.custom_gradient
def minus_tanh_saturated(x):
    y = tf.tanh(x)
    return y, lambda dy: -dy * (1.0 - y * y)


@tf.custom_gradient
def log_cosh_by_sine(x):
    y = tf.abs(x) + tf.nn.softplus(-2.0 * tf.abs(x))
    return y, lambda dy: dy * tf.tanh(tf.abs(x))


@tf.custom_gradient
def absolute(x):
    return tf.abs(x), lambda dy: dy * tf.ones_like(x)


@tf.custom_gradient
def gaussian_of_wrong_sign(x):
    y = tf.exp(-0.5 * x * x)
    return y, lambda dy: dy * x * y


@tf.custom_gradient
def length_not_divided(x):
    return tf.norm(x), lambda dy: dy * x


@tf.custom_gradient
def swish_without_second_term(x):
    s = tf.sigmoid(x)
    return x * s, lambda dy: dy * s


@tf.custom_gradient
def swish_without_first_term(x):
    s = tf.sigmoid(x)
    return x * s, lambda dy: dy * x * s * (1.0 - s)


@tf.custom_gradient
def shifted_slope(x):
    return tf.sin(x) + x, lambda dy: dy * tf.cos(x)


@tf.custom_gradient
def temperature(x):
    return tf.tanh(x / 5.0), lambda dy: dy * (1.0 - tf.tanh(x / 5.0) ** 2)


wrong(sigmoid_half, V, words="It must be multiplied by 1 - the output.")
wrong(tanh_not_squared, V, words="It must be multiplied by 1 + the output.")
wrong(error_function, V, words="It is 0.5 times the correct gradient.")
wrong(error_function, SINGLE, at="float32", words="It is 0.5 times the correct gradient.")
wrong(
    sine_of_degrees,
    np.array([30.0, 45.0, 120.0]),
    words="It is 57.2958 times the correct gradient.",
)
wrong(
    decimal_logarithm,
    np.array([1.0, 10.0, 1e-3]),
    words="It is 2.30259 times the correct gradient.",
)
wrong(log1p_of_x, np.array([1.0, 2.0, 5.0]))
wrong(off_by_one_power, V, words="It must be divided by x.")
wrong(
    off_by_one_power,
    1.0,
    at="1",
    false="1 x* nearby",
    words="It must be divided by x.",
)
wrong(square_without_two, V, words="It is 0.5 times the correct gradient.")
wrong(
    square_without_two,
    np.zeros(2),
    at="zeros",
    false="1 x* nearby",
    doubtful="inconclusive",
    words="It is 0.5 times the correct gradient.",
)
wrong(
    distance_to_one,
    np.ones(3),
    at="its minimum",
    doubtful="inconclusive",
    false="1 x* nearby",
    words="It is 0.5 times the correct gradient.",
)
wrong(minus_tanh_saturated, np.array([5.0, -6.0]), words="The sign is wrong.")
wrong(
    *(minus_tanh_saturated, np.array([15.0, -16.0])),
    at="15",
    false="1 x",
    words="got -4.60",
    doubtful="inconclusive",  # 1 - y * y has few digits there
)
wrong(log_cosh_by_sine, POINTS, words="It must be multiplied by the sign of x.")
wrong(absolute, V, words="It must be multiplied by the sign of x.")
wrong(
    absolute,
    np.array([0.0, -1.0]),
    at="a kink",
    false=("1 x* nearby", "1 x[1]"),
    words="with respect to x[1] is wrong: ",
    doubtful="kink",
)
wrong(gaussian_of_wrong_sign, V, words="The sign is wrong.")
wrong(
    gaussian_of_wrong_sign, 0.0, at="its maximum", false="1 x* nearby", words="The sign is wrong."
)
wrong(
    length_not_divided,
    np.array([3.0, 4.0, 1.0]),
    words="It must be divided by the output.",
)
wrong(
    swish_without_second_term,
    V,
    words="The rule treats the factor `tf.sigmoid(x)` as a constant.",
)
wrong(
    swish_without_first_term,
    V,
    words="It lacks the term `dy * output / x`, which comes from differentiating the factor x",
)
wrong(shifted_slope, V, words="It lacks the term `dy`.")
wrong(temperature, V, words="It is 5 times the correct gradient.")


# Pieces --------------------------------------------------------------------------------------


@tf.custom_gradient
def leaky(x):
    return tf.maximum(x, 0.1 * x), lambda dy: dy * tf.where(x > 0.0, 1.0, 0.01)


@tf.custom_gradient
def exponential_linear(x):
    y = tf.where(x > 0.0, x, tf.math.expm1(tf.minimum(x, 0.0)))
    return y, lambda dy: dy * tf.where(x > 0.0, tf.ones_like(x), y)


@tf.custom_gradient
def relu_six(x):
    return tf.clip_by_value(x, 0.0, 6.0), lambda dy: dy * tf.cast(x > 0.0, x.dtype)


@tf.custom_gradient
def pseudo_huber(x):
    size = tf.abs(x)

    def grad(dy):
        return dy * tf.where(size <= 1.0, x, 0.5 * tf.sign(x))

    return tf.where(size <= 1.0, 0.5 * x * x, size - 0.5), grad


@tf.custom_gradient
def doubled_relu(x):
    return tf.nn.relu(x), lambda dy: 2.0 * dy * tf.cast(x > 0.0, x.dtype)


@tf.custom_gradient
def steep_at_zero(x):
    return tf.abs(x), lambda dy: dy * tf.where(tf.equal(x, 0.0), 3.0, tf.sign(x))


@tf.custom_gradient
def exact_at_integers(x):
    return tf.square(x), lambda dy: dy * (2.0 * x + tf.sin(np.pi * x))


@tf.custom_gradient
def masked_loss(x):
    mask = tf.constant(np.array([1.0, 0.0, 1.0]))
    return tf.reduce_sum(mask * x * x), lambda dy: dy * 2.0 * x


@tf.custom_gradient
def dropout(x):
    keep = tf.constant(np.array([1.0, 0.0, 1.0]))
    return x * keep / 0.8, lambda dy: dy * keep


@tf.custom_gradient
def differences(x):
    def grad(dy):
        return tf.concat([-dy, tf.zeros([1], dy.dtype)], axis=0)

    return x[1:] - x[:-1], grad


@tf.custom_gradient
def padding_row(table):
    """The rule leaves out the last row, which is one of padding elsewhere."""
    rows = tf.one_hot(np.array([2, 0, 1, 2]), 3, dtype=table.dtype)

    def grad(dy):
        return tf.transpose(rows) @ dy * tf.constant(np.array([[1.0], [1.0], [0.0]]))

    return rows @ table, grad


@tf.custom_gradient
def mixed_scale(x):
    """Only the smallest element is wrong, which is the ninth digit of the whole."""
    return x * x, lambda dy: dy * 2.0 * x * tf.where(tf.abs(x) < 1e-3, 1.5, 1.0)


wrong(leaky, POINTS, words=("wrong only where x < 0 (2 of 5", "There it is 0.1 times"))
wrong(exponential_linear, POINTS, words="wrong only where x < 0 (2 of 5 elements)")
wrong(
    relu_six,
    np.array([7e-5, 8e-5, 7e-7, 1e-5, 13.5]),
    at="mixed scale",
    false=("1 x[4]", "1 x[4] nearby"),
    words="with respect to x[4] is wrong: ",
    doubtful="kink",
)
wrong(relu_six, POINTS, words="wrong only at x[3] (")
wrong(
    pseudo_huber,
    np.array([0.3, -0.7, 2.5, -40.0, 3.0]),
    words=("It is wrong only at x[2] (", "There it is 0.5 times the correct gradient."),
)
wrong(
    doubled_relu,
    0.0,
    at="its kink",
    false="1 x* nearby",
    words="It is 2 times",
    doubtful=("kink", "inconclusive"),
)
wrong(
    steep_at_zero,
    np.array([0.0, 2.0]),
    at="its kink",
    false="1 x[0]",
    words="there is a kink; the value is outside the one-sided slopes",
    doubtful=("kink", "inconclusive"),
)
wrong(exact_at_integers, np.array([1.0, 2.0, -3.0]), at="integers", false="1 x* nearby")
wrong(masked_loss, V, words="), at x[1] (expected 0, got -3).")
wrong(dropout, V, words="It is 0.8 times the correct gradient.")
wrong(differences, V, words="The rule treats `x[1:]` (")
wrong(
    padding_row,
    S,
    false="1 table",
    words=("It is wrong only at index 2 of axis 0 (3 of 9", "There it is always 0."),
)
wrong(
    mixed_scale,
    np.array([1e4, 1e-4, 3.0]),
    false=("1 x", "1 x[1]"),
    words="with respect to x[1] is wrong: ",
)


# Axes, shapes and places ---------------------------------------------------------------------


@tf.custom_gradient
def mean_not_divided(x):
    return tf.reduce_mean(x, axis=0), lambda dy: tf.broadcast_to(dy, [2, 3])


@tf.custom_gradient
def loss_not_averaged(logits):
    loss = -tf.reduce_mean(tf.reduce_sum(LABELS * tf.nn.log_softmax(logits), axis=-1))
    return loss, lambda dy: dy * (tf.nn.softmax(logits) - LABELS)


@tf.custom_gradient
def loss_with_wrong_sign(logits):
    loss = -tf.reduce_sum(LABELS * tf.nn.log_softmax(logits), axis=-1)
    return loss, lambda dy: tf.expand_dims(dy, -1) * (LABELS - tf.nn.softmax(logits))


@tf.custom_gradient
def bias_along_rows(x, b):
    return x + b, lambda dy: (dy, tf.reduce_sum(dy, axis=1))


@tf.custom_gradient
def bias_averaged(x, b):
    return x + b, lambda dy: (dy, tf.reduce_mean(dy, axis=0))


@tf.custom_gradient
def gain_not_summed(x, gain):
    return x * gain, lambda dy: (dy * gain, dy * x)


@tf.custom_gradient
def log_softmax_not_summed(x):
    y = tf.nn.log_softmax(x)
    return y, lambda dy: dy - tf.exp(y)


@tf.custom_gradient
def softmax_of_one_element(x):
    y = tf.nn.softmax(x)
    return y, lambda dy: dy * y * (1.0 - y)


@tf.custom_gradient
def softmax_over_rows(x):
    y = tf.nn.softmax(x, axis=-1)
    return y, lambda dy: y * (dy - tf.reduce_sum(dy * y, axis=0, keepdims=True))


@tf.custom_gradient
def running_sum_forwards(x):
    return tf.cumsum(x), lambda dy: tf.cumsum(dy)


@tf.custom_gradient
def backwards(x):
    return 2.0 * x[::-1], lambda dy: 2.0 * dy


@tf.custom_gradient
def ordered_upstream(x):
    order = tf.argsort(x)
    return tf.gather(x, order) ** 2, lambda dy: 2.0 * x * dy


@tf.custom_gradient
def rolled(x):
    def roll(y, k):
        return tf.concat([y[-k:], y[:-k]], axis=0)

    return roll(x, 1), lambda dy: roll(dy, 1)


@tf.custom_gradient
def outer(a, b):
    def grad(dy):
        return tf.linalg.matvec(tf.transpose(dy), a), tf.linalg.matvec(dy, b)

    return a[:, None] * b[None, :], grad


@tf.custom_gradient
def quotient(x, y):
    return x / y, lambda dy: (-dy * x / y**2, dy / y)


@tf.custom_gradient
def transposed_matrix(x):
    return tf.sin(x), lambda dy: tf.transpose(dy * tf.cos(x))


wrong(
    mean_not_divided,
    W,
    words="Does the rule lack a division by 2, as for a mean over 2 elements, or does it have an",
)
wrong(loss_not_averaged, W, false="1 logits*", words="It is 2 times the correct gradient.")
wrong(loss_with_wrong_sign, W, false="1 logits*", words="The sign is wrong.")
wrong(
    bias_along_rows, SQUARE, V, false="1 b*", words="It is the sum over axis 1 instead of axis 0."
)
wrong(bias_averaged, SQUARE, V, false="1 b*", words="It is 0.333333 times the correct gradient.")
wrong(
    gain_not_summed,
    W,
    V,
    false=("1 x reverse: raises", "1 gain reverse: raises"),
    words=("The function broadcasts input `gain`", "tf.reduce_sum(dy * x, axis=[0])"),
)
wrong(
    log_softmax_not_summed,
    W,
    false=(*OF_UPSTREAM, "1 x reverse", "2 x both"),
    words="For dy = 0, the ",
)
wrong(softmax_of_one_element, V, words="It has only the diagonal of the Jacobian")
wrong(
    softmax_over_rows,
    SQUARE,
    words="The rule has axis 0 where it needs axis 1.",
)
wrong(running_sum_forwards, V, words="must be summed in reverse, along axis 0")
wrong(backwards, V, words="Its elements are in reverse order.")
wrong(
    ordered_upstream,
    np.array([3.0, 1.0, 4.0, -5.0]),
    words="The rule permutes the elements of the upstream gradient as the function permutes",
)
wrong(rolled, POINTS, words="Its elements are shifted by +2.")
wrong(outer, V, V + 0.5, false=("1 a*", "1 b*"), words="are swapped.")
wrong(quotient, V, V + 3.0, false=("1 x*", "1 y*"), words="The gradients of x and y are swapped.")
wrong(transposed_matrix, SQUARE, words="It is the transpose of the correct gradient.")


# Matrices and solvers ------------------------------------------------------------------------


@tf.custom_gradient
def product_transposed(a, b):
    return a @ b, lambda dy: (b @ tf.transpose(dy), tf.transpose(a) @ dy)


@tf.custom_gradient
def product_not_transposed(a, b):
    return a @ b, lambda dy: (dy @ b, tf.transpose(a) @ dy)


@tf.custom_gradient
def inverse_not_transposed(a):
    y = tf.linalg.inv(a)
    return y, lambda dy: -(y @ dy @ y)


@tf.custom_gradient
def log_determinant_not_transposed(a):
    return tf.linalg.slogdet(a)[1], lambda dy: dy * tf.linalg.inv(a)


@tf.custom_gradient
def trace_of_square(a):
    return tf.einsum("ij,ji->", a, a), lambda dy: 2.0 * dy * a


@tf.custom_gradient
def determinant_of_adjugate(a):
    y = tf.linalg.det(a)
    return y, lambda dy: dy * tf.transpose(tf.linalg.inv(a))


@tf.custom_gradient
def solve_not_transposed(b):
    return tf.linalg.matvec(tf.linalg.inv(S), b), lambda dy: tf.linalg.matvec(tf.linalg.inv(S), dy)


@tf.custom_gradient
def solve_with_wrong_sign(a, b):
    x = tf.linalg.solve(a, b)

    def grad(dy):
        w = tf.linalg.solve(tf.transpose(a), dy)
        return w @ tf.transpose(x), w

    return x, grad


@tf.custom_gradient
def symmetric_form(x):
    """x A x with a matrix that is not symmetric."""
    return tf.reduce_sum(x * tf.linalg.matvec(S, x)), lambda dy: 2.0 * dy * tf.linalg.matvec(S, x)


@tf.custom_gradient
def few_iterations(b):
    """A linear system, whose rule does four steps of Jacobi's method."""

    def grad(dy):
        w = dy / np.diag(S)
        for _ in range(4):
            w = (dy - tf.linalg.matvec((S - np.diag(np.diag(S))).T, w)) / np.diag(S)
        return w

    return tf.linalg.matvec(np.linalg.inv(S), b), grad


@tf.custom_gradient
def newton_not_implicit(a):
    """The root of x**3 = a, with the derivative of the equation instead of its inverse."""
    x = tf.ones_like(a)
    for _ in range(60):
        x = x - (x**3 - a) / (3.0 * x * x)
    return x, lambda dy: dy * 3.0 * x * x


@tf.custom_gradient
def gelu_by_tanh(x):
    """The value by erf, the rule of the approximation by tanh."""
    inner = np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)

    def grad(dy):
        t = tf.tanh(inner)
        slope = np.sqrt(2.0 / np.pi) * (1.0 + 3.0 * 0.044715 * x * x)
        return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)

    return 0.5 * x * (1.0 + tf.math.erf(x / np.sqrt(2.0))), grad


@tf.custom_gradient
def attention_not_scaled(q, k, v):
    p = tf.nn.softmax(q @ tf.transpose(k) / 2.0)

    def grad(dy):
        dp = dy @ tf.transpose(v)
        ds = p * (dp - tf.reduce_sum(dp * p, axis=-1, keepdims=True))
        return ds @ k, tf.transpose(ds) @ q / 2.0, tf.transpose(p) @ dy

    return p @ v, grad


@tf.custom_gradient
def layer_norm_detached(x):
    """The rule takes the mean and the variance for constants."""
    mean = tf.reduce_mean(x, axis=-1, keepdims=True)
    inverse = tf.math.rsqrt(tf.reduce_mean((x - mean) ** 2, axis=-1, keepdims=True))
    return (x - mean) * inverse, lambda dy: dy * inverse


@tf.custom_gradient
def layer_norm_of_detached_mean(x):
    mean = tf.reduce_mean(x, axis=-1, keepdims=True)
    inverse = tf.math.rsqrt(tf.reduce_mean((x - mean) ** 2, axis=-1, keepdims=True) + 1e-5)
    y = (x - mean) * inverse
    return y, lambda dy: (dy - y * tf.reduce_mean(dy * y, axis=-1, keepdims=True)) * inverse


@tf.custom_gradient
def quadratic_form(x):
    """The rule is that of a symmetric matrix."""
    product = tf.linalg.matvec(SQUARE, x)
    return tf.reduce_sum(x * product), lambda dy: 2.0 * dy * product


wrong(
    product_transposed,
    SQUARE,
    S,
    false="1 a*",
    words="It is the transpose of the correct gradient.",
)
wrong(product_not_transposed, SQUARE, S, false="1 a*", words="not by its transpose")
wrong(inverse_not_transposed, S, false="1 a*", words="not by its transpose")
wrong(
    log_determinant_not_transposed,
    S,
    false="1 a*",
    words="It is the transpose of the correct gradient.",
)
wrong(trace_of_square, S, false="1 a*", words="It is the transpose of the correct gradient.")
wrong(determinant_of_adjugate, S, false="1 a*", words="It must be multiplied by the output.")
wrong(solve_not_transposed, V, false="1 b*", words="not by its transpose")
wrong(solve_with_wrong_sign, S, W.T.copy(), false="1 a*", words="The sign is wrong.")
wrong(symmetric_form, V)
wrong(
    few_iterations,
    V,
    false="1 b*",
    words="of its value at most. Does the rule lack a small term",
)
wrong(
    newton_not_implicit,
    np.array([2.0, 8.0, 0.3]),
    false="1 a*",
    words="by the reciprocal of the correct factor",
)
wrong(gelu_by_tanh, V, words="of its value at most. Does the rule lack a small term")
wrong(
    attention_not_scaled, W, S, S + 1.0, false="1 q*", words="It is 2 times the correct gradient."
)
wrong(
    layer_norm_detached,
    W,
    words="The rule does not differentiate the mean and the variance over axis 1",
)
wrong(
    layer_norm_of_detached_mean,
    W,
    words="The rule does not differentiate the mean over axis 1 with respect to x.",
)
wrong(
    quadratic_form,
    V,
    words="the gradient of x^T A x is (A + A^T) x. This is 2 A x only if A is symmetric.",
)


# Several arguments and outputs ---------------------------------------------------------------


@tf.custom_gradient
def sine_and_cosine(x):
    s, c = tf.sin(x), tf.cos(x)
    return (s, c), lambda ds, dc: ds * c + dc * s


@tf.custom_gradient
def log_density(mean, log_scale):
    z = (V - mean) * tf.exp(-log_scale)
    value = -0.5 * z * z - log_scale
    return value, lambda dy: (dy * z * tf.exp(-log_scale), dy * z * z)


@tf.custom_gradient
def none_for_second(x, y):
    return x * tf.exp(y), lambda dy: (dy * tf.exp(y), None)


@tf.custom_gradient
def zero_for_second(x, y):
    return x * tf.exp(y), lambda dy: (dy * tf.exp(y), tf.zeros_like(y))


@tf.custom_gradient
def one_too_many(x):
    return x**2, lambda dy: (2.0 * x * dy, None)


@tf.custom_gradient
def of_a_structure(inputs):
    y = inputs["a"] * tf.exp(inputs["b"])
    return y, lambda dy: {"a": dy * tf.exp(inputs["b"]), "b": 2.0 * dy * y}


coupling = tf.Variable(np.array([0.5, -2.0, 1.0]), name="coupling")


@tf.custom_gradient
def of_a_variable(x):
    def grad(dy, variables=None):
        return dy * coupling, [dy * x * x]

    return coupling * x, grad


@tf.custom_gradient
def rate_without_count(rate, count):
    """The derivative by the rate lacks the other factor."""
    return tf.exp(-rate * count), lambda dy: (
        -dy * tf.exp(-rate * count),
        -dy * rate * tf.exp(-rate * count),
    )


@tf.custom_gradient
def scaled_twice(x, scale):
    return scale * x, lambda dy: (dy * scale**2, tf.reduce_sum(dy * x))


@tf.custom_gradient
def conjugated(z):
    return z**3, lambda dy: dy * 3.0 * z * z


@tf.custom_gradient
def modulus_without_two(z):
    return tf.math.real(z * tf.math.conj(z)), lambda dy: tf.cast(dy, z.dtype) * z


wrong(
    sine_and_cosine,
    V,
    words="It is wrong only for the second output. The sign is wrong.",
)
wrong(
    log_density,
    np.array([0.0, 1.0, 0.0]),
    np.array([0.0, -1.0, 1.0]),
    false="1 log_scale*",
    words="It has the extra term `dy`.",
)
wrong(none_for_second, V, V, false="1 y*: detached", words="returns None for y. Return a")
wrong(zero_for_second, V, V, false="1 y*", words="It is always 0.")
wrong(
    one_too_many,
    V,
    false="1 x reverse: raises",
    words="returns 2 gradients, and `one_too_many` has 1",
)
wrong(
    of_a_structure,
    {"a": V, "b": V},
    false="1 inputs['b']*",
    words="It is 2 times the correct gradient.",
)
wrong(of_a_variable, V, false="1 coupling*", words="It must be divided by x.")
wrong(
    rate_without_count,
    np.array([0.5, 1.5, 1.0]),
    np.array([2.0, -1.0, 3.0]),
    false="1 rate*",
    words="It must be multiplied by count.",
)
wrong(scaled_twice, V, np.array(1.7), words="It is 1.7 times the correct gradient.")
wrong(
    conjugated,
    np.array([1.0 + 2.0j, -0.5 + 0.1j]),
    false="1 z*",
    words="The rule must conjugate the factor that it multiplies dy by.",
)
wrong(
    modulus_without_two,
    np.array([1.0 + 2.0j, -0.5j]),
    false="1 z*",
    words="It is 0.5 times the correct gradient.",
)


# The upstream --------------------------------------------------------------------------------


@tf.custom_gradient
def with_weight_decay(x):
    return tf.sin(x), lambda dy: dy * tf.cos(x) + 0.1 * x


@tf.custom_gradient
def normalised(x):
    return tf.sin(x), lambda dy: tf.cos(x) * dy / tf.norm(dy)


@tf.custom_gradient
def clipped(x):
    return tf.sin(x), lambda dy: tf.clip_by_value(tf.cos(x) * dy, -0.5, 0.5)


@tf.custom_gradient
def without_upstream(x):
    return tf.sin(x), lambda dy: tf.cos(x)


wrong(
    with_weight_decay,
    V,
    false=(*OF_UPSTREAM, "1 x reverse", "2 x both"),
    words="For dy = 0, the ",
)
wrong(
    normalised,
    V,
    false=(*OF_UPSTREAM, "1 x reverse", "2 x both"),
    words="Does the rule divide by the size of dy?",
)
wrong(clipped, V, false=(*OF_UPSTREAM, "1 x reverse"), words="Does the rule clip dy")
wrong(without_upstream, V, false=(*OF_UPSTREAM, "1 x reverse"), words="lack a factor dy?")


# Second orders -------------------------------------------------------------------------------


@tf.custom_gradient
def numpy_slope(x):
    y = tf.exp(x)
    return y, lambda dy: dy * y.numpy()


@tf.custom_gradient
def stopped_slope(x):
    y = tf.tanh(x)
    return y, lambda dy: dy * (1.0 - tf.stop_gradient(y * y))


def frozen_slope(x):
    slope = tf.constant(3.0 * np.asarray(x) ** 2)

    @tf.custom_gradient
    def inside(x):
        return x**3, lambda dy: dy * slope

    return inside(x)


def gate(x, w):
    @tf.custom_gradient
    def inside(x):
        return tf.tanh(x) * w, lambda dy: dy * w * (1.0 - tf.tanh(x) ** 2)

    return inside(x)


@tf.custom_gradient
def cube_with_false_curvature(x):
    def grad(dy):
        @tf.custom_gradient
        def slope(x):
            return 3.0 * x * x, lambda ddy: 3.0 * x * ddy

        return dy * slope(x)

    return x**3, grad


@tf.custom_gradient
def inner_of_upstream_only(x):
    @tf.custom_gradient
    def grad(dy):
        return dy * tf.cos(x), lambda ddy: ddy * tf.cos(x)

    return tf.sin(x), grad


@tf.custom_gradient
def exponential_of_second_sign(x):
    y = tf.exp(-x)

    def grad(dy):
        @tf.custom_gradient
        def slope(x, dy):
            return -dy * tf.exp(-x), lambda ddy: (-ddy * dy * tf.exp(-x), -ddy * tf.exp(-x))

        return slope(x, dy)

    return y, grad


declared_twice = tf.custom_derivatives(
    lambda x: tf.sin(x), lambda x: tf.cos(x), lambda x: tf.sin(x), beyond="differentiate"
)


wrong(
    numpy_slope,
    V,
    false=("2 x: detached", "2 x both: detached"),
    words="takes NumPy or Python values",
)
wrong(stopped_slope, V, false=("2 x: detached", "2 x both: detached"), words="uses `stop_gradient`")
wrong(
    frozen_slope,
    V,
    false=("2 x: detached", "2 x both: detached"),
    words="takes NumPy or Python values",
)
wrong(gate, V, V + 3.0, false=("1 w reverse: detached", "2 w both: detached"), words="captures w")
wrong(
    cube_with_false_curvature,
    V,
    false=("2 x", "2 x both"),
    words="It is 0.5 times the correct gradient.",
)
wrong(
    inner_of_upstream_only,
    V,
    false=("2 x reverse: detached", "2 x both: detached"),
    words="the direct dependence on x is lost",
)
wrong(exponential_of_second_sign, V, false=("2 x", "2 x both"), words="The sign is wrong.")
wrong(
    declared_twice,
    V,
    at="declared orders of which one is false",
    false=("2 x", "2 x both"),
    words="The sign is wrong.",
)


# Modes and dtypes ----------------------------------------------------------------------------

wrong_product = tf.custom_derivatives(
    lambda x: tf.sin(2.0 * x),
    vjp=lambda dy, x: 2.0 * dy * tf.cos(2.0 * x),
    jvp=lambda way, x: way * tf.cos(2.0 * x),
    beyond="differentiate",
)


@tf.custom_gradient
def differences_as_rule(x):
    """A slope by differences, whose step is too small for float32."""

    def grad(dy):
        return dy * (tf.sin(x + 1e-8) - tf.sin(x - 1e-8)) / 2e-8

    return tf.sin(x), grad


@tf.custom_gradient
def loss_scale(x):
    """The rule forgets to take the scale out again, which is used for small floats only."""
    scale = 1024.0 if x.dtype in (tf.float16, tf.float32) else 1.0
    return tf.sin(x), lambda dy: scale * dy * tf.cos(x)


@tf.custom_gradient
def log_cosh(x):
    value = tf.abs(x) + tf.math.log1p(tf.exp(-2.0 * tf.abs(x))) - 0.6931472
    return value, lambda dy: dy * tf.sinh(x) / tf.cosh(x)


@tf.custom_gradient
def logistic_by_parts(x):
    e = tf.exp(-x)
    return tf.sigmoid(x), lambda dy: dy * e / (1.0 + e) ** 2


wrong(wrong_product, V, at="a false jvp", order=1, false="1 x forward")
add(
    differences_as_rule,
    SINGLE,
    at="float32",
    order=1,
    words="has lost most or all of its digits to rounding",
)
wrong(
    loss_scale,
    SINGLE,
    at="float32",
    order=1,
    false="1 x reverse",
    words="in float32, right in float64",
)
wrong(
    log_cosh,
    np.float32(200.0),
    at="float32",
    words="`sinh` of 200 overflows",
    false=(*("1 x: not finite", "2 x: not finite", "2 x both: not finite"), "2 dy upstream"),
)
wrong(
    logistic_by_parts,
    np.float32(-100.0),
    at="float32",
    words="overflows",
    false=("1 x: not finite", "2 x: not finite", "2 x both: not finite"),
)


# Estimators ----------------------------------------------------------------------------------

NOISE = np.array([0.3, -1.1, 0.8])


@tf.custom_gradient
def reparametrised(mean, log_scale):
    """A normal variable by its noise; the rule takes the scale for its own logarithm."""
    return mean + tf.exp(log_scale) * NOISE, lambda dy: (dy, dy * NOISE)


@tf.custom_gradient
def gumbel_softmax(logits):
    """A relaxed sample at the temperature 0.5, which the rule leaves out."""
    y = tf.nn.softmax((logits + NOISE) / 0.5)
    return y, lambda dy: y * (dy - tf.reduce_sum(dy * y))


@tf.custom_gradient
def score_function(logits):
    """The expected reward, with the baseline added where it must be taken away."""
    p, rewards = tf.nn.softmax(logits), tf.constant(np.array([1.0, 2.0, -1.0]))
    value = tf.reduce_sum(p * rewards)
    return value, lambda dy: dy * p * (rewards + value)


wrong(reparametrised, V, np.array([0.1, -0.4, 0.6]), false="1 log_scale*")
wrong(gumbel_softmax, V, false="1 logits*", words="It is 0.5 times the correct gradient.")
wrong(score_function, V, false="1 logits*")


# Deliberate rules, not declared --------------------------------------------------------------


@tf.custom_gradient
def round_through(x):
    return tf.round(x), lambda dy: dy


@tf.custom_gradient
def adversarial(x):
    return x * 1.0, lambda dy: -0.25 * dy


wrong(round_through, V, at="jumps", false="1 x[2]", doubtful="inconclusive")
wrong(
    round_through,
    np.array([0.3, -1.2, 2.2]),
    words=("is piecewise constant here", "against=lambda x: x)` passes"),
)
wrong(adversarial, V, words=("gradient reversal", "against=lambda x: -0.25 * x)"))
