"""Gaussian process regression: hyperparameters by the marginal likelihood.

C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), 2.2, 5.4.
"""

import numpy as np

import tinygrad_cg as tf

rng = np.random.default_rng(10)
N = 25
x = np.sort(rng.uniform(-3, 3, size=(N, 2)), axis=0)
y = np.sin(2 * x[:, 0]) + 0.5 * x[:, 1] + 0.1 * rng.normal(size=N)
X = tf.convert_to_tensor(x)
Y = tf.convert_to_tensor(y)[:, tf.newaxis]


class GP(tf.Module):
    def __init__(self, X, Y, jitter=1e-6):
        super().__init__(name="gp")
        self.X, self.Y, self.jitter = X, Y, jitter
        self.raw_scales = tf.Variable(tf.zeros([X.shape[-1]], dtype=X.dtype), name="raw_scales")
        self.raw_amplitude = tf.Variable(0.0, dtype=tf.float64, name="raw_amplitude")
        self.raw_noise = tf.Variable(-2.0, dtype=tf.float64, name="raw_noise")

    def kernel(self, a, b):
        scales = tf.math.softplus(self.raw_scales)
        gap = tf.expand_dims(a / scales, -2) - tf.expand_dims(b / scales, -3)
        squares = tf.reduce_sum(tf.square(gap), axis=-1)
        return tf.math.softplus(self.raw_amplitude) ** 2 * tf.exp(-0.5 * squares)

    def _factor(self):
        K = self.kernel(self.X, self.X)
        noise = tf.math.softplus(self.raw_noise) ** 2
        K = tf.linalg.set_diag(K, tf.linalg.diag_part(K) + noise + self.jitter)
        return tf.linalg.cholesky(K)

    @tf.function
    def log_marginal_likelihood(self):
        L = self._factor()
        alpha = tf.linalg.cholesky_solve(L, self.Y)
        n = tf.cast(tf.shape(self.Y)[0], tf.float64)
        fit = tf.reduce_sum(self.Y * alpha)
        log_det = 2.0 * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(L)))
        return -0.5 * (fit + log_det + n * np.log(2 * np.pi))

    def predict(self, X_new):
        L = self._factor()
        K_new = self.kernel(self.X, X_new)
        A = tf.linalg.triangular_solve(L, K_new, lower=True)
        V = tf.linalg.triangular_solve(L, self.Y)
        mean = tf.matmul(A, V, transpose_a=True)
        variance = tf.linalg.diag_part(self.kernel(X_new, X_new)) - tf.reduce_sum(A**2, axis=0)
        return tf.squeeze(mean, axis=1), variance


gp = GP(X, Y)
optimizer = tf.keras.optimizers.Adam(learning_rate=0.1)
for step in range(5):
    with tf.GradientTape() as tape:
        loss = -gp.log_marginal_likelihood()
    gradients = tape.gradient(loss, gp.trainable_variables)
    optimizer.apply_gradients(zip(gradients, gp.trainable_variables))
    print(f"step {step}: {loss.numpy():.9f}, gradient of the noise {gradients[1].numpy():.9f}")

X_new = tf.constant([[0.0, 0.0], [1.0, -1.0], [10.0, 10.0]], dtype=tf.float64)
mean, variance = gp.predict(X_new)
print("mean", mean.numpy().round(8).tolist(), "variance", variance.numpy().round(8).tolist())
with tf.GradientTape() as tape:
    tape.watch(X_new)
    mean, variance = gp.predict(X_new)
slopes = tape.gradient(mean, X_new)
print("slopes", slopes.numpy().round(8).tolist())
draws = mean[None] + tf.math.sqrt(variance) * tf.constant(rng.normal(size=(4, 3)))
quantity = tf.math.reduce_std(draws, axis=0)
print("spread", quantity.numpy().round(8).tolist(), tf.rank(draws).numpy(), tf.size(draws).numpy())
