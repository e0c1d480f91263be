"""Compiled functions beside eager ones: derivatives of both, and whether they are the same."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import tinygrad_cg as tf

unfused = functools.partial(tf.function, jit_compile=False)
"""Runs operation by operation, and compiles nothing: function/test_fused compiles."""


def same(found: Any, expected: Any, rtol: float = 1e-10) -> None:
    """Check that two structures of tensors have the same dtypes and nearly the same values."""
    tf.nest.assert_same_structure(found, expected)
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-12)


def orders(function: Callable[..., Any], x: Any, count: int = 3) -> list[Any]:
    """Return the value and the derivatives of the sum of a function, by nested tapes."""
    if not count:
        return [function(x)]
    with tf.GradientTape() as tape:
        tape.watch(x)
        found = orders(function, x, count - 1)
    return [*found, None if found[-1] is None else tape.gradient(found[-1], x)]
