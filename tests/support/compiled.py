"""Compiled and eager functions: derivatives of both, and whether they are the same."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import tinygrad_cg as tf

unfused = functools.partial(tf.function, jit_compile=False)
"""Runs operation by operation, and compiles nothing: function/test_fused compiles."""


def same(results: Any, expected: Any, rtol: float = 1e-10, scaled: float = 0.0) -> None:
    """Check that two structures of tensors have the same dtypes and nearly the same values.

    `scaled` is the absolute tolerance for a tensor whose largest element is 1.
    """
    tf.nest.assert_same_structure(results, expected)
    for result, other in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
        assert (result is None) == (other is None)
        if result is not None:
            assert result.dtype == other.dtype
            atol = max(1e-12, scaled * np.abs(other).max(initial=0.0))
            np.testing.assert_allclose(result, other, rtol=rtol, atol=atol)


def orders(function: Callable[..., Any], x: Any, count: int = 3) -> list[Any]:
    """Return the value and the derivatives of the sum of a function, by nested tapes."""
    if not count:
        return [function(x)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        derivatives = orders(function, x, count - 1)
    return [*derivatives, None if derivatives[-1] is None else tape.gradient(derivatives[-1], x)]


def two_orders(program: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """Return a function: a program's value, its gradients, and those of the sum of their sines."""

    def run(*arguments):
        with tf.GradientTape() as outer:
            outer.watch(arguments)
            with tf.GradientTape() as tape:
                tape.watch(arguments)
                y = program(*arguments)
            first = tape.gradient(y, arguments, unconnected_gradients="zero")
            product = sum(tf.reduce_sum(tf.sin(gradient)) for gradient in first)
        second = outer.gradient(product, arguments, unconnected_gradients="zero")
        return y, *first, *second

    return run


def differentiated(example: Any, weights: tf.Tensor, part: Callable[..., Any]) -> Callable:
    """Return a function of an example's operands: its value, and gradients of two orders.

    The second are those of the sum of `part` of the first.
    """

    def derivatives(*tensors):
        sources = [tensors[i] for i in example.real()]
        with tf.GradientTape() as outer:
            outer.watch(sources)
            with tf.GradientTape() as tape:
                tape.watch(sources)
                y = example.call(*tensors)
            first = tape.gradient(y, sources, output_gradients=weights)
            parts = [tf.reduce_sum(part(gradient)) for gradient in first if gradient is not None]
        return y, first, outer.gradient(parts, sources) if parts else None

    return derivatives
