"""Normalizing flow: affine couplings and invertible linear maps, trained by maximum likelihood.

L. Dinh, J. Sohl-Dickstein and S. Bengio, "Density estimation using real NVP" (2017);
D. Kingma and P. Dhariwal, "Glow" (2018).
"""

import numpy as np

import tinygrad_cg as tf

rng = np.random.default_rng(8)
DIM, HIDDEN = 4, 16


class Coupling(tf.Module):
    def __init__(self, name=None):
        super().__init__(name=name)
        half = DIM // 2
        self.w1 = tf.Variable(rng.normal(size=(half, HIDDEN)) / np.sqrt(half), dtype=tf.float32)
        self.b1 = tf.Variable(tf.zeros([HIDDEN]))
        self.w2 = tf.Variable(0.1 * rng.normal(size=(HIDDEN, DIM)), dtype=tf.float32)

    def _scale_and_shift(self, x):
        h = tf.nn.swish(x @ self.w1 + self.b1) @ self.w2
        log_scale, shift = tf.split(h, 2, axis=-1)
        return tf.tanh(log_scale), shift

    def forward(self, x):
        a, b = x[..., : DIM // 2], x[..., DIM // 2 :]
        log_scale, shift = self._scale_and_shift(a)
        y = tf.concat([a, b * tf.exp(log_scale) + shift], -1)
        return y, tf.reduce_sum(log_scale, axis=-1)

    def inverse(self, y):
        a, b = tf.split(y, [DIM // 2, -1], axis=-1)
        log_scale, shift = self._scale_and_shift(a)
        return tf.concat((a, (b - shift) * tf.exp(-log_scale)), axis=-1)


class InvertibleLinear(tf.Module):
    def __init__(self, name=None):
        super().__init__(name=name)
        q, _ = np.linalg.qr(rng.normal(size=(DIM, DIM)))
        self.w = tf.Variable(q, dtype=tf.float32, name="w")

    def forward(self, x):
        log_det = tf.linalg.slogdet(self.w).log_abs_determinant
        return tf.linalg.matvec(self.w, x), log_det * tf.ones(tf.shape(x)[:-1])

    def inverse(self, y):
        return tf.transpose(tf.linalg.solve(self.w, tf.transpose(y)))


flow = tf.Module()
flow.steps = [Coupling(), InvertibleLinear(), Coupling(), InvertibleLinear()]


def log_prob(x):
    total = tf.zeros(x.shape[:1])
    for step in flow.steps:
        x, log_det = step.forward(x)
        total += log_det
    normal = -0.5 * tf.reduce_sum(x**2 + tf.math.log(2 * np.pi), axis=1)
    return normal + total, x


def sample(z):
    for step in reversed(flow.steps):
        z = step.inverse(z)
    return z


optimizer = tf.optimizers.Adam(learning_rate=5e-3)
mean_loss = tf.keras.metrics.Mean(name="nll")


@tf.function(reduce_retracing=True)
def train_step(x):
    with tf.GradientTape() as tape:
        loss = -tf.reduce_mean(log_prob(x)[0])
    grads = tape.gradient(loss, flow.trainable_variables)
    optimizer.apply_gradients(list(zip(grads, flow.trainable_variables)))
    return loss


mixing = rng.normal(size=(DIM, DIM))
data = (rng.standard_t(5, size=(96, DIM)) @ mixing / 2).astype(np.float32)
for epoch in range(2):
    mean_loss.reset_state()
    for batch in tf.data.Dataset.from_tensor_slices(data).batch(32):
        mean_loss(train_step(batch))
    print(f"epoch {epoch}: negative log-likelihood {mean_loss.result().numpy():.6f}")

x = tf.constant(data[:3])
_, z = log_prob(x)
tf.debugging.assert_near(sample(z), x, atol=1e-4)
with tf.GradientTape() as tape:
    tape.watch(x)
    logp, z = log_prob(x)
_, by_jacobian = tf.linalg.slogdet(tape.batch_jacobian(z, x))
by_jacobian += tf.reduce_sum(-0.5 * (z**2 + np.log(2 * np.pi).astype("float32")), -1)
print("log p", logp.numpy().round(4).tolist(), by_jacobian.numpy().round(4).tolist())
