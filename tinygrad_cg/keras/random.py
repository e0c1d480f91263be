"""Keras's ``keras.random``."""

from __future__ import annotations

from .._ops.settings import settings  # noqa: F401 (the table reads it)
from .._spellings.spell import spell

_TABLE = """
    beta(shape, alpha, beta, dtype=None, seed=None)
        = beta_draws(shape, alpha, beta, dtype or settings.floatx, seed)
        # Return draws of `shape`, float32 by default, from beta distributions; no gradient.
    binomial(shape, counts, probabilities, dtype=None, seed=None)
        = binomial_draws(shape, counts, probabilities, dtype or settings.floatx, seed)
        # Return draws of `shape`: how many of `counts` trials of these probabilities succeed.
    categorical(logits, num_samples, dtype="int32", seed=None)
        = categorical(logits, num_samples, dtype, seed)
    gamma(shape, alpha, dtype=None, seed=None)
        = gamma_of_shape(shape, alpha, None, dtype or settings.floatx, seed)
        # Return draws of `shape` from gamma distributions of shapes `alpha`; it has no gradient.
    randint(shape, minval, maxval, dtype="int32", seed=None)
        = uniform(shape, minval, maxval, dtype, seed)
        # Return integers of `shape` from [minval, maxval).
    shuffle(x, axis=0, seed=None) = shuffle(x, axis, seed)
    truncated_normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None)
        = truncated_normal(shape, mean, stddev, dtype or settings.floatx, seed)
        # Return draws, float32 by default, from the normal distribution of the given mean and
        standard deviation that lie within two deviations.
    dropout(inputs, rate, noise_shape=None, seed=None) = dropout(inputs, rate, noise_shape, seed)
    normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None)
        = normal(shape, mean, stddev, dtype or settings.floatx, seed)
        # Draws, float32 by default, from the normal distribution of the given mean and standard
        deviation.
    uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None)
        = uniform(shape, minval, maxval, dtype or settings.floatx, seed)
        # Draws, float32 by default, from [minval, maxval).
"""
spell(globals(), _TABLE)
