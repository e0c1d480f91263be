"""Kalman filter: the likelihood of a time series, and its gradient for the model parameters."""

import numpy as np

import tinygrad_cg as tf

rng = np.random.default_rng(9)
STEPS, DT = 30, 0.1
tfl = tf.linalg

F = tf.constant([[1.0, DT], [0.0, 1.0]], dtype=tf.float64)
H = tf.constant([[1.0, 0.0]], dtype=tf.float64)
log_q = tf.Variable(np.log(0.5), name="log_q")
log_r = tf.Variable(np.log(1.0), name="log_r")
drag = tf.Variable(tf.constant(0.0, tf.float64))
velocity = np.cumsum(0.3 * rng.normal(size=STEPS))
observed = tf.constant(np.cumsum(velocity) * DT + 0.2 * rng.normal(size=STEPS))


def process_noise():
    G = tf.constant([[DT**2 / 2], [DT]], tf.float64)
    return tf.exp(log_q) * tf.matmul(G, G, transpose_b=True) + 1e-6 * tf.eye(2, dtype=G.dtype)


def filter_step(state, z):
    mean, cov, _ = state
    A = F - drag * tfl.diag(tf.constant([0.0, DT], tf.float64))
    mean = tfl.matvec(A, mean)
    cov = A @ cov @ tf.transpose(A) + process_noise()
    S = H @ cov @ tf.transpose(H) + tfl.diag(tf.exp(tf.stack([log_r])))
    L = tfl.cholesky(S)
    K = tf.transpose(tfl.cholesky_solve(L, H @ cov))
    error = tf.expand_dims(z, 0) - tfl.matvec(H, mean)
    white = tfl.triangular_solve(L, error[:, None], lower=True)
    log_likelihood = -0.5 * (
        tf.reduce_sum(white**2)
        + 2 * tf.reduce_sum(tf.math.log(tfl.diag_part(L)))
        + tf.math.log(tf.constant(2 * np.pi, tf.float64))
    )
    mean = mean + tfl.matvec(K, error)
    I_KH = tf.eye(2, dtype=tf.float64) - K @ H
    cov = I_KH @ cov @ tf.transpose(I_KH) + K @ tf.transpose(K) * tf.exp(log_r)
    return mean, cov, log_likelihood


def run_filter(zs):
    start = (tf.zeros(2, tf.float64), tf.eye(2, dtype=tf.float64), tf.zeros([], tf.float64))
    means, covs, log_likelihoods = tf.scan(filter_step, zs, initializer=start)
    return means, covs, tf.reduce_sum(log_likelihoods)


@tf.function
def predict(mean, steps):
    path = tf.TensorArray(tf.float64, size=steps)
    for i in range(steps):
        mean = tfl.matvec(F, mean)
        path = path.write(i, mean)
    return path.stack()


optimizer = tf.keras.optimizers.Adam(0.1)
variables = [log_q, log_r, drag]
for step in range(4):
    with tf.GradientTape() as tape:
        loss = -run_filter(observed)[2]
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables))
    print(f"step {step}: {loss.numpy():.8f}", [round(float(g), 8) for g in gradients])

with tf.GradientTape() as outer:
    with tf.GradientTape() as tape:
        loss = -run_filter(observed)[2]
    gradient = tf.stack(tape.gradient(loss, [log_q, log_r]))
hessian = tf.stack(outer.jacobian(gradient, [log_q, log_r]), axis=1)
print("curvature", tfl.det(hessian).numpy().round(5), hessian.numpy().round(6).tolist())
means, covs, _ = run_filter(observed)
print("last state", means[-1].numpy().round(7).tolist(), tfl.trace(covs[-1]).numpy().round(8))
print("predicted", predict(means[-1], 3)[:, 0].numpy().round(7).tolist())
