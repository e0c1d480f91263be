"""A categorical variational autoencoder, with samples that have gradients.

E. Jang, S. Gu and B. Poole, "Categorical reparameterization with Gumbel-softmax" (2017).
"""

import numpy as np

import tinygrad_cg as tf

rng = np.random.default_rng(7)
PIXELS, VARIABLES, CLASSES, BATCH = 16, 3, 4, 20


def glorot(n_in, n_out):
    limit = np.sqrt(6 / (n_in + n_out))
    return tf.Variable(rng.uniform(-limit, limit, size=(n_in, n_out)), dtype="float32")


encoder = {
    "w1": glorot(PIXELS, 12),
    "b1": tf.Variable(tf.zeros(12)),
    "w2": glorot(12, VARIABLES * CLASSES),
}
decoder = {
    "w1": glorot(VARIABLES * CLASSES, 12),
    "w2": glorot(12, PIXELS),
    "b2": tf.Variable(tf.zeros((PIXELS,))),
}
trainable = tf.nest.flatten([encoder, decoder])


def gumbel_softmax(logits, uniform, temperature, hard=False):
    gumbel = -tf.math.log(-tf.math.log(uniform + 1e-20) + 1e-20)
    y = tf.nn.softmax((logits + gumbel) / temperature, axis=-1)
    if hard:
        y_hard = tf.cast(tf.equal(y, tf.reduce_max(y, axis=-1, keepdims=True)), y.dtype)
        y = tf.stop_gradient(y_hard - y) + y
    return y


def elbo(x, uniform, temperature, hard):
    h = tf.nn.gelu(tf.einsum("bi,ij->bj", x, encoder["w1"]) + encoder["b1"])
    logits = tf.reshape(h @ encoder["w2"], [-1, VARIABLES, CLASSES])
    q = tf.nn.softmax(logits)
    log_q = tf.nn.log_softmax(logits)
    z = gumbel_softmax(logits, uniform, temperature, hard)
    h = tf.nn.silu(tf.reshape(z, [tf.shape(x)[0], -1]) @ decoder["w1"])
    pixels = tf.matmul(h, decoder["w2"]) + decoder["b2"]
    likelihood = -tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=pixels)
    kl = tf.reduce_sum(q * (log_q - tf.math.log(1.0 / CLASSES)), axis=[1, 2])
    return tf.reduce_mean(tf.reduce_sum(likelihood, axis=1) - kl), tf.reduce_mean(kl)


schedule = tf.keras.optimizers.schedules.PiecewiseConstantDecay([2, 4], [0.01, 0.005, 0.001])
optimizer = tf.keras.optimizers.Adam(schedule)


@tf.function
def train_step(x, uniform, temperature, hard=False):
    with tf.GradientTape() as tape:
        bound, kl = elbo(x, uniform, temperature, hard)
        loss = -bound
    gradients = tape.gradient(loss, trainable)
    gradients = [tf.clip_by_norm(g, 1.0) for g in gradients]
    optimizer.apply_gradients(zip(gradients, trainable))
    return loss, kl


x = tf.cast(rng.uniform(size=(BATCH, PIXELS)) < np.linspace(0.1, 0.9, PIXELS), tf.float32)
temperature = tf.Variable(1.0, trainable=False)
for step in range(6):
    uniform = tf.constant(rng.uniform(size=(BATCH, VARIABLES, CLASSES)), tf.float32)
    loss, kl = train_step(x, uniform, temperature, hard=step >= 3)
    temperature.assign(tf.maximum(temperature * tf.exp(-0.2), 0.5))
    print(f"step {step}: loss {loss.numpy():.5f}, kl {kl.numpy():.6f}, rate", end=" ")
    print(f"{float(schedule(optimizer.iterations)):.4f}, temperature {temperature.numpy():.5f}")
