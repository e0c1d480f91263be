"""Keras's ``keras.random``."""

from __future__ import annotations

from .._spellings.spell import spell

_TABLE = """
    dropout(inputs, rate, noise_shape=None, seed=None) = dropout(inputs, rate, noise_shape, seed)
    normal(shape, mean=0.0, stddev=1.0, dtype=None, seed=None)
        = normal(shape, mean, stddev, dtype or float32, seed)
        # Draws, float32 by default, from the normal distribution of the given mean and standard
        deviation.
    uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None)
        = uniform(shape, minval, maxval, dtype or float32, seed)
        # Draws, float32 by default, from [minval, maxval).
"""
spell(globals(), _TABLE)
