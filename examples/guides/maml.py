"""Model-agnostic meta-learning: a gradient through steps of gradient descent.

C. Finn, P. Abbeel and S. Levine, "Model-agnostic meta-learning for fast adaptation of deep
networks" (2017): regression of sine waves, a different wave for each task.
"""

import numpy as np

import tinygrad_cg as tf

rng = np.random.default_rng(1)
TASKS, SHOTS, INNER_STEPS, INNER_RATE = 2, 10, 2, 0.02


def initialize(sizes):
    parameters = []
    for i, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:])):
        weights = rng.normal(scale=fan_in**-0.5, size=(fan_in, fan_out)).astype(np.float32)
        parameters.append(tf.Variable(weights, name=f"w{i}"))
        parameters.append(tf.Variable(tf.zeros(shape=(fan_out,)), name=f"b{i}"))
    return parameters


def model(x, parameters):
    *hidden, (w, b) = zip(parameters[::2], parameters[1::2])
    for weights, bias in hidden:
        x = tf.nn.tanh(tf.linalg.matmul(x, weights) + bias)
    return tf.linalg.matmul(x, w) + b


def mse(y_true, y_pred):
    return tf.reduce_mean(tf.math.squared_difference(y_true, y_pred))


def adapt(parameters, x, y):
    """Return new parameters after a few steps on one task; they are tensors, not Variables."""
    fast = [tf.identity(p) for p in parameters]
    for _ in range(INNER_STEPS):
        with tf.GradientTape(watch_accessed_variables=False) as inner:
            inner.watch(fast)
            loss = mse(y, model(x, fast))
        gradients = inner.gradient(loss, fast)
        fast = [p - INNER_RATE * g for p, g in zip(fast, gradients)]
    return fast


def sample_tasks():
    amplitude = rng.uniform(0.1, 5.0, size=(TASKS, 1, 1))
    phase = rng.uniform(0.0, np.pi, size=(TASKS, 1, 1))
    x = rng.uniform(-5.0, 5.0, size=(TASKS, 2 * SHOTS, 1))
    y = amplitude * np.sin(x - phase)
    return tf.convert_to_tensor(x, dtype=tf.float32), tf.convert_to_tensor(y, dtype=tf.float32)


parameters = initialize([1, 20, 20, 1])
optimizer = tf.keras.optimizers.Adam(learning_rate=0.005)


@tf.function
def meta_step(x, y):
    with tf.GradientTape() as tape:
        losses = []
        for task_x, task_y in zip(tf.unstack(x), tf.unstack(y)):
            fast = adapt(parameters, task_x[:SHOTS], task_y[:SHOTS])
            losses.append(mse(task_y[SHOTS:], model(task_x[SHOTS:], fast)))
        loss = tf.add_n(losses) / TASKS
    gradients = tape.gradient(loss, parameters)
    gradients, norm = tf.clip_by_global_norm(gradients, 10.0)
    optimizer.apply_gradients(zip(gradients, parameters))
    return loss, norm


for step in range(4):
    loss, norm = meta_step(*sample_tasks())
    tf.debugging.check_numerics(loss, "the loss is not finite")
    print(f"step {step}: loss {loss:.6f}, norm of the gradient {norm:.6f}")

x, y = sample_tasks()
before = mse(y[0], model(x[0], parameters))
after = mse(y[0], model(x[0], adapt(parameters, x[0], y[0])))
print(f"a new task: {float(before):.6f} before, {float(after):.6f} after")
