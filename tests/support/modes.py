"""Functions made of operations: their derivatives, and the same numbers in every mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.op_cases import numeric_gradients


def assert_right_in_all_modes(function: Callable[..., Any], *arrays: Any) -> None:
    """Compare a real function of float64 arrays in reverse, forward, batched and compiled modes.

    The first and the second derivatives are compared with differences.
    """
    arrays = tuple(np.asarray(array, np.float64) for array in arrays)
    rng = np.random.default_rng(7)
    weights = rng.uniform(0.5, 1.5, np.shape(function(*map(tf.constant, arrays))))
    ways = [rng.uniform(0.5, 1.5, array.shape) for array in arrays]

    def loss(*operands):
        return tf.reduce_sum(tf.multiply(function(*operands), weights))

    def first(*operands):
        gradients = tf.grad(loss, argnums=tuple(range(len(arrays))))(*operands)
        return [np.asarray(gradient) for gradient in gradients]

    def slope(*operands):
        gradients = tf.grad(loss, argnums=tuple(range(len(arrays))))(*operands)
        return sum(
            tf.reduce_sum(gradient * way) for gradient, way in zip(gradients, ways, strict=True)
        )

    positions = list(range(len(arrays)))
    tensors = [tf.constant(array) for array in arrays]
    gradients = first(*tensors)
    value = lambda *moved: float(loss(*map(tf.constant, moved)))
    for actual, expected in zip(
        gradients, numeric_gradients(value, arrays, positions, 1e-5), strict=True
    ):
        assert_allclose(actual, expected, rtol=1e-6, atol=1e-8)
    second = tf.grad(slope, argnums=tuple(positions))(*tensors)
    way = lambda *moved: float(slope(*map(tf.constant, moved)))
    for actual, expected in zip(
        second, numeric_gradients(way, arrays, positions, 1e-5), strict=True
    ):
        assert_allclose(np.asarray(actual), expected, rtol=2e-6, atol=2e-7)
    primals, tangents = tuple(tensors), tuple(map(tf.constant, ways))
    out, tangent = tf.jvp(loss, primals, tangents)
    assert_allclose(float(tangent), float(slope(*tensors)), rtol=1e-12)
    compiled = tf.function(function)
    expected = np.asarray(function(*tensors))
    assert_allclose(np.asarray(compiled(*tensors)), expected, rtol=1e-12, atol=1e-14)
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        out = tf.reduce_sum(compiled(*tensors) * weights)
    for actual, expected_gradient in zip(tape.gradient(out, tensors), gradients, strict=True):
        assert_allclose(np.asarray(actual), expected_gradient, rtol=1e-12, atol=1e-14)
    stacked = [tf.constant(np.stack([array, array * 0.75])) for array in arrays]
    batched = np.asarray(tf.vmap(function)(*stacked))
    for i in range(2):
        expected_gradient = np.asarray(function(*[x[i] for x in stacked]))
        assert_allclose(batched[i], expected_gradient, rtol=1e-12, atol=1e-14)
