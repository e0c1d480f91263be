"""Losses of blocks, in a module that other processes import."""

import numpy as np

import tinygrad_cg as tf


def logistic(w, x, y):
    """The negative log-likelihood of a logistic regression, summed over a block."""
    z = tf.linalg.matvec(x, w)
    return tf.reduce_sum(tf.nn.softplus(z) - y * z)


def mean_logistic(w, x, y):
    return logistic(w, x, y) / tf.cast(tf.shape(y)[0], w.dtype)


def fitted(w, x, y):
    """The residuals of a block."""
    return tf.sigmoid(tf.linalg.matvec(x, w)) - y


def data(rows=10_000, columns=12, seed=1):
    """Return a design matrix, labels and parameters."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, columns))
    w = generator.normal(size=columns)
    y = (generator.uniform(size=rows) < 1 / (1 + np.exp(-x @ w))).astype(float)
    return x, y, 0.5 * w


def read_rows(key):
    """Return the rows of the arrays in an .npz file that a path and two numbers name."""
    path, start, stop = key
    with np.load(path) as arrays:
        return arrays["x"][start:stop], arrays["y"][start:stop]
