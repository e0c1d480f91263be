"""Reversible residual network: activations are computed again from the outputs, not stored.

A. Gomez, M. Ren, R. Urtasun and R. Grosse, "The reversible residual network" (2017).
"""

import numpy as np

import tinygrad_cg as tf

rng = np.random.default_rng(5)
WIDTH, CLASSES, BLOCKS = 6, 3, 3


def layer_norm(x, epsilon=1e-5):
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + epsilon)


class Residual(tf.Module):
    def __init__(self, width):
        super().__init__()
        self.kernel = tf.Variable(rng.normal(size=(width, width)).astype("f4") / 2)
        self.bias = tf.Variable(np.zeros(width, "f4"))

    def __call__(self, x):
        return tf.nn.relu(tf.matmul(layer_norm(x), self.kernel) + self.bias)


class ReversibleBlock(tf.Module):
    def __init__(self, width):
        super().__init__()
        self.f, self.g = Residual(width), Residual(width)

    def inverse(self, y1, y2):
        x2 = y2 - self.g(y1)
        return y1 - self.f(x2), x2

    def __call__(self, x1, x2):
        @tf.custom_gradient
        def forward(x1, x2):
            y1 = x1 + self.f(x2)
            y2 = x2 + self.g(y1)

            def backward(dy1, dy2, variables=None):
                with tf.GradientTape() as g_tape:
                    g_tape.watch(y1)
                    g_y1 = self.g(y1)
                x2 = y2 - g_y1
                g_variables = list(self.g.trainable_variables)
                dy1_more, *g_gradients = g_tape.gradient(
                    g_y1, [y1] + g_variables, output_gradients=dy2
                )
                dx1 = dy1 + dy1_more
                with tf.GradientTape() as f_tape:
                    f_tape.watch(x2)
                    f_x2 = self.f(x2)
                f_variables = list(self.f.trainable_variables)
                dx2, *f_gradients = f_tape.gradient(f_x2, [x2] + f_variables, dx1)
                pairs = zip(g_variables + f_variables, g_gradients + f_gradients)
                by_variable = {v.ref(): gradient for v, gradient in pairs}
                return [dx1, dx2 + dy2], [by_variable[v.ref()] for v in variables]

            return (y1, y2), backward

        return forward(x1, x2)


class RevNet(tf.Module):
    def __init__(self):
        super().__init__(name="revnet")
        self.blocks = [ReversibleBlock(WIDTH) for _ in range(BLOCKS)]
        self.head = tf.Variable(rng.normal(size=(2 * WIDTH, CLASSES)).astype("f4") / 4, name="head")

    def __call__(self, x):
        x1, x2 = tf.split(x, num_or_size_splits=2, axis=-1)
        for block in self.blocks:
            x1, x2 = block(x1, x2)
        return tf.concat([x1, x2], axis=-1) @ self.head


net = RevNet()
optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
x = tf.constant(rng.normal(size=(16, 2 * WIDTH)), dtype=tf.float32)
labels = tf.constant(rng.integers(CLASSES, size=16))
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

y1, y2 = net.blocks[0](x[:, :WIDTH], x[:, WIDTH:])
tf.debugging.assert_near(tf.concat(net.blocks[0].inverse(y1, y2), -1), x, rtol=1e-4, atol=1e-4)
for step in range(5):
    with tf.GradientTape() as tape:
        loss = loss_fn(labels, net(x))
    gradients = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    size = tf.linalg.global_norm(gradients)
    print(f"step {step}: loss {loss.numpy():.6f}, size of the gradient {size.numpy():.6f}")
print("variables", len(net.trainable_variables), "modules", len(net.submodules))
