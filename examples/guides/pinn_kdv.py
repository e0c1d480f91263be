"""Physics-informed network for the Korteweg-de Vries equation u_t + 6 u u_x + u_xxx = 0.

M. Raissi, P. Perdikaris and G. Karniadakis, "Physics-informed neural networks" (2019). The loss
contains the third derivative of the network, and training differentiates it once more.
"""

import numpy as np

import tinygrad_cg as tf

rng = np.random.default_rng(2)


class Net(tf.Module):
    def __init__(self, layers):
        super().__init__()
        self.weights, self.biases = [], []
        for n_in, n_out in zip(layers[:-1], layers[1:]):
            scale = np.sqrt(2.0 / (n_in + n_out))
            self.weights.append(tf.Variable(scale * rng.standard_normal((n_in, n_out))))
            self.biases.append(tf.Variable(tf.zeros([1, n_out], dtype=tf.float64)))

    @tf.Module.with_name_scope
    def __call__(self, t, x):
        h = tf.concat([t, x], axis=1)
        for w, b in zip(self.weights[:-1], self.biases[:-1]):
            h = tf.tanh(tf.add(tf.matmul(h, w), b))
        return h @ self.weights[-1] + self.biases[-1]


net = Net([2, 12, 12, 1])


def residual(t, x):
    with tf.GradientTape() as third:
        third.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape(persistent=True) as first:
                first.watch([t, x])
                u = net(t, x)
            u_t = first.gradient(u, t)
            u_x = first.gradient(u, x)
        u_xx = second.gradient(u_x, x)
    u_xxx = third.gradient(u_xx, x)
    return u_t + 6.0 * u * u_x + u_xxx


def soliton(t, x, speed=1.0):
    return speed / 2 / tf.cosh(tf.sqrt(speed) / 2 * (x - speed * t)) ** 2


x0 = tf.constant(np.linspace(-5, 5, 20)[:, None])
t0 = tf.zeros_like(x0)
u0 = soliton(t0, x0, tf.constant(1.0, tf.float64))
t_in = tf.constant(rng.uniform(0, 1, (40, 1)))
x_in = tf.constant(rng.uniform(-5, 5, (40, 1)))
optimizer = tf.keras.optimizers.Adam(
    tf.keras.optimizers.schedules.ExponentialDecay(0.01, decay_steps=2, decay_rate=0.9)
)


@tf.function
def train_step():
    with tf.GradientTape() as tape:
        data_loss = tf.reduce_mean(tf.square(net(t0, x0) - u0))
        physics_loss = tf.reduce_mean(tf.square(residual(t_in, x_in)))
        loss = data_loss + physics_loss
    variables = net.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return data_loss, physics_loss


for epoch in range(5):
    data_loss, physics_loss = train_step()
    tf.print("epoch", epoch, "data", data_loss, "physics", physics_loss)
    print(f"epoch {epoch}: data {data_loss.numpy():.10f}, physics {physics_loss.numpy():.10f}")
print(f"prediction {tf.squeeze(net(t0, x0))[10].numpy():.10f}, soliton {u0[10, 0].numpy():.10f}")
