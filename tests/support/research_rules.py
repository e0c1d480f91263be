"""Custom gradients as research code writes them: right ones, and ones with a typical mistake.

`RESEARCH` is the table. A wrong rule states its mistake in plain words, and the sentence of the
report that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

import tinygrad_cg as tf


class ResearchRule(NamedTuple):
    """A function with a rule, and where it is checked.

    `mistake` is what is wrong with the rule, from order `order` on; empty for a right rule. `said`
    is what the report says of it after the numbers, without the lines of the source: empty where
    it names no cause. `has_code` says whether the report offers corrected code.
    """

    f: Callable[..., Any]
    args: tuple
    mistake: str = ""
    said: str = ""
    has_code: bool = False
    order: int = 1
    options: Mapping[str, Any] = MappingProxyType({})


RESEARCH: dict[str, ResearchRule] = {}


def right(f: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Enter a right rule into the table."""
    assert f.__name__ not in RESEARCH, f.__name__
    RESEARCH[f.__name__] = ResearchRule(f, args, options=options)


def wrong(
    f: Callable[..., Any],
    *args: Any,
    said: str = "",
    has_code: bool = True,
    order: int = 1,
    **options: Any,
) -> None:
    """Enter a wrong rule, whose docstring says what is wrong, into the table."""
    assert f.__name__ not in RESEARCH, f.__name__
    assert f.__doc__, f.__name__
    RESEARCH[f.__name__] = ResearchRule(f, args, f.__doc__, said, has_code, order, options)


RNG = np.random.default_rng(7)
X3, X4 = np.array([0.5, -1.5, 2.0]), np.array([0.4, -1.3, 0.9, 1.7])
PROBABILITIES = np.array([0.2, 0.7, 0.4])
TARGETS = tf.constant(np.array([1.0, 0.0, 1.0]))
MATRIX = np.array([[2.0, 0.3, -0.4], [0.1, 1.5, 0.2], [-0.3, 0.4, 3.0]])
BATCH = RNG.normal(size=(4, 3))
CODES = tf.constant(np.array([[0.0, 1.0], [1.0, 0.0], [-1.0, -1.0]]))
Z = np.array([1.0 + 2.0j, 0.3 - 1.0j, -0.7 + 0.4j, 1.5j])


# Losses --------------------------------------------------------------------------------------


@tf.custom_gradient
def focal_loss(p):
    weight = (1.0 - p) ** 2
    slope = 2.0 * (1.0 - p) * tf.math.log(p) - weight / p
    return -weight * tf.math.log(p), lambda dy: dy * slope


@tf.custom_gradient
def focal_loss_constant_weight(p):
    """The weight is held constant."""
    weight = (1.0 - p) ** 2
    return -weight * tf.math.log(p), lambda dy: -dy * weight / p


@tf.custom_gradient
def focal_loss_sign_of_weight(p):
    """The weight's term has the wrong sign."""
    weight = (1.0 - p) ** 2
    slope = -2.0 * (1.0 - p) * tf.math.log(p) - weight / p
    return -weight * tf.math.log(p), lambda dy: dy * slope


@tf.custom_gradient
def dice_loss(p):
    overlap = 2.0 * tf.reduce_sum(p * TARGETS)
    sizes = tf.reduce_sum(p) + tf.reduce_sum(TARGETS)
    return 1.0 - overlap / sizes, lambda dy: dy * (overlap - 2.0 * TARGETS * sizes) / sizes**2


@tf.custom_gradient
def dice_loss_not_squared(p):
    """The denominator of the quotient is not squared."""
    overlap = 2.0 * tf.reduce_sum(p * TARGETS)
    sizes = tf.reduce_sum(p) + tf.reduce_sum(TARGETS)
    return 1.0 - overlap / sizes, lambda dy: dy * (overlap - 2.0 * TARGETS * sizes) / sizes


@tf.custom_gradient
def huber_loss(x):
    size = tf.abs(x)
    value = tf.where(size <= 1.2, 0.5 * x * x, 1.2 * (size - 0.6))
    return value, lambda dy: dy * tf.clip_by_value(x, -1.2, 1.2)


@tf.custom_gradient
def huber_loss_slope(x):
    """The linear part lacks the factor delta."""
    size = tf.abs(x)
    value = tf.where(size <= 1.2, 0.5 * x * x, 1.2 * (size - 0.6))
    return value, lambda dy: dy * tf.where(size <= 1.2, x, tf.sign(x))


@tf.custom_gradient
def quantile_loss(error):
    value = tf.maximum(0.9 * error, -0.1 * error)
    return value, lambda dy: dy * tf.where(error > 0.0, 0.9, -0.1)


@tf.custom_gradient
def quantile_loss_swapped(error):
    """The quantiles of the two sides are swapped."""
    value = tf.maximum(0.9 * error, -0.1 * error)
    return value, lambda dy: dy * tf.where(error > 0.0, 0.1, -0.9)


@tf.custom_gradient
def contrastive_loss(distance, same):
    hinge = tf.maximum(1.5 - distance, 0.0)
    value = same * distance**2 + (1.0 - same) * hinge**2
    return value, lambda dy: (
        2.0 * dy * (same * distance - (1.0 - same) * hinge),
        dy * (distance**2 - hinge**2),
    )


PAIRS = np.array([0.4, 1.1, 0.8, 0.3]), np.array([1.0, 0.0, 0.0, 1.0])


@tf.custom_gradient
def contrastive_loss_pulls_all(distance, same):
    """The pairs of different classes have no minus sign."""
    hinge = tf.maximum(1.5 - distance, 0.0)
    value = same * distance**2 + (1.0 - same) * hinge**2
    return value, lambda dy: (
        2.0 * dy * (same * distance + (1.0 - same) * hinge),
        dy * (distance**2 - hinge**2),
    )


def forward_messages(scores):
    """The messages of a chain of two states, as a connectionist classification sums paths."""
    messages = [scores[0]]
    for t in range(1, 3):
        stay = messages[-1]
        move = tf.concat([[-20.0], messages[-1][:1]], 0)
        messages.append(tf.reduce_logsumexp(tf.stack([stay, move]), 0) + scores[t])
    return messages


@tf.custom_gradient
def path_loss(scores):
    messages = forward_messages(scores)
    loss = -tf.reduce_logsumexp(messages[-1])

    def grad(dy):
        rows, message = [], tf.nn.softmax(messages[-1])
        for t in range(2, -1, -1):
            rows.insert(0, message)
            if t:
                stay = messages[t - 1]
                move = tf.concat([[-20.0], messages[t - 1][:1]], 0)
                share = tf.nn.softmax(tf.stack([stay, move]), 0) * message
                message = share[0] + tf.concat([share[1, 1:], [0.0]], 0)
        return -dy * tf.stack(rows)

    return loss, grad


SCORES = np.array([[0.5, -0.2], [0.1, 0.9], [-0.4, 0.3]])


@tf.custom_gradient
def path_loss_without_backward_pass(scores):
    """The messages of the backward pass are missing."""
    messages = forward_messages(scores)
    loss = -tf.reduce_logsumexp(messages[-1])
    return loss, lambda dy: -dy * tf.stack([tf.nn.softmax(message) for message in messages])


@tf.custom_gradient
def cosine_distance(a, b):
    length = tf.norm(a)
    other = tf.norm(b)
    cosine = tf.reduce_sum(a * b) / (length * other)
    return 1.0 - cosine, lambda dy: (
        -dy * (b / other - cosine * a / length) / length,
        -dy * (a / length - cosine * b / other) / other,
    )


@tf.custom_gradient
def cosine_distance_not_divided(a, b):
    """It is not divided by the length of a."""
    length = tf.norm(a)
    other = tf.norm(b)
    cosine = tf.reduce_sum(a * b) / (length * other)
    return 1.0 - cosine, lambda dy: (
        -dy * (b / other - cosine * a / length),
        -dy * (a / length - cosine * b / other) / other,
    )


@tf.custom_gradient
def divergence_without_weights(p, q):
    """The gradient of q lacks the factor p."""
    value = tf.reduce_sum(p * (tf.math.log(p) - tf.math.log(q)))
    return value, lambda dy: (dy * (tf.math.log(p) - tf.math.log(q) + 1.0), -dy / q)


@tf.custom_gradient
def smoothed_cross_entropy(logits):
    labels = 0.9 * tf.eye(4, 3, dtype=logits.dtype) + 0.1 / 3.0
    loss = -tf.reduce_mean(tf.reduce_sum(labels * tf.nn.log_softmax(logits), -1))
    total = tf.reduce_sum(labels, -1, keepdims=True)
    return loss, lambda dy: dy * (total * tf.nn.softmax(logits) - labels) / 4.0


@tf.custom_gradient
def cross_entropy_over_all(logits):
    """It is divided by the number of logits instead of that of examples."""
    labels = tf.eye(4, 3, dtype=logits.dtype)
    loss = -tf.reduce_sum(labels * tf.nn.log_softmax(logits)) / 4.0
    total = tf.reduce_sum(labels, -1, keepdims=True)
    return loss, lambda dy: dy * (total * tf.nn.softmax(logits) - labels) / 12.0


@tf.custom_gradient
def contrastive_logits(similarity, temperature):
    scaled = similarity / temperature
    p = tf.nn.softmax(scaled)

    def grad(dy):
        slope = dy * (p - tf.one_hot(0, 3, dtype=p.dtype))
        return slope / temperature, -tf.reduce_sum(slope * scaled) / temperature

    return tf.reduce_logsumexp(scaled) - scaled[0], grad


@tf.custom_gradient
def contrastive_logits_not_scaled(similarity, temperature):
    """It is not divided by the temperature."""
    scaled = similarity / temperature
    p = tf.nn.softmax(scaled)

    def grad(dy):
        slope = dy * (p - tf.one_hot(0, 3, dtype=p.dtype))
        return slope, -tf.reduce_sum(slope * scaled) / temperature

    return tf.reduce_logsumexp(scaled) - scaled[0], grad


@tf.custom_gradient
def poisson_loss_without_counts(rate, counts):
    """The term of the counts is missing."""
    value = tf.exp(rate) - counts * rate
    return value, lambda dy: (dy * tf.exp(rate), -dy * rate)


right(focal_loss, PROBABILITIES)
wrong(
    focal_loss_constant_weight,
    PROBABILITIES,
    said="The rule treats `weight` as a constant, but `weight` depends on p.",
)
wrong(
    focal_loss_sign_of_weight,
    PROBABILITIES,
    said=(
        "The term from differentiating `weight` seems to have the wrong sign: the error is -2 "
        "times this term."
    ),
)
right(dice_loss, PROBABILITIES)
wrong(
    dice_loss_not_squared,
    PROBABILITIES,
    said="It must be divided by `sizes`.",
)
right(huber_loss, X4)
wrong(
    huber_loss_slope,
    X4,
    said=(
        "It is wrong only at x[1] (expected -1.2 * dy[1], got -dy[1]) and x[3] (expected "
        "1.2 * dy[3], got dy[3]). There it is 0.833333 times the correct gradient."
    ),
)
right(quantile_loss, X4)
wrong(
    quantile_loss_swapped,
    X4,
    said="It lacks the term `dy * 0.8`.",
)
right(contrastive_loss, *PAIRS)
wrong(
    contrastive_loss_pulls_all,
    *PAIRS,
    said=(
        "It is wrong only at distance[1] (expected -0.8 * dy[1], got 0.8 * dy[1]) and "
        "distance[2] (expected -1.4 * dy[2], got 1.4 * dy[2]). There the sign is wrong."
    ),
)
right(path_loss, SCORES)
wrong(
    path_loss_without_backward_pass,
    SCORES,
    said="It is wrong at 4 of 6 elements, first at scores[0, 0] (expected -0.771058, got "
    "-0.668188).",
)
right(cosine_distance, X3, X3[::-1] + 0.3)
wrong(
    cosine_distance_not_divided,
    X3,
    X3[::-1] + 0.3,
    said="It must be divided by `length`.",
)
wrong(
    divergence_without_weights,
    np.array([0.2, 0.5, 0.3]),
    np.array([0.4, 0.4, 0.2]),
    said="It must be multiplied by p.",
)
right(smoothed_cross_entropy, BATCH)
wrong(cross_entropy_over_all, BATCH, said="It is 0.333333 times the correct gradient.")
right(contrastive_logits, X3, 0.3)
wrong(
    contrastive_logits_not_scaled,
    X3,
    0.3,
    said="It is 0.3 times the correct gradient. The value of temperature is 0.3.",
)
wrong(
    poisson_loss_without_counts,
    X3,
    np.array([1.0, 4.0, 2.0]),
    said="It lacks the term `-dy * counts`.",
)


# Layers --------------------------------------------------------------------------------------


@tf.custom_gradient
def rms_norm(x, gain):
    inverse = tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6)
    y = x * inverse

    def grad(dy):
        d = dy * gain
        return inverse * (d - y * tf.reduce_mean(d * y, -1, keepdims=True)), tf.reduce_sum(
            dy * y, 0
        )

    return y * gain, grad


GAIN = np.array([1.5, -0.5, 0.8])


@tf.custom_gradient
def rms_norm_summed(x, gain):
    """The second term sums where it must average."""
    inverse = tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + 1e-6)
    y = x * inverse

    def grad(dy):
        d = dy * gain
        return inverse * (d - y * tf.reduce_sum(d * y, -1, keepdims=True)), tf.reduce_sum(dy * y, 0)

    return y * gain, grad


@tf.custom_gradient
def layer_norm(x):
    centred = x - tf.reduce_mean(x, -1, keepdims=True)
    inverse = tf.math.rsqrt(tf.reduce_mean(centred**2, -1, keepdims=True) + 1e-5)
    y = centred * inverse

    def grad(dy):
        d = dy - y * tf.reduce_mean(dy * y, -1, keepdims=True)
        return inverse * (d - tf.reduce_mean(d, -1, keepdims=True))

    return y, grad


@tf.custom_gradient
def layer_norm_constant_deviation(x):
    """The standard deviation is held constant."""
    centred = x - tf.reduce_mean(x, -1, keepdims=True)
    inverse = tf.math.rsqrt(tf.reduce_mean(centred**2, -1, keepdims=True) + 1e-5)
    return centred * inverse, lambda dy: inverse * (dy - tf.reduce_mean(dy, -1, keepdims=True))


@tf.custom_gradient
def group_norm(x):
    groups = tf.reshape(x, [2, 6])
    inverse = tf.math.rsqrt(tf.reduce_mean(groups**2, -1, keepdims=True))
    y = groups * inverse

    def grad(dy):
        d = tf.reshape(dy, [2, 6])
        slope = inverse * (d - y * tf.reduce_mean(d * y, -1, keepdims=True))
        return tf.reshape(slope, [4, 3])

    return tf.reshape(y, [4, 3]), grad


@tf.custom_gradient
def group_norm_of_rows(x):
    """The mean is over a row instead of a group of two rows."""
    groups = tf.reshape(x, [2, 6])
    inverse = tf.math.rsqrt(tf.reduce_mean(groups**2, -1, keepdims=True))
    y = tf.reshape(groups * inverse, [4, 3])
    scale = tf.reshape(tf.tile(inverse, [1, 2]), [4, 1])
    return y, lambda dy: scale * (dy - y * tf.reduce_mean(dy * y, -1, keepdims=True))


@tf.custom_gradient
def quick_gelu(x):
    gate = tf.sigmoid(1.702 * x)
    return x * gate, lambda dy: dy * (gate + 1.702 * x * gate * (1.0 - gate))


@tf.custom_gradient
def quick_gelu_inner_factor(x):
    """The inner derivative lacks the factor 1.702."""
    gate = tf.sigmoid(1.702 * x)
    return x * gate, lambda dy: dy * (gate + x * gate * (1.0 - gate))


@tf.custom_gradient
def gelu_by_tanh(x):
    inner = np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)
    t = tf.tanh(inner)

    def grad(dy):
        slope = np.sqrt(2.0 / np.pi) * (1.0 + 3.0 * 0.044715 * x * x)
        return dy * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope)

    return 0.5 * x * (1.0 + t), grad


@tf.custom_gradient
def gelu_without_density(x):
    """The term of the density is missing."""
    cdf = 0.5 * (1.0 + tf.math.erf(x / np.sqrt(2.0)))
    return x * cdf, lambda dy: dy * cdf


@tf.custom_gradient
def attention(q, k):
    powers = tf.exp(q @ tf.transpose(k) / np.sqrt(3.0))
    total = tf.reduce_sum(powers, -1, keepdims=True)
    p = powers / total

    def grad(dy):
        d = p * (dy - tf.reduce_sum(dy * p, -1, keepdims=True)) / np.sqrt(3.0)
        return d @ k, tf.transpose(d) @ q

    return p, grad


@tf.custom_gradient
def attention_constant_total(q):
    """The normalization of the weights is held constant."""
    powers = tf.exp(q @ tf.transpose(tf.constant(BATCH[1:])) / np.sqrt(3.0))
    total = tf.reduce_sum(powers, -1, keepdims=True)
    p = powers / total
    return p, lambda dy: (dy * p / np.sqrt(3.0)) @ tf.constant(BATCH[1:])


@tf.custom_gradient
def attention_key_scale(q, k):
    """The gradient of the keys is not scaled by 1/2."""
    p = tf.nn.softmax(q @ tf.transpose(k) / 2.0)

    def grad(dy):
        d = p * (dy - tf.reduce_sum(dy * p, -1, keepdims=True))
        return d @ k / 2.0, tf.transpose(d) @ q

    return p, grad


ANGLES = np.array([0.3, 1.1])


def rotate_pairs(x, angles):
    a, b = x[:2], x[2:]
    return tf.concat(
        [a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], 0
    )


@tf.custom_gradient
def rotary_embedding(x):
    return rotate_pairs(x, ANGLES), lambda dy: rotate_pairs(dy, -ANGLES)


@tf.custom_gradient
def rotary_embedding_rotated_again(x):
    """The upstream gradient is not rotated back."""
    return rotate_pairs(x, ANGLES), lambda dy: rotate_pairs(dy, ANGLES)


@tf.custom_gradient
def softcap(x):
    t = tf.tanh(x / 30.0)
    return 30.0 * t, lambda dy: dy * (1.0 - t * t)


@tf.custom_gradient
def softcap_outer_factor(x):
    """The inner factor 1/30 is missing."""
    t = tf.tanh(x / 30.0)
    return 30.0 * t, lambda dy: 30.0 * dy * (1.0 - t * t)


@tf.custom_gradient
def softcap_not_squared(x):
    """It has 1 - t instead of 1 - t squared."""
    t = tf.tanh(x / 30.0)
    return 30.0 * t, lambda dy: dy * (1.0 - t)


NOISE = np.array([0.3, -1.1, 0.8])


@tf.custom_gradient
def relaxed_sample(logits, temperature):
    scaled = (logits + NOISE) / temperature
    y = tf.nn.softmax(scaled)

    def grad(dy):
        d = y * (dy - tf.reduce_sum(dy * y))
        return d / temperature, -tf.reduce_sum(d * scaled) / temperature

    return y, grad


@tf.custom_gradient
def relaxed_sample_multiplied(logits, temperature):
    """It is multiplied by the temperature instead of divided."""
    scaled = (logits + NOISE) / temperature
    y = tf.nn.softmax(scaled)

    def grad(dy):
        d = y * (dy - tf.reduce_sum(dy * y))
        return d * temperature, -tf.reduce_sum(d * scaled) / temperature

    return y, grad


@tf.custom_gradient
def quantise_vectors(x):
    distances = tf.reduce_sum((x[:, None, :] - CODES) ** 2, -1)
    return tf.gather(CODES, tf.argmin(distances, -1)), lambda dy: dy


VECTORS = np.array([[0.2, 0.9], [-0.7, -0.8]])


@tf.custom_gradient
def quantise_vectors_twice(x):
    """The straight-through gradient is doubled."""
    distances = tf.reduce_sum((x[:, None, :] - CODES) ** 2, -1)
    return tf.gather(CODES, tf.argmin(distances, -1)), lambda dy: 2.0 * dy


@tf.custom_gradient
def commitment_loss(x, codes):
    """The weight 0.1 is missing for x."""
    error = x - codes
    return 0.1 * tf.reduce_sum(error**2), lambda dy: (2.0 * dy * error, -0.2 * dy * error)


X5 = np.array([0.4, -1.3, 0.9, 1.7, -0.6])


@tf.custom_gradient
def binarise(x):
    return tf.sign(x), lambda dy: dy * tf.cast(tf.abs(x) <= 1.0, dy.dtype)


def hard_tanh(x):
    return tf.clip_by_value(x, -1.0, 1.0)


@tf.custom_gradient
def binarise_wide_window(x):
    """The window is 1.5 wide and must be 1."""
    return tf.sign(x), lambda dy: dy * tf.cast(tf.abs(x) <= 1.5, dy.dtype)


@tf.custom_gradient
def spectral_norm(weight):
    s, u, v = tf.linalg.svd(weight)
    return s[0], lambda dy: dy * u[:, :1] @ tf.transpose(v[:, :1])


@tf.custom_gradient
def spectral_norm_swapped(weight):
    """The singular vectors are swapped."""
    s, u, v = tf.linalg.svd(weight)
    return s[0], lambda dy: dy * v[:, :1] @ tf.transpose(u[:, :1])


@tf.custom_gradient
def weight_norm(v, gain):
    length = tf.norm(v)
    unit = v / length

    def grad(dy):
        return gain * (dy - unit * tf.reduce_sum(dy * unit)) / length, tf.reduce_sum(dy * unit)

    return gain * unit, grad


@tf.custom_gradient
def weight_norm_constant_length(v, gain):
    """The length is held constant."""
    length = tf.norm(v)
    unit = v / length
    return gain * unit, lambda dy: (dy * gain / length, tf.reduce_sum(dy * unit))


@tf.custom_gradient
def gated_unit(a, b):
    """The gradient of b lacks the factor a."""
    gate = tf.sigmoid(b)
    return a * gate, lambda dy: (dy * gate, dy * gate * (1.0 - gate))


@tf.custom_gradient
def batch_norm_of_rows(x):
    """The mean is over axis 1 and must be over axis 0."""
    return x - tf.reduce_mean(x, 0), lambda dy: dy - tf.reduce_mean(dy, 1, keepdims=True)


@tf.custom_gradient
def embedding_of_repeated_rows(table):
    """The first of two uses of a row is overwritten by the second one."""
    rows = tf.one_hot([2, 0, 2], 4, dtype=table.dtype)
    last = tf.constant(np.array([[0.0], [1.0], [1.0]]))
    return rows @ table, lambda dy: tf.transpose(rows) @ (dy * last)


right(rms_norm, BATCH, GAIN)
wrong(
    rms_norm_summed,
    BATCH,
    GAIN,
    said="The term from differentiating `inverse` is 3 times the correct one.",
)
right(layer_norm, BATCH)
wrong(
    layer_norm_constant_deviation,
    BATCH,
    said=("The rule does not differentiate the variance over axis 1 with respect to x."),
)
right(group_norm, BATCH)
wrong(group_norm_of_rows, BATCH)
right(quick_gelu, X4)
wrong(
    quick_gelu_inner_factor,
    X4,
    said="The term from differentiating `gate` is 0.587544 times the correct one.",
)
right(gelu_by_tanh, X4)
wrong(
    gelu_without_density,
    X4,
    said=(
        "The rule treats the factor `0.5 * (1.0 + tf.math.erf(x / np.sqrt(2.0)))` as a constant."
    ),
)
right(attention, BATCH[:2], BATCH[1:])
wrong(
    attention_constant_total,
    BATCH[:2],
    said="The rule treats `total` as a constant, but `total` depends on q.",
)
wrong(attention_key_scale, BATCH[:2], BATCH[1:], said="It is 2 times the correct gradient.")
right(rotary_embedding, X4)
wrong(
    rotary_embedding_rotated_again,
    X4,
    said="The rule multiplies by the Jacobian, not by its transpose.",
)
right(softcap, 10.0 * X4)
wrong(softcap_outer_factor, 10.0 * X4, said="It is 30 times the correct gradient.")
wrong(softcap_not_squared, 10.0 * X4, said="It must be multiplied by `1.0 + t`.")
right(relaxed_sample, X3, 0.7)
wrong(
    relaxed_sample_multiplied,
    X3,
    0.7,
    said="It is 0.49 times the correct gradient. The value of temperature**2 is 0.49.",
)
right(quantise_vectors, VECTORS, against=lambda x: x)
wrong(
    quantise_vectors_twice,
    VECTORS,
    against=lambda x: x,
    said="It is 2 times the correct gradient.",
)
wrong(commitment_loss, VECTORS, VECTORS[::-1] + 0.1, said="It is 10 times the correct gradient.")
right(binarise, X5, against=hard_tanh)
wrong(
    binarise_wide_window,
    X5,
    against=hard_tanh,
    said="It is wrong only at x[1] (expected 0, got dy[1]).",
    has_code=False,
)
right(spectral_norm, MATRIX)
wrong(spectral_norm_swapped, MATRIX, said="It is the transpose of the correct gradient.")
right(weight_norm, X3, 1.7)
wrong(
    weight_norm_constant_length,
    X3,
    1.7,
    said=(
        "It is dy * output / v. Does the rule treat the output as v times a constant, or as v "
        "divided by a constant?"
    ),
)
wrong(gated_unit, X3, X3 - 0.4, said="It must be multiplied by a.")
wrong(
    batch_norm_of_rows,
    BATCH,
    said="The rule subtracts the mean over axis 1, but the function subtracts the mean over axis "
    "0.",
)
wrong(
    embedding_of_repeated_rows,
    BATCH,
    said=(
        "It lacks the part that comes from output[0]. Does the rule leave out a sample of a batch?"
    ),
)


# Solvers -------------------------------------------------------------------------------------

RECURRENT = 0.3 * MATRIX


def fixed_point(x):
    z = tf.zeros_like(x)
    for _ in range(80):
        z = tf.tanh(tf.linalg.matvec(RECURRENT, z) + x)
    return z


@tf.custom_gradient
def equilibrium(x):
    z = fixed_point(x)

    def grad(dy):
        slope = 1.0 - z * z
        system = tf.eye(3, dtype=x.dtype) - tf.transpose(RECURRENT * slope[:, None])
        return slope * tf.linalg.matvec(tf.linalg.inv(system), dy)

    return z, grad


@tf.custom_gradient
def equilibrium_not_transposed(x):
    """The linear system is not transposed."""
    z = fixed_point(x)

    def grad(dy):
        slope = 1.0 - z * z
        system = tf.eye(3, dtype=x.dtype) - RECURRENT * slope
        return slope * tf.linalg.matvec(tf.linalg.inv(system), dy)

    return z, grad


@tf.custom_gradient
def equilibrium_of_one_step(x):
    """The dependence of the fixed point on itself is lost."""
    z = fixed_point(x)
    return z, lambda dy: dy * (1.0 - z * z)


@tf.custom_gradient
def root_of_cubic(a):
    y = tf.ones_like(a)
    for _ in range(60):
        y = y - (y**3 + y - a) / (3.0 * y * y + 1.0)
    return y, lambda dy: dy / (3.0 * y * y + 1.0)


@tf.custom_gradient
def root_of_cubic_sign(a):
    """The sign of the implicit function theorem is applied twice."""
    y = tf.ones_like(a)
    for _ in range(60):
        y = y - (y**3 + y - a) / (3.0 * y * y + 1.0)
    return y, lambda dy: -dy / (3.0 * y * y + 1.0)


GENERATOR = np.array([[0.0, 1.0, 0.2], [-1.0, -0.3, 0.0], [0.1, 0.4, -0.5]])


def euler_steps(generator, y):
    for _ in range(5):
        y = y + 0.1 * tf.linalg.matvec(generator, y)
    return y


@tf.custom_gradient
def linear_flow(y):
    return euler_steps(GENERATOR, y), lambda dy: euler_steps(GENERATOR.T, dy)


@tf.custom_gradient
def linear_flow_forwards(y):
    """The adjoint equation is not transposed."""
    return euler_steps(GENERATOR, y), lambda dy: euler_steps(GENERATOR, dy)


@tf.custom_gradient
def linear_flow_exact_adjoint(y):
    """The adjoint of the exact flow differs from that of the Euler steps."""
    adjoint = tf.linalg.expm(0.5 * GENERATOR.T)
    return euler_steps(GENERATOR, y), lambda dy: tf.linalg.matvec(adjoint, dy)


@tf.custom_gradient
def gaussian_evidence(scale):
    kernel = scale * tf.constant(MATRIX + MATRIX.T) + tf.eye(3, dtype=scale.dtype)
    weights = tf.linalg.matvec(tf.linalg.inv(kernel), X3)
    log_det = tf.linalg.slogdet(kernel)[1]
    fit = tf.reduce_sum(X3 * weights)

    def grad(dy):
        slope = MATRIX + MATRIX.T
        quadratic = tf.reduce_sum(weights * tf.linalg.matvec(slope, weights))
        return dy * (0.5 * quadratic - 0.5 * tf.linalg.trace(tf.linalg.inv(kernel) @ slope))

    return -0.5 * fit - 0.5 * log_det, grad


@tf.custom_gradient
def gaussian_evidence_log_det(scale):
    """The term of the log determinant lacks 1/2."""
    kernel = scale * tf.constant(MATRIX + MATRIX.T) + tf.eye(3, dtype=scale.dtype)
    weights = tf.linalg.matvec(tf.linalg.inv(kernel), X3)
    log_det = tf.linalg.slogdet(kernel)[1]
    fit = tf.reduce_sum(X3 * weights)

    def grad(dy):
        slope = MATRIX + MATRIX.T
        quadratic = tf.reduce_sum(weights * tf.linalg.matvec(slope, weights))
        return dy * (0.5 * quadratic - tf.linalg.trace(tf.linalg.inv(kernel) @ slope))

    return -0.5 * fit - 0.5 * log_det, grad


@tf.custom_gradient
def cholesky_factor(a):
    factor = tf.linalg.cholesky((a + tf.transpose(a)) / 2.0)

    def grad(dy):
        product = tf.transpose(factor) @ dy
        lower = tf.linalg.band_part(product, -1, 0) - tf.linalg.diag(
            tf.linalg.diag_part(product) / 2.0
        )
        inverse = tf.linalg.inv(factor)
        slope = tf.transpose(inverse) @ lower @ inverse
        return (slope + tf.transpose(slope)) / 2.0

    return factor, grad


@tf.custom_gradient
def cholesky_factor_not_symmetric(a):
    """The gradient is not made symmetric."""
    factor = tf.linalg.cholesky((a + tf.transpose(a)) / 2.0)

    def grad(dy):
        product = tf.transpose(factor) @ dy
        lower = tf.linalg.band_part(product, -1, 0) - tf.linalg.diag(
            tf.linalg.diag_part(product) / 2.0
        )
        inverse = tf.linalg.inv(factor)
        return tf.transpose(inverse) @ lower @ inverse

    return factor, grad


@tf.custom_gradient
def largest_eigenvalue(a):
    values, vectors = tf.linalg.eigh((a + tf.transpose(a)) / 2.0)
    return values[-1], lambda dy: dy * vectors[:, -1:] @ tf.transpose(vectors[:, -1:])


@tf.custom_gradient
def largest_eigenvalue_scaled(a):
    """The eigenvalue is a factor too much."""
    values, vectors = tf.linalg.eigh((a + tf.transpose(a)) / 2.0)
    top = values[-1]
    return top, lambda dy: dy * top * vectors[:, -1:] @ tf.transpose(vectors[:, -1:])


def sylvester(a, b, c):
    """The solution of a x + x b = c."""
    n, m = c.shape
    system = np.kron(a, np.eye(m)) + np.kron(np.eye(n), b.T)
    solution = tf.linalg.matvec(np.linalg.inv(system), tf.reshape(c, [n * m]))
    return tf.reshape(solution, [n, m])


SMALL = np.array([[1.5, 0.4], [-0.2, 2.0]])


@tf.custom_gradient
def sylvester_solution(c):
    return sylvester(MATRIX, SMALL, c), lambda dy: sylvester(MATRIX.T, SMALL.T, dy)


@tf.custom_gradient
def sylvester_solution_not_transposed(c):
    """The equation is not transposed."""
    return sylvester(MATRIX, SMALL, c), lambda dy: sylvester(MATRIX, SMALL, dy)


@tf.custom_gradient
def transport_cost(cost):
    """The plan is divided by the regularization once too often."""
    power = tf.exp(-cost / 0.5)
    v = tf.ones([3], cost.dtype)
    for _ in range(60):
        u = 1.0 / (3.0 * tf.linalg.matvec(power, v))
        v = 1.0 / (3.0 * tf.linalg.matvec(tf.transpose(power), u))
    value = 0.5 * (tf.reduce_mean(tf.math.log(u)) + tf.reduce_mean(tf.math.log(v)))
    return value, lambda dy: dy * u[:, None] * power * v / 0.5


right(equilibrium, 0.4 * X3, order=1)
wrong(
    equilibrium_not_transposed,
    0.4 * X3,
    said="The rule multiplies by the Jacobian, not by its transpose.",
)
wrong(
    equilibrium_of_one_step,
    0.4 * X3,
    said="The rule treats the value of `tf.linalg.matvec(RECURRENT, z)` in the last of 80 steps as "
    "a constant, but this value depends on x.",
)
right(root_of_cubic, X3)
wrong(root_of_cubic_sign, X3, said="The sign is wrong.")
right(linear_flow, X3)
wrong(
    linear_flow_forwards,
    X3,
    said="The rule multiplies by the Jacobian, not by its transpose.",
)
wrong(linear_flow_exact_adjoint, X3)
right(gaussian_evidence, np.array(0.7))
wrong(
    gaussian_evidence_log_det,
    np.array(0.7),
    said="The term from differentiating `log_det` is 2 times the correct one.",
)
right(cholesky_factor, MATRIX + MATRIX.T)
wrong(
    cholesky_factor_not_symmetric,
    MATRIX + MATRIX.T,
    said="It is not symmetric. The mean of this matrix and its transpose is the correct gradient.",
)
right(largest_eigenvalue, MATRIX, order=1)
wrong(
    largest_eigenvalue_scaled,
    MATRIX,
    said="It must be divided by the output.",
)
right(sylvester_solution, BATCH[:3, :2])
wrong(
    sylvester_solution_not_transposed,
    BATCH[:3, :2],
    said="The rule multiplies by the Jacobian, not by its transpose.",
)
wrong(transport_cost, np.abs(MATRIX), said="It is 2 times the correct gradient.")


# Probability ---------------------------------------------------------------------------------


@tf.custom_gradient
def gamma_sample(shape):
    """A sample by the method of Marsaglia and Tsang, for noise that is fixed."""
    d = shape - 1.0 / 3.0
    c = 1.0 / tf.sqrt(9.0 * d)
    t = 1.0 + c * NOISE
    return d * t**3, lambda dy: dy * (t**3 - 1.5 * t * t * c * NOISE)


@tf.custom_gradient
def gamma_sample_constant_scale(shape):
    """The scale c is held constant."""
    d = shape - 1.0 / 3.0
    c = 1.0 / tf.sqrt(9.0 * d)
    return d * (1.0 + c * NOISE) ** 3, lambda dy: dy * (1.0 + c * NOISE) ** 3


@tf.custom_gradient
def von_mises(concentration, angle):
    ratio = tf.math.bessel_i1e(concentration) / tf.math.bessel_i0e(concentration)
    log_bessel = tf.math.log(tf.math.bessel_i0e(concentration)) + concentration
    return concentration * tf.cos(angle) - log_bessel, lambda dy: (
        dy * (tf.cos(angle) - ratio),
        -dy * concentration * tf.sin(angle),
    )


CIRCLE = np.array([2.0, 3.0, 4.0]), np.array([0.3, -1.0, 2.0])


@tf.custom_gradient
def von_mises_scaled_bessel(concentration, angle):
    """The derivative is that of the exponentially scaled Bessel function."""
    ratio = tf.math.bessel_i1e(concentration) / tf.math.bessel_i0e(concentration)
    log_bessel = tf.math.log(tf.math.bessel_i0e(concentration)) + concentration
    return concentration * tf.cos(angle) - log_bessel, lambda dy: (
        dy * (tf.cos(angle) - ratio + 1.0),
        -dy * concentration * tf.sin(angle),
    )


@tf.custom_gradient
def log_mean_exp(x):
    top = tf.reduce_max(x)
    powers = tf.exp(x - top)
    total = tf.reduce_sum(powers)
    return tf.math.log(total / 4.0) + top, lambda dy: dy * powers / total


@tf.custom_gradient
def log_mean_exp_not_normalised(x):
    """It is not divided by the total."""
    top = tf.reduce_max(x)
    powers = tf.exp(x - top)
    total = tf.reduce_sum(powers)
    return tf.math.log(total / 4.0) + top, lambda dy: dy * powers


@tf.custom_gradient
def truncated_normal(mean):
    """The log density at 0.5 of a normal variable that is truncated to [0, infinity)."""
    log_mass = tf.math.log(0.5 * tf.math.erfc(-mean / np.sqrt(2.0)))
    hazard = tf.exp(-0.5 * mean**2 - log_mass) / np.sqrt(2.0 * np.pi)
    return -0.5 * (0.5 - mean) ** 2 - log_mass, lambda dy: dy * (0.5 - mean - hazard)


@tf.custom_gradient
def truncated_normal_constant_mass(mean):
    """The mass inside the bounds is held constant."""
    log_mass = tf.math.log(0.5 * tf.math.erfc(-mean / np.sqrt(2.0)))
    return -0.5 * (0.5 - mean) ** 2 - log_mass, lambda dy: dy * (0.5 - mean)


@tf.custom_gradient
def normal_cdf(x):
    """The density lacks the factor 1/sqrt(2)."""
    return 0.5 * (
        1.0 + tf.math.erf(x / np.sqrt(2.0))
    ), lambda dy: dy * tf.exp(-0.5 * x * x) / np.sqrt(np.pi)


@tf.custom_gradient
def dirichlet_normaliser(alpha):
    total = tf.reduce_sum(alpha)
    value = tf.reduce_sum(tf.math.lgamma(alpha)) - tf.math.lgamma(total)
    return value, lambda dy: dy * (tf.math.digamma(alpha) - tf.math.digamma(total))


@tf.custom_gradient
def dirichlet_normaliser_without_total(alpha):
    """The term of the total is missing."""
    total = tf.reduce_sum(alpha)
    value = tf.reduce_sum(tf.math.lgamma(alpha)) - tf.math.lgamma(total)
    return value, lambda dy: dy * tf.math.digamma(alpha)


@tf.custom_gradient
def affine_coupling(x, s):
    y = x * tf.exp(s)
    return (y, tf.reduce_sum(s)), lambda dy, dlog: (dy * tf.exp(s), dy * y + dlog)


@tf.custom_gradient
def affine_coupling_without_volume(x, s):
    """The gradient of the log determinant is missing."""
    y = x * tf.exp(s)
    return (y, tf.reduce_sum(s)), lambda dy, dlog: (dy * tf.exp(s), dy * y)


right(gamma_sample, np.array([1.3, 2.5, 4.0]))
wrong(
    gamma_sample_constant_scale,
    np.array([1.3, 2.5, 4.0]),
    said="The rule treats `c` as a constant, but `c` depends on shape.",
)
right(von_mises, *CIRCLE)
wrong(
    von_mises_scaled_bessel,
    *CIRCLE,
    said="It has the extra term `dy`.",
)
right(log_mean_exp, X4)
wrong(log_mean_exp_not_normalised, X4, said="It must be divided by `total`.")
right(truncated_normal, X3)
wrong(
    truncated_normal_constant_mass,
    X3,
    said="The rule treats `log_mass` as a constant, but `log_mass` depends on mean.",
)
wrong(
    normal_cdf,
    X4,
    said="It is 1.41421 times the correct gradient. The value of np.sqrt(2.0) is 1.41421.",
)
right(dirichlet_normaliser, np.array([0.8, 1.5, 3.0]))
wrong(
    dirichlet_normaliser_without_total,
    np.array([0.8, 1.5, 3.0]),
    said="The rule treats `total` as a constant, but `total` depends on alpha.",
)
right(affine_coupling, X3, X3[::-1] / 2.0)
wrong(
    affine_coupling_without_volume,
    X3,
    X3[::-1] / 2.0,
    said="It is wrong only for the second output. It is always 0.",
)


# Physics and geometry ------------------------------------------------------------------------


@tf.custom_gradient
def contact_energy(gap, stiffness):
    depth = tf.nn.softplus(-10.0 * gap) / 10.0
    return 0.5 * stiffness * depth**2, lambda dy: (
        -dy * stiffness * depth * tf.sigmoid(-10.0 * gap),
        tf.reduce_sum(0.5 * dy * depth**2),
    )


GAPS = np.array([0.05, -0.1, 0.02])


@tf.custom_gradient
def contact_energy_force(gap, stiffness):
    """The force is returned instead of the gradient."""
    depth = tf.nn.softplus(-10.0 * gap) / 10.0
    return 0.5 * stiffness * depth**2, lambda dy: (
        dy * stiffness * depth * tf.sigmoid(-10.0 * gap),
        tf.reduce_sum(0.5 * dy * depth**2),
    )


@tf.custom_gradient
def contact_energy_without_stiffness(gap, stiffness):
    """The stiffness is missing."""
    depth = tf.nn.softplus(-10.0 * gap) / 10.0
    return 0.5 * stiffness * depth**2, lambda dy: (
        -dy * depth * tf.sigmoid(-10.0 * gap),
        tf.reduce_sum(0.5 * dy * depth**2),
    )


@tf.custom_gradient
def sphere_distance(points):
    distance = tf.norm(points, axis=-1, keepdims=True)
    return distance[:, 0] - 0.8, lambda dy: dy[:, None] * points / distance


@tf.custom_gradient
def sphere_distance_not_unit(points):
    """The normal has not the length 1."""
    distance = tf.norm(points, axis=-1, keepdims=True)
    return distance[:, 0] - 0.8, lambda dy: dy[:, None] * points


@tf.custom_gradient
def pinhole(x, depth):
    return 1.2 * x / depth, lambda dy: (1.2 * dy / depth, -1.2 * dy * x / depth**2)


@tf.custom_gradient
def pinhole_depth(x, depth):
    """The depth is not squared."""
    return 1.2 * x / depth, lambda dy: (1.2 * dy / depth, -1.2 * dy * x / depth)


@tf.custom_gradient
def projected_point(point):
    """The derivative by the depth is missing."""

    def grad(dy):
        return tf.concat([dy / point[2], [0.0]], 0)

    return point[:2] / point[2], grad


@tf.custom_gradient
def radial_distortion(x):
    square = x * x
    return x * (1.0 + 0.1 * square), lambda dy: dy * (1.0 + 0.3 * square)


@tf.custom_gradient
def radial_distortion_constant(x):
    """The distortion is held constant."""
    square = x * x
    return x * (1.0 + 0.1 * square), lambda dy: dy * (1.0 + 0.1 * square)


@tf.custom_gradient
def spring_chain(x):
    stretch = x[1:] - x[:-1] - 0.5

    def grad(dy):
        force = 2.0 * dy * stretch
        return tf.concat([[0.0], force], 0) - tf.concat([force, [0.0]], 0)

    return tf.reduce_sum(stretch**2), grad


@tf.custom_gradient
def spring_chain_one_sided(x):
    """The force on the first of two neighbours is missing."""
    stretch = x[1:] - x[:-1] - 0.5
    return tf.reduce_sum(stretch**2), lambda dy: tf.concat([[0.0], 2.0 * dy * stretch], 0)


@tf.custom_gradient
def rotated(x):
    """The cross product is not in the other order."""
    axis = tf.constant(np.array([0.2, -0.5, 1.0]))
    return tf.linalg.cross(axis, x), lambda dy: tf.linalg.cross(axis, dy)


@tf.custom_gradient
def lennard_jones(r):
    sixth = (1.1 / r) ** 6
    return 4.0 * (sixth**2 - sixth), lambda dy: 4.0 * dy * (6.0 * sixth - 12.0 * sixth**2) / r


@tf.custom_gradient
def lennard_jones_exponent(r):
    """The repulsion has the exponent 6 of the attraction."""
    attraction = (1.1 / r) ** 6
    repulsion = (1.1 / r) ** 12
    return 4.0 * (
        repulsion - attraction
    ), lambda dy: 4.0 * dy * (6.0 * attraction - 6.0 * repulsion) / r


@tf.custom_gradient
def upwind(x):
    return x - tf.concat([[0.0], x[:-1]], 0), lambda dy: dy - tf.concat([dy[1:], [0.0]], 0)


@tf.custom_gradient
def upwind_same_side(x):
    """The stencil is not turned around."""
    return x - tf.concat([[0.0], x[:-1]], 0), lambda dy: dy - tf.concat([[0.0], dy[:-1]], 0)


@tf.custom_gradient
def render_weights(alpha):
    """The transmittance is held constant."""
    transmittance = tf.math.cumprod(1.0 - alpha, exclusive=True)
    return alpha * transmittance, lambda dy: dy * transmittance


@tf.custom_gradient
def quadratic_penalty(x):
    """The factor 2 of the square is missing."""
    violation = tf.nn.relu(tf.linalg.matvec(tf.constant(BATCH), x) + 2.0)
    return 50.0 * tf.reduce_sum(
        violation**2
    ), lambda dy: 50.0 * dy * tf.linalg.matvec(tf.constant(BATCH), violation, transpose_a=True)


right(contact_energy, GAPS, 7.5)
wrong(contact_energy_force, GAPS, 7.5, said="The sign is wrong.")
wrong(
    contact_energy_without_stiffness,
    GAPS,
    7.5,
    said="It is 0.133333 times the correct gradient. The value of 1 / stiffness is 0.133333.",
)
right(sphere_distance, BATCH)
wrong(sphere_distance_not_unit, BATCH, said="It must be divided by `distance`.")
right(pinhole, X3, np.array([2.0, 3.0, 1.5]))
wrong(
    pinhole_depth,
    X3,
    np.array([2.0, 3.0, 1.5]),
    said="It must be divided by depth.",
)
wrong(
    projected_point,
    np.array([0.5, -0.8, 2.0]),
    said="The rule treats `point[2]` as a constant, but `point[2]` depends on point.",
)
right(radial_distortion, X4)
wrong(
    radial_distortion_constant,
    X4,
    said=("The rule treats the factor `1.0 + 0.1 * (x * x)` as a constant."),
)
right(spring_chain, X4)
wrong(
    spring_chain_one_sided,
    X4,
    said="The rule treats `x[:-1]` as a constant, but `x[:-1]` depends on x.",
)
wrong(rotated, X3, said="The sign is wrong.")
right(lennard_jones, np.array([1.0, 1.4, 2.0]))
wrong(
    lennard_jones_exponent,
    np.array([1.0, 1.4, 2.0]),
    said="The term from differentiating `repulsion` is 0.5 times the correct one.",
)
right(upwind, X4)
wrong(
    upwind_same_side,
    X4,
    said="The rule multiplies by the Jacobian, not by its transpose.",
)
wrong(
    render_weights,
    np.array([0.2, 0.5, 0.3, 0.6]),
    said=(
        "It has only the diagonal of the Jacobian: each output depends on other elements of "
        "alpha as well."
    ),
)
wrong(quadratic_penalty, X3, said="It is 0.5 times the correct gradient.")


# Segments, gathers and convolutions ----------------------------------------------------------

SEGMENTS = [0, 0, 1, 1]


@tf.custom_gradient
def segment_squares(x):
    total = tf.math.segment_sum(x * x, SEGMENTS)
    return total, lambda dy: 2.0 * x * tf.gather(dy, SEGMENTS)


@tf.custom_gradient
def segment_mean(x):
    """It is not divided by the size of a segment."""
    return tf.math.segment_mean(x, SEGMENTS), lambda dy: tf.gather(dy, SEGMENTS)


@tf.custom_gradient
def neighbours(x):
    """The upstream gradient is gathered and not scattered."""
    edges = [1, 2, 3, 0]
    return tf.sin(tf.gather(x, edges)), lambda dy: tf.cos(x) * tf.gather(dy, edges)


@tf.custom_gradient
def upsample(x):
    """It averages where it must sum."""
    return tf.repeat(x, 2), lambda dy: tf.reduce_mean(tf.reshape(dy, [4, 2]), 1)


def smooth(x, kernel):
    padded = tf.concat([[0.0], x, [0.0]], 0)
    return kernel[0] * padded[:-2] + kernel[1] * padded[1:-1] + kernel[2] * padded[2:]


@tf.custom_gradient
def convolution(x):
    return smooth(x, [0.2, 0.5, 0.9]), lambda dy: smooth(dy, [0.9, 0.5, 0.2])


@tf.custom_gradient
def convolution_not_flipped(x):
    """The kernel is not flipped."""
    return smooth(x, [0.2, 0.5, 0.9]), lambda dy: smooth(dy, [0.2, 0.5, 0.9])


@tf.custom_gradient
def reversed_scan(x):
    """The cumulative sum is not reversed."""
    return tf.cumsum(x), lambda dy: tf.cumsum(dy)


right(segment_squares, X4)
wrong(
    segment_mean,
    X4,
    said=(
        "It is 2 times the correct gradient. Does the rule lack a division by 2, as for a mean "
        "over 2 elements, or does it have an extra factor of 2?"
    ),
)
wrong(
    neighbours,
    X4,
    said="The rule permutes the elements of the upstream gradient as the function permutes those "
    "of its argument. It needs the inverse permutation.",
)
wrong(upsample, X4, said="It is 0.5 times the correct gradient.")
right(convolution, X4)
wrong(
    convolution_not_flipped,
    X4,
    said="The rule multiplies by the Jacobian, not by its transpose.",
)
wrong(
    reversed_scan,
    X4,
    said="The gradient of a cumulative sum must be summed in reverse, along axis 0.",
)


# Complex numbers -----------------------------------------------------------------------------


@tf.custom_gradient
def fourier(z):
    return tf.signal.fft(z), lambda dy: 4.0 * tf.signal.ifft(dy)


@tf.custom_gradient
def fourier_not_scaled(z):
    """The inverse transform divides by the number of elements."""
    return tf.signal.fft(z), lambda dy: tf.signal.ifft(dy)


@tf.custom_gradient
def fourier_not_conjugated(z):
    """The transform is not conjugated."""
    return tf.signal.fft(z), lambda dy: tf.signal.fft(dy)


@tf.custom_gradient
def magnitude(z):
    size = tf.abs(z)
    return size, lambda dy: tf.cast(dy / size, z.dtype) * z


@tf.custom_gradient
def magnitude_conjugated(z):
    """It is the conjugate."""
    size = tf.abs(z)
    return size, lambda dy: tf.cast(dy / size, z.dtype) * tf.math.conj(z)


@tf.custom_gradient
def interference(z):
    """The derivative is not conjugated."""
    return z * z * z, lambda dy: dy * 3.0 * z**2


right(fourier, Z)
wrong(fourier_not_scaled, Z, said="It is 0.25 times the correct gradient.")
wrong(
    fourier_not_conjugated,
    Z,
    said=(
        "The rule multiplies dy by the transpose of the Jacobian (of a matrix, for example). It "
        "must also conjugate the Jacobian."
    ),
)
right(magnitude, Z)
wrong(magnitude_conjugated, Z, said="It is the complex conjugate of the correct gradient.")
wrong(interference, Z, said="The rule must conjugate the factor that it multiplies dy by.")


# Several outputs -----------------------------------------------------------------------------


@tf.custom_gradient
def polar(x, y):
    r, angle = tf.sqrt(x * x + y * y), tf.atan2(y, x)
    return (r, angle), lambda dr, da: (
        dr * x / r - da * y / r**2,
        dr * y / r + da * x / r**2,
    )


@tf.custom_gradient
def polar_sign_of_angle(x, y):
    """The angle's derivative by x has the wrong sign."""
    r, angle = tf.sqrt(x * x + y * y), tf.atan2(y, x)
    return (r, angle), lambda dr, da: (
        dr * x / r + da * y / r**2,
        dr * y / r + da * x / r**2,
    )


@tf.custom_gradient
def moments(x):
    """The variance's gradient is not divided by the number of elements."""
    mean = tf.reduce_mean(x)
    variance = tf.reduce_mean((x - mean) ** 2)
    return (mean, variance), lambda dm, dv: dm / 4.0 + 2.0 * dv * (x - mean)


right(polar, X3, X3[::-1] + 0.2)
wrong(
    polar_sign_of_angle,
    X3,
    X3[::-1] + 0.2,
    said="It is wrong only for the second output. The sign is wrong.",
)
wrong(
    moments,
    X4,
    said="It is wrong only for the second output. It is 4 times the correct gradient.",
)


# Two orders ----------------------------------------------------------------------------------


@tf.custom_gradient
def nested_softplus(x):
    def grad(dy):
        @tf.custom_gradient
        def slope(x):
            s = tf.sigmoid(x)
            return s, lambda ddy: ddy * s * (1.0 - s)

        return dy * slope(x)

    return tf.nn.softplus(x), grad


@tf.custom_gradient
def nested_softplus_curvature(x):
    """The inner rule lacks the factor 1 - s."""

    def grad(dy):
        @tf.custom_gradient
        def slope(x):
            s = tf.sigmoid(x)
            return s, lambda ddy: ddy * s

        return dy * slope(x)

    return tf.nn.softplus(x), grad


@tf.custom_gradient
def nested_power(x):
    """The inner rule lacks the factor 3."""

    def grad(dy):
        @tf.custom_gradient
        def slope(x):
            return 4.0 * x**3, lambda ddy: 4.0 * x**2 * ddy

        return dy * slope(x)

    return x**4, grad


@tf.custom_gradient
def nested_of_upstream(x):
    """The inner rule does not differentiate by x."""

    @tf.custom_gradient
    def slope(dy):
        return dy * tf.exp(x), lambda ddy: ddy * tf.exp(x)

    return tf.exp(x), slope


@tf.custom_gradient
def solver_in_numpy(x):
    """The rule computes in NumPy."""
    y = tf.tanh(x)
    return y, lambda dy: dy * (1.0 - y.numpy() ** 2)


@tf.custom_gradient
def detached_residual(x):
    """The residual is detached."""
    residual = x**3 - x
    return residual**2, lambda dy: 2.0 * dy * tf.stop_gradient(residual) * (3.0 * x * x - 1.0)


right(nested_softplus, X4)
wrong(nested_softplus_curvature, X4, order=2, said="The rule of `slope`")
wrong(nested_power, X4, order=2, said="It is 0.333333 times the correct gradient.")
wrong(nested_of_upstream, X3, order=2, said="the direct dependence on x is lost")
wrong(solver_in_numpy, X3, order=2, said="takes NumPy or Python values from a tensor")
wrong(detached_residual, X3, order=2, said="uses `stop_gradient`")


# Mistakes that one edit of the rule corrects -------------------------------------------------


@tf.custom_gradient
def row_variances(x):
    """The mean is taken over the other axis."""
    y, n = tf.math.reduce_variance(x, axis=1), x.shape[1]
    return y, lambda dy: dy[:, None] * 2.0 * (x - tf.reduce_mean(x, 0, keepdims=True)) / n


@tf.custom_gradient
def row_norms(x):
    """The norms of the other axis are in the gradient."""
    y = tf.sqrt(tf.reduce_sum(x * x, axis=1, keepdims=True))
    return y, lambda dy: dy * x / tf.sqrt(tf.reduce_sum(x * x, axis=0, keepdims=True))


@tf.custom_gradient
def row_log_sums(x):
    """The softmax is over the other axis."""
    y = tf.reduce_logsumexp(x, axis=1)
    return y, lambda dy: dy[:, None] * tf.nn.softmax(x, axis=0)


@tf.custom_gradient
def square_of_integers(x):
    """The slope is rounded towards zero."""
    return x * x, lambda dy: 2.0 * dy * tf.cast(tf.cast(x, tf.int32), tf.float64)


@tf.custom_gradient
def log_determinant_of_symmetric_part(a):
    """The inverse is that of the matrix, not of its symmetric part."""
    factor = tf.linalg.cholesky(0.5 * (a + tf.transpose(a)))
    value = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))
    return value, lambda dy: dy * tf.linalg.inv(a)


@tf.custom_gradient
def gelu_of_four_digits(x):
    """The factor 1 / sqrt(2 pi) has four digits."""
    cdf = 0.5 * (1.0 + tf.math.erf(x / np.sqrt(2.0)))
    return x * cdf, lambda dy: dy * (cdf + 0.3989 * x * tf.exp(-0.5 * x * x))


@tf.custom_gradient
def cosines(a):
    """The result of the round before is held constant."""
    x = tf.ones_like(a)
    for _ in range(4):
        before = x
        x = tf.cos(a * x)
    return x, lambda dy: -dy * tf.sin(a * before) * before


wrong(row_variances, BATCH, said="The rule has axis 0 where it needs axis 1.")
wrong(row_norms, BATCH, said="The rule has axis 0 where it needs axis 1.")
wrong(row_log_sums, BATCH, said="The rule has axis 0 where it needs axis 1.")
wrong(
    square_of_integers,
    X3 + 0.2,
    said="`tf.cast(x, tf.int32)` drops the digits after the decimal point.",
)
wrong(
    log_determinant_of_symmetric_part,
    MATRIX,
    said="The rule is right only if a is symmetric. Use the symmetric part.",
)
wrong(
    gelu_of_four_digits,
    X3,
    said="Is the number 0.3989 meant to be 1 / np.sqrt(2.0 * np.pi) = 0.39894228? This would "
    "explain the error.",
)
wrong(
    cosines,
    np.array([0.4, 1.3, 2.1]),
    said="The rule treats the value of `x` in step 3 of 4 as a constant, but this value depends "
    "on a.",
    has_code=False,
)
