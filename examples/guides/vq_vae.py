"""VQ-VAE: a discrete code, a straight-through gradient, and a codebook of moving averages.

A. van den Oord, O. Vinyals and K. Kavukcuoglu, "Neural discrete representation learning" (2017).
"""

import numpy as np

import tinygrad_cg as tf

rng = np.random.default_rng(3)
CODES, DIM, DECAY, EPSILON, COMMITMENT = 8, 4, 0.9, 1e-5, 0.25


def he(*shape):
    return (rng.normal(size=shape) * np.sqrt(2 / np.prod(shape[:-1]))).astype("float32")


class Quantizer(tf.Module):
    def __init__(self):
        super().__init__(name="quantizer")
        codebook = rng.uniform(-1, 1, size=(CODES, DIM)).astype("float32")
        self.codebook = tf.Variable(codebook, trainable=False, name="codebook")
        self.counts = tf.Variable(tf.ones(CODES), trainable=False, name="counts")
        self.sums = tf.Variable(self.codebook.read_value(), trainable=False, name="sums")

    def __call__(self, z, training=False):
        flat = tf.reshape(z, [-1, DIM])
        distances = (
            tf.reduce_sum(flat**2, axis=1, keepdims=True)
            - 2 * tf.matmul(flat, self.codebook, transpose_b=True)
            + tf.reduce_sum(self.codebook**2, axis=1)
        )
        indices = tf.argmin(distances, axis=1, output_type=tf.int32)
        codes = tf.reshape(tf.nn.embedding_lookup(self.codebook, indices), tf.shape(z))
        if training:
            n = tf.reduce_sum(tf.one_hot(indices, CODES), axis=0)
            total = tf.math.unsorted_segment_sum(flat, indices, num_segments=CODES)
            self.counts.assign(DECAY * self.counts + (1 - DECAY) * n)
            self.sums.assign_sub((1 - DECAY) * (self.sums - total))
            size = tf.reduce_sum(self.counts)
            smooth = (self.counts + EPSILON) / (size + CODES * EPSILON) * size
            self.codebook.assign(self.sums / tf.expand_dims(smooth, -1))
        loss = COMMITMENT * tf.reduce_mean((z - tf.stop_gradient(codes)) ** 2)
        codes = z + tf.stop_gradient(codes - z)
        shares = tf.reduce_mean(tf.one_hot(indices, CODES), axis=0)
        perplexity = tf.exp(-tf.reduce_sum(shares * tf.math.log(shares + 1e-10)))
        return codes, loss, perplexity


class Autoencoder(tf.Module):
    def __init__(self):
        super().__init__()
        self.down = tf.Variable(he(4, 4, 1, 8), name="down")
        self.mix = tf.Variable(he(1, 1, 8, DIM), name="mix")
        self.up = tf.Variable(he(4, 4, 1, DIM), name="up")
        self.quantizer = Quantizer()

    def __call__(self, images, training=False):
        h = tf.nn.relu(tf.nn.conv2d(images, self.down, strides=2, padding="SAME"))
        z = tf.nn.conv2d(h, self.mix, strides=[1, 1, 1, 1], padding="VALID")
        codes, loss, perplexity = self.quantizer(z, training=training)
        shape = tf.shape(images)
        out = tf.nn.conv2d_transpose(codes, self.up, output_shape=shape, strides=2)
        return tf.nn.sigmoid(out), loss, perplexity


model = Autoencoder()
optimizer = tf.keras.optimizers.Adam(0.01)
images = tf.constant(rng.uniform(size=(6, 8, 8, 1)) > 0.5)
images = tf.cast(images, tf.float32)


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        decoded, commitment, perplexity = model(batch, training=True)
        loss = tf.reduce_mean(tf.math.squared_difference(decoded, batch)) + commitment
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss, perplexity


for step in range(5):
    loss, perplexity = train_step(images)
    print(f"step {step}: loss {loss.numpy():.6f}, perplexity {perplexity.numpy():.5f}")
print(
    "codebook", tf.reduce_sum(tf.abs(model.quantizer.codebook), axis=-1).numpy().round(5).tolist()
)
print("trainable", [v.shape.as_list() for v in model.trainable_variables])
