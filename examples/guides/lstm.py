"""A character model: an LSTM, unrolled over time, with clipped gradients.

S. Hochreiter and J. Schmidhuber, "Long short-term memory" (1997).
"""

import numpy as np

import tinygrad_cg as tf

TEXT = "the quick brown fox jumps over the lazy dog and the dog sleeps on " * 4
UNITS, BATCH, LENGTH = 16, 4, 12
rng = np.random.default_rng(11)
vocabulary = sorted(set(TEXT))
codes = np.array([vocabulary.index(c) for c in TEXT], dtype=np.int32)


def glorot(*shape):
    limit = np.sqrt(6 / sum(shape))
    return rng.uniform(-limit, limit, size=shape).astype(np.float32)


class LSTMCell(tf.Module):
    def __init__(self, n_in, units):
        super().__init__(name="lstm")
        self.units = units
        q, _ = np.linalg.qr(rng.normal(size=(4 * units, units)))
        self.kernel = tf.Variable(glorot(n_in, 4 * units), name="kernel")
        self.recurrent = tf.Variable(q.T.astype(np.float32), name="recurrent")
        bias = tf.concat([tf.zeros(units), tf.ones(units), tf.zeros(2 * units)], axis=0)
        self.bias = tf.Variable(bias, name="bias")

    def zero_state(self, batch):
        return tf.zeros([batch, self.units]), tf.zeros([batch, self.units])

    def __call__(self, x, state):
        h, c = state
        z = tf.matmul(x, self.kernel) + tf.matmul(h, self.recurrent) + self.bias
        i, f, g, o = tf.split(z, num_or_size_splits=4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return h, (h, c)


class CharModel(tf.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding = tf.Variable(glorot(size, 8), name="embedding")
        self.cell = LSTMCell(8, UNITS)
        self.out = tf.Variable(glorot(UNITS, size), name="out")

    def __call__(self, tokens, state=None):
        batch, length = tokens.shape
        state = self.cell.zero_state(batch) if state is None else state
        one_hot = tf.one_hot(tokens, self.embedding.shape[0])
        inputs = tf.einsum("btv,ve->bte", one_hot, self.embedding)
        outputs = tf.TensorArray(tf.float32, size=length)
        for t in range(length):
            h, state = self.cell(inputs[:, t], state)
            outputs = outputs.write(t, h)
        hidden = tf.transpose(outputs.stack(), perm=[1, 0, 2])
        return tf.tensordot(hidden, self.out, axes=[[2], [0]]), state


model = CharModel(len(vocabulary))
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function(
    input_signature=[
        tf.TensorSpec(shape=[BATCH, LENGTH + 1], dtype=tf.int32),
        tf.TensorSpec([BATCH], tf.int32),
    ]
)
def train_step(sequences, lengths):
    inputs, targets = sequences[:, :-1], sequences[:, 1:]
    mask = tf.sequence_mask(lengths, maxlen=LENGTH, dtype=tf.float32)
    with tf.GradientTape() as tape:
        logits, _ = model(inputs)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
        loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
    gradients = tape.gradient(loss, model.trainable_variables)
    clipped, norm = tf.clip_by_global_norm(gradients, clip_norm=1.0)
    optimizer.apply_gradients(zip(clipped, model.trainable_variables))
    return loss, norm


for step in range(5):
    starts = rng.integers(0, len(codes) - LENGTH - 1, size=BATCH)
    sequences = np.stack([codes[s : s + LENGTH + 1] for s in starts])
    lengths = rng.integers(LENGTH // 2, LENGTH + 1, size=BATCH)
    loss, norm = train_step(tf.constant(sequences), tf.constant(lengths, dtype=tf.int32))
    print(f"step {step}: loss {loss.numpy():.6f}, norm of the gradient {norm.numpy():.6f}")

token, state, text = tf.constant([[vocabulary.index("t")]]), None, "t"
for _ in range(5):
    logits, state = model(token, state)
    values, token = tf.math.top_k(logits[:, -1], k=1)
    text += vocabulary[int(token[0, 0])]
print("greedy:", text, f"{float(values[0, 0]):.6f}")
print("shapes", {v.name: v.shape.as_list() for v in model.trainable_variables})
