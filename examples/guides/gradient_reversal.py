"""Domain-adversarial training: a layer that is the identity, with its gradient reversed.

Y. Ganin and V. Lempitsky, "Unsupervised domain adaptation by backpropagation" (2015).
"""

import numpy as np

import tinygrad_cg as tf

rng = np.random.default_rng(4)
FEATURES, CLASSES, STEPS = 6, 3, 6


@tf.custom_gradient
def reverse_gradient(x, strength):
    def grad(upstream):
        return -strength * upstream, None

    return tf.identity(x), grad


def variable(*shape):
    return tf.Variable(tf.constant(rng.normal(size=shape, scale=0.3), tf.float32))


class DANN(tf.Module):
    def __init__(self):
        super().__init__(name="dann")
        self.w = variable(5, FEATURES)
        self.b = tf.Variable(tf.zeros(FEATURES))
        self.label_w = variable(FEATURES, CLASSES)
        self.domain = {"kernel": variable(FEATURES, 1), "bias": tf.Variable([0.0])}

    def features(self, x):
        return tf.nn.elu(tf.nn.bias_add(x @ self.w, self.b))

    def __call__(self, x, strength):
        h = self.features(x)
        reversed_h = reverse_gradient(h, strength)
        domain = tf.matmul(reversed_h, self.domain["kernel"]) + self.domain["bias"]
        return tf.matmul(h, self.label_w), tf.squeeze(domain, axis=-1)


model = DANN()
optimizer = tf.keras.optimizers.SGD(learning_rate=0.5, momentum=0.9, nesterov=True)
source_x = rng.normal(size=(24, 5)).astype(np.float32)
source_y = np.argmax(source_x[:, :CLASSES], axis=1)
target_x = (1.5 * rng.normal(size=(24, 5)) + 0.5).astype(np.float32)
x = tf.concat([source_x, target_x], axis=0)
domains = tf.concat([tf.ones(24), tf.zeros(24)], 0)


@tf.function
def train_step(x, labels, domains, strength):
    with tf.GradientTape() as tape:
        logits, domain_logits = model(x, strength)
        label_loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits[:24])
        )
        domain_loss = tf.reduce_mean(
            tf.nn.sigmoid_cross_entropy_with_logits(labels=domains, logits=domain_logits)
        )
        decay = 1e-3 * tf.add_n([tf.nn.l2_loss(v) for v in model.trainable_variables])
        loss = label_loss + domain_loss + decay
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return label_loss, domain_loss


for step in range(STEPS):
    strength = tf.constant(2 / (1 + np.exp(-10 * step / STEPS)) - 1, tf.float32)
    label_loss, domain_loss = train_step(x, source_y, domains, strength)
    print(f"step {step}: label {label_loss.numpy():.6f}, domain {domain_loss.numpy():.6f}")

logits, domain_logits = model(x, 0.0)
predicted = tf.argmax(tf.nn.softmax(logits[:24]), axis=-1)
accuracy = tf.reduce_mean(tf.cast(tf.equal(predicted, source_y), tf.float32))
told_apart = tf.reduce_mean(tf.cast((domain_logits > 0) == (domains > 0.5), tf.float32))
print(f"accuracy {accuracy.numpy():.4f}, domains told apart {told_apart.numpy():.4f}")
