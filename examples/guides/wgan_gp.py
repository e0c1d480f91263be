"""Wasserstein GAN with gradient penalty: the critic's loss contains a gradient of the critic.

I. Gulrajani et al., "Improved training of Wasserstein GANs" (2017).
"""

import numpy as np

import tinygrad_cg as tf

rng = np.random.default_rng(0)
LATENT, HIDDEN, BATCH, PENALTY = 4, 16, 32, 10.0


class Dense(tf.Module):
    def __init__(self, n_in, n_out, activation=None, name=None):
        super().__init__(name=name)
        kernel = rng.normal(scale=np.sqrt(2 / (n_in + n_out)), size=(n_in, n_out))
        self.kernel = tf.Variable(kernel, dtype=tf.float32, name="kernel")
        self.bias = tf.Variable(tf.zeros([n_out]), name="bias")
        self.activation = activation

    def __call__(self, x):
        y = tf.matmul(x, self.kernel) + self.bias
        return y if self.activation is None else self.activation(y)


class Network(tf.Module):
    def __init__(self, sizes, activation, name=None):
        super().__init__(name)
        last = len(sizes) - 2
        self.layers = [
            Dense(a, b, activation if i < last else None)
            for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:]))
        ]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


generator = Network([LATENT, HIDDEN, 2], tf.nn.relu, name="generator")
critic = Network([2, HIDDEN, HIDDEN, 1], lambda x: tf.nn.leaky_relu(x, alpha=0.2), name="critic")
generator_optimizer = tf.keras.optimizers.Adam(1e-3, beta_1=0.5, beta_2=0.9)
critic_optimizer = tf.keras.optimizers.Adam(learning_rate=1e-3, beta_1=0.5, beta_2=0.9)


def gradient_penalty(real, fake, alpha):
    mixed = real + alpha * (fake - real)
    with tf.GradientTape() as tape:
        tape.watch(mixed)
        scores = critic(mixed)
    slopes = tape.gradient(scores, mixed)
    lengths = tf.sqrt(tf.reduce_sum(tf.square(slopes), axis=[1]))
    return tf.reduce_mean((lengths - 1.0) ** 2)


@tf.function
def train_critic(real, noise, alpha):
    with tf.GradientTape() as tape:
        fake = generator(noise)
        wasserstein = tf.reduce_mean(critic(real)) - tf.reduce_mean(critic(fake))
        penalty = gradient_penalty(real, fake, alpha)
        loss = -wasserstein + PENALTY * penalty
    gradients = tape.gradient(loss, critic.trainable_variables)
    critic_optimizer.apply_gradients(zip(gradients, critic.trainable_variables))
    return wasserstein, penalty


@tf.function
def train_generator(noise):
    with tf.GradientTape() as tape:
        loss = -tf.reduce_mean(critic(generator(noise)))
    gradients = tape.gradient(loss, generator.trainable_variables)
    generator_optimizer.apply_gradients(zip(gradients, generator.trainable_variables))
    return loss


def normal(*shape):
    return tf.constant(rng.normal(size=shape), dtype=tf.float32)


for step in range(3):
    for _ in range(3):
        angle = rng.uniform(0, 2 * np.pi, size=BATCH)
        real = tf.constant(np.stack([np.cos(angle), np.sin(angle)], axis=1), tf.float32)
        alpha = tf.constant(rng.uniform(size=(BATCH, 1)), tf.float32)
        wasserstein, penalty = train_critic(real, normal(BATCH, LATENT), alpha)
    loss = train_generator(normal(BATCH, LATENT))
    print(
        f"step {step}: distance {wasserstein.numpy():.6f}, penalty {penalty.numpy():.6f},", end=" "
    )
    print(f"generator {loss.numpy():.6f}")
print("samples", generator(normal(2, LATENT)).numpy().round(5).tolist())
