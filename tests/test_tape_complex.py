"""Gradients over complex values: the original's conjugate convention (BEHAVIOUR 2.1)."""

import numpy as np
import pytest

import tinygrad_cg as tf


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda z: z * z, 2 - 4j),
        (lambda z: tf.math.real(z * tf.math.conj(z)), 2 + 4j),
        (lambda z: tf.math.real(z), 1),
        (lambda z: tf.math.imag(z), 1j),
        (lambda z: tf.abs(z), (1 + 2j) / np.sqrt(5)),
    ],
    ids=["z*z", "real(z*conj z)", "real", "imag", "abs"],
)
def test_convention(function, expected, dtype):
    """2.1, complex: at z=1+2j."""
    z = tf.constant(1 + 2j, dtype=dtype)
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = function(z)
    gradient = tape.gradient(y, z)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-6)
