"""Gradients over complex values: the original's conjugate convention (docs/behaviour.md 2.1)."""

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


def test_an_upstream_gradient_does_not_lose_its_imaginary_part():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    with pytest.raises(TypeError, match=r"output_gradients\[0\] is complex64, .* its real part"):
        tape.gradient(y, x, output_gradients=tf.constant([1.0 + 1.0j, 2.0], dtype="complex64"))
