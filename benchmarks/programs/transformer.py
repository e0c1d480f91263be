"""A transformer block: attention with a causal mask, normalization and two dense layers.

A. Vaswani et al., "Attention is all you need" (2017).
"""

import tinygrad_cg as tf
from benchmarks.programs.data import layers, normal

BATCH, LENGTH, WIDTH, HEADS = 8, 32, 64, 4
size = WIDTH // HEADS
queries_keys_values = tf.Variable(layers(WIDTH, 3 * WIDTH)[0])
mixing = tf.Variable(layers(WIDTH, WIDTH)[0])
w1, b1, w2, b2 = [tf.Variable(array) for array in layers(WIDTH, 4 * WIDTH, WIDTH)]
scales = [tf.Variable(tf.ones(WIDTH)) for _ in range(2)]
offsets = [tf.Variable(tf.zeros(WIDTH)) for _ in range(2)]
variables = [queries_keys_values, mixing, w1, b1, w2, b2, *scales, *offsets]
x = tf.constant(normal(BATCH, LENGTH, WIDTH))
target = tf.roll(x, shift=-1, axis=1)
mask = tf.linalg.band_part(tf.ones((LENGTH, LENGTH)), -1, 0)
optimizer = tf.keras.optimizers.Adam(1e-3)


def normalize(x, scale, offset):
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale + offset


def heads(x):
    return tf.transpose(tf.reshape(x, (BATCH, LENGTH, HEADS, size)), (0, 2, 1, 3))


def attention(x):
    q, k, v = [heads(part) for part in tf.split(x @ queries_keys_values, 3, axis=-1)]
    scores = tf.matmul(q, k, transpose_b=True) / size**0.5
    scores = tf.where(mask > 0, scores, -1e9)
    mixed = tf.transpose(tf.nn.softmax(scores) @ v, (0, 2, 1, 3))
    return tf.reshape(mixed, (BATCH, LENGTH, WIDTH)) @ mixing


def block(x):
    x = x + attention(normalize(x, scales[0], offsets[0]))
    hidden = tf.nn.gelu(normalize(x, scales[1], offsets[1]) @ w1 + b1)
    return x + hidden @ w2 + b2


@tf.function
def train():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((block(x) - target) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss


for _ in range(30):
    loss = train()
print(f"loss {loss.numpy():.6f}")

# What TensorFlow 2.21 prints:
# loss 1.189011
